/** Messages as the rows of the thread. */

import type { Checkpoint } from "../api/events.ts";
import type { ClaudeCheckpoint, DiffPage, Item, ProblemItem, Tree } from "../api/types.ts";
import type { Parting } from "../state/forks.ts";
import type { TakenBack } from "../state/taken_back.ts";
import { size } from "../text/words.ts";
import { type Block, blocks, type ToolUse, textOf } from "./blocks.ts";

/** Something that hangs on the thread. */
export type Row = { key: string; number: number; item: Item; isTaken?: boolean } & (
  | { kind: "day"; at: string }
  | { kind: "prompt"; text: string; pictures: string[]; ordinal?: number | undefined }
  | { kind: "prose"; text: string }
  | { kind: "thinking"; text: string }
  | { kind: "picture"; source: string }
  | { kind: "tool"; call: ToolUse }
  | { kind: "strand"; call: ToolUse }
  | { kind: "other"; name: string; json: string }
  | { kind: "marker"; what: "compacted" | "interrupted" | "command" | "note" | "error"; words: string; text: string }
  | { kind: "orphan"; text: string; isError: boolean }
  | { kind: "fray"; problem: ProblemItem; isEnd: boolean }
  | { kind: "knot"; point: Point }
  | { kind: "branch"; leaf: string }
  | { kind: "parting"; parting: Parting }
  | { kind: "taken"; taken: TakenBack }
);

/** A moment before a prompt of which it is known what files were. */
export interface Point {
  message: string;
  at: string;
  /** Who kept them: files can only be taken back to what was kept here. */
  keptBy: NonNullable<DiffPage["kept_by"]>;
  files: string[];
  /** What each of them was then, in words: how large, or that it was not there. */
  was: ReadonlyMap<string, string>;
}

/** What the rows of a page depend on beside its messages. */
export interface Around {
  problems: ProblemItem[];
  points: Map<string, Point>;
  branches: Tree["branches"];
  partings: ReadonlyMap<string, Parting[]>;
  /** Rewinds, and whether one of them took back what a message did. */
  rewinds: TakenBack[];
  isTaken(number: number, item: Item): boolean;
  isResultKnown(call: string): boolean;
  previous(number: number): Item | undefined;
  ordinal(number: number): number | undefined;
}

const INTERRUPTED = /^\[Request interrupted by user/;
/** What Claude Code writes in place of an answer that nobody wanted. */
const NO_ANSWER = /^No response requested\.?$/;
const COMMAND = /<command-name>([^<]*)<\/command-name>/;
const COMMAND_ARGUMENTS = /<command-args>([^<]*)<\/command-args>/;
const COMMAND_OUTPUT = /^<local-command-(?:stdout|stderr|caveat)>/;

/** Returns whether a call begins a subagent. */
export const isStrand = (call: ToolUse): boolean => call.name === "Task" || call.name === "Agent";

/** The moments before prompts, from what was captured in their turns; where nothing was, from what Claude Code kept. */
export function points(checkpoints: Checkpoint[], claude: ClaudeCheckpoint[] = []): Map<string, Point> {
  const all = new Map<string, Point & { was: Map<string, string> }>();
  for (const checkpoint of checkpoints) {
    const paths = (checkpoint.changes ?? []).map((change) => change.path);
    if (!checkpoint.message || paths.length === 0 || !["before", "after", "tree"].includes(checkpoint.what)) continue;
    const { message, created_at: at } = checkpoint;
    const known = all.get(message) ?? { message, at, keptBy: "rethread" as const, files: [], was: new Map() };
    known.files = [...new Set([...known.files, ...paths])];
    for (const change of checkpoint.changes ?? []) {
      // The first thing that is known of a turn is what was there before it.
      const words = wasWords(change.before);
      if (words && !known.was.has(change.path)) known.was.set(change.path, words);
    }
    all.set(message, known);
  }
  const theirs = claude.filter((it) => !all.has(it.message)).map(claudePoint);
  if (theirs.length === 0) return all;
  const both = [...all.values(), ...theirs].sort((one, other) => Date.parse(one.at) - Date.parse(other.at));
  return new Map(both.map((point) => [point.message, point]));
}

function claudePoint({ message, created_at, files }: ClaudeCheckpoint): Point {
  const was = new Map(files.filter((file) => !file.existed).map((file) => [file.path, "did not exist"]));
  return { message, at: created_at ?? "", keptBy: "claude_code", files: files.map((file) => file.path), was };
}

/** What a path was, in a word or two; nothing if that is not known. */
function wasWords(before: unknown): string | undefined {
  if (typeof before !== "object" || before === null) return undefined;
  if ("absent" in before) return "did not exist";
  if (!("present" in before)) return undefined;
  const { kind, size: bytes } = before.present as { kind?: unknown; size?: unknown };
  if (kind === "file" && typeof bytes === "number") return size(bytes);
  return typeof kind === "string" ? kind : undefined;
}

function dayOf(at: string | null | undefined): string {
  return at ? new Date(at).toDateString() : "";
}

/** The rows of some messages. */
export function rowsOf(messages: { number: number; item: Item }[], around: Around): Row[] {
  const rows: Row[] = [];
  for (const { number, item } of messages) {
    const before = around.previous(number);
    const id = item.uuid ?? String(number);
    const isTaken = around.isTaken(number, item);
    const add = (key: string, row: object) => rows.push({ key: `${id}.${key}`, number, item, isTaken, ...row } as Row);
    for (const problem of between(around.problems, before, item)) {
      add(`fray.${problem.offset}`, { kind: "fray", problem, isEnd: false });
    }
    if (item.timestamp && dayOf(item.timestamp) !== dayOf(before?.timestamp))
      add("day", { kind: "day", at: item.timestamp });
    const point = item.uuid ? around.points.get(item.uuid) : undefined;
    const rewound = around.rewinds.filter((it) => it.message === item.uuid);
    if (point) add("knot", { kind: "knot", point, isTaken: isTaken && rewound.length === 0 });
    for (const taken of rewound) add(`taken.${taken.receipt}`, { kind: "taken", taken });
    messageRows(item, number, add, around);
    for (const branch of around.branches) {
      if (!branch.active && branch.leaf && branch.leaves_at === item.uuid) {
        add(`branch.${branch.leaf}`, { kind: "branch", leaf: branch.leaf });
      }
    }
    for (const parting of (item.uuid && around.partings.get(item.uuid)) || []) {
      add(`parting.${parting.card.session_id}`, { kind: "parting", parting });
    }
  }
  return rows;
}

/** The damaged places between two messages. */
export function between(problems: ProblemItem[], before: Item | undefined, item: Item | undefined): ProblemItem[] {
  const from = before?.offset ?? -1;
  const to = item ? item.offset : Number.POSITIVE_INFINITY;
  if (to === null || to === undefined) return [];
  return problems.filter((problem) => problem.damage && problem.offset > from && problem.offset < to);
}

function messageRows(item: Item, number: number, add: (key: string, row: object) => void, around: Around): void {
  if (item.kind === "summary") {
    add("summary", {
      kind: "marker",
      what: "compacted",
      words: "The conversation was compacted here",
      text: textOf(item),
    });
    return;
  }
  if (item.kind === "synthetic" || item.kind === "system") {
    const text = textOf(item);
    if (INTERRUPTED.test(text)) add("note", { kind: "marker", what: "interrupted", words: "Interrupted", text: "" });
    else if (NO_ANSWER.test(text.trim())) return;
    else if (item.role === "assistant") add("note", { kind: "marker", what: "error", words: text, text: "" });
    else if (text) add("note", { kind: "marker", what: "note", words: "Note from Claude Code", text });
    return;
  }
  const all = blocks(item);
  if (item.kind === "prompt") {
    const text = textOf(item);
    const command = text.match(COMMAND);
    if (INTERRUPTED.test(text)) add("note", { kind: "marker", what: "interrupted", words: "Interrupted", text: "" });
    else if (command) {
      const words = [command[1], text.match(COMMAND_ARGUMENTS)?.[1]].filter(Boolean).join(" ");
      add("note", { kind: "marker", what: "command", words, text: "" });
    } else if (COMMAND_OUTPUT.test(text)) {
      const output = text.replace(/<\/?local-command-\w+>/g, "").trim();
      if (output) add("note", { kind: "marker", what: "note", words: "Output of the command", text: output });
    } else {
      const pictures = all.flatMap((block) => (block.type === "picture" ? [block.source] : []));
      add("prompt", { kind: "prompt", text, pictures, ordinal: around.ordinal(number) });
    }
    return;
  }
  all.forEach((block, at) => {
    blockRow(block, String(at), add, around);
  });
}

function blockRow(block: Block, key: string, add: (key: string, row: object) => void, around: Around): void {
  switch (block.type) {
    case "text":
      if (INTERRUPTED.test(block.text))
        add(key, { kind: "marker", what: "interrupted", words: "Interrupted", text: "" });
      else if (block.text.trim()) add(key, { kind: "prose", text: block.text });
      return;
    case "thinking":
      add(key, { kind: "thinking", text: block.text });
      return;
    case "tool_use":
      add(block.id || key, { kind: isStrand(block) ? "strand" : "tool", call: block });
      return;
    case "tool_result":
      if (!around.isResultKnown(block.tool_use_id))
        add(key, { kind: "orphan", text: block.text, isError: block.isError });
      return;
    case "picture":
      add(key, { kind: "picture", source: block.source });
      return;
    case "other":
      add(key, { kind: "other", name: block.name, json: block.json });
  }
}
