/** One conversation: the pages of it that were read, what the stream adds, and what is not on disk yet.
 *
 * Messages have numbers, and pages hold a fixed range of them, so that any part of a long session can be shown without the
 * rest. Everything is merged by the messages' ids; nothing is compared by content. */

import { type Signal, signal } from "@preact/signals";
import type { Delta, Frame, Partial, Progress, Queued, Waiting } from "../api/events.ts";
import { get, post, Refused } from "../api/keeper.ts";
import type { Head } from "../api/stream.ts";
import type { Item, Page } from "../api/types.ts";
import { blocks, type ToolResult } from "../thread/blocks.ts";
import type { Picture } from "./pictures.ts";

/** How many messages from the end may belong to the one that is being said. */
const RECENT = 32;
/** How many messages a page has, and how many pages are kept at most. */
export const PAGE = 12;
const KEPT = 100;

/** A message that was typed here and is not on disk yet. */
export interface Optimistic {
  uuid: string;
  text: string;
  pictures: Pick<Picture, "media_type" | "data">[];
  at: string;
  state: "sending" | "sent" | "failed";
  problem?: Refused | undefined;
}

/** How the last turn ended. */
export interface Ending {
  kind: "failed" | "interrupted";
  why: string;
}

export type Reading = { state: "loading" } | { state: "ready" } | { state: "failed"; error: Refused };

/** What a piece adds to what is known: nothing twice after a snapshot, and a mark where something was missed. */
function fresh(text: string, delta: Delta): string {
  const known = new TextEncoder().encode(text).length;
  if (delta.offset === known) return delta.text;
  if (delta.offset > known) return `…${delta.text}`;
  const rest = new TextEncoder().encode(delta.text).slice(known - delta.offset);
  return new TextDecoder().decode(rest);
}

/** What is sent: pictures first, as models like it, and no words where there are none. */
export function partsOf(mine: Pick<Optimistic, "text" | "pictures">): object[] {
  const images = mine.pictures.map(({ media_type, data }) => ({ type: "image", media_type, data }));
  return mine.text ? [...images, { type: "text", text: mine.text }] : images;
}

const nextFrame = (): Promise<unknown> => new Promise((then) => requestAnimationFrame(then));

export class Transcript {
  readonly reading = signal<Reading>({ state: "loading" });
  readonly total = signal(0);
  readonly partial = signal<Partial | undefined>(undefined);
  readonly optimistic = signal<Optimistic[]>([]);
  readonly queue = signal<Queued[]>([]);
  /** What waits does so until a person goes on with it. */
  readonly isHeld = signal(false);
  readonly turnSince = signal<number | undefined>(undefined);
  readonly ending = signal<Ending | undefined>(undefined);
  /** Goes up when everything is read anew. */
  readonly reads = signal(0);
  /** Goes up when checkpoints, branches or subagents may be others. */
  readonly around = signal(0);
  /** Since when tools have been running, by their calls; as the agent says, not as the clock of this machine does. */
  readonly running = signal<ReadonlyMap<string, number>>(new Map());
  /** Messages of subagents that just run, by their id. */
  readonly strands = signal<Map<string, Item[]>>(new Map());

  private items = new Map<number, Item>();
  private numbers = new Map<string, number>();
  private results = new Map<string, { number: number; result: ToolResult }>();
  private calls = new Map<string, number>();
  private versions = new Map<number, Signal<number>>();
  private loading = new Map<number, Promise<void>>();
  private loaded = new Set<number>();
  private isNumbered = true;
  private sending: Promise<void> = Promise.resolve();
  /** How many blocks of a message have arrived whole. */
  private arrived = new Map<string, number>();

  constructor(
    readonly name: string,
    private readonly subscribe: (head: Head) => void,
  ) {}

  /** Reads the end, or the part around a message, and follows from there. */
  async open(message?: string): Promise<void> {
    try {
      const wanted = message ? `around=${encodeURIComponent(message)}&` : "";
      let page: Page;
      try {
        page = await this.read(`${wanted}limit=${PAGE * 4}`);
      } catch (error) {
        // A link to a message of an abandoned branch: the session is still worth showing.
        if (!message || !(error instanceof Refused) || error.problem.status !== 404) throw error;
        page = await this.read(`limit=${PAGE * 4}`);
      }
      this.place(page);
      this.reading.value = { state: "ready" };
      this.subscribe(page.head);
      this.refreshQueue();
    } catch (error) {
      if (error instanceof Refused) this.reading.value = { state: "failed", error };
      else throw error;
    }
  }

  /** Forgets what was read, and reads anew: what was known is void. */
  async reload(): Promise<void> {
    this.partial.value = undefined;
    const page = await this.read(`limit=${PAGE * 4}`);
    for (const known of [this.items, this.numbers, this.results, this.calls, this.arrived]) known.clear();
    this.loaded.clear();
    this.loading.clear();
    this.place(page);
    for (const version of this.versions.values()) version.value++;
    this.reads.value++;
    this.around.value++;
    this.subscribe(page.head);
    this.refreshQueue();
  }

  private refreshQueue(): void {
    get<Waiting>(`/sessions/${encodeURIComponent(this.name)}/queue`).then(
      (page) => this.noteQueue(page),
      () => {},
    );
  }

  private noteQueue(waiting: Waiting): void {
    this.queue.value = waiting.items;
    this.isHeld.value = waiting.held;
  }

  private read(query: string): Promise<Page> {
    return get<Page>(`/sessions/${encodeURIComponent(this.name)}/messages?${query}`);
  }

  /** Puts a page where its cursors say that it belongs. */
  private place(page: Page): void {
    const total = Math.max(page.page.total ?? 0, page.items.length);
    const cursor = page.page.before;
    const numbered = cursor?.match(/^(\d+):/);
    this.isNumbered = !cursor || !!numbered;
    const isLast = !page.page.after;
    const settled = page.items.filter((item) => !item.provisional).length;
    const start = numbered ? Number(numbered[1]) : cursor && isLast ? total - settled : 0;
    this.total.value = isLast ? Math.max(total, start + page.items.length) : total;
    page.items.forEach((item, at) => {
      this.put(start + at, item);
    });
    this.noteLoaded(start, start + page.items.length);
    const partial = this.partial.value;
    if (partial) this.partial.value = this.rest(partial);
  }

  /** Pages that are whole need not be read again. */
  private noteLoaded(from: number, to: number): void {
    for (let page = Math.floor(from / PAGE); page * PAGE < to; page++) {
      const end = Math.min((page + 1) * PAGE, this.total.value);
      if (page * PAGE >= from && end <= to) this.loaded.add(page);
      this.bump(page);
    }
  }

  private put(number: number, item: Item): void {
    this.items.set(number, item);
    if (item.uuid) {
      this.numbers.set(item.uuid, number);
      if (this.optimistic.value.some((mine) => mine.uuid === item.uuid)) {
        this.optimistic.value = this.optimistic.value.filter((mine) => mine.uuid !== item.uuid);
      }
    }
    for (const block of blocks(item)) {
      if (block.type === "tool_use") this.calls.set(block.id, number);
      if (block.type === "tool_result") {
        this.results.set(block.tool_use_id, { number, result: block });
        const call = this.calls.get(block.tool_use_id);
        if (call !== undefined) this.bump(Math.floor(call / PAGE));
      }
    }
  }

  private bump(page: number): void {
    this.version(page).value++;
  }

  /** Changes when a page shows something else. */
  version(page: number): Signal<number> {
    let version = this.versions.get(page);
    if (!version) {
      version = signal(0);
      this.versions.set(page, version);
    }
    return version;
  }

  get pages(): number {
    return Math.ceil(this.total.value / PAGE);
  }

  pageOf(number: number): number {
    return Math.floor(number / PAGE);
  }

  isLoaded(page: number): boolean {
    return this.loaded.has(page);
  }

  item(number: number): Item | undefined {
    return this.items.get(number);
  }

  numberOf(uuid: string): number | undefined {
    return this.numbers.get(uuid);
  }

  result(call: string): ToolResult | undefined {
    return this.results.get(call)?.result;
  }

  /** The number of the message with a call; nothing if it was not read. */
  callNumber(call: string): number | undefined {
    return this.calls.get(call);
  }

  /** The message that brought the result of a call. */
  resultItem(call: string): Item | undefined {
    const number = this.results.get(call)?.number;
    return number === undefined ? undefined : this.items.get(number);
  }

  /** Whether the call of a result is shown; one on a page that is not here is taken for shown. */
  isCallKnown(call: string): boolean {
    return this.calls.has(call) || !this.isBegun;
  }

  /** Everything from the beginning was read. */
  private get isBegun(): boolean {
    return this.loaded.has(0) && this.loaded.size >= this.pages - 1;
  }

  /** The how-manieth prompt this is; nothing as long as what comes before was not read. */
  ordinal(number: number): number | undefined {
    let count = 0;
    for (let at = 0; at <= number; at++) {
      const item = this.items.get(at);
      if (!item) return undefined;
      if (item.kind === "prompt") count++;
    }
    return count;
  }

  /** The messages of a page that are here. */
  of(page: number): { number: number; item: Item }[] {
    const found: { number: number; item: Item }[] = [];
    for (let number = page * PAGE; number < (page + 1) * PAGE; number++) {
      const item = this.items.get(number);
      if (item) found.push({ number, item });
    }
    return found;
  }

  /** Reads a page unless it is here. */
  ensure(page: number): Promise<void> {
    if (page < 0 || page >= this.pages || this.loaded.has(page)) return Promise.resolve();
    const running = this.loading.get(page);
    if (running) return running;
    const reading = (this.isNumbered ? this.readNumbered(page) : this.readBackwards(page))
      .catch(() => {
        // It is asked for again when somebody looks there again.
      })
      .finally(() => this.loading.delete(page));
    this.loading.set(page, reading);
    return reading;
  }

  /** Reads all pages from one to another that are not here, with as few requests as possible. */
  ensureAll(first: number, last: number): void {
    if (!this.isNumbered) {
      for (let page = first; page <= last; page++) void this.ensure(page);
      return;
    }
    const isMissing = (page: number) =>
      page >= 0 && page < this.pages && !this.loaded.has(page) && !this.loading.has(page);
    for (let page = first; page <= last; page++) {
      if (!isMissing(page)) continue;
      let count = 1;
      while (page + count <= last && isMissing(page + count)) count++;
      const from = page;
      const reading = this.readNumbered(from, count)
        .catch(() => {
          // They are asked for again when somebody looks there again.
        })
        .finally(() => {
          for (let at = from; at < from + count; at++) this.loading.delete(at);
        });
      for (let at = from; at < from + count; at++) this.loading.set(at, reading);
      page += count;
    }
  }

  private async readNumbered(page: number, count = 1): Promise<void> {
    const from = page * PAGE;
    const limit = PAGE * count;
    const read = await this.read(page === 0 ? `around=0:&limit=${limit}` : `after=${from - 1}:&limit=${limit}`);
    // A frame for each page: all of them at once are more than a frame has time for.
    for (let at = 0; at < count; at++) {
      if (at > 0) await nextFrame();
      const items = read.items.slice(at * PAGE, (at + 1) * PAGE);
      items.forEach((item, place) => {
        this.put(from + at * PAGE + place, item);
      });
      this.noteLoaded(from + at * PAGE, from + at * PAGE + items.length);
    }
  }

  /** A store knows no numbers: whoever wants an early page reads towards it. */
  private async readBackwards(page: number): Promise<void> {
    for (;;) {
      let first = this.total.value;
      while (this.items.has(first - 1)) first--;
      const uuid = this.items.get(first)?.uuid;
      if (first <= page * PAGE || !uuid) return;
      const read = await this.read(`before=${encodeURIComponent(uuid)}&limit=${PAGE * 8}`);
      if (read.items.length === 0) return;
      read.items.forEach((item, at) => {
        this.put(first - read.items.length + at, item);
      });
      this.noteLoaded(first - read.items.length, this.total.value);
    }
  }

  /** Gives up pages that are far from what is looked at. */
  keepNear(from: number, to: number): void {
    if (this.loaded.size <= KEPT || !this.isNumbered) return;
    const last = this.pages - 1;
    const away = [...this.loaded]
      .filter((page) => page < last - 1 && (page < from || page > to))
      .sort((one, other) => Math.abs(other - from) - Math.abs(one - from));
    for (const page of away.slice(0, this.loaded.size - KEPT)) {
      this.loaded.delete(page);
      for (const { number, item } of this.of(page)) {
        this.items.delete(number);
        if (item.uuid) this.numbers.delete(item.uuid);
        for (const block of blocks(item)) {
          if (block.type === "tool_use") this.calls.delete(block.id);
          if (block.type === "tool_result") this.results.delete(block.tool_use_id);
        }
      }
      this.bump(page);
    }
  }

  /** Finds the message, reading the part around it if need be; returns its number. */
  async find(uuid: string): Promise<number | undefined> {
    const known = this.numbers.get(uuid);
    if (known !== undefined) return known;
    try {
      const page = await this.read(`around=${encodeURIComponent(uuid)}&limit=${PAGE}`);
      const before = page.page.before?.match(/^(\d+):/);
      const start = before ? Number(before[1]) : 0;
      page.items.forEach((item, at) => {
        this.put(start + at, item);
      });
      const number = this.numbers.get(uuid);
      if (number !== undefined) await this.ensure(Math.floor(number / PAGE));
      return number;
    } catch {
      return undefined;
    }
  }

  /** The next prompt before or after a number, read if need be. */
  async prompt(from: number, step: 1 | -1): Promise<number | undefined> {
    for (let number = from + step; number >= 0 && number < this.total.value; number += step) {
      const page = Math.floor(number / PAGE);
      if (!this.items.has(number)) await this.ensure(page);
      if (this.items.get(number)?.kind === "prompt") return number;
    }
    return undefined;
  }

  /** Takes an event of this session. */
  hear(frame: Frame): void {
    switch (frame.type) {
      case "message.upsert":
        this.upsert(frame.data as Item);
        return;
      case "message.dropped":
        this.drop((frame.data as { uuid: string }).uuid);
        return;
      case "message.delta":
        this.grow(frame.data as Delta);
        return;
      case "message.partial":
        this.partial.value = this.rest(frame.data as Partial);
        return;
      case "tool.progress":
        this.noteProgress(frame.data as Progress);
        return;
      case "queue.changed":
        this.noteQueue(frame.data as Waiting);
        return;
      case "turn.started":
        this.turnSince.value = Date.parse(frame.ts ?? "") || Date.now();
        this.ending.value = undefined;
        return;
      case "turn.completed":
      case "turn.failed":
      case "turn.interrupted":
        this.endTurn(frame.type, frame.data as { errors?: unknown; result?: unknown; subtype?: unknown });
        return;
      case "checkpoint.created":
      case "rewind.applied":
      case "rewind.undone":
      case "subagent.started":
      case "subagent.completed":
        this.around.value++;
        return;
    }
  }

  private noteProgress(progress: Progress): void {
    const seconds = Number(progress.elapsed_time_seconds);
    if (typeof progress.tool_use_id !== "string" || !Number.isFinite(seconds)) return;
    this.running.value = new Map(this.running.value).set(progress.tool_use_id, Date.now() - seconds * 1000);
  }

  private endTurn(type: string, said: { errors?: unknown; result?: unknown; subtype?: unknown }): void {
    this.turnSince.value = undefined;
    this.partial.value = undefined;
    this.arrived.clear();
    this.running.value = new Map();
    this.around.value++;
    const errors = Array.isArray(said.errors) ? said.errors.map(String).join("; ") : "";
    if (type === "turn.failed")
      this.ending.value = { kind: "failed", why: errors || String(said.result ?? said.subtype ?? "") };
    else if (type === "turn.interrupted") this.ending.value = { kind: "interrupted", why: "" };
    else this.ending.value = undefined;
  }

  private upsert(item: Item): void {
    if (item.agent_id) {
      const all = new Map(this.strands.value);
      const before = all.get(item.agent_id) ?? [];
      all.set(item.agent_id, [...before.filter((other) => other.uuid !== item.uuid), item]);
      this.strands.value = all;
      return;
    }
    const known = item.uuid ? this.numbers.get(item.uuid) : undefined;
    if (known !== undefined) {
      // A size limit may have left out what is here already.
      if (!item.content && item.omitted) return;
      this.put(known, item);
      this.bump(Math.floor(known / PAGE));
      return;
    }
    if (this.leavesTheBranch(item)) {
      void this.reload();
      return;
    }
    this.settle(item);
    const number = this.total.value;
    const page = Math.floor(number / PAGE);
    const isAtEnd = number === 0 || this.items.has(number - 1);
    this.total.value = number + 1;
    if (!isAtEnd) return;
    this.put(number, item);
    if (number % PAGE === 0) this.loaded.add(page);
    this.bump(page);
    if (!item.content && item.omitted && item.uuid) void this.fill(item.uuid);
  }

  /** Another prompt after a message that was answered already: the conversation went back. */
  private leavesTheBranch(item: Item): boolean {
    const parent =
      item.kind === "prompt" && !item.provisional && item.parent_uuid ? this.numbers.get(item.parent_uuid) : undefined;
    if (parent === undefined) return false;
    for (let number = parent + 1; number < this.total.value; number++) {
      const between = this.items.get(number);
      if (between?.kind === "prompt" && !between.provisional) return true;
    }
    return false;
  }

  /** What arrived whole need not be shown as being said. */
  private settle(item: Item): void {
    if (item.role !== "assistant" || !item.message_id) return;
    this.arrived.set(item.message_id, (this.arrived.get(item.message_id) ?? 0) + Math.max(1, blocks(item).length));
    const partial = this.partial.value;
    if (partial) this.partial.value = this.rest(partial);
  }

  /** How many blocks of a message are here whole, whether they were told or read. */
  private whole(message: string | null | undefined): number {
    if (!message) return 0;
    let read = 0;
    // What is being said is near the end.
    for (let number = this.total.value - 1; number >= Math.max(0, this.total.value - RECENT); number--) {
      const item = this.items.get(number);
      if (!item || item.kind === "prompt") break;
      if (item.role === "assistant" && item.message_id === message) read += Math.max(1, blocks(item).length);
    }
    return Math.max(read, this.arrived.get(message) ?? 0);
  }

  private rest(partial: Partial): Partial | undefined {
    const arrived = this.whole(partial.message_id);
    if (arrived >= partial.blocks.length && arrived > 0)
      return { ...partial, blocks: partial.blocks.map((block) => ({ ...block, text: "" })) };
    return { ...partial, blocks: partial.blocks.map((block, at) => (at < arrived ? { ...block, text: "" } : block)) };
  }

  private grow(delta: Delta): void {
    const before = this.partial.value?.message_id === delta.message_id ? this.partial.value.blocks : [];
    if (delta.index < this.whole(delta.message_id)) return;
    const all = before.slice();
    while (all.length <= delta.index) all.push({ kind: delta.kind, text: "" });
    const text = all[delta.index]?.text ?? "";
    all[delta.index] = { kind: delta.kind, text: text + fresh(text, delta) };
    this.partial.value = { message_id: delta.message_id, blocks: all };
  }

  private drop(uuid: string): void {
    const number = this.numbers.get(uuid);
    if (number === undefined) return;
    void this.reload();
  }

  /** Reads a message that was too large for an event. */
  private async fill(uuid: string): Promise<void> {
    const page = await this.read(`around=${encodeURIComponent(uuid)}&limit=1`).catch(() => undefined);
    const item = page?.items.find((other) => other.uuid === uuid);
    const number = this.numbers.get(uuid);
    if (!item || number === undefined) return;
    this.put(number, item);
    this.bump(Math.floor(number / PAGE));
  }

  /** Sends a prompt. It shows at once, and is replaced by the message that has its id. */
  send(text: string, isBusy: boolean, pictures: Optimistic["pictures"] = []): Promise<void> {
    const uuid = crypto.randomUUID();
    const mine: Optimistic = { uuid, text, pictures, at: new Date().toISOString(), state: "sending" };
    this.optimistic.value = [...this.optimistic.value, mine];
    // Two requests at once may overtake each other on their way.
    this.sending = this.sending.then(() => this.deliver(mine, isBusy));
    return this.sending;
  }

  /** Sends one again that was refused. */
  async deliver(mine: Optimistic, isBusy: boolean): Promise<void> {
    const become = (change: object) => {
      this.optimistic.value = this.optimistic.value.map((other) =>
        other.uuid === mine.uuid ? { ...other, ...change } : other,
      );
    };
    become({ state: "sending", problem: undefined });
    try {
      const parts = partsOf(mine);
      const body = { client_message_id: mine.uuid, parts, mode: isBusy ? "queue" : "start" };
      const accepted = await post<{ queued: boolean }>(`/sessions/${encodeURIComponent(this.name)}/turns`, body);
      // Those that wait are in the queue, which is the keeper's.
      if (accepted.queued) this.withdraw(mine.uuid);
      else become({ state: "sent" });
    } catch (problem) {
      if (problem instanceof Refused && problem.code === "busy" && !isBusy) return this.deliver(mine, true);
      become({ state: "failed", problem: problem instanceof Refused ? problem : undefined });
    }
  }

  /** Takes back what was refused. */
  withdraw(uuid: string): void {
    this.optimistic.value = this.optimistic.value.filter((mine) => mine.uuid !== uuid);
  }
}
