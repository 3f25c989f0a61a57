/** Everything that waits for a person, across sessions: one at a time, the others beside it. */

import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import type { Attention } from "../api/events.ts";
import { get, post } from "../api/keeper.ts";
import type { Item, Page } from "../api/types.ts";
import { Icon } from "../parts/icon.tsx";
import { Time } from "../parts/time.tsx";
import { askForNotifications, decided, lost, pending, requestOf, who } from "../state/attention.ts";
import { address, go } from "../state/route.ts";
import { can, cardOf, title } from "../state/sessions.ts";
import { wantsNotifications } from "../state/settings.ts";
import { plain } from "../text/safe.ts";
import { firstLine, shortened } from "../text/words.ts";
import { textOf } from "../thread/blocks.ts";
import { words } from "../thread/tool_words.ts";
import { OUTCOMES, Request } from "./request.tsx";

const chosen = signal<string | undefined>(undefined);

/** Shows the next request. */
export function nextRequest(): void {
  const all = pending.value;
  if (all.length === 0) return;
  const at = all.findIndex((it) => it.shown.id === chosen.value);
  chosen.value = all[(at + 1) % all.length]?.shown.id;
}

function summary(attention: Attention) {
  const { tool_name: name, input, cwd } = attention.shown;
  const members = (typeof input === "object" && input !== null ? input : {}) as Record<string, unknown>;
  const about = words(
    { type: "tool_use", id: "", name, input: name === "Bash" ? { command: members.command } : members },
    cwd,
    true,
  );
  const verb = { ran: "Run", edited: "Edit", wrote: "Write", fetched: "Fetch" }[about.verb] ?? about.verb;
  const command = firstLine(about.object ?? about.rest ?? "");
  return (
    <span class="cut">
      {verb} <code>{plain(name === "Bash" ? command : shortened(command, 40))}</code>
    </span>
  );
}

function session(attention: Attention): string {
  const card = cardOf(attention.shown.session_id);
  return card ? title(card) : attention.shown.session_id.slice(0, 8);
}

/** The keeper asks nothing again by itself; a prompt makes the agent try once more. */
async function askAgain(attention: Attention): Promise<void> {
  const text = "The permission request was lost when the keeper restarted. Please try that step again.";
  const body = { client_message_id: crypto.randomUUID(), parts: [{ type: "text", text }], mode: "queue" };
  await post(`/sessions/${encodeURIComponent(attention.shown.session_id)}/turns`, body).catch(() => undefined);
  go({ view: "session", session: attention.shown.session_id });
}

export function AttentionView() {
  const all = pending.value;
  const shown = (chosen.value ? requestOf(chosen.value) : undefined) ?? all[0];
  const position = all.findIndex((it) => it.shown.id === shown?.shown.id);
  useEffect(() => {
    if (!chosen.value && all[0]) chosen.value = all[0].shown.id;
  }, [all]);
  return (
    <>
      <main class="main">
        <header class="bar">
          <h1>Attention</h1>
          {all.length > 0 && <span class="count need">{all.length}</span>}
          <span class="grow" />
          {all.length > 0 && position >= 0 && (
            <span class="quiet">
              {position + 1} of {all.length}
            </span>
          )}
          {all.length > 1 && (
            <button type="button" class="bare" onClick={nextRequest}>
              Next <kbd>n</kbd>
            </button>
          )}
        </header>
        <div class="scroll">
          <div class="thread">
            {shown ? (
              <>
                <Context key={shown.shown.id} attention={shown} />
                <Request key={shown.shown.id} attention={shown} takesFocus />
              </>
            ) : (
              <Nothing />
            )}
          </div>
        </div>
      </main>
      <aside class="queue" aria-label="Requests">
        {all.length + lost.value.length + decided.value.length <= 1 && (
          <p class="quiet none">Nothing else is waiting, and nothing was decided yet.</p>
        )}
        <Group name="Also waiting" items={all.filter((it) => it !== shown)} />
        <Group name="Lost" items={lost.value.slice(0, 20)} />
        <Group name="Decided" items={decided.value.slice(0, 50)} />
      </aside>
    </>
  );
}

/** The prompt that led to a request, on the same thread. */
function Context({ attention }: { attention: Attention }) {
  const [prompt, put] = useState<Item | undefined>(undefined);
  const { session_id: id } = attention.shown;
  const { message } = attention;
  useEffect(() => {
    if (!message) return;
    const query = `around=${encodeURIComponent(message)}&limit=1`;
    let isWanted = true;
    get<Page>(`/sessions/${encodeURIComponent(id)}/messages?${query}`).then(
      (page) => isWanted && put(page.items.find((item) => item.uuid === message)),
      () => {},
    );
    return () => {
      isWanted = false;
    };
  }, [id, message]);
  return (
    <>
      <p class="row from">
        <a class="link" href={address({ view: "session", session: id, message: message ?? undefined })}>
          {plain(session(attention))}
        </a>
      </p>
      {prompt && (
        <article class="row prompt" aria-label="Prompt">
          <Time at={prompt.timestamp} />
          <span class="bead" />
          <div class="said">
            <p class="words as-typed">{plain(textOf(prompt)).slice(0, 2000)}</p>
          </div>
        </article>
      )}
    </>
  );
}

function Nothing() {
  const canNotify = typeof Notification !== "undefined" && Notification.permission !== "denied";
  return (
    <div class="nothing-here">
      <h2>Nothing needs you</h2>
      <p>
        When a session wants to run a command or change a file, it asks here, with the exact words of what it would do.
      </p>
      {!can("attention") && (
        <p class="quiet">This keeper drives no sessions: Claude Code was not found when it started.</p>
      )}
      {canNotify && !wantsNotifications.value && (
        <button type="button" onClick={() => void askForNotifications()}>
          Notify me when one does
        </button>
      )}
    </div>
  );
}

function Group({ name, items }: { name: string; items: Attention[] }) {
  if (items.length === 0) return null;
  return (
    <>
      <h2>
        {name} <span class="quiet">{items.length}</span>
      </h2>
      <ul>
        {items.map((it) => (
          <li key={it.shown.id}>
            <button type="button" class="item" onClick={() => (chosen.value = it.shown.id)}>
              <Icon
                name={
                  it.state === "pending"
                    ? "waiting"
                    : it.state === "allowed"
                      ? "ok"
                      : it.state === "denied"
                        ? "failed"
                        : "pending"
                }
                tone={it.state === "allowed" ? "good" : undefined}
              />
              {summary(it)}
              <Time at={it.state === "pending" ? it.requested_at : it.decided_at} />
              <small class="cut">
                {it.state === "pending"
                  ? firstLine(session(it))
                  : `${OUTCOMES[it.state]}${it.decided_by ? `, by ${who(it.decided_by)}` : ""} · ${session(it)}`}
              </small>
            </button>
            {it.state === "lost" && can("drive") && (
              <button type="button" class="text again" onClick={() => void askAgain(it)}>
                Continue and ask again
              </button>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}
