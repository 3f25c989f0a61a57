/** Asking the keeper. Every refusal comes as the same object, with what to do next. */

import { signal } from "@preact/signals";
import type { Problem } from "./types.ts";

/** Nobody is logged in here. */
export const isLoggedOut = signal(false);

/** The keeper said no, or did not answer. */
export class Refused extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail ?? problem.title);
  }

  get code(): string {
    return this.problem.code;
  }
}

function problem(status: number, code: string, detail: string, hint?: string): Problem {
  const retryable = status === 0 || status >= 500;
  return {
    type: `urn:rethread:problem:${code}`,
    title: detail,
    status,
    code,
    detail,
    retryable,
    ...(hint ? { hint } : {}),
  };
}

/** Sends a request, and returns what came back. */
export async function ask<T>(method: string, path: string, body?: unknown, abort?: AbortSignal): Promise<T> {
  const headers: Record<string, string> =
    method === "GET" ? {} : { "Content-Type": "application/json", "X-Rethread": "1" };
  let answer: Response;
  try {
    answer = await fetch(path.startsWith("/api/") ? path : `/api/v1${path}`, {
      method,
      headers,
      credentials: "same-origin",
      redirect: "error",
      ...(method === "GET" ? {} : { body: JSON.stringify(body ?? {}) }),
      ...(abort ? { signal: abort } : {}),
    });
  } catch (error) {
    if (abort?.aborted) throw error;
    throw new Refused(
      problem(0, "unreachable", "The keeper does not answer.", "It may have been stopped: `rethread serve` starts it."),
    );
  }
  if (answer.status === 401 && path !== "/auth/exchange") isLoggedOut.value = true;
  const isJson = answer.headers.get("content-type")?.includes("json");
  const said: unknown = isJson ? await answer.json().catch(() => undefined) : undefined;
  if (!answer.ok) {
    const isProblem = typeof said === "object" && said !== null && "code" in said;
    throw new Refused(
      isProblem ? (said as Problem) : problem(answer.status, "odd-answer", `The keeper answered ${answer.status}.`),
    );
  }
  return said as T;
}

export const get = <T>(path: string, abort?: AbortSignal): Promise<T> => ask<T>("GET", path, undefined, abort);
export const post = <T>(path: string, body?: unknown): Promise<T> => ask<T>("POST", path, body);

/** The exact bytes of a message's line, as text. */
export async function raw(session: string, uuid: string): Promise<string> {
  const answer = await fetch(
    `/api/v1/sessions/${encodeURIComponent(session)}/messages/${encodeURIComponent(uuid)}/raw`,
  );
  if (!answer.ok) throw new Refused(problem(answer.status, "no-raw", "The line cannot be read."));
  return answer.text();
}

/** Bytes of a session's file, as they are. */
export async function bytes(session: string, offset: number, length: number): Promise<Uint8Array> {
  const answer = await fetch(`/api/v1/sessions/${encodeURIComponent(session)}/bytes?offset=${offset}&length=${length}`);
  if (!answer.ok) throw new Refused(problem(answer.status, "no-bytes", "The bytes cannot be read."));
  return new Uint8Array(await answer.arrayBuffer());
}

/** Changes the one-time code in the address for a cookie. The code does not stay there, whether it works or not. */
export async function logIn(): Promise<void> {
  const words = new URLSearchParams(location.hash.slice(1));
  const code = words.get("boot");
  if (!code) return;
  words.delete("boot");
  const rest = words.toString();
  history.replaceState(null, "", rest ? `/#${rest}` : "/");
  try {
    await post("/auth/exchange", { code });
  } catch {
    // A login from before may still hold; if it does not, the first request says so.
  }
}
