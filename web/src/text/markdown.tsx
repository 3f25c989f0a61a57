/** Markdown as elements. Nothing is ever made from HTML, and nothing is ever loaded. */

import { marked, type Token, type Tokens } from "marked";
import type { ComponentChildren, VNode } from "preact";
import { memo } from "../parts/memo.ts";
import { Code } from "./code.tsx";
import { plain, safeAddress } from "./safe.ts";

const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0" };

/** The lexer leaves entities to a browser's parser, which never sees them here. */
function decoded(text: string): string {
  return plain(text).replace(
    /&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|(amp|lt|gt|quot|apos|nbsp));/gi,
    (whole, hex, dec, name) => {
      if (name) return ENTITIES[String(name).toLowerCase()] ?? whole;
      const code = Number.parseInt(hex ?? dec, hex ? 16 : 10);
      return code > 31 && code <= 0x10ffff && !(code >= 0xd800 && code < 0xe000)
        ? String.fromCodePoint(code)
        : "\ufffd";
    },
  );
}

function inline(tokens: Token[] | undefined): ComponentChildren {
  return tokens?.map(inlineToken);
}

function inlineToken(token: Token): ComponentChildren {
  switch (token.type) {
    case "strong":
      return <strong>{inline(token.tokens)}</strong>;
    case "em":
      return <em>{inline(token.tokens)}</em>;
    case "del":
      return <del>{inline(token.tokens)}</del>;
    case "codespan":
      return <code>{plain(token.text)}</code>;
    case "br":
      return <br />;
    case "link":
      return <Link address={token.href}>{inline(token.tokens)}</Link>;
    case "image":
      // A picture from elsewhere would tell its server that somebody reads this.
      return (
        <Link address={token.href}>
          <span class="picture">picture: {decoded(token.text || token.href)}</span>
        </Link>
      );
    case "text":
    case "escape":
      return "tokens" in token && token.tokens
        ? inline(token.tokens)
        : decoded(token.type === "escape" ? token.text : token.raw);
    default:
      // HTML among it.
      return plain(token.raw);
  }
}

function Link({ address, children }: { address: string; children: ComponentChildren }) {
  const safe = safeAddress(address);
  if (!safe) return <span title={address}>{children}</span>;
  return (
    <a class="link" href={safe} title={safe} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  );
}

function block(token: Token): ComponentChildren {
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "paragraph":
      return <p>{inline(token.tokens)}</p>;
    case "text":
      return token.tokens ? inline(token.tokens) : decoded(token.raw);
    case "heading":
      return <p class={`heading h${(token as Tokens.Heading).depth}`}>{inline(token.tokens)}</p>;
    case "code":
      return <Code text={token.text} language={(token as Tokens.Code).lang?.split(/\s/, 1)[0]} />;
    case "blockquote":
      return <blockquote>{token.tokens?.map(block)}</blockquote>;
    case "hr":
      return <hr />;
    case "list":
      return <List list={token as Tokens.List} />;
    case "table":
      return <Table table={token as Tokens.Table} />;
    default:
      return <p class="raw-text">{plain(token.raw)}</p>;
  }
}

function List({ list }: { list: Tokens.List }) {
  const items = list.items.map((item, at) => (
    <li key={at} class={item.task ? "task" : undefined}>
      {item.task && (
        <span class={item.checked ? "box checked" : "box"} role="img" aria-label={item.checked ? "done" : "not done"} />
      )}
      {item.tokens.map((token) => (token.type === "checkbox" ? null : block(token)))}
    </li>
  ));
  return list.ordered ? <ol start={Number(list.start) || 1}>{items}</ol> : <ul>{items}</ul>;
}

function Table({ table }: { table: Tokens.Table }) {
  const cell = (it: Tokens.TableCell, at: number, Tag: "th" | "td") => (
    <Tag key={at} class={it.align === "right" || it.align === "center" ? it.align : undefined}>
      {inline(it.tokens)}
    </Tag>
  );
  return (
    <div class="table" tabIndex={0} role="group" aria-label="Table">
      <table>
        <thead>
          <tr>{table.header.map((it, at) => cell(it, at, "th"))}</tr>
        </thead>
        <tbody>
          {table.rows.map((row, at) => (
            <tr key={at}>{row.map((it, column) => cell(it, column, "td"))}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const Block = memo(
  ({ token }: { token: Token }) => <>{block(token)}</>,
  // A finished block of a text that still grows stays as it is.
  (one, other) => one.token.raw === other.token.raw && one.token.type === other.token.type,
);

/** The tokens of a text; also what it takes to know which blocks of a growing text have changed. */
export function lex(text: string): Token[] {
  try {
    return marked.lexer(text, { gfm: true });
  } catch {
    // Nested without end, or the like: it is still a text.
    return [{ type: "paragraph", raw: text, text, tokens: [{ type: "text", raw: text, text }] } as Token];
  }
}

/** A text as people write it: tables, task lists, code. */
export function Markdown({ text }: { text: string }): VNode {
  return (
    <>
      {lex(text).map((token, at) => (
        <Block key={at} token={token} />
      ))}
    </>
  );
}
