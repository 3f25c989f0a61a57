import { expect, test } from "vitest";
import type { Checkpoint } from "../src/api/events.ts";
import { takenBack } from "../src/state/taken_back.ts";

const at = "2026-01-01T00:00:00Z";
const before: Checkpoint = { id: "c1", what: "before", created_at: at, message: "m1", changes: [{ path: "a" }] };
const rewind = (id: string, to: string): Checkpoint => ({
  id,
  what: "rewind",
  created_at: at,
  rewind: { to },
  changes: [{ path: "a" }, { path: "b" }],
});
const receipts = (...all: Checkpoint[]) => takenBack([before, ...all]).map((it) => it.receipt);

test("a rewind counts until it is undone, and again when that is undone", () => {
  expect(receipts(rewind("r1", "m1"))).toEqual(["r1"]);
  expect(receipts(rewind("r1", "m1"), rewind("u1", "r1"))).toEqual([]);
  expect(receipts(rewind("r1", "m1"), rewind("u1", "r1"), rewind("u2", "u1"))).toEqual(["r1"]);
  expect(receipts(rewind("r1", "m1"), rewind("u1", "r1"), rewind("r2", "m1"))).toEqual(["r2"]);
});

test("a rewind to a checkpoint is one to the prompt of its turn", () => {
  expect(takenBack([before, rewind("r1", "c1")])).toEqual([{ receipt: "r1", message: "m1", at, files: ["a", "b"] }]);
});
