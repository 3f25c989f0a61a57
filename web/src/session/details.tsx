/** Beside the thread: files and checkpoints, subagents, problems, the raw line, and facts. */

import type { Card } from "../api/types.ts";
import { Copy } from "../parts/copy.tsx";
import { Grip } from "../parts/grip.tsx";
import { Icon } from "../parts/icon.tsx";
import { Ago } from "../parts/time.tsx";
import { looking } from "../state/changes.ts";
import { isChecked, isSheetOpen, problems, rewinding, subagents, type Tab, tab } from "../state/details.ts";
import { INFO, infoWidth, isPanelOpen } from "../state/settings.ts";
import type { Transcript } from "../state/transcript.ts";
import { plain } from "../text/safe.ts";
import { count, place, size } from "../text/words.ts";
import { jump } from "../thread/thread.tsx";
import { openness } from "../thread/tool.tsx";
import { Changes } from "./changes.tsx";
import { DiffPanel } from "./diff_panel.tsx";
import { ProblemPanel } from "./problems.tsx";
import { Raw } from "./raw.tsx";
import { RewindPanel } from "./rewind.tsx";

const TABS: [Tab, string][] = [
  ["changes", "Changes"],
  ["subagents", "Subagents"],
  ["problems", "Problems"],
  ["raw", "Raw"],
];

export function Details({ transcript, card }: { transcript: Transcript; card: Card | undefined }) {
  if (!isPanelOpen.value && !isSheetOpen.value) return null;
  const damaged = problems.value.filter((it) => it.damage).length;
  const label = (which: Tab, words: string) => {
    if (which === "problems" && damaged) return `${words} ${damaged}`;
    if (which === "subagents" && subagents.value.length) return `${words} ${subagents.value.length}`;
    return words;
  };
  return (
    <aside class={isSheetOpen.value ? "info sheet" : "info"} aria-label="Details">
      {isPanelOpen.value && <Grip width={infoWidth} usual={INFO} label="Width of the details" side="right" />}
      <div class="bar tabs">
        <div role="tablist" aria-label="Details">
          {TABS.map(([which, words]) => (
            <button
              key={which}
              type="button"
              role="tab"
              aria-selected={tab.value === which}
              class={tab.value === which ? "here" : ""}
              onClick={() => (tab.value = which)}
            >
              {label(which, words)}
            </button>
          ))}
        </div>
        <span class="grow" />
        <button
          type="button"
          class="bare icon close-sheet"
          aria-label="Close the details"
          onClick={() => (isSheetOpen.value = false)}
        >
          <Icon name="close" />
        </button>
      </div>
      <div class="info-body" role="tabpanel" aria-label={tab.value}>
        {tab.value === "changes" &&
          (rewinding.value?.session === transcript.name ? (
            <RewindPanel state={rewinding.value} transcript={transcript} />
          ) : looking.value?.session === transcript.name ? (
            <DiffPanel look={looking.value} transcript={transcript} />
          ) : (
            <Changes transcript={transcript} card={card} />
          ))}
        {tab.value === "subagents" && <Subagents transcript={transcript} />}
        {tab.value === "problems" && <ProblemPanel transcript={transcript} card={card} />}
        {tab.value === "raw" && <Raw transcript={transcript} />}
        {tab.value !== "raw" && card && <Facts card={card} />}
      </div>
    </aside>
  );
}

function Subagents({ transcript }: { transcript: Transcript }) {
  const open = (call: string, number: number) => {
    openness(call, false).value = true;
    isSheetOpen.value = false;
    jump.value = { number };
  };
  return (
    <section>
      <h2>
        Subagents <span class="quiet">{subagents.value.length || ""}</span>
      </h2>
      {subagents.value.length === 0 && <p class="quiet">This session began none.</p>}
      <ul class="files two">
        {subagents.value.map((it) => {
          const call = it.tool_use_id ?? "";
          const number = transcript.callNumber(call);
          const words = plain(it.description ?? it.agent_id);
          return (
            <li key={it.agent_id}>
              <Icon name="fork" />
              {number === undefined ? (
                <span class="grow cut" title={it.description ?? undefined}>
                  {words}
                </span>
              ) : (
                <button type="button" class="place" title="Open it on the thread" onClick={() => open(call, number)}>
                  {words}
                </button>
              )}
              <span class="quiet">{plain(it.agent_type ?? "")}</span>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

function Facts({ card }: { card: Card }) {
  const { health } = card;
  return (
    <section>
      <h2>Session</h2>
      <dl class="facts">
        <dt>Id</dt>
        <dd class="with-copy">
          <code class="cut" title={card.session_id}>
            {card.session_id.slice(0, 8)}…{card.session_id.slice(-4)}
          </code>
          <Copy text={card.session_id} label="Copy the id" />
        </dd>
        <dt>Folder</dt>
        <dd class="with-copy">
          <code class="cut" title={card.cwd ?? undefined}>
            {place(card.cwd) || "not said"}
          </code>
          {card.cwd && <Copy text={card.cwd} label="Copy the path" />}
        </dd>
        {card.model && (
          <>
            <dt>Model</dt>
            <dd>{card.model}</dd>
          </>
        )}
        {card.created_at && (
          <>
            <dt>Started</dt>
            <dd>
              <Ago at={card.created_at} />
            </dd>
          </>
        )}
        <dt>Length</dt>
        <dd>
          {[
            typeof card.message_count === "number" ? count(card.message_count, "message") : "",
            card.size ? size(card.size) : "",
          ]
            .filter(Boolean)
            .join(", ") || "nothing yet"}
        </dd>
        <dt>Health</dt>
        <dd class={health.status === "ok" ? undefined : "bad"}>
          {health.status === "ok"
            ? isChecked.value
              ? "every line checked"
              : "as far as is known, whole"
            : plain(health.reason ?? health.status)}
        </dd>
        <dt>Resume</dt>
        <dd class="with-copy">
          <code class="cut">claude --resume</code>
          <Copy
            text={`cd ${card.cwd ?? "."} && claude --resume ${card.session_id}`}
            label="Copy the command that resumes it in a terminal"
          />
        </dd>
      </dl>
    </section>
  );
}
