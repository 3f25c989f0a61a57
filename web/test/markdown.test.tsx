import { h } from "preact";
import { expect, test } from "vitest";
import { HOSTILE } from "../browser/hostile.ts";
import { lex, Markdown } from "../src/text/markdown.tsx";

/** What is rendered, as a tree of names, properties and texts: what a browser would be told to make. */
function tree(node: unknown): unknown[] {
  if (node === null || node === undefined || typeof node === "boolean") return [];
  if (Array.isArray(node)) return node.flatMap(tree);
  if (typeof node !== "object") return [String(node)];
  const { type, props } = node as { type: unknown; props: Record<string, unknown> };
  if (typeof type === "function") {
    const component = type as { prototype?: { render?: unknown }; (props: unknown): unknown };
    if (component.prototype?.render) {
      const instance = new (component as unknown as new (props: unknown) => { props: unknown; render(): unknown })(
        props,
      );
      instance.props = props;
      return tree(instance.render());
    }
    const name = component.name;
    if (["Code", "Copy", "Coloured"].includes(name)) return [[name, props.text ?? ""]];
    return tree(component(props));
  }
  const { children, ...rest } = props;
  return [[type, rest, ...tree(children)]];
}

const shown = (text: string) => tree(h(Markdown, { text }));

/** Every element name and property within. */
function walk(nodes: unknown[], visit: (name: string, props: Record<string, unknown>) => void): void {
  for (const node of nodes) {
    if (!Array.isArray(node)) continue;
    const [name, props, ...children] = node as [string, Record<string, unknown>, ...unknown[]];
    if (typeof props === "object") visit(name, props);
    walk(children, visit);
  }
}

test("prose, lists, tables and code become elements", () => {
  expect(shown("A **bold** `word`.")).toEqual([
    ["p", {}, "A ", ["strong", {}, "bold"], " ", ["code", {}, "word"], "."],
  ]);
  expect(JSON.stringify(shown("- [x] done\n- [ ] not"))).toContain("box checked");
  expect(JSON.stringify(shown("| a |\n|--:|\n| 1 |"))).toContain('"right"');
  expect(shown("```rust\nfn x() {}\n```")).toEqual([["Code", "fn x() {}"]]);
});

test("HTML is text, and entities are the characters they stand for", () => {
  expect(JSON.stringify(shown("a <b>b</b> &amp; &lt;i&gt;"))).toContain("<b>");
  expect(shown("x &amp; &#60;y&#62;")).toEqual([["p", {}, "x & <y>"]]);
});

test("only http, https and mail are links, and pictures are never loaded", () => {
  const links: unknown[] = [];
  walk(
    shown(
      "[a](https://x.example/) [b](javascript:alert(1)) [c](data:text/html,x) ![d](https://x.example/y.png) <ftp://z>",
    ),
    (name, props) => {
      expect(name).not.toBe("img");
      if (name === "a") links.push(props.href);
    },
  );
  expect(links).toEqual(["https://x.example/", "https://x.example/y.png"]);
});

test("no hostile text becomes anything but known elements without handlers", () => {
  const known = new Set([
    "p",
    "span",
    "a",
    "code",
    "strong",
    "em",
    "del",
    "br",
    "hr",
    "ul",
    "ol",
    "li",
    "blockquote",
    "div",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
  ]);
  for (const text of HOSTILE) {
    walk(shown(text), (name, props) => {
      expect(known.has(name), `${name} from ${text.slice(0, 80)}`).toBe(true);
      for (const [key, value] of Object.entries(props)) {
        expect(
          key.startsWith("on") || key === "dangerouslySetInnerHTML" || key === "style" || key === "src",
          `${key} from ${text.slice(0, 80)}`,
        ).toBe(false);
        if (key === "href") expect(String(value)).toMatch(/^(https?|mailto):/);
      }
    });
  }
});

test("the finished blocks of a growing text stay the same", () => {
  const before = lex("First.\n\nSecond");
  const after = lex("First.\n\nSecond grows");
  expect(after[0]).toEqual(before[0]);
});
