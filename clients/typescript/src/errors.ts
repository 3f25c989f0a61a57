// Why something was not done, by what the caller can do about it.

/** What this package throws; the others are kinds of it. */
export class RethreadError extends Error {
  override name = "RethreadError";
}

/** No keeper answered, however often it was asked. What was appended may be in the store all the same. */
export class Unreachable extends RethreadError {
  override name = "Unreachable";

  constructor(
    readonly url: string,
    readonly attempts: number,
    why: string,
  ) {
    const times = attempts === 1 ? "once" : `${attempts} times`;
    super(`no keeper answers at ${url}, asked ${times}: ${why}`);
  }
}

/** The keeper said no, and would say so again. */
export class Refused extends RethreadError {
  override name = "Refused";

  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail: string,
    readonly hint?: string,
  ) {
    super(`the keeper refuses (${status} ${code}): ${detail}${hint ? `; ${hint}` : ""}`);
  }
}

/** An entry is nothing that JSON can say. */
export class BadEntry extends RethreadError {
  override name = "BadEntry";

  constructor(
    readonly place: number,
    why: string,
  ) {
    super(`entry ${place} of the batch is no JSON object: ${why}`);
  }
}
