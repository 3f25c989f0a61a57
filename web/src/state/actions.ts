/** What can be done to sessions. What destroys can be undone rather than being asked about twice. */

import { signal } from "@preact/signals";
import { ask, post, Refused } from "../api/keeper.ts";
import type { Card } from "../api/types.ts";
import { go, route } from "./route.ts";
import { cardOf, nameOf, put, remove, title } from "./sessions.ts";

/** A word about what was done, with a way back. */
export interface Toast {
  id: number;
  words: string;
  isBad?: boolean;
  undo?: (() => Promise<void>) | undefined;
}

export const toasts = signal<Toast[]>([]);
let next = 1;

export function tell(words: string, more: Omit<Toast, "id" | "words"> = {}): void {
  const toast: Toast = { id: next++, words, ...more };
  toasts.value = [...toasts.value.slice(-2), toast];
  setTimeout(() => dismiss(toast.id), more.undo ? 12_000 : 6_000);
}

export function dismiss(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

/** Does something; says why if it was refused. */
export async function attempt<T>(act: () => Promise<T>): Promise<T | undefined> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    tell([error.message, error.problem.hint].filter(Boolean).join(" "), { isBad: true });
    return undefined;
  }
}

const path = (name: string): string => `/sessions/${encodeURIComponent(name)}`;

export async function rename(card: Card, name: string): Promise<void> {
  const before = card.name;
  put({ ...card, name });
  const changed = await attempt(() => ask<Card>("PATCH", path(nameOf(card)), { name }));
  put(changed ?? { ...card, name: before ?? null });
}

export async function archive(card: Card): Promise<void> {
  const changed = await attempt(() => ask<Card>("PATCH", path(nameOf(card)), { archived: true }));
  if (!changed) return;
  put(changed);
  leave(card);
  tell(`Archived “${title(card)}”`, {
    undo: async () => {
      const back = await attempt(() => ask<Card>("PATCH", path(nameOf(card)), { archived: false }));
      if (back) put(back);
    },
  });
}

/** Brings back what was put away. */
export async function unarchive(card: Card): Promise<void> {
  const changed = await attempt(() => ask<Card>("PATCH", path(nameOf(card)), { archived: false }));
  if (!changed) return;
  put(changed);
  tell(`“${title(card)}” is back in the list`);
}

export async function moveToTrash(card: Card): Promise<void> {
  const done = await attempt(() => ask<{ undo: string }>("DELETE", path(nameOf(card))));
  if (!done) return;
  remove(nameOf(card));
  leave(card);
  tell(`Moved “${title(card)}” to the trash`, {
    undo: async () => {
      const back = await attempt(() => post<Card>(done.undo));
      if (!back) return;
      put(back);
      go({ view: "session", session: nameOf(back) });
    },
  });
}

function leave(card: Card): void {
  if (route.value.session === nameOf(card)) go({ view: "list" });
}

/** Begins another session from a message of this one, or from its end. */
export async function fork(name: string, from?: string): Promise<void> {
  const card = await attempt(() => post<Card>(`${path(name)}/fork`, from ? { from_message: from } : {}));
  if (!card) return;
  put(card);
  go({ view: "session", session: nameOf(card) });
  const parent = cardOf(name);
  tell(`A fork${parent ? ` of “${title(parent)}”` : ""}: what you say here does not reach the other`);
}

/** Goes to a fork that a rewind made, whose card is on its way. */
export function openFork(made: string): void {
  go({ view: "session", session: made });
  tell("Files and conversation are as they were then; the other session has the way back");
}

export async function takeOver(name: string): Promise<boolean> {
  return (await attempt(() => post(`${path(name)}/lease`, { action: "take_over" }))) !== undefined;
}

export async function interrupt(name: string): Promise<void> {
  await attempt(() => post(`${path(name)}/interrupt`));
}

/** Goes on with prompts that wait though nothing runs. */
export async function resumeQueue(name: string): Promise<void> {
  await attempt(() => post(`${path(name)}/queue/resume`));
}

export async function unqueue(name: string, uuid: string): Promise<void> {
  await attempt(() => ask("DELETE", `${path(name)}/queue/${encodeURIComponent(uuid)}`));
}

/** Goes to the demonstration, which is another keeper with nothing of the person's own. */
export async function openDemo(): Promise<boolean> {
  const demo = await attempt(() => post<{ url: string }>("/demo"));
  if (!demo) return false;
  location.assign(demo.url);
  return true;
}

export async function begin(cwd: string, prompt: string): Promise<boolean> {
  const card = await attempt(() => post<Card>("/sessions", { cwd, ...(prompt.trim() ? { prompt } : {}) }));
  if (!card) return false;
  put(card);
  go({ view: "session", session: nameOf(card) });
  return true;
}
