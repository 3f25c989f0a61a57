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

const unchanged = (text: string): Word[] => [{ text, changed: false }];

/** Marks what changed within a pair of lines, unless hardly anything stayed. */
function within(before: string, after: string): [Word[], Word[]] {
  const parts = before.length + after.length < 2000 ? diffWordsWithSpace(before, after) : [];
  const kept = parts.filter((part) => !part.added && !part.removed).reduce((sum, part) => sum + part.value.trim().length, 0);
  if (kept * 3 < Math.min(before.trim().length, after.trim().length)) return [unchanged(before), unchanged(after)];
  const side = (skip: "added" | "removed", mine: "added" | "removed"): Word[] =>
    parts.filter((part) => !part[skip]).map((part) => ({ text: part.value, changed: !!part[mine] }));
  return [side("added", "removed"), side("removed", "added")];
}

/** Compares two texts. */
export function compare(before: string, after: string): Diff {
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
      const pairs = texts.map((text, row) => {
        const other = others[row];
        return texts.length === others.length && other !== undefined ? within(text, other) : undefined;
      });
      texts.forEach((text, row) => {
        lines.push({ mark: "-", before: old++, words: pairs[row]?.[0] ?? unchanged(text) });
      });
      others.forEach((text, row) => {
        lines.push({ mark: "+", after: fresh++, words: pairs[row]?.[1] ?? unchanged(text) });
      });
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
