/** What the panel at the right shows of the session that is open. */

import { signal } from "@preact/signals";
import type { Checkpoint, Rewind } from "../api/events.ts";
import { get, post, Refused } from "../api/keeper.ts";
import type { CheckpointPage, ClaudeCheckpoint, ProblemItem, Problems, SubagentPage, Tree } from "../api/types.ts";
import { isPanelOpen } from "./settings.ts";

export type Tab = "changes" | "subagents" | "problems" | "raw";

export const tab = signal<Tab>("changes");
export const rawMessage = signal<string | undefined>(undefined);
/** Bytes of the file that are looked at in place of a message. */
export const rawBytes = signal<{ offset: number; length: number } | undefined>(undefined);
/** The panel as a sheet over the thread, where there is no room beside it. */
export const isSheetOpen = signal(false);

export const problems = signal<ProblemItem[]>([]);
export const isChecked = signal(false);
/** How many lines the file has; unknown until all were checked. */
export const lines = signal<number | undefined>(undefined);
export const tree = signal<Tree | undefined>(undefined);
export const checkpoints = signal<Checkpoint[]>([]);
/** What Claude Code itself kept: it can be looked at, and nothing is taken back to it here. */
export const claudeCheckpoints = signal<ClaudeCheckpoint[]>([]);
export const subagents = signal<SubagentPage["items"]>([]);

let shown: string | undefined;
let reading: Promise<void> | undefined;
let isOld = false;

/** Shows a message's line as it was written. */
export function showRaw(uuid: string): void {
  rawMessage.value = uuid;
  rawBytes.value = undefined;
  showTab("raw");
}

/** Shows bytes of the session's file as they are. */
export function showBytes(offset: number, length: number): void {
  rawBytes.value = { offset, length };
  showTab("raw");
}

export function showTab(which: Tab): void {
  tab.value = which;
  isPanelOpen.value = true;
  isSheetOpen.value = true;
}

/** Reads what takes a look at the whole session: never before its messages are shown, and one look at a time, so that an
 * older answer cannot come after a newer one. */
export function loadDetails(name: string): Promise<void> {
  if (shown !== name) {
    shown = name;
    [problems.value, checkpoints.value, claudeCheckpoints.value, subagents.value] = [[], [], [], []];
    tree.value = undefined;
    rawMessage.value = undefined;
    rawBytes.value = undefined;
    lines.value = undefined;
    rewinding.value = undefined;
    if (tab.value === "problems") tab.value = "changes";
    isChecked.value = false;
  }
  isOld = true;
  reading ??= readDetails().finally(() => {
    reading = undefined;
  });
  return reading;
}

async function readDetails(): Promise<void> {
  while (isOld && shown) {
    isOld = false;
    await readAll(shown);
  }
}

async function readAll(name: string): Promise<void> {
  const path = `/sessions/${encodeURIComponent(name)}`;
  const read = async <T>(what: string, take: (answer: T) => void): Promise<void> => {
    try {
      const answer = await get<T>(`${path}/${what}`);
      if (shown === name) take(answer);
    } catch (error) {
      // A store has no branches of Claude Code's; the thread is shown without.
      if (!(error instanceof Refused)) throw error;
    }
  };
  await read<CheckpointPage>("checkpoints", (answer) => {
    checkpoints.value = answer.items as unknown as Checkpoint[];
    claudeCheckpoints.value = answer.claude_code;
  });
  await read<Tree>("tree", (answer) => {
    tree.value = answer;
  });
  await read<SubagentPage>("subagents", (answer) => {
    subagents.value = answer.items;
  });
  await read<Problems>("problems", (answer) => {
    // What is damaged is what one came to see, unless one is at something else already.
    if (!isChecked.value && tab.value === "changes" && !rewinding.value && answer.items.some((it) => it.damage))
      tab.value = "problems";
    problems.value = answer.items;
    lines.value = answer.lines ?? undefined;
    isChecked.value = true;
  });
}

/** A rewind that is looked at, was done, or was refused. */
export interface RewindState {
  session: string;
  to: string;
  plan?: Rewind | undefined;
  /** What to do about paths that somebody else changed. */
  choices: Map<string, "leave" | "force">;
  receipt?: Rewind | undefined;
  isUndone?: boolean;
  problem?: Refused | undefined;
  isBusy: boolean;
}

export const rewinding = signal<RewindState | undefined>(undefined);

function chosen(state: RewindState, what: "leave" | "force"): string[] {
  return [...state.choices].filter(([, choice]) => choice === what).map(([path]) => path);
}

async function step(state: RewindState, act: () => Promise<Partial<RewindState>>): Promise<void> {
  rewinding.value = { ...state, isBusy: true, problem: undefined };
  try {
    rewinding.value = { ...rewinding.value, ...(await act()), isBusy: false };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    rewinding.value = { ...rewinding.value, problem: error, isBusy: false };
  }
}

/** Asks what going back to before a message would change. Nothing changes yet. */
export function preview(session: string, to: string, choices = new Map<string, "leave" | "force">()): Promise<void> {
  const state: RewindState = {
    session,
    to,
    choices,
    isBusy: true,
    plan: rewinding.value?.to === to ? rewinding.value.plan : undefined,
  };
  return step(state, async () => {
    const body = { to, dry_run: true, leave: chosen(state, "leave"), force: chosen(state, "force") };
    return { plan: await post<Rewind>(`/sessions/${encodeURIComponent(session)}/rewind`, body) };
  });
}

/** Does what was looked at, and nothing else: the keeper compares. With a fork, words go back where files do. */
export function rewind(state: RewindState, fork = false): Promise<void> {
  return step(state, async () => {
    const body = {
      to: state.to,
      fork,
      expect_digest: state.plan?.digest,
      leave: chosen(state, "leave"),
      force: chosen(state, "force"),
    };
    const answer = await post<Rewind>(`/sessions/${encodeURIComponent(state.session)}/rewind`, body);
    // Something stands in the way that did not when it was looked at: then nothing was done.
    return answer.undo ? { receipt: answer } : { plan: answer };
  });
}

export function undoRewind(state: RewindState): Promise<void> {
  return step(state, async () => {
    await post(state.receipt?.undo ?? "");
    return { isUndone: true };
  });
}
