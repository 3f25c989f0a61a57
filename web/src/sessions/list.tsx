/** All sessions, dense: state, what it is about, where, its thread in small, what it changed, how long, when. */

import { computed, signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Card } from "../api/types.ts";
import { Icon, Knot } from "../parts/icon.tsx";
import { StateMark, TONES, WORDS } from "../parts/state_mark.tsx";
import { Time } from "../parts/time.tsx";
import { VirtualList } from "../parts/virtual_list.tsx";
import { unarchive } from "../state/actions.ts";
import { pending, wish } from "../state/attention.ts";
import { address, route } from "../state/route.ts";
import {
  archived,
  branchOf,
  cardOf,
  grouped,
  isArchiveListed,
  isListed,
  type Look,
  listFailed,
  loadArchive,
  loadSessions,
  look,
  matching,
  nameOf,
  sessions,
  title,
} from "../state/sessions.ts";
import { theme, turnTheme } from "../state/settings.ts";
import { plain } from "../text/safe.ts";
import { firstLine, number, place, size } from "../text/words.ts";
import { Empty } from "./empty.tsx";
import { openNew } from "./new_session.tsx";
import { filter, LinkState } from "./sidebar.tsx";
import { LinesCell, SketchCell, useSketch } from "./sketch.tsx";

type Row =
  | { kind: "need"; count: number }
  | { kind: "project"; place: string; count: number }
  | { kind: "card"; card: Card; isNeed: boolean };

const chip = signal<Look | undefined>(undefined);
const ORDER: Look[] = ["waiting", "running", "elsewhere", "failed", "damaged", "pending"];

const all = computed(() => (route.value.view === "archive" ? archived.value : sessions.value));
const found = computed(() => matching(all.value, filter.value));
const counts = computed(() => {
  const all = new Map<Look, number>();
  for (const card of found.value) all.set(look(card), (all.get(look(card)) ?? 0) + 1);
  return all;
});
const shown = computed(() => (chip.value ? found.value.filter((card) => look(card) === chip.value) : found.value));

const rows = computed<Row[]>(() => {
  const all: Row[] = [];
  const waiting = shown.value.filter((card) => card.state === "waiting");
  if (waiting.length > 0) {
    all.push({ kind: "need", count: waiting.length });
    for (const card of waiting) all.push({ kind: "card", card, isNeed: true });
  }
  for (const { place: where, cards } of grouped(shown.value.filter((card) => card.state !== "waiting"))) {
    all.push({ kind: "project", place: where, count: cards.length });
    for (const card of cards) all.push({ kind: "card", card, isNeed: false });
  }
  return all;
});

const isPhone = () => window.matchMedia("(max-width: 599px)").matches;
const height = (row: Row): number => (row.kind === "card" && isPhone() ? 56 : 32);
const keyOf = (row: Row): string =>
  row.kind === "card" ? nameOf(row.card) : row.kind === "need" ? "need" : `project.${row.place}`;

function about(card: Card): string {
  const asked = pending.value.find((it) => it.shown.session_id === card.session_id);
  if (asked) return wish(asked);
  if (card.health.status !== "ok" && card.health.reason) return card.health.reason;
  if (card.state === "elsewhere") return "open in a terminal";
  if (card.parent) {
    const parent = cardOf(card.parent);
    return parent ? `fork of ${title(parent)}` : "a fork";
  }
  return card.name
    ? firstLine(card.first_prompt ?? "")
    : (card.first_prompt ?? "").trim().split("\n").slice(1).join(" ").slice(0, 200);
}

function RowView({ row }: { row: Row }) {
  if (row.kind === "need") {
    return (
      <h2 class="need">
        <b>Needs attention</b> <span class="count">{row.count}</span>
      </h2>
    );
  }
  if (row.kind === "project") {
    return (
      <h2>
        <b title={row.place}>{row.place ? place(row.place) : "no directory"}</b> {number(row.count)}{" "}
        {row.count === 1 ? "session" : "sessions"}
      </h2>
    );
  }
  return <CardRow card={row.card} isNeed={row.isNeed} />;
}

function CardRow({ card, isNeed }: { card: Card; isNeed: boolean }) {
  const state = look(card);
  const sketch = useSketch(card);
  const messages = card.message_count ?? sketch?.messages;
  return (
    <a
      class="sess"
      href={isNeed && pending.value.length ? "#attention" : address({ view: "session", session: nameOf(card) })}
    >
      <StateMark card={card} />
      <span class={`st ${TONES[state] ?? ""}`}>{state === "waiting" ? "waiting" : WORDS[state].toLowerCase()}</span>
      <span class="nm cut">
        <b>{plain(title(card))}</b>
        <span>{plain(about(card))}</span>
      </span>
      <span class="at mono cut" title={card.cwd ?? undefined}>
        {isNeed ? [place(card.cwd), branchOf(card)].filter(Boolean).join(" · ") : branchOf(card)}
      </span>
      <SketchCell card={card} sketch={sketch} />
      <span class="r n">{typeof messages === "number" ? number(messages) : ""}</span>
      <LinesCell sketch={sketch} />
      <span class="r z">{card.size ? size(card.size) : ""}</span>
      <Time at={card.updated_at} class="r t" />
    </a>
  );
}

/** A row of the archive: the session, and the way back. */
function PutAway({ row }: { row: Row }) {
  if (row.kind !== "card") return <RowView row={row} />;
  return (
    <div class="put-away">
      <RowView row={row} />
      <button type="button" aria-label={`Bring back ${title(row.card)}`} onClick={() => void unarchive(row.card)}>
        Bring back
      </button>
    </div>
  );
}

export function List({ isArchive }: { isArchive: boolean }) {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const focus = () => field.current?.focus();
    addEventListener("rethread-filter", focus);
    return () => removeEventListener("rethread-filter", focus);
  }, []);
  const count = all.value.length;
  const isRead = isArchive ? isArchiveListed.value : isListed.value;
  const isEmpty = !isArchive && isRead && count === 0 && !listFailed.value;
  return (
    <div class={isArchive ? "lst archive" : "lst"}>
      <header class="bar">
        <a class="brand" href="#">
          <Knot /> Rethread
        </a>
        {!isEmpty && (
          <label class="field big">
            <Icon name="find" />
            <input
              ref={field}
              type="search"
              placeholder="Filter by name, prompt, directory, branch"
              aria-label="Filter sessions"
              value={filter.value}
              onInput={(event) => (filter.value = event.currentTarget.value)}
            />
            <kbd>/</kbd>
          </label>
        )}
        <span class="grow" />
        <span class="wide">
          <LinkState />
        </span>
        {!isEmpty && (
          <button type="button" class="wide" onClick={openNew}>
            <Icon name="plus" /> New session <kbd>c</kbd>
          </button>
        )}
        <button
          type="button"
          class="bare icon"
          title={`Theme: ${theme.value} (t)`}
          aria-label={`Change the theme, now ${theme.value}`}
          onClick={turnTheme}
        >
          <Icon name="theme" />
        </button>
      </header>
      {isEmpty ? (
        <main class="rows-main">
          <Empty />
        </main>
      ) : (
        <main class="rows-main">
          <h1 class="vh">{isArchive ? "Archived sessions" : "Sessions"}</h1>
          <div class="chips" role="group" aria-label="State">
            {isArchive && (
              <a class="chip" href="#">
                <Icon name="back" /> All sessions
              </a>
            )}
            <button
              type="button"
              class={chip.value ? "" : "here"}
              aria-pressed={!chip.value}
              onClick={() => (chip.value = undefined)}
            >
              {isArchive ? "Archived" : "All"} {number(found.value.length)}
            </button>
            {ORDER.filter((state) => counts.value.get(state)).map((state) => (
              <button
                key={state}
                type="button"
                class={chip.value === state ? "here" : ""}
                aria-pressed={chip.value === state}
                onClick={() => (chip.value = chip.value === state ? undefined : state)}
              >
                <Icon name={state} tone={TONES[state]} /> {state === "waiting" ? "Waiting" : WORDS[state]}{" "}
                {number(counts.value.get(state) ?? 0)}
              </button>
            ))}
            <span class="end">
              {shown.value.length < count ? `${number(shown.value.length)} of ${number(count)}` : number(count)} ·
              newest first
            </span>
            {!isArchive && (
              <a class="chip" href="#archived">
                <Icon name="folder" /> Archived
              </a>
            )}
          </div>
          <div class="sess head" aria-hidden="true">
            <span />
            <span>State</span>
            <span>Session</span>
            <span>Branch</span>
            <span class="th">Thread</span>
            <span class="r n">Messages</span>
            <span class="r ln">Lines</span>
            <span class="r z">Size</span>
            <span class="r">Last</span>
          </div>
          {listFailed.value ? (
            <div class="nothing-here" role="alert">
              <h2>The sessions cannot be listed</h2>
              <p>{listFailed.value.message}</p>
              {listFailed.value.problem.hint && <p class="quiet">{listFailed.value.problem.hint}</p>}
              <button type="button" onClick={() => void (isArchive ? loadArchive() : loadSessions())}>
                Try again
              </button>
            </div>
          ) : !isRead && count === 0 ? (
            <div class="rows loading" aria-hidden="true">
              {Array.from({ length: 12 }, (_, at) => (
                <span key={at} class="bar-line" />
              ))}
            </div>
          ) : count === 0 ? (
            <div class="nothing-here">
              <h2>Nothing is in the archive</h2>
              <p>
                A session that you archive leaves the list and stays as it is. It can be found, read and brought back
                here.
              </p>
            </div>
          ) : shown.value.length === 0 ? (
            <div class="nothing-here">
              <h2>Nothing matches</h2>
              <button
                type="button"
                onClick={() => {
                  filter.value = "";
                  chip.value = undefined;
                }}
              >
                Show all {number(count)}
              </button>
            </div>
          ) : (
            <VirtualList
              class="rows"
              rows={rows.value}
              height={height}
              keyOf={keyOf}
              render={(row) => (isArchive ? <PutAway row={row} /> : <RowView row={row} />)}
              label="Sessions"
            />
          )}
        </main>
      )}
    </div>
  );
}
