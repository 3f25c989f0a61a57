import { expect, test } from "vitest";
import { firstLineOf, numberedFrom } from "../src/text/edit_place.ts";
import { compare } from "../src/text/line_diff.ts";

const line = (result: unknown) => JSON.stringify({ toolUseResult: result });

test("an edit begins where its text stood in the file", () => {
  expect(firstLineOf(line({ originalFile: "one\ntwo\nthree\n" }), "two\n")).toBe(2);
  expect(firstLineOf(line({ originalFile: "one\n" }), "elsewhere")).toBeUndefined();
  expect(firstLineOf(line({ originalFile: null }), "two")).toBeUndefined();
  expect(firstLineOf(line("The file has been updated."), "two")).toBeUndefined();
  expect(firstLineOf("no json", "two")).toBeUndefined();
});

test("the numbers of a diff are those of the file", () => {
  const diff = numberedFrom(compare("a\nb\n", "a\nB\nc\n"), 66);
  expect(diff.lines.map((it) => [it.before, it.after, it.mark])).toEqual([
    [66, 66, " "],
    [67, undefined, "-"],
    [undefined, 67, "+"],
    [undefined, 68, "+"],
  ]);
});
