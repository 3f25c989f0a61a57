/** Sessions that were forked from each other, and where on the thread they part.
 *
 * A fork begins with a copy of what it was forked from, and copies keep their ids. So the last message that both have is found
 * by halving, with a few requests however long the two are. */

import { computed, signal } from "@preact/signals";
import { get, Refused } from "../api/keeper.ts";
import type { Card, Page } from "../api/types.ts";
import { cardOf, nameOf } from "./sessions.ts";

/** A session among those that were forked from each other. */
export interface Relative {
  card: Card;
  depth: number;
}

/** A place where a thread parts: into another session, or from the one that it was forked from. */
export interface Parting {
  /** The last message that both have. */
  message: string;
  card: Card;
  kind: "fork" | "origin";
}

export const partings = signal<Parting[]>([]);

/** The partings after each message. */
export const partingsAt = computed(() => {
  const all = new Map<string, Parting[]>();
  for (const parting of partings.value) all.set(parting.message, [...(all.get(parting.message) ?? []), parting]);
  return all;
});

/** How many forks are drawn on a thread. */
const MOST = 12;

/** Everything that was forked from one session, itself included, as a tree in rows. Returns nothing where there is only one. */
export function family(card: Card): Relative[] {
  let root = card;
  const seen = new Set([card.session_id]);
  for (let parent = root.parent; parent; parent = root.parent) {
    const above = cardOf(parent);
    if (!above || seen.has(parent)) break;
    seen.add(parent);
    root = above;
  }
  const found: Relative[] = [];
  const add = (it: Card, depth: number) => {
    if (found.some((other) => other.card.session_id === it.session_id)) return;
    found.push({ card: it, depth });
    for (const id of it.forks) {
      const fork = cardOf(id);
      if (fork) add(fork, depth + 1);
    }
  };
  add(root, 0);
  return found.length > 1 ? found : [];
}

const read = (name: string, query: string): Promise<Page> =>
  get<Page>(`/sessions/${encodeURIComponent(name)}/messages?${query}`);

/** Returns whether a session has a message. */
async function has(name: string, uuid: string): Promise<boolean> {
  try {
    await read(name, `around=${encodeURIComponent(uuid)}&limit=1`);
    return true;
  } catch (error) {
    if (error instanceof Refused && error.problem.status === 404) return false;
    throw error;
  }
}

/** The last message of a fork that the session it was forked from has too. */
export async function partingOf(fork: string, origin: string): Promise<string | undefined> {
  const uuidAt = async (number: number): Promise<string | undefined> => {
    const page = await read(fork, number === 0 ? "around=0:&limit=1" : `after=${number - 1}:&limit=1`);
    return page.items[0]?.uuid ?? undefined;
  };
  const { page } = await read(fork, "limit=1");
  let [from, to] = [0, page.total ?? 0];
  let last: string | undefined;
  // Everything before `from` is in both, and nothing from `to` on.
  while (from < to) {
    const middle = (from + to) >> 1;
    const uuid = await uuidAt(middle);
    if (uuid && (await has(origin, uuid))) [from, last] = [middle + 1, uuid];
    else to = middle;
  }
  return last;
}

let shown: string | undefined;

/** Looks for the places where the thread of a session parts. */
export async function loadPartings(card: Card): Promise<void> {
  const name = nameOf(card);
  const key = `${name} ${card.parent ?? ""} ${card.forks.join(" ")}`;
  if (shown === key) return;
  shown = key;
  partings.value = [];
  const origin = card.parent ? cardOf(card.parent) : undefined;
  const forks = card.forks.slice(0, MOST).map(cardOf);
  for (const [other, kind] of [[origin, "origin"] as const, ...forks.map((fork) => [fork, "fork"] as const)]) {
    if (!other || other.home === "stored" || card.home === "stored") continue;
    try {
      const [fork, from] = kind === "fork" ? [other, card] : [card, other];
      const message = await partingOf(nameOf(fork), nameOf(from));
      if (shown !== key) return;
      if (message) partings.value = [...partings.value, { message, card: other, kind }];
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
    }
  }
}
