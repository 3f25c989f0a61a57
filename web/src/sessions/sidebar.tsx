/** The sessions beside the thread: what needs a person first, then by project. */

import { computed, signal } from "@preact/signals";
import type { Card } from "../api/types.ts";
import { Grip } from "../parts/grip.tsx";
import { Icon, Knot } from "../parts/icon.tsx";
import { StateMark, WORDS } from "../parts/state_mark.tsx";
import { Time } from "../parts/time.tsx";
import { VirtualList } from "../parts/virtual_list.tsx";
import { pending, wish } from "../state/attention.ts";
import { stream } from "../state/live.ts";
import { address, shownSession } from "../state/route.ts";
import { cardOf, grouped, isListed, look, matching, nameOf, sessions, title } from "../state/sessions.ts";
import { folded, SIDE, sideWidth, theme, turnTheme } from "../state/settings.ts";
import { plain } from "../text/safe.ts";
import { exact, number, place, shortened } from "../text/words.ts";
import { openNew } from "./new_session.tsx";
import { openPalette } from "./palette.tsx";

export const filter = signal("");
const unfolded = signal<ReadonlySet<string>>(new Set());

/** How many sessions of a project are shown until somebody wants more. */
const FEW = 8;

type Row =
  | { kind: "need" }
  | { kind: "card"; card: Card; wish?: string; key: string }
  | { kind: "project"; place: string; count: number; isFolded: boolean }
  | { kind: "more"; place: string; count: number }
  | { kind: "none" };

const rows = computed<Row[]>(() => {
  const found: Row[] = [];
  const wishes = new Map(pending.value.map((it) => [it.shown.session_id, wish(it)]));
  const shown = matching(sessions.value, filter.value);
  const waiting = shown.filter((card) => card.state === "waiting" || wishes.has(card.session_id));
  if (waiting.length > 0) {
    found.push({ kind: "need" });
    for (const card of waiting)
      found.push({ kind: "card", card, wish: wishes.get(card.session_id) ?? "needs you", key: `need.${nameOf(card)}` });
  }
  const isFiltered = filter.value.trim() !== "";
  for (const { place: where, cards } of grouped(shown.filter((card) => !waiting.includes(card)))) {
    const isFolded = !isFiltered && folded.value.includes(where);
    found.push({ kind: "project", place: where, count: cards.length, isFolded });
    if (isFolded) continue;
    const isAll = isFiltered || unfolded.value.has(where) || cards.length <= FEW + 2;
    const here = shownSession.value ? cardOf(shownSession.value) : undefined;
    const some = isAll ? cards : cards.filter((card, at) => at < FEW || card === here);
    for (const card of some) found.push({ kind: "card", card, key: nameOf(card) });
    if (some.length < cards.length) found.push({ kind: "more", place: where, count: cards.length - some.length });
  }
  if (found.length === 0 && isListed.value) found.push({ kind: "none" });
  return found;
});

function height(row: Row): number {
  if (row.kind === "card") return row.wish ? 44 : 28;
  return row.kind === "project" || row.kind === "need" ? 36 : 28;
}

function keyOf(row: Row): string {
  if (row.kind === "card") return row.key;
  return row.kind === "project" || row.kind === "more" ? `${row.kind}.${row.place}` : row.kind;
}

function toggle(where: string): void {
  const all = folded.value;
  folded.value = all.includes(where) ? all.filter((it) => it !== where) : [...all, where];
}

function RowView({ row }: { row: Row }) {
  switch (row.kind) {
    case "need":
      return (
        <h2 class="need">
          <a href="#attention">Needs attention</a> <span class="count">{pending.value.length || ""}</span>
        </h2>
      );
    case "project":
      return (
        <h2>
          <button
            type="button"
            class="fold"
            aria-expanded={!row.isFolded}
            title={row.place}
            onClick={() => toggle(row.place)}
          >
            <Icon name={row.isFolded ? "right" : "down"} />
            <span class="mono cut">{row.place ? shortened(row.place, 26) : "no directory"}</span>
            {(row.isFolded || row.count > FEW + 2) && <span>{number(row.count)}</span>}
          </button>
        </h2>
      );
    case "more":
      return (
        <button
          type="button"
          class="text more-sessions"
          onClick={() => (unfolded.value = new Set([...unfolded.value, row.place]))}
        >
          {number(row.count)} more
        </button>
      );
    case "none":
      return <p class="quiet none">{filter.value ? "No session matches." : "No sessions yet."}</p>;
    case "card": {
      const { card } = row;
      const isHere = !!shownSession.value && cardOf(shownSession.value) === card;
      return (
        <a
          class={isHere ? "item here" : "item"}
          href={
            row.wish && pending.value.length > 0 ? "#attention" : address({ view: "session", session: nameOf(card) })
          }
          aria-current={isHere ? "page" : undefined}
          title={`${title(card)}\n${place(card.cwd)}\n${WORDS[look(card)]} · ${exact(card.updated_at)}`}
        >
          <StateMark card={card} />
          <span class="cut">
            {plain(title(card))}
            <span class="vh">, {WORDS[look(card)]}</span>
          </span>
          <Time at={card.updated_at} />
          {row.wish && <small class="cut">{row.wish}</small>}
        </a>
      );
    }
  }
}

export function Sidebar() {
  return (
    <aside class="side" aria-label="Sessions">
      <div class="bar">
        <a class="brand" href="#" title="All sessions">
          <Knot /> Rethread
        </a>
        <span class="grow" />
        <button type="button" class="bare icon" title="New session (c)" aria-label="New session" onClick={openNew}>
          <Icon name="plus" />
        </button>
      </div>
      <button type="button" class="field finder" onClick={() => openPalette()}>
        <Icon name="find" />
        <span class="grow">Find anything</span>
        <kbd>Ctrl K</kbd>
      </button>
      <VirtualList
        class="nav"
        rows={rows.value}
        height={height}
        keyOf={keyOf}
        render={(row) => <RowView row={row} />}
        label="Sessions by project"
        reveal={shownSession.value}
      />
      <Grip width={sideWidth} usual={SIDE} label="Width of the list of sessions" side="left" />
      <footer>
        <LinkState />
        <button
          type="button"
          class="bare icon"
          title={`Theme: ${theme.value} (t)`}
          aria-label={`Change the theme, now ${theme.value}`}
          onClick={turnTheme}
        >
          <Icon name="theme" />
        </button>
      </footer>
    </aside>
  );
}

/** Whether what is shown is up to date. */
export function LinkState() {
  const link = stream.link.value;
  const isOpen = link.state === "open";
  return (
    <span class="link-state grow cut" role="status">
      <Icon
        name={isOpen ? "running" : link.state === "connecting" ? "pending" : "failed"}
        tone={isOpen ? "accent still" : link.state === "connecting" ? undefined : "bad"}
      />
      <span class="cut">
        {isOpen ? `Keeper connected · :${location.port}` : link.state === "connecting" ? "Connecting" : "Not connected"}
      </span>
    </span>
  );
}
