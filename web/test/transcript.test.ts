import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Frame } from "../src/api/events.ts";
import type { Item, Page } from "../src/api/types.ts";
import { PAGE, Transcript } from "../src/state/transcript.ts";

const uuid = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;

function item(number: number, more: Partial<Item> = {}): Item {
  const isPrompt = number % 2 === 0;
  return {
    uuid: uuid(number),
    parent_uuid: number ? uuid(number - 1) : null,
    message_id: isPrompt ? null : `msg_${number}`,
    role: isPrompt ? "user" : "assistant",
    kind: isPrompt ? "prompt" : "reply",
    content: `message ${number}` as never,
    timestamp: "2026-11-15T10:00:00Z",
    model: null,
    offset: number * 100,
    provisional: false,
    ...more,
  };
}

/** A keeper with so many messages, as the page asks it. */
let total = 0;
let reads: string[] = [];

beforeEach(() => {
  reads = [];
  vi.stubGlobal("fetch", async (address: string) => {
    const url = new URL(address, "http://localhost");
    if (!url.pathname.endsWith("/messages")) return Response.json({ items: [], held: false });
    reads.push(url.search);
    const limit = Number(url.searchParams.get("limit"));
    const [after, around] = [url.searchParams.get("after"), url.searchParams.get("around")];
    const at = (cursor: string) => (cursor.includes(":") ? Number(cursor.split(":")[0]) : Number(cursor.slice(-12)));
    const from = after ? at(after) + 1 : around ? Math.max(0, at(around) - (limit >> 1)) : Math.max(0, total - limit);
    const to = Math.min(total, from + limit);
    const page: Page = {
      items: Array.from({ length: to - from }, (_, place) => item(from + place)),
      page: {
        before: from > 0 ? `${from}:${uuid(from)}` : null,
        after: to < total ? `${to - 1}:${uuid(to - 1)}` : null,
        total,
        reset: false,
      },
      head: { epoch: "e", seq: 1, position: "f.0.0.0" },
    };
    return Response.json(page);
  });
});
afterEach(() => vi.unstubAllGlobals());

async function opened(count: number, message?: string): Promise<Transcript> {
  total = count;
  const transcript = new Transcript("s", () => {});
  await transcript.open(message);
  return transcript;
}

const frame = (type: string, data: unknown): Frame => ({ v: 1, epoch: "e", seq: 2, topic: "session:s", type, data });
const texts = (transcript: Transcript) =>
  Array.from({ length: transcript.total.value }, (_, at) => transcript.item(at)?.content);

test("a long session is read at its end only, and elsewhere when somebody looks there", async () => {
  const transcript = await opened(1000);
  expect([transcript.total.value, transcript.item(999)?.uuid, transcript.item(0)]).toEqual([
    1000,
    uuid(999),
    undefined,
  ]);
  await transcript.ensure(0);
  await transcript.ensure(40);
  expect([transcript.item(0)?.uuid, transcript.item(40 * PAGE)?.uuid]).toEqual([uuid(0), uuid(40 * PAGE)]);
  const before = reads.length;
  await transcript.ensure(40);
  expect(reads.length).toBe(before);
});

test("a link opens the part around its message", async () => {
  const transcript = await opened(1000, uuid(500));
  expect([transcript.numberOf(uuid(500)), transcript.item(500)?.uuid, transcript.total.value]).toEqual([
    500,
    uuid(500),
    1000,
  ]);
});

test("what the stream repeats is there once, and what it adds comes last", async () => {
  const transcript = await opened(4);
  for (const number of [3, 4, 4, 5]) transcript.hear(frame("message.upsert", item(number)));
  expect(texts(transcript)).toEqual(["message 0", "message 1", "message 2", "message 3", "message 4", "message 5"]);
});

test("two identical prompts are two, and each replaces its own optimistic one", async () => {
  const transcript = await opened(2);
  await transcript.send("continue", false);
  await transcript.send("continue", false);
  const [first, second] = transcript.optimistic.value;
  expect(transcript.optimistic.value.length).toBe(2);
  transcript.hear(frame("message.upsert", item(2, { uuid: first?.uuid ?? "" })));
  expect(transcript.optimistic.value).toEqual([second]);
  transcript.hear(frame("message.upsert", item(4, { uuid: second?.uuid ?? "" })));
  expect([transcript.optimistic.value, transcript.total.value]).toEqual([[], 4]);
});

test("what is said piece by piece gives way to what arrives whole", async () => {
  const transcript = await opened(2);
  const delta = (index: number, offset: number, text: string) =>
    transcript.hear(frame("message.delta", { message_id: "msg_3", index, kind: "text", offset, text }));
  delta(0, 0, "Wör");
  delta(0, 4, "ld");
  expect(transcript.partial.value?.blocks).toEqual([{ kind: "text", text: "Wörld" }]);
  delta(1, 0, "next");
  transcript.hear(frame("message.upsert", item(3)));
  expect(transcript.partial.value?.blocks.map((block) => block.text)).toEqual(["", "next"]);
  transcript.hear(frame("turn.completed", {}));
  expect(transcript.partial.value).toBeUndefined();
});

test("what a snapshot and a piece both say is shown once", async () => {
  const transcript = await opened(2);
  transcript.hear(frame("message.partial", { message_id: "msg_3", blocks: [{ kind: "text", text: "Wörl" }] }));
  const delta = (offset: number, text: string) =>
    transcript.hear(frame("message.delta", { message_id: "msg_3", index: 0, kind: "text", offset, text }));
  delta(0, "Wör");
  delta(4, "ld");
  delta(6, "!");
  expect(transcript.partial.value?.blocks).toEqual([{ kind: "text", text: "Wörld!" }]);
});

test("the result of a call is found wherever its page is", async () => {
  const transcript = await opened(PAGE - 1);
  transcript.hear(
    frame(
      "message.upsert",
      item(101, { uuid: "call", content: [{ type: "tool_use", id: "t1", name: "Bash", input: {} }] as never }),
    ),
  );
  transcript.hear(
    frame(
      "message.upsert",
      item(102, {
        uuid: "result",
        kind: "tool_result",
        content: [{ type: "tool_result", tool_use_id: "t1", content: "out", is_error: true }] as never,
      }),
    ),
  );
  expect(transcript.result("t1")).toMatchObject({ text: "out", isError: true });
});

test("pages that are far away are given up, and the end is not", async () => {
  const transcript = await opened(5000);
  for (let page = 0; page < 200; page++) await transcript.ensure(page);
  transcript.keepNear(190, 200);
  expect([transcript.isLoaded(0), transcript.item(0), transcript.isLoaded(195)]).toEqual([false, undefined, true]);
  expect(transcript.item(4999)?.uuid).toBe(uuid(4999));
});

test("the previous prompt is found on pages that were not read", async () => {
  const transcript = await opened(1000);
  expect(await transcript.prompt(1000 - 4 * PAGE, -1)).toBe(1000 - 4 * PAGE - 2);
});

test("what was read whole is not shown as being said, whichever came first", async () => {
  const transcript = await opened(4);
  const said = { message_id: "msg_3", blocks: [{ kind: "text", text: "message 3" }] };
  transcript.hear(frame("message.partial", said));
  expect(transcript.partial.value?.blocks.map((block) => block.text)).toEqual([""]);
  transcript.hear(frame("message.delta", { message_id: "msg_3", index: 0, kind: "text", offset: 0, text: "mess" }));
  expect(transcript.partial.value?.blocks.map((block) => block.text)).toEqual([""]);
});

test("several pages are read with one request, and only those that are not here", async () => {
  vi.stubGlobal("requestAnimationFrame", (then: () => void) => setTimeout(then));
  const transcript = await opened(1000);
  await transcript.ensure(12);
  reads = [];
  transcript.ensureAll(10, 15);
  await vi.waitFor(() => expect([10, 11, 12, 13, 14, 15].every((page) => transcript.isLoaded(page))).toBe(true));
  expect(reads).toEqual([`?after=${10 * PAGE - 1}:&limit=${2 * PAGE}`, `?after=${13 * PAGE - 1}:&limit=${3 * PAGE}`]);
  expect(transcript.item(15 * PAGE)?.uuid).toBe(uuid(15 * PAGE));
});

test("the first pages are read whole", async () => {
  vi.stubGlobal("requestAnimationFrame", (then: () => void) => setTimeout(then));
  const transcript = await opened(1000);
  transcript.ensureAll(0, 3);
  await vi.waitFor(() => expect([0, 1, 2, 3].every((page) => transcript.isLoaded(page))).toBe(true));
  expect(transcript.item(0)?.uuid).toBe(uuid(0));
  expect(transcript.item(4 * PAGE - 1)?.uuid).toBe(uuid(4 * PAGE - 1));
});

test("how long a tool has been running is what the agent says, until its turn is over", async () => {
  const transcript = await opened(4);
  const before = Date.now();
  transcript.hear(frame("tool.progress", { tool_use_id: "t1", elapsed_time_seconds: 42 }));
  transcript.hear(frame("tool.progress", { tool_use_id: 7, elapsed_time_seconds: "x" }));
  expect([...transcript.running.value.keys()]).toEqual(["t1"]);
  expect(before - (transcript.running.value.get("t1") ?? 0)).toBeGreaterThanOrEqual(41_900);
  transcript.hear(frame("turn.completed", {}));
  expect(transcript.running.value.size).toBe(0);
});
