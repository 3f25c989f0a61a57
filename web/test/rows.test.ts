import { expect, test } from "vitest";
import type { Item } from "../src/api/types.ts";
import { blocks } from "../src/thread/blocks.ts";
import { branchItems } from "../src/thread/branch.tsx";
import { type Around, points, rowsOf } from "../src/thread/rows.ts";
import { outcome, words } from "../src/thread/tool_words.ts";

const none: Around = {
  problems: [],
  points: new Map(),
  branches: [],
  partings: new Map(),
  rewinds: [],
  isTaken: () => false,
  isResultKnown: () => true,
  previous: () => undefined,
  ordinal: () => undefined,
};

function item(kind: string, content: unknown, more: Partial<Item> = {}): Item {
  return {
    uuid: "u",
    parent_uuid: null,
    message_id: null,
    role: "user",
    kind,
    content: content as never,
    timestamp: null,
    model: null,
    offset: 0,
    provisional: false,
    ...more,
  };
}

const kinds = (...items: Item[]) =>
  rowsOf(
    items.map((it, number) => ({ number, item: it })),
    none,
  ).map((row) => (row.kind === "marker" ? `${row.kind} ${row.what}` : row.kind));

test("whatever a transcript holds becomes rows", () => {
  expect(kinds(item("prompt", "hello"))).toEqual(["prompt"]);
  expect(kinds(item("prompt", "[Request interrupted by user]"))).toEqual(["marker interrupted"]);
  expect(kinds(item("prompt", "<command-name>/compact</command-name>"))).toEqual(["marker command"]);
  expect(kinds(item("summary", "what came before"))).toEqual(["marker compacted"]);
  expect(kinds(item("synthetic", "API Error: 529", { role: "assistant" }))).toEqual(["marker error"]);
  expect(kinds(item("synthetic", "No response requested.", { role: "assistant" }))).toEqual([]);
  expect(
    kinds(
      item("reply", [
        { type: "text", text: "x" },
        { type: "thinking", thinking: "y" },
        { type: "tool_use", id: "t", name: "Bash", input: {} },
        { type: "tool_use", id: "s", name: "Task", input: {} },
        { type: "new_thing", a: 1 },
      ]),
    ),
  ).toEqual(["prose", "thinking", "tool", "strand", "other"]);
  expect(kinds(item("reply", null), item("reply", 5), item("reply", [null, "x", 7]))).toEqual([
    "prose",
    "prose",
    "prose",
  ]);
});

test("damage lies between the messages around it", () => {
  const problems = [{ offset: 50, length: 9, kind: "nul", reason: "bytes of zero", damage: true }];
  const items = [item("prompt", "a", { uuid: "a", offset: 0 }), item("reply", "b", { uuid: "b", offset: 100 })];
  const rows = rowsOf(
    items.map((it, number) => ({ number, item: it })),
    { ...none, problems, previous: (number) => items[number - 1] },
  );
  expect(rows.map((row) => row.kind)).toEqual(["prompt", "fray", "prose"]);
});

test("pictures are shown only from bytes that are pictures", () => {
  const picture = (media_type: string, data: string) =>
    blocks(item("reply", [{ type: "image", source: { type: "base64", media_type, data } }]))[0]?.type;
  expect(picture("image/png", "aGk=")).toBe("picture");
  expect(picture("image/svg+xml", "aGk=")).toBe("text");
  expect(picture("image/png", '"><script>')).toBe("text");
  expect(blocks(item("reply", [{ type: "image", source: { type: "url", url: "http://x" } }]))[0]?.type).toBe("text");
});

test("captures of a turn are one moment before its prompt", () => {
  const at = "2026-11-15T10:00:00Z";
  const found = points([
    { id: "1", what: "tree", created_at: at, message: "m", changes: [{ path: "a", before: { absent: true } }] },
    {
      id: "2",
      what: "after",
      created_at: at,
      message: "m",
      changes: [
        { path: "a", before: { present: { kind: "file", size: 9 } } },
        { path: "b", before: { present: { kind: "file", size: 4200 } } },
        { path: "l", before: { present: { kind: "symlink" } } },
        { path: "u", before: { unknown: { why: "too late" } } },
      ],
    },
    { id: "3", what: "rewind", created_at: at, message: "m", changes: [{ path: "c" }] },
    { id: "4", what: "before", created_at: at, changes: [{ path: "d" }] },
  ]);
  // What was known first of a turn counts: that is what was there before it.
  const was = new Map(Object.entries({ a: "did not exist", b: "4.2 kB", l: "symlink" }));
  expect([...found.values()]).toEqual([{ message: "m", at, keptBy: "rethread", files: ["a", "b", "l", "u"], was }]);
});

test("what Claude Code kept is shown as its own, in order, and only where nothing was captured", () => {
  const at = (hour: number) => `2026-11-15T${hour}:00:00Z`;
  const ours = { id: "1", what: "tree", created_at: at(12), message: "second", changes: [{ path: "a" }] };
  const file = (path: string, existed: boolean) => ({ path, existed });
  const found = points(
    [ours],
    [
      { message: "first", created_at: at(11), files: [file("a", true), file("b", false)] },
      { message: "second", created_at: at(12), files: [file("c", true)] },
      { message: "third", created_at: at(13), files: [file("a", true)] },
    ],
  );
  const told = [...found.values()].map((point) => [point.message, point.keptBy, point.files]);
  expect(told).toEqual([
    ["first", "claude_code", ["a", "b"]],
    ["second", "rethread", ["a"]],
    ["third", "claude_code", ["a"]],
  ]);
  expect(found.get("first")?.was).toEqual(new Map([["b", "did not exist"]]));
});

test("an abandoned branch is walked from its end to where it leaves", () => {
  const all = ["a", "b", "c", "d"].map((uuid, at) =>
    item("prompt", uuid, { uuid, parent_uuid: at ? (["a", "b", "c", "d"][at - 1] ?? null) : null }),
  );
  expect(branchItems(all, "d", "b").map((it) => it.uuid)).toEqual(["c", "d"]);
});

test("a call is told in plain words", () => {
  const say = (name: string, input: Record<string, unknown>) => {
    const { verb, object, rest } = words({ type: "tool_use", id: "", name, input }, "/home/me/api", true);
    return [verb, object, rest].filter(Boolean).join(" ");
  };
  expect(say("Bash", { command: "cargo test\nmore" })).toBe("ran cargo test");
  expect(say("Bash", { command: "x", description: "Run the tests" })).toBe("ran the tests");
  expect(say("Edit", { file_path: "/home/me/api/src/lib.rs" })).toBe("edited src/lib.rs");
  expect(say("Grep", { pattern: "x", path: "/home/me/api/src" })).toBe("searched x in src");
  expect(say("mcp__github__list", { repo: "r" })).toBe("github: list r");
  expect(say("Anything", { input: 5 })).toBe("Anything");
});

test("what was taken back is pale from its prompt on, and its note stands before that", () => {
  const taken = { receipt: "r", message: "u", at: "2026-01-01T00:00:00Z", files: ["a"] };
  const point = { message: "u", at: "2026-01-01T00:00:00Z", keptBy: "rethread" as const, files: ["a"], was: new Map() };
  const around: Around = { ...none, points: new Map([["u", point]]), rewinds: [taken], isTaken: () => true };
  const rows = rowsOf([{ number: 0, item: item("prompt", "change it") }], around);
  expect(rows.map((row) => [row.kind, row.isTaken])).toEqual([
    ["knot", false],
    ["taken", true],
    ["prompt", true],
  ]);
});

test("what a search found is told in hits and files", () => {
  const found = (name: string, text: string) =>
    outcome(
      { type: "tool_use", id: "t", name, input: {} },
      { type: "tool_result", tool_use_id: "t", isError: false, text, pictures: [] },
    );
  expect(found("Grep", "a.rs:1:x\na.rs:9:y\nb.rs:2:z")).toBe("3 hits in 2 files");
  expect(found("Grep", "Found 2 files\na.rs")).toBe("2 lines");
  expect(found("Glob", "a.rs\nb.rs")).toBe("2 files");
  expect(found("Grep", "No matches found")).toBe("nothing");
});
