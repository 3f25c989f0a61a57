import { expect, test } from "vitest";
import { compare } from "../src/text/line_diff.ts";
import { age, duration, place, setHome, shortened, size } from "../src/text/words.ts";

test("ages, durations and sizes are short", () => {
  const now = Date.parse("2026-11-15T12:00:00Z");
  expect(
    [
      "2026-11-15T11:59:30Z",
      "2026-11-15T11:48:00Z",
      "2026-11-15T09:00:00Z",
      "2026-11-11T12:00:00Z",
      "nonsense",
      null,
    ].map((at) => age(at, now)),
  ).toEqual(["now", "12m", "3h", "4d", "", ""]);
  expect([400, 41_000, 112_000, 7_380_000].map(duration)).toEqual(["0.4s", "41s", "1m 52s", "2h 3m"]);
  expect([312, 4200, 48_000_000].map(size)).toEqual(["312 B", "4.2 kB", "48 MB"]);
});

test("paths begin at the home and lose their middle", () => {
  setHome("/home/me/.claude");
  expect([place("/home/me/api"), place("/home/meandyou"), place("/srv")]).toEqual(["~/api", "/home/meandyou", "/srv"]);
  expect(shortened("/home/me/a/very/long/way/to/some/file/that/is/deep/lib.rs", 24)).toBe("~/…/that/is/deep/lib.rs");
  setHome(undefined);
});

test("a diff marks lines and what changed within them", () => {
  const diff = compare(
    "use a;\nsleep(self.next()).await;\nend\n",
    "use a;\nlet wait = self.next();\nsleep(wait).await;\nend\n",
  );
  expect([diff.added, diff.removed]).toEqual([2, 1]);
  expect(diff.lines.map((line) => line.mark).join("")).toBe(" -++ ");
  const words = compare("let total = one + two;", "let total = one + three;").lines;
  expect(words.map((line) => line.words.filter((word) => word.changed).map((word) => word.text))).toEqual([
    ["two"],
    ["three"],
  ]);
});

test("what is far from every change is left out", () => {
  const before = Array.from({ length: 40 }, (_, at) => `line ${at}`);
  const after = before.with(20, "another");
  const { lines } = compare(before.join("\n"), after.join("\n"));
  expect(lines[0]).toEqual({ mark: "@", words: [{ text: "17 unchanged", changed: false }] });
  expect(lines.length).toBe(1 + 3 + 2 + 3);
});

test("what has no directories to leave out is cut at its end", () => {
  setHome(undefined);
  const long = `printf 'running 7 tests\\n' and ${"x".repeat(60)}/y`;
  expect(shortened(long, 40)).toBe(`${long.slice(0, 39)}…`);
  expect(shortened("/home/me/api/src/a/very/long/way/down/to/lib.rs", 30)).toMatch(/^\/…\/.*lib\.rs$/);
});
