/** What an edit changed, line by line and within lines. */

import { diffLines, diffWordsWithSpace } from "diff";

/** A part of a line; changed within it or not. */
export interface Word {
  text: string;
  changed: boolean;
}

/** A line of a diff. */
export interface DiffLine {
  mark: "+" | "-" | " " | "@";
  before?: number;
  after?: number;
  words: Word[];
}

/** A diff, and how much it adds and removes. */
export interface Diff {
  lines: DiffLine[];
  added: number;
  removed: number;
}

/** How many unchanged lines stand around a change. */
const AROUND = 3;
/** Larger texts are not compared: their lines are shown as removed and added. */
const MOST = 200_000;

function split(text: string): string[] {
  if (text === "") return [];
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

export const unchanged = (text: string): Word[] => [{ text, changed: false }];

/** Each removed line beside the first added one that it may have become. */
export function paired(before: string[], after: string[]): [Word[][], Word[][]] {
  const [removals, additions] = [before.map(unchanged), after.map(unchanged)];
  if (before.length * after.length > 2500) return [removals, additions];
  let from = 0;
  before.forEach((text, row) => {
    for (let at = from; at < after.length; at++) {
      const pair = within(text, after[at] ?? "");
      if (!pair) continue;
      [removals[row], additions[at]] = pair;
      from = at + 1;
      return;
    }
  });
  return [removals, additions];
}

/** Marks what changed within a pair of lines; nothing if hardly anything stayed. */
function within(before: string, after: string): [Word[], Word[]] | undefined {
  const parts = before.length + after.length < 2000 ? diffWordsWithSpace(before, after) : [];
  const kept = parts
    .filter((part) => !part.added && !part.removed)
    .reduce((sum, part) => sum + part.value.trim().length, 0);
  if (kept < 3 || kept * 2 < Math.min(before.trim().length, after.trim().length)) return undefined;
  const side = (skip: "added" | "removed", mine: "added" | "removed"): Word[] =>
    parts.filter((part) => !part[skip]).map((part) => ({ text: part.value, changed: !!part[mine] }));
  return [side("added", "removed"), side("removed", "added")];
}

/** How a diff is to be used: lines and words to be shown, or only how much it adds and removes. */
export type Depth = "shown" | "counted";

/** Compares two texts. */
export function compare(before: string, after: string, depth: Depth = "shown"): Diff {
  const lines: DiffLine[] = [];
  let [old, fresh, added, removed] = [1, 1, 0, 0];
  const changes =
    before.length + after.length > MOST
      ? [
          { value: before, added: false, removed: true },
          { value: after, added: true, removed: false },
        ]
      : diffLines(before, after);
  for (let at = 0; at < changes.length; at++) {
    const change = changes[at];
    if (!change) break;
    const texts = split(change.value);
    const next = changes[at + 1];
    if (change.removed && next?.added) {
      const others = split(next.value);
      if (depth === "shown") {
        const [removals, additions] = paired(texts, others);
        for (const words of removals) lines.push({ mark: "-", before: old++, words });
        for (const words of additions) lines.push({ mark: "+", after: fresh++, words });
      }
      [removed, added] = [removed + texts.length, added + others.length];
      at++;
    } else if (change.removed) {
      for (const text of texts) lines.push({ mark: "-", before: old++, words: unchanged(text) });
      removed += texts.length;
    } else if (change.added) {
      for (const text of texts) lines.push({ mark: "+", after: fresh++, words: unchanged(text) });
      added += texts.length;
    } else {
      for (const text of texts) lines.push({ mark: " ", before: old++, after: fresh++, words: unchanged(text) });
    }
  }
  return { lines: trimmed(lines), added, removed };
}

/** Leaves out what is far from every change. */
function trimmed(lines: DiffLine[]): DiffLine[] {
  const near = new Uint8Array(lines.length);
  lines.forEach((line, at) => {
    if (line.mark === " ") return;
    near.fill(1, Math.max(0, at - AROUND), Math.min(lines.length, at + AROUND + 1));
  });
  const shown: DiffLine[] = [];
  let skipped = 0;
  lines.forEach((line, at) => {
    if (!near[at]) {
      skipped++;
      return;
    }
    if (skipped) shown.push({ mark: "@", words: unchanged(`${skipped} unchanged`) });
    skipped = 0;
    shown.push(line);
  });
  return shown;
}
