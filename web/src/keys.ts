/** The keyboard. Nothing here fires while somebody types, or with a modifier but Ctrl/Cmd+K. */

import { nextRequest } from "./attention/attention.tsx";
import { focusComposer } from "./session/composer.tsx";
import { closeFind, openFind } from "./session/find.tsx";
import { nextProblem } from "./session/session.tsx";
import { openHelp } from "./sessions/help.tsx";
import { openNew } from "./sessions/new_session.tsx";
import { openPalette } from "./sessions/palette.tsx";
import { fork, interrupt } from "./state/actions.ts";
import { pending } from "./state/attention.ts";
import { rewinds, undoReceipt } from "./state/changes.ts";
import { isSheetOpen } from "./state/details.ts";
import { transcript } from "./state/live.ts";
import { go, note, route } from "./state/route.ts";
import { can, cardOf } from "./state/sessions.ts";
import { isPanelOpen, turnTheme } from "./state/settings.ts";
import { current, isAtEnd, jump, topNumber } from "./thread/thread.tsx";

/** Whether a turn runs that can be ended here: not one that another keeper drives. */
function isBusyHere(session: string): boolean {
  const card = cardOf(session);
  return (card?.state === "running" || card?.state === "waiting") && !card.driver_host;
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));

/** The message that keys start from: the one they were at, if it is still in view. */
function here(): number {
  const at = current.value;
  const row = at === undefined ? null : document.querySelector(`.thread [data-number="${at}"]`);
  const box = row?.getBoundingClientRect();
  if (at !== undefined && box && box.bottom > 0 && box.top < innerHeight) return at;
  current.value = undefined;
  return isAtEnd.value ? (transcript.value?.total.value ?? 0) : topNumber.value;
}

/** The next row in the document, and a look at it. */
function step(by: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>(".thread [data-number]")];
  const from = here();
  const numbers = [...new Set(rows.map((row) => Number(row.dataset.number)))];
  const next = by === 1 ? numbers.find((it) => it > from) : numbers.findLast((it) => it < from);
  if (next === undefined) return;
  current.value = next;
  const row = rows.find((it) => Number(it.dataset.number) === next);
  row?.scrollIntoView({ block: "nearest" });
  note(row?.dataset.uuid);
}

/** The next row of the list. */
function stepInList(by: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>(".rows a.sess")];
  const at = rows.indexOf(document.activeElement as HTMLElement);
  const next = at < 0 ? rows[by === 1 ? 0 : rows.length - 1] : rows[at + by];
  next?.focus();
}

async function prompt(by: 1 | -1): Promise<void> {
  const shown = transcript.value;
  if (!shown) return;
  const number = await shown.prompt(here(), by);
  if (number === undefined) {
    if (by === 1) jump.value = "end";
    return;
  }
  current.value = number;
  jump.value = { number };
  note(shown.item(number)?.uuid ?? undefined);
}

function toggleCurrent(): void {
  const rows = document.querySelectorAll<HTMLElement>(
    `.thread [data-number="${current.value ?? topNumber.value}"] button[aria-expanded]`,
  );
  for (const button of rows) button.click();
}

const isList = (): boolean => route.value.view === "list" || route.value.view === "archive";

function press(event: KeyboardEvent): void {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    openPalette();
    return;
  }
  if (
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    isTyping(event.target) ||
    document.querySelector("dialog[open]")
  )
    return;
  const { view, session } = route.value;
  const act = KEYS[event.key];
  if (event.key === "Escape") {
    if (closeFind()) return;
    if (isSheetOpen.value) isSheetOpen.value = false;
    else if (view === "session" && session && isBusyHere(session)) void interrupt(session);
    else if (view === "attention") history.back();
    return;
  }
  if (!act) return;
  event.preventDefault();
  act();
}

const KEYS: Record<string, () => void> = {
  "?": openHelp,
  "/": () => (route.value.view === "session" ? openFind() : dispatchEvent(new Event("rethread-filter"))),
  c: openNew,
  t: turnTheme,
  d: () => {
    if (window.matchMedia("(max-width: 1099px)").matches) isSheetOpen.value = !isSheetOpen.value;
    else isPanelOpen.value = !isPanelOpen.value;
  },
  i: focusComposer,
  n: () => {
    if (route.value.view !== "attention" && pending.value.length > 0) go({ view: "attention" });
    else nextRequest();
  },
  p: nextProblem,
  e: toggleCurrent,
  f: () => {
    const { view, session } = route.value;
    if (view === "session" && session && can("drive")) void fork(session);
  },
  u: () => {
    const { view, session } = route.value;
    const last = rewinds.value.at(-1);
    if (view === "session" && session && last) void undoReceipt(session, last.receipt);
  },
  j: () => (isList() ? stepInList(1) : step(1)),
  k: () => (isList() ? stepInList(-1) : step(-1)),
  "[": () => void prompt(-1),
  "]": () => void prompt(1),
  G: () => {
    jump.value = "end";
  },
  g: () => {
    const shown = transcript.value;
    if (shown && shown.total.value > 0)
      void shown.ensure(0).then(() => {
        jump.value = { number: 0 };
      });
  },
};

export function followKeys(): void {
  addEventListener("keydown", press);
}
