/** The time, for ages: moves slowly when nobody waits for it. */

import { signal } from "@preact/signals";

export const now = signal(Date.now());

export function startClock(): void {
  setInterval(() => {
    if (document.visibilityState === "visible") now.value = Date.now();
  }, 10_000);
}
