/** What waits for a person, across all sessions. A decision names the digest of exactly what was shown. */

import { computed, signal } from "@preact/signals";
import type { Attention, Frame } from "../api/events.ts";
import { ask, get, Refused } from "../api/keeper.ts";
import { can, cardOf, title } from "./sessions.ts";
import { wantsNotifications } from "./settings.ts";

const all = signal<Map<string, Attention>>(new Map());

/** Why a decision was not taken, by request. */
export const refusals = signal<Map<string, string>>(new Map());

const newest = (one: Attention, other: Attention): number => (one.requested_at < other.requested_at ? 1 : -1);

export const pending = computed(() =>
  [...all.value.values()].filter((it) => it.state === "pending").sort((one, other) => -newest(one, other)),
);
export const lost = computed(() => [...all.value.values()].filter((it) => it.state === "lost").sort(newest));
export const decided = computed(() =>
  [...all.value.values()]
    .filter((it) => !["pending", "lost"].includes(it.state))
    .sort((one, other) => ((one.decided_at ?? "") < (other.decided_at ?? "") ? 1 : -1)),
);

export const requestOf = (id: string): Attention | undefined => all.value.get(id);

/** The requests of a session's tool calls, by the call. */
export const byCall = computed(() => new Map([...all.value.values()].map((it) => [it.tool_use_id, it])));

function put(attention: Attention): void {
  all.value = new Map(all.value).set(attention.shown.id, attention);
}

export async function loadAttention(): Promise<void> {
  if (!can("attention")) return;
  try {
    const page = await get<{ items: Attention[] }>("/attention");
    all.value = new Map(page.items.map((it) => [it.shown.id, it]));
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
  }
}

export function hearOfAttention(frame: Frame): void {
  const data = frame.data as Attention & { id?: string };
  if (data.shown) {
    const isNew = !all.value.has(data.shown.id);
    put(data);
    if (isNew && data.state === "pending") notify(data);
    return;
  }
  const known = data.id ? all.value.get(data.id) : undefined;
  if (known) put({ ...known, state: data.state, decided_by: data.decided_by, decided_at: data.decided_at });
}

/** What a session wants, in a few words. */
export function wish(attention: Attention): string {
  const { tool_name: tool, input } = attention.shown;
  const path = (input as { file_path?: unknown })?.file_path;
  const name = typeof path === "string" ? path.split("/").at(-1) : undefined;
  switch (tool) {
    case "Bash":
      return "wants to run a command";
    case "Edit":
    case "MultiEdit":
      return `wants to edit ${name ?? "a file"}`;
    case "Write":
      return `wants to write ${name ?? "a file"}`;
    case "WebFetch":
      return "wants to fetch a page";
    case "AskUserQuestion":
      return "has a question";
    case "ExitPlanMode":
      return "proposes a plan";
    default:
      return `wants to use ${tool}`;
  }
}

export interface Decision {
  decision: "allow" | "deny";
  scope?: "once" | "session";
  message?: string;
  updated_input?: unknown;
}

/** Decides. Whoever was first wins, and everybody sees who that was. */
export async function decide(attention: Attention, decision: Decision): Promise<void> {
  const { id } = attention.shown;
  const say = (words: string) => {
    refusals.value = new Map(refusals.value).set(id, words);
  };
  try {
    put(
      await ask<Attention>("POST", `/attention/${encodeURIComponent(id)}/decision`, {
        ...decision,
        shown_digest: attention.digest,
      }),
    );
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    const current = error.problem.about?.attention as Attention | undefined;
    if (current?.shown) put(current);
    if (error.code === "already-decided")
      say(`Already ${current?.state ?? "decided"}${current?.decided_by ? `, by ${who(current.decided_by)}` : ""}.`);
    else if (error.code === "not-what-was-shown") say("The request has changed. This is what it is now.");
    else say(error.message);
  }
}

/** Who decided, in words. */
export function who(by: string | null): string {
  if (by === "page") return "a browser";
  if (by === "token") return "a script";
  return by ?? "somebody";
}

/** Tells whoever wants it that a session waits, when nobody looks. */
function notify(attention: Attention): void {
  if (!wantsNotifications.value || typeof Notification === "undefined" || Notification.permission !== "granted") return;
  if (document.visibilityState === "visible" && document.hasFocus()) return;
  const card = cardOf(attention.shown.session_id);
  const note = new Notification(`${card ? title(card) : "A session"} ${wish(attention)}`, { tag: attention.shown.id });
  note.onclick = () => {
    window.focus();
    location.hash = "attention";
    note.close();
  };
}

/** Asks the browser's permission, which only a click may do. */
export async function askForNotifications(): Promise<void> {
  if (typeof Notification === "undefined") return;
  wantsNotifications.value = (await Notification.requestPermission()) === "granted";
}
