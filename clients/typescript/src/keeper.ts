// A keeper's session store over HTTP: every question may be asked again, and is until it is answered.

import { Refused, Unreachable } from "./errors.js";

// The first pause between two tries, and the longest one.
const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 5_000;
// What a proxy says when it, or what is behind it, cannot answer just now.
const PASSING = new Set([408, 425, 429, 502, 503, 504]);

export interface Where {
  url: string;
  token: string;
  namespace: string;
  /** How often each request is sent. */
  attempts: number;
  /** How long each of them may take, in milliseconds. */
  timeout: number;
}

/** What a keeper says when it does not do what it is asked. */
interface Problem {
  code?: string;
  title?: string;
  detail?: string;
  hint?: string;
  retryable?: boolean;
}

/** Asks one namespace of one keeper. */
export class Keeper {
  readonly #where: Where;
  readonly #place: string;

  constructor(where: Where) {
    this.#where = where;
    const url = where.url.replace(/\/+$/, "");
    this.#place = `${url}/api/v1/session-store/${where.namespace}/`;
  }

  /** Asks until there is an answer: all that can be asked here changes nothing when it is asked again. */
  async ask<T>(verb: string, body: string): Promise<T> {
    const { attempts, url } = this.#where;
    let why = "";
    for (let attempt = 1; attempt <= attempts; attempt += 1) {
      let wait: number | undefined;
      try {
        const response = await this.#send(verb, body);
        const text = await response.text();
        if (response.ok) {
          return (text === "" ? undefined : JSON.parse(text)) as T;
        }
        const problem = read(text);
        const refused = refusal(response.status, problem);
        if (!mayPass(response.status, problem)) {
          throw refused;
        }
        why = refused.message;
        wait = retryAfter(response);
      } catch (error) {
        if (error instanceof Refused) {
          throw error;
        }
        // An answer that was cut off is as good as none.
        why = said(error);
      }
      if (attempt < attempts) {
        await new Promise((resolve) => setTimeout(resolve, wait ?? pause(attempt)));
      }
    }
    throw new Unreachable(url, attempts, why);
  }

  #send(verb: string, body: string): Promise<Response> {
    const { token, timeout } = this.#where;
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", "x-rethread": "1" };
    return fetch(this.#place + verb, {
      method: "POST",
      headers,
      body,
      redirect: "error",
      signal: AbortSignal.timeout(timeout),
    });
  }
}

function pause(attempt: number): number {
  const longest = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (attempt - 1));
  // Those who were cut off together do not come back together.
  return longest * (0.5 + Math.random() / 2);
}

function retryAfter(response: Response): number | undefined {
  const seconds = Number.parseFloat(response.headers.get("retry-after") ?? "");
  return Number.isFinite(seconds) ? Math.min(Math.max(seconds * 1_000, 0), LONGEST_PAUSE) : undefined;
}

function read(text: string): Problem {
  try {
    const problem: unknown = JSON.parse(text);
    return typeof problem === "object" && problem !== null ? problem : {};
  } catch {
    return {};
  }
}

function mayPass(status: number, problem: Problem): boolean {
  return problem.retryable ?? PASSING.has(status);
}

function refusal(status: number, problem: Problem): Refused {
  const detail = problem.detail ?? problem.title ?? "it does not say why";
  return new Refused(status, problem.code ?? "unknown", detail, problem.hint);
}

/** What fetch throws says little; its cause says what happened. */
function said(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? `: ${error.cause.message}` : "";
  return `${error instanceof Error ? error.message : String(error)}${cause}`;
}
