import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Stream } from "../src/api/stream.ts";

/** A socket that the test is the other end of. */
class Wire {
  static all: Wire[] = [];
  readyState = 1;
  sent: Record<string, unknown>[] = [];
  onopen?: () => void;
  onmessage?: (message: { data: string }) => void;
  onclose?: () => void;
  constructor() {
    Wire.all.push(this);
  }
  send(text: string): void {
    this.sent.push(JSON.parse(text));
  }
  close(): void {
    if (this.readyState === 3) return;
    this.readyState = 3;
    this.onclose?.();
  }
  tell(frame: object): void {
    this.onmessage?.({ data: JSON.stringify({ v: 1, epoch: "e", ...frame }) });
  }
}

const heard: string[] = [];
const resynced: string[][] = [];

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("location", { protocol: "http:", host: "localhost:7717" });
  vi.stubGlobal("window", globalThis);
  vi.stubGlobal("document", { addEventListener: () => {}, visibilityState: "visible" });
  vi.stubGlobal("addEventListener", () => {});
  vi.stubGlobal("WebSocket", { OPEN: 1 });
  [Wire.all.length, heard.length, resynced.length] = [0, 0, 0];
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function begin(): Stream {
  const stream = new Stream(
    { event: (frame) => heard.push(frame.type), resync: (topics) => resynced.push(topics) },
    () => new Wire() as unknown as WebSocket,
  );
  stream.subscribe("sessions");
  stream.start();
  const [wire] = Wire.all;
  wire?.onopen?.();
  wire?.tell({ type: "welcome", seq: 10, heartbeat_seconds: 15 });
  return stream;
}

const last = () => {
  const wire = Wire.all.at(-1);
  if (!wire) throw new Error("no socket");
  return wire;
};

test("after a cut everything is asked for again from where each topic is known", () => {
  const stream = begin();
  stream.subscribe("session:a", { epoch: "e", seq: 10 });
  last().tell({ type: "caught_up", topics: ["sessions"], seq: 10 });
  last().tell({ type: "message.upsert", seq: 11, topic: "session:a", data: {} });
  last().close();
  expect(stream.link.value.state).toBe("waiting");
  vi.advanceTimersByTime(1000);
  last().onopen?.();
  expect(last().sent).toEqual([
    { type: "hello" },
    { type: "subscribe", topics: ["sessions"], after: { epoch: "e", seq: 11 } },
    { type: "subscribe", topics: ["session:a"], after: { epoch: "e", seq: 11 } },
  ]);
});

// A list's replay brought events with later numbers, and the session's own replay was cut before it said what came between.
test("what is replayed for the list does not count for a session that waits for its own replay", () => {
  const stream = begin();
  stream.subscribe("session:a", { epoch: "e", seq: 10 });
  last().tell({ type: "session.updated", seq: 13, topic: "session:a", data: {} });
  last().tell({ type: "message.upsert", seq: 11, topic: "session:a", data: {} });
  last().close();
  vi.advanceTimersByTime(1000);
  last().onopen?.();
  expect(last().sent[2]).toEqual({ type: "subscribe", topics: ["session:a"], after: { epoch: "e", seq: 11 } });
});

test("silence is taken for the end, and the pauses between tries grow", () => {
  const stream = begin();
  vi.advanceTimersByTime(15 * 2500 + 1);
  expect(stream.link.value.state).toBe("waiting");
  const pauses: number[] = [];
  for (let tries = 0; tries < 8; tries++) {
    const link = stream.link.value;
    if (link.state !== "waiting") throw new Error(link.state);
    pauses.push(link.until - Date.now());
    vi.advanceTimersByTime(link.until - Date.now() + 1);
    last().close();
  }
  expect(Math.max(...pauses)).toBeLessThan(15_000 * 1.3);
  expect(pauses.at(-1)).toBeGreaterThan((pauses[0] ?? 0) * 8);
});

test("a keeper that knows no more says which topics are to be read anew", () => {
  begin();
  last().tell({ type: "resync", topics: ["sessions"], seq: 20 });
  expect(resynced).toEqual([["sessions"]]);
  expect(heard).toEqual([]);
});
