/** A unified diff, as the keeper writes it, in the lines that are shown. */

import { type Diff, type DiffLine, paired, unchanged } from "./line_diff.ts";

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)$/;

/** `lines 64–73 · impl Retry`. */
function heading(from: number, length: number, about: string): string {
  const end = from + Math.max(1, length) - 1;
  return `${end > from ? `lines ${from}–${end}` : `line ${from}`}${about.trim() ? ` · ${about.trim()}` : ""}`;
}

export function unified(text: string): Diff {
  const lines: DiffLine[] = [];
  let [before, after, added, removed, isWithin] = [0, 0, 0, 0, false];
  let [gone, come]: [string[], string[]] = [[], []];
  /** What was removed and added in a row belongs together. */
  const flush = () => {
    const [removals, additions] = paired(gone, come);
    for (const words of removals) lines.push({ mark: "-", before: before++, words });
    for (const words of additions) lines.push({ mark: "+", after: after++, words });
    [removed, added] = [removed + gone.length, added + come.length];
    [gone, come] = [[], []];
  };
  const all = text.split("\n");
  if (all.at(-1) === "") all.pop();
  for (const line of all) {
    const hunk = line.match(HUNK);
    if (hunk) {
      flush();
      isWithin = true;
      [before, after] = [Number(hunk[1]), Number(hunk[3])];
      lines.push({ mark: "@", words: unchanged(heading(after || before, Number(hunk[4] ?? 1), hunk[5] ?? "")) });
    } else if (!isWithin) {
      // The names of the files are shown elsewhere.
    } else if (line.startsWith("-")) {
      if (come.length > 0) flush();
      gone.push(line.slice(1));
    } else if (line.startsWith("+")) {
      come.push(line.slice(1));
    } else if (line.startsWith("\\")) {
      flush();
      lines.push({ mark: "@", words: unchanged("no line break at the end") });
    } else {
      flush();
      lines.push({ mark: " ", before: before++, after: after++, words: unchanged(line.slice(1)) });
    }
  }
  flush();
  return { lines, added, removed };
}
