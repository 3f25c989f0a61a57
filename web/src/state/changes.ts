/** What a session did to files: since it began, in one turn, by one tool; and what of it was taken back. */

import { computed, signal } from "@preact/signals";
import { get, post, Refused } from "../api/keeper.ts";
import type { DiffPage } from "../api/types.ts";
import { attempt } from "./actions.ts";
import { checkpoints, claudeCheckpoints, showTab } from "./details.ts";
import { takenBack } from "./taken_back.ts";

/** A part of a session: the turn of a prompt, a tool call, everything since a prompt. */
export interface Part {
  kind: "turn" | "tool" | "since";
  id: string;
}

/** A part of a session whose changes are looked at. */
export interface Look {
  session: string;
  part: Part;
  /** The file that was asked for. */
  path?: string | undefined;
  page?: DiffPage | undefined;
  problem?: Refused | undefined;
}

export const looking = signal<Look | undefined>(undefined);

const read = (session: string, part: Part): Promise<DiffPage> =>
  get<DiffPage>(`/sessions/${encodeURIComponent(session)}/diff?${part.kind}=${encodeURIComponent(part.id)}`);

/** What became of one file since before a prompt, whoever did it. */
export async function diffSince(session: string, message: string, path: string): Promise<string | null> {
  const query = new URLSearchParams({ since: message, path });
  const page = await get<DiffPage>(`/sessions/${encodeURIComponent(session)}/diff?${query}`);
  return page.items.find((file) => file.path === path)?.diff ?? null;
}

/** Shows what a part of a session changed, beside the thread. */
export async function lookAt(session: string, part: Part, path?: string): Promise<void> {
  const look: Look = { session, part, path };
  looking.value = look;
  showTab("changes");
  const isWanted = () => looking.value?.session === session && looking.value.part === part;
  try {
    const page = await read(session, part);
    if (isWanted()) looking.value = { ...look, page };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (isWanted()) looking.value = { ...look, problem: error };
  }
}

/** Everything that is not as it was when the session began. */
export const overview = signal<{ session: string; page: DiffPage } | undefined>(undefined);

/** Counts again what changed since the first thing that was recorded. */
export async function loadOverview(session: string): Promise<void> {
  const first = checkpoints.peek().find((it) => it.message)?.message ?? claudeCheckpoints.peek()[0]?.message;
  if (!first) {
    overview.value = undefined;
    return;
  }
  try {
    overview.value = { session, page: await read(session, { kind: "since", id: first }) };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
  }
}

/** The files that each tool call left changed. */
export const filesOfCalls = computed(() => {
  const all = new Map<string, string[]>();
  for (const checkpoint of checkpoints.value) {
    if (checkpoint.what !== "after" && checkpoint.what !== "tree") continue;
    const paths = (checkpoint.changes ?? []).map((change) => change.path);
    for (const call of checkpoint.tool_use ?? []) all.set(call, [...new Set([...(all.get(call) ?? []), ...paths])]);
  }
  return all;
});

export const rewinds = computed(() => takenBack(checkpoints.value));

/** Undoes a rewind from before. */
export async function undoReceipt(session: string, receipt: string): Promise<void> {
  const id = session.replace(/^(stored|native):/, "");
  await attempt(() => post(`/rewinds/${encodeURIComponent(`${id}.${receipt}`)}/undo`));
}
