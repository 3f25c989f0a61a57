/** A time: how long ago, and exactly when on hover. */

import { now } from "../state/clock.ts";
import { age, exact } from "../text/words.ts";

export function Time({ at, class: name }: { at: string | null | undefined; class?: string }) {
  if (!at) return null;
  return (
    <time dateTime={at} title={exact(at)} class={name}>
      {age(at, now.value)}
    </time>
  );
}

/** The same in a sentence. */
export function Ago({ at }: { at: string }) {
  const words = age(at, now.value);
  return (
    <time dateTime={at} title={exact(at)}>
      {words === "now" ? "just now" : `${words} ago`}
    </time>
  );
}
