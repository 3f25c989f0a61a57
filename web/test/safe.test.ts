import { expect, test } from "vitest";
import { hasHidden, plain, safeAddress, visible } from "../src/text/safe.ts";

test("no escape sequence survives", () => {
  expect(plain("\u001b[31mred\u001b[0m plain")).toBe("red plain");
  expect(plain("\u001b]8;;http://x\u0007link\u001b]8;;\u001b\\")).toBe("link");
  expect(plain("\u001b]0;title\u0007x")).toBe("x");
  expect(plain("\u009b31mx\u0008\u0000")).toBe("x");
  expect(plain("\u001b]never ends\nnext")).toBe("\nnext");
});

test("a line that was overwritten shows its last state", () => {
  expect(plain("10 %\r50 %\r100 %\ndone\r\n")).toBe("100 %\ndone\n");
});

test("what nobody sees is named", () => {
  expect(visible("a\u202eb")).toEqual([
    { text: "a", hidden: false },
    { text: "U+202E", hidden: true },
    { text: "b", hidden: false },
  ]);
  expect(visible("\u{e0041}")).toEqual([{ text: "U+E0041", hidden: true }]);
  for (const text of ["\u200b", "\ufeff", "\u00ad", "\u2066", "\u001b", "\r", "\u3164"])
    expect(hasHidden(text), text).toBe(true);
  expect(hasHidden("plain ünïcode 漢字\n\ttoo")).toBe(false);
});

test("only addresses that lead to a page or a mail are followed", () => {
  expect(safeAddress("https://example.org/a?b#c")).toBe("https://example.org/a?b#c");
  for (const address of [
    "javascript:alert(1)",
    " javascript:alert(1)",
    "java\nscript:alert(1)",
    "data:text/html,x",
    "vbscript:x",
    "file:///etc/passwd",
    "//evil",
    "/relative",
    "blob:x",
  ]) {
    expect(safeAddress(address), address).toBeUndefined();
  }
});
