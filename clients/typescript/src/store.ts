// The SDK's session store, in a keeper.

import {
  foldSessionSummary,
  type SessionKey,
  type SessionStore,
  type SessionStoreEntry,
  type SessionSummaryEntry,
} from "@anthropic-ai/claude-agent-sdk";
import { Appends, wireKey } from "./appends.js";
import { Refused, RethreadError } from "./errors.js";
import { Keeper } from "./keeper.js";

// How many sessions are summarised at once.
const AT_ONCE = 8;
// How often a session is read from its beginning that somebody deletes and begins again meanwhile.
const MOST_BEGINNINGS = 5;
// Whose summaries these are: the two SDKs do not read each other's. It changes with what a summary holds.
const FORMAT = "typescript-0-3";

export interface RethreadSessionStoreOptions {
  /** Where the keeper is, or the proxy before it; `http://localhost:7717` if nothing is said. */
  url?: string;
  /** What `rethread token NAME --namespace NAMESPACE` printed. */
  token: string;
  /** The token's namespace; `default` if nothing is said. */
  namespace?: string;
  /** How often each request is sent before `Unreachable` is thrown; 6 times if nothing is said. */
  attempts?: number;
  /** How long each of them may take, in milliseconds; 40 seconds if nothing is said. */
  timeout?: number;
  /** Hears what is wrong without being an error, as entries that are damaged; `console.warn` if nothing is said. */
  onWarning?: (message: string) => void;
}

interface Page {
  entries: SessionStoreEntry[] | null;
  next: number;
  more: boolean;
  log: string | null;
  version: string | null;
  lost: number;
}

interface Read {
  entries: SessionStoreEntry[];
  log: string;
  position: number;
  version: string;
}

interface Summarized {
  session_id: string;
  mtime: number;
  version: string;
  summary: { log: string; position: number; version: string; data: Record<string, unknown> } | null;
}

/**
 * Keeps sessions in one namespace of a Rethread keeper.
 *
 * An append is durable when it resolves, and applied once however often it was sent. Appends to one session keep their
 * order; those that wait for each other share requests. Any number of processes may use one namespace at once.
 */
export class RethreadSessionStore implements SessionStore {
  readonly #keeper: Keeper;
  readonly #appends: Appends;
  readonly #warn: (message: string) => void;

  constructor(options: RethreadSessionStoreOptions) {
    const { url = "http://localhost:7717", token, namespace = "default" } = options;
    const { attempts = 6, timeout = 40_000 } = options;
    if (attempts < 1) {
      throw new RangeError("a request is sent at least once");
    }
    this.#keeper = new Keeper({ url, token, namespace, attempts, timeout });
    this.#appends = new Appends(this.#keeper);
    this.#warn = options.onWarning ?? ((message) => console.warn(message));
  }

  /** Takes `RETHREAD_URL`, `RETHREAD_TOKEN` and `RETHREAD_NAMESPACE`; only the token must be there. */
  static fromEnvironment(environment: NodeJS.ProcessEnv = process.env): RethreadSessionStore {
    const { RETHREAD_URL: url, RETHREAD_TOKEN: token, RETHREAD_NAMESPACE: namespace } = environment;
    if (!token) {
      throw new RethreadError("RETHREAD_TOKEN is not set; `rethread token NAME` on the keeper's machine makes one");
    }
    return new RethreadSessionStore({ token, ...(url ? { url } : {}), ...(namespace ? { namespace } : {}) });
  }

  /** Adds entries. Those with a `uuid` that the session holds are left out, those without are never merged. */
  async append(key: SessionKey, entries: SessionStoreEntry[]): Promise<void> {
    if (entries.length > 0) {
      await this.#appends.append(key, entries);
    }
  }

  /** Reads a whole session, page by page; `null` if there is none. */
  async load(key: SessionKey): Promise<SessionStoreEntry[] | null> {
    return (await this.#read(key))?.entries ?? null;
  }

  /** Lists the sessions of a project. */
  async listSessions(projectKey: string): Promise<{ sessionId: string; mtime: number }[]> {
    type Answer = { items: { session_id: string; mtime: number }[] };
    const { items } = await this.#ask<Answer>("sessions", { project_key: projectKey });
    return items.map(({ session_id: sessionId, mtime }) => ({ sessionId, mtime }));
  }

  /** Summarises the sessions of a project. Of each only that is read which came since it was last asked for. */
  async listSessionSummaries(projectKey: string): Promise<SessionSummaryEntry[]> {
    const asked = { project_key: projectKey, format: FORMAT };
    const { items } = await this.#ask<{ items: Summarized[] }>("summaries", asked);
    const summaries: (SessionSummaryEntry | undefined)[] = new Array(items.length);
    const rest = items.entries();
    const work = async () => {
      for (const [place, item] of rest) {
        summaries[place] = await this.#summarize(projectKey, item);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    return summaries.filter((summary) => summary !== undefined);
  }

  /** Deletes a session for good, with its subagents' transcripts; with a `subpath`, only that one. */
  async delete(key: SessionKey): Promise<void> {
    await this.#keeper.ask("delete", `{"key":${wireKey(key)}}`);
  }

  /** Lists a session's subagents' transcripts. */
  async listSubkeys(key: { projectKey: string; sessionId: string }): Promise<string[]> {
    const asked = { project_key: key.projectKey, session_id: key.sessionId };
    return (await this.#ask<{ items: string[] }>("subkeys", asked)).items;
  }

  async #summarize(projectKey: string, item: Summarized): Promise<SessionSummaryEntry | undefined> {
    const { session_id: sessionId, mtime, version, summary: known } = item;
    if (known !== null && known.version !== "" && known.version === version) {
      return { sessionId, mtime, data: known.data };
    }
    const key = { projectKey, sessionId };
    let before: SessionSummaryEntry | undefined;
    let read: Read | undefined;
    if (known !== null) {
      try {
        read = await this.#readOnce(key, known.position, known.log);
        before = { sessionId, mtime, data: known.data };
      } catch (error) {
        if (!isBegunAgain(error)) {
          throw error;
        }
      }
    }
    if (read === undefined) {
      before = undefined;
      read = await this.#read(key);
    }
    if (read === undefined) {
      return undefined;
    }
    const { data } = foldSessionSummary(before, key, read.entries, { mtime });
    const { log, position } = read;
    const kept = { format: FORMAT, log, position, version: read.version, data };
    // One that is not kept is made again by the next listing.
    await this.#ask("summarize", { project_key: projectKey, session_id: sessionId, ...kept }).catch(() => {});
    return { sessionId, mtime, data };
  }

  async #read(key: SessionKey): Promise<Read | undefined> {
    for (let beginning = 0; beginning < MOST_BEGINNINGS; beginning += 1) {
      try {
        return await this.#readOnce(key, 0, undefined);
      } catch (error) {
        if (!isBegunAgain(error)) {
          throw error;
        }
      }
    }
    throw new RethreadError(`session ${key.sessionId} is deleted again and again while it is read`);
  }

  async #readOnce(key: SessionKey, after: number, beginning: string | undefined): Promise<Read | undefined> {
    const entries: SessionStoreEntry[] = [];
    let [position, log, version] = [after, beginning, undefined as string | undefined];
    for (;;) {
      const from = log === undefined ? "" : `,"log":${JSON.stringify(log)}`;
      const page: Page = await this.#keeper.ask("load", `{"key":${wireKey(key)},"after":${position}${from}}`);
      if (page.entries === null) {
        return undefined;
      }
      if (page.lost > 0) {
        this.#warn(`${page.lost} entries of session ${key.sessionId} are damaged and cannot be read`);
      }
      // The version before the first page: what came meanwhile makes it look older than it is, never newer.
      version ??= page.version ?? "";
      for (const entry of page.entries) {
        entries.push(entry);
      }
      position = page.next;
      log = page.log ?? "";
      if (!page.more) {
        return { entries, log, position, version };
      }
    }
  }

  #ask<T>(verb: string, body: unknown): Promise<T> {
    return this.#keeper.ask<T>(verb, JSON.stringify(body));
  }
}

function isBegunAgain(error: unknown): boolean {
  return error instanceof Refused && error.code === "begun-again";
}
