import { expect, test } from "vitest";
import { hexDump } from "../src/text/hex.ts";

test("bytes are shown as codes and as text, with their places", () => {
  const bytes = new TextEncoder().encode('{"a":"\u00e9"}');
  expect(hexDump(bytes, 2068)).toBe('00002068  7b 22 61 22 3a 22 c3 a9 22 7d                    {"a":".."}');
});

test("a run of zeros is one line and a star, and its end is shown", () => {
  const lines = hexDump(new Uint8Array(16 * 9), 0).split("\n");
  expect(lines.map((line) => line.slice(0, 8))).toEqual(["00000000", "*", "00000128"]);
});
