import { h } from "preact";
import { expect, test, vi } from "vitest";
import type { Attention } from "../src/api/events.ts";

// What colours a page asks for the page as soon as it is there.
vi.stubGlobal("document", { documentElement: { dataset: {} } });
const { What } = await import("../src/attention/what.tsx");

/** Everything that is rendered as text, in order. */
function text(node: unknown): string {
  if (node === null || node === undefined || typeof node === "boolean") return "";
  if (Array.isArray(node)) return node.map(text).join("");
  if (typeof node !== "object") return String(node);
  const { type, props } = node as { type: unknown; props: { children?: unknown } };
  return text(typeof type === "function" ? (type as (props: unknown) => unknown)(props) : props.children);
}

function shown(tool_name: string, input: Record<string, unknown>): string {
  const attention = { tool_use_id: "t", shown: { tool_name, input } } as unknown as Attention;
  return text(h(What, { attention }));
}

test("an edit that hides something is shown with all that it is", () => {
  const edit = {
    file_path: "/p/a.ts",
    old_string: "let safe = true",
    new_string: "let safe =\u200b false",
    replace_all: true,
  };
  const all = shown("Edit", edit);
  expect(all).toContain("let safe = true");
  expect(all).toContain("let safe =U+200B false");
  expect(all).toContain("replace_all");
  expect(all).not.toContain("\u200b");
});

test("a plan that hides something is shown as it is", () => {
  const plan = shown("ExitPlanMode", { plan: "Do **this**\u202e [and](http://that)" });
  expect(plan).toContain("Do **this**U+202E [and](http://that)");
});

test("whatever a command is called with is shown, and nothing of it is hidden or cut", () => {
  const command = `echo ${"x".repeat(20_000)} end`;
  const all = shown("Bash", { command, description: "Say x", run_in_background: true, odd: "a\u00adb" });
  expect(all).toContain(command);
  expect(all).toContain("run_in_background");
  expect(all).toContain("aU+00ADb");
});
