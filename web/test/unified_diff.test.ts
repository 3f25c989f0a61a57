import { expect, test } from "vitest";
import { unified } from "../src/text/unified_diff.ts";

const DIFF = `--- a/src/lib.rs
+++ b/src/lib.rs
@@ -2,3 +2,4 @@ impl Retry
 same
-sleep(next).await;
+let wait = next;
+sleep(wait).await;
 end
@@ -40 +41 @@
-old
\\ No newline at end of file
+new
`;

const shown = (text: string) =>
  unified(text).lines.map((line) => [
    line.before ?? "",
    line.after ?? "",
    line.mark,
    line.words.map((word) => word.text).join(""),
  ]);

test("lines have their numbers in both files, and names of files are no changes", () => {
  expect(shown(DIFF)).toEqual([
    ["", "", "@", "lines 2–5 · impl Retry"],
    [2, 2, " ", "same"],
    [3, "", "-", "sleep(next).await;"],
    ["", 3, "+", "let wait = next;"],
    ["", 4, "+", "sleep(wait).await;"],
    [4, 5, " ", "end"],
    ["", "", "@", "line 41"],
    [40, "", "-", "old"],
    ["", "", "@", "no line break at the end"],
    ["", 41, "+", "new"],
  ]);
  const { added, removed } = unified(DIFF);
  expect([added, removed]).toEqual([3, 2]);
});

test("a removed line that looks like the name of a file is a removed line", () => {
  expect(shown("--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n--- a comment\n x\n")[1]).toEqual([1, "", "-", "-- a comment"]);
});

test("what changed within a line is told from what did not", () => {
  const lines = unified("@@ -1 +1 @@\n-let a = compute(1);\n+let a = compute(2);\n").lines;
  expect(lines[1]?.words.filter((word) => word.changed).map((word) => word.text)).toEqual(["1"]);
});
