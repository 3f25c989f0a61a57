/** Where in its file an edit was made: Claude Code writes the file as it was beside the result. */

import type { Diff } from "./line_diff.ts";

/** The line that an edit begins on; nothing if its line does not say. */
export function firstLineOf(line: string, before: string): number | undefined {
  try {
    const { toolUseResult: result } = JSON.parse(line) as { toolUseResult?: { originalFile?: unknown } };
    if (typeof result?.originalFile !== "string" || before === "") return undefined;
    const at = result.originalFile.indexOf(before);
    return at < 0 ? undefined : result.originalFile.slice(0, at).split("\n").length;
  } catch {
    return undefined;
  }
}

/** The same diff with the numbers of a text that begins on a line. */
export function numberedFrom(diff: Diff, first: number): Diff {
  const moved = (number: number | undefined) => (number === undefined ? {} : { number: number + first - 1 });
  const lines = diff.lines.map((line) => {
    const [before, after] = [moved(line.before).number, moved(line.after).number];
    return { ...line, ...(before === undefined ? {} : { before }), ...(after === undefined ? {} : { after }) };
  });
  return { ...diff, lines };
}
