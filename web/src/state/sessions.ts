/** All sessions that the keeper knows, kept up to date. */

import { computed, signal } from "@preact/signals";
import type { Frame } from "../api/events.ts";
import { get, Refused } from "../api/keeper.ts";
import type { Card, Info, SessionPage, SessionState } from "../api/types.ts";
import { setHome } from "../text/words.ts";

/** How a list shows a session: its state, unless it is damaged and does nothing. */
export type Look = SessionState | "damaged";

const known = new Map<string, Card>();
const version = signal(0);

export const isListed = signal(false);
export const listFailed = signal<Refused | undefined>(undefined);
export const info = signal<Info | undefined>(undefined);

/** What a session is called in addresses: its id, with its home where that is not the usual one. */
export const nameOf = (card: Pick<Card, "home" | "session_id">): string =>
  card.home === "stored" ? `stored:${card.session_id}` : card.session_id;

export function look(card: Card): Look {
  const isQuiet = card.state === "idle" || card.state === "failed";
  return card.health.status !== "ok" && isQuiet ? "damaged" : card.state;
}

/** The branch that a session is on; none outside of a repository. */
export const branchOf = (card: Card | undefined): string | undefined =>
  card?.git_branch && card.git_branch !== "HEAD" ? card.git_branch : undefined;

/** What to call a session. */
export function title(card: Card): string {
  return card.name?.trim() || card.first_prompt?.trim().split("\n", 1)[0] || `Session ${card.session_id.slice(0, 8)}`;
}

// Times of one keeper are all written in the same way.
const newest = (one: Card, other: Card): number =>
  one.updated_at < other.updated_at ? 1 : one.updated_at > other.updated_at ? -1 : 0;

/** Every session that is not put away, the newest first. */
export const sessions = computed<Card[]>(() => {
  version.value;
  return [...known.values()].filter((card) => !card.archived).sort(newest);
});

/** Those that were put away and are known here. */
export const archived = computed<Card[]>(() => {
  version.value;
  return [...known.values()].filter((card) => card.archived).sort(newest);
});
export const isArchiveListed = signal(false);

export interface Project {
  place: string;
  cards: Card[];
}

/** The same, by repository or directory, the one that was used last first. */
export const projects = computed<Project[]>(() => grouped(sessions.value));

export function grouped(cards: Card[]): Project[] {
  const groups = new Map<string, Card[]>();
  for (const card of cards) {
    const place = card.project ?? card.cwd ?? "";
    const group = groups.get(place);
    if (group) group.push(card);
    else groups.set(place, [card]);
  }
  return [...groups].map(([place, cards]) => ({ place, cards }));
}

/** Those with all words of a text in what can be read of them. */
export function matching(cards: Card[], text: string): Card[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return cards;
  return cards.filter((card) => {
    const whole = [card.name, card.first_prompt, card.cwd, card.git_branch, card.session_id, look(card), ...card.tags]
      .filter(Boolean)
      .join("\n")
      .toLowerCase();
    return words.every((word) => whole.includes(word));
  });
}

/** A session by what addresses call it. */
export function cardOf(name: string): Card | undefined {
  version.value;
  // A session of a shared store is in the one home or the other, by who drove it last.
  const bare = name.replace(/^(stored|native):/, "");
  return known.get(name) ?? known.get(bare) ?? known.get(`stored:${bare}`);
}

let isDue = false;

/** Many things may happen at once; a list of thousands need not show each of them. */
function changed(): void {
  if (isDue) return;
  isDue = true;
  window.setTimeout(
    () => {
      isDue = false;
      version.value++;
    },
    known.size > 2000 ? 250 : 16,
  );
}

export function put(card: Card): void {
  known.set(nameOf(card), card);
  changed();
}

export function remove(name: string): Card | undefined {
  const card = known.get(name);
  if (known.delete(name)) changed();
  return card;
}

/** Reads a whole list, page by page; the first one shows at once. What is not in it any more is forgotten. */
async function readList(isArchive: boolean): Promise<void> {
  const seen = new Set<string>();
  let cursor = "";
  do {
    const page = await get<SessionPage>(`/sessions?limit=500${isArchive ? "&archived=true" : ""}${cursor}`);
    for (const card of page.items) {
      seen.add(nameOf(card));
      known.set(nameOf(card), card);
    }
    cursor = page.next ? `&cursor=${encodeURIComponent(page.next)}` : "";
    version.value++;
  } while (cursor);
  for (const [name, card] of known) if (card.archived === isArchive && !seen.has(name)) known.delete(name);
  version.value++;
}

export async function loadSessions(): Promise<void> {
  try {
    await readList(false);
    listFailed.value = undefined;
  } catch (error) {
    if (error instanceof Refused) listFailed.value = error;
  }
  isListed.value = true;
}

/** Reads what was put away; nobody needs it before somebody looks there. */
export async function loadArchive(): Promise<void> {
  try {
    await readList(true);
    listFailed.value = undefined;
  } catch (error) {
    if (error instanceof Refused) listFailed.value = error;
  }
  isArchiveListed.value = true;
}

/** Reads one session that is not in the list: one that was put away, or that is very new. */
export async function loadCard(name: string): Promise<void> {
  try {
    put(await get<Card>(`/sessions/${encodeURIComponent(name)}`));
  } catch (error) {
    // Whoever reads its messages says what is wrong.
    if (!(error instanceof Refused)) throw error;
  }
}

export async function loadInfo(): Promise<void> {
  try {
    info.value = await get<Info>("/info");
    setHome(info.value.claude_folder);
  } catch {
    // The list says what is wrong.
  }
}

/** Returns whether this keeper can do something. */
export const can = (feature: string): boolean => info.value?.features.includes(feature) ?? false;

/** Takes an event of the list. */
export function hearOfSessions(frame: Frame): void {
  const data = frame.data as Card & {
    home?: Card["home"];
    session_id?: string;
    state?: SessionState;
    health?: Card["health"];
  };
  switch (frame.type) {
    case "session.created":
    case "session.updated":
      put(data);
      return;
    case "session.removed":
      remove(data.home === "stored" ? `stored:${data.session_id}` : String(data.session_id));
      return;
    case "session.state":
    case "health.changed": {
      const card = known.get(String(data.session_id));
      if (!card) return;
      put({ ...card, ...(data.state ? { state: data.state } : {}), ...(data.health ? { health: data.health } : {}) });
      return;
    }
  }
}
