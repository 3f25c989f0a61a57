/** The stream of events: one socket, which comes back by itself and continues where it was cut. */

import { signal } from "@preact/signals";
import type { Frame } from "./events.ts";

/** How the stream is. */
export type Link =
  | { state: "connecting" }
  | { state: "open" }
  | { state: "stale" }
  | { state: "waiting"; until: number };

/** Up to where everything is known. */
export interface Head {
  epoch: string;
  seq: number;
}

export interface Listener {
  /** Something happened. */
  event(frame: Frame): void;
  /** What is known of these topics is not enough: read them anew. */
  resync(topics: string[]): void;
}

type Open = (address: string) => WebSocket;

/** The first pause before another try, and the longest one. */
const PAUSE = 500;
const LONGEST = 15_000;

export class Stream {
  readonly link = signal<Link>({ state: "connecting" });
  private socket: WebSocket | undefined;
  /** What is wanted, and up to where each of it is known. */
  private readonly topics = new Map<string, Head | undefined>();
  /** Topics for which this socket has said everything that was missed. */
  private readonly settled = new Set<string>();
  private pause = PAUSE;
  private silence = 40_000;
  private timer: number | undefined;
  private watch: number | undefined;

  constructor(
    private readonly listener: Listener,
    private readonly open: Open = (address) => new WebSocket(address),
  ) {}

  start(): void {
    addEventListener("online", () => this.now());
    // A laptop that wakes up need not wait for a heartbeat to find out.
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible" && this.link.value.state !== "open") this.now();
    });
    this.connect();
  }

  /** Tries again at once. */
  now(): void {
    if (this.link.value.state !== "waiting" && this.link.value.state !== "stale") return;
    this.pause = PAUSE;
    this.connect();
  }

  /** Wants to know of a topic, from after what was read of it. */
  subscribe(topic: string, after?: Head): void {
    this.topics.set(topic, after);
    this.settled.delete(topic);
    this.say({ type: "subscribe", topics: [topic], ...(after ? { after } : {}) });
  }

  unsubscribe(topic: string): void {
    if (this.topics.delete(topic)) this.say({ type: "unsubscribe", topics: [topic] });
  }

  private say(words: object): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(words));
  }

  private connect(): void {
    clearTimeout(this.timer);
    this.socket?.close();
    this.link.value = { state: "connecting" };
    this.settled.clear();
    const address = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/api/v1/stream`;
    const socket = this.open(address);
    this.socket = socket;
    socket.onopen = () => {
      this.say({ type: "hello" });
      for (const [topic, after] of this.topics)
        this.say({ type: "subscribe", topics: [topic], ...(after ? { after } : {}) });
    };
    socket.onmessage = (message) => {
      if (this.socket === socket) this.hear(String(message.data));
    };
    socket.onclose = () => {
      if (this.socket === socket) this.wait();
    };
  }

  private wait(): void {
    clearTimeout(this.watch);
    this.socket = undefined;
    // Not all tabs at the same moment.
    const pause = this.pause * (0.75 + Math.random() / 2);
    this.pause = Math.min(this.pause * 2, LONGEST);
    this.link.value = { state: "waiting", until: Date.now() + pause };
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.connect(), pause);
  }

  /** A keeper that is silent for longer than its heartbeats allow is gone, whatever the socket says. */
  private alive(): void {
    clearTimeout(this.watch);
    this.watch = window.setTimeout(() => {
      this.link.value = { state: "stale" };
      this.socket?.close();
      this.wait();
    }, this.silence);
  }

  private hear(text: string): void {
    this.alive();
    let frame: Frame;
    try {
      frame = JSON.parse(text) as Frame;
    } catch {
      return;
    }
    // What the stream says of itself has its members beside the type.
    const word = frame as Frame & { topics?: string[]; heartbeat_seconds?: number };
    switch (frame.type) {
      case "welcome":
        this.pause = PAUSE;
        if (word.heartbeat_seconds) this.silence = word.heartbeat_seconds * 2500;
        this.alive();
        this.link.value = { state: "open" };
        return;
      case "heartbeat":
      case "error":
        return;
      case "caught_up":
        for (const topic of word.topics ?? []) {
          this.know(topic, frame.epoch, word.seq ?? 0);
          this.settled.add(topic);
        }
        return;
      case "resync": {
        const topics = word.topics ?? [...this.topics.keys()];
        this.listener.resync(topics);
        return;
      }
      default:
        this.pass(frame);
        this.listener.event(frame);
    }
  }

  /** Notes how far each topic is known. What is replayed for one says nothing of another that waits for its own replay. */
  private pass(frame: Frame): void {
    if (frame.seq === undefined) return;
    const isOverview = /^(session|attention|health)\./.test(frame.type);
    for (const topic of this.topics.keys()) {
      // What lists show is replayed for the list too, so that it tells nothing of the session's own replay.
      const isAbout = topic === "sessions" ? isOverview : topic === frame.topic && !isOverview;
      if (isAbout || this.settled.has(topic)) this.know(topic, frame.epoch, frame.seq);
    }
  }

  private know(topic: string, epoch: string, seq: number): void {
    const known = this.topics.get(topic);
    if (!this.topics.has(topic)) return;
    if (known && known.epoch === epoch && known.seq >= seq) return;
    this.topics.set(topic, { epoch, seq });
  }
}
