// Appends on their way to a keeper: in order, several in one request, and each applied once.

import { createHash, randomUUID } from "node:crypto";
import type { SessionKey, SessionStoreEntry } from "@anthropic-ai/claude-agent-sdk";
import { BadEntry, Refused } from "./errors.js";
import type { Keeper } from "./keeper.js";

// How much goes into one request, unless a single entry is larger.
const MOST_BYTES = 4 << 20;
const MOST_ENTRIES = 2_000;
// How many appends are remembered that nobody knows the end of.
const MOST_UNRESOLVED = 1_024;

/** The entries of one append, and the name by which the keeper knows them again. */
interface Batch {
  name: string;
  lines: string[];
  size: number;
  sent: boolean;
}

/** The appends to one session that wait, in the order they were made. */
interface Line {
  waiting: Batch[];
  /** Resolves when whoever sends now is done, however that ends. */
  turn: Promise<void>;
}

/** All appends of one store. */
export class Appends {
  readonly #keeper: Keeper;
  readonly #lines = new Map<string, Line>();
  /**
   * Appends that failed, though the keeper may have applied them. The SDK makes such an append once more; if it went by
   * another name then, entries without a uuid would be there twice.
   */
  readonly #unresolved = new Map<string, string[]>();

  constructor(keeper: Keeper) {
    this.#keeper = keeper;
  }

  async append(key: SessionKey, entries: readonly SessionStoreEntry[]): Promise<void> {
    const lines = entries.map(written);
    const session = wireKey(key);
    const content = createHash("sha256").update(session).update("\n").update(lines.join("\n")).digest("hex");
    const name = this.#takeUnresolved(content) ?? randomUUID();
    const size = lines.reduce((sum, line) => sum + Buffer.byteLength(line), 0);
    const batch: Batch = { name, lines, size, sent: false };
    const line = this.#lines.get(session) ?? { waiting: [], turn: Promise.resolve() };
    this.#lines.set(session, line);
    line.waiting.push(batch);
    const before = line.turn;
    let done = () => {};
    line.turn = new Promise((resolve) => {
      done = resolve;
    });
    try {
      await before;
      // Whoever was before may have taken it along.
      if (!batch.sent) {
        await this.#send(session, line, batch);
      }
    } catch (error) {
      this.#keepUnresolved(content, name);
      throw error;
    } finally {
      line.waiting = line.waiting.filter((waiting) => waiting !== batch);
      if (line.waiting.length === 0) {
        this.#lines.delete(session);
      }
      done();
    }
  }

  /** Sends a batch, and those that wait behind it as far as they fit. */
  async #send(session: string, line: Line, batch: Batch): Promise<void> {
    const group = grouped(line.waiting);
    if (group.length > 1) {
      try {
        await this.#ask(
          session,
          group.map((each) => part(each, 0, each.lines)),
        );
        for (const each of group) {
          each.sent = true;
        }
        return;
      } catch (error) {
        // It may be about another one, who will hear of it; this one is sent alone.
        if (!(error instanceof Refused)) {
          throw error;
        }
      }
    }
    for (const [offset, lines] of parts(batch.lines)) {
      await this.#ask(session, [part(batch, offset, lines)]);
    }
    batch.sent = true;
  }

  #ask(session: string, batches: string[]): Promise<unknown> {
    return this.#keeper.ask("append", `{"key":${session},"batches":[${batches.join(",")}]}`);
  }

  /** Takes the name of such an append: of two equal ones, each has a name of its own. */
  #takeUnresolved(content: string): string | undefined {
    const names = this.#unresolved.get(content);
    const name = names?.shift();
    if (names?.length === 0) {
      this.#unresolved.delete(content);
    }
    return name;
  }

  #keepUnresolved(content: string, name: string): void {
    this.#unresolved.set(content, [...(this.#unresolved.get(content) ?? []), name]);
    const [oldest] = this.#unresolved.keys();
    if (this.#unresolved.size > MOST_UNRESOLVED && oldest !== undefined) {
      this.#unresolved.delete(oldest);
    }
  }
}

/** Writes a key as the keeper reads it. */
export function wireKey(key: SessionKey): string {
  return JSON.stringify({ project_key: key.projectKey, session_id: key.sessionId, subpath: key.subpath });
}

function written(entry: SessionStoreEntry, place: number): string {
  let line: string | undefined;
  try {
    line = JSON.stringify(entry);
  } catch (error) {
    throw new BadEntry(place, error instanceof Error ? error.message : String(error));
  }
  if (!line?.startsWith("{")) {
    throw new BadEntry(place, `it is ${Array.isArray(entry) ? "an array" : typeof entry}`);
  }
  return line;
}

function part(batch: Batch, offset: number, lines: readonly string[]): string {
  return `{"id":"${batch.name}","offset":${offset},"entries":[${lines.join(",")}]}`;
}

function grouped(waiting: readonly Batch[]): Batch[] {
  const group: Batch[] = [];
  let [size, count] = [0, 0];
  for (const batch of waiting.filter((each) => !each.sent)) {
    size += batch.size;
    count += batch.lines.length;
    if (group.length > 0 && (size > MOST_BYTES || count > MOST_ENTRIES)) {
      break;
    }
    group.push(batch);
  }
  return group;
}

/** Cuts a batch into requests; its first entry's place goes with each. */
function parts(lines: readonly string[]): [number, readonly string[]][] {
  const cut: [number, readonly string[]][] = [];
  let [begin, size] = [0, 0];
  for (const [place, line] of lines.entries()) {
    const length = Buffer.byteLength(line);
    if (place > begin && (size + length > MOST_BYTES || place - begin >= MOST_ENTRIES)) {
      cut.push([begin, lines.slice(begin, place)]);
      [begin, size] = [place, 0];
    }
    size += length;
  }
  cut.push([begin, lines.slice(begin)]);
  return cut;
}
