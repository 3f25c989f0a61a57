/** The blocks of a message, whatever a transcript holds: what has not the shape of a block becomes text. */

import type { Item } from "../api/types.ts";

export interface ToolUse {
  type: "tool_use";
  id: string;
  name: string;
  input: Record<string, unknown>;
}

export interface ToolResult {
  type: "tool_result";
  tool_use_id: string;
  isError: boolean;
  text: string;
  pictures: string[];
  timestamp?: string | undefined;
}

export type Block =
  | { type: "text"; text: string }
  | { type: "thinking"; text: string }
  | { type: "picture"; source: string }
  | { type: "other"; name: string; json: string }
  | ToolUse
  | ToolResult;

const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const string = (value: unknown): string =>
  typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value);

/** The bytes of a picture as an address; pictures from elsewhere are never loaded. */
function picture(source: unknown): string | undefined {
  if (!isObject(source) || source.type !== "base64") return undefined;
  const kind = string(source.media_type);
  const data = string(source.data);
  return PICTURES.includes(kind) && /^[A-Za-z0-9+/=\s]*$/.test(data) ? `data:${kind};base64,${data}` : undefined;
}

function result(block: Record<string, unknown>, timestamp: string | undefined): ToolResult {
  const texts: string[] = [];
  const pictures: string[] = [];
  const parts: unknown[] = Array.isArray(block.content) ? block.content : [block.content];
  for (const part of parts) {
    if (isObject(part) && part.type === "text") texts.push(string(part.text));
    else if (isObject(part) && part.type === "image") {
      const source = picture(part.source);
      if (source) pictures.push(source);
      else texts.push("[a picture that is not shown]");
    } else if (part !== undefined && part !== null) texts.push(string(part));
  }
  return {
    type: "tool_result",
    tool_use_id: string(block.tool_use_id),
    isError: block.is_error === true,
    text: texts.join("\n"),
    pictures,
    timestamp,
  };
}

function block(value: unknown, timestamp: string | undefined): Block {
  if (!isObject(value)) return { type: "text", text: string(value) };
  switch (value.type) {
    case "text":
      return { type: "text", text: string(value.text) };
    case "thinking":
    case "redacted_thinking":
      return { type: "thinking", text: string(value.thinking) };
    case "tool_use":
    case "server_tool_use":
    case "mcp_tool_use":
      return {
        type: "tool_use",
        id: string(value.id),
        name: string(value.name),
        input: isObject(value.input) ? value.input : { input: value.input },
      };
    case "tool_result":
      return result(value, timestamp);
    case "image": {
      const source = picture(value.source);
      return source ? { type: "picture", source } : { type: "text", text: "[a picture that is not shown]" };
    }
    default:
      return { type: "other", name: string(value.type) || "block", json: JSON.stringify(value, null, 2) };
  }
}

const read = new WeakMap<Item, Block[]>();

/** What a message consists of. */
export function blocks(item: Item): Block[] {
  const before = read.get(item);
  if (before) return before;
  const content: unknown = item.content;
  const timestamp = item.timestamp ?? undefined;
  let all: Block[] = [];
  if (typeof content === "string") all = content ? [{ type: "text", text: content }] : [];
  else if (Array.isArray(content)) all = content.map((value) => block(value, timestamp));
  else if (content !== null && content !== undefined) all = [block(content, timestamp)];
  read.set(item, all);
  return all;
}

/** All text of a message, as a person would copy it. */
export function textOf(item: Item): string {
  return blocks(item)
    .map((it) => ("text" in it ? it.text : ""))
    .filter(Boolean)
    .join("\n\n");
}
