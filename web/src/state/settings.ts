/** What a person chose, remembered in this browser. */

import { effect, type Signal, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

function remembered<T>(name: string, usual: T): Signal<T> {
  let value = usual;
  try {
    const kept = localStorage.getItem(`rethread.${name}`);
    if (kept !== null) value = JSON.parse(kept) as T;
  } catch {
    // Nothing is kept where that is not allowed.
  }
  const chosen = signal(value);
  effect(() => {
    try {
      localStorage.setItem(`rethread.${name}`, JSON.stringify(chosen.value));
    } catch {
      // As above.
    }
  });
  return chosen;
}

export const theme = remembered<Theme>("theme", "system");
export const isPanelOpen = remembered("panel", true);
export const SIDE = 260;
export const INFO = 320;
export const sideWidth = remembered("side", SIDE);
export const infoWidth = remembered("info", INFO);
export const folded = remembered<string[]>("folded", []);
export const wantsNotifications = remembered("notifications", false);

effect(() => {
  if (theme.value === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
});

/** The next theme: as the system, light, dark. */
export function turnTheme(): void {
  const order: Theme[] = ["system", "light", "dark"];
  theme.value = order[(order.indexOf(theme.value) + 1) % order.length] ?? "system";
}
