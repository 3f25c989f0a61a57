/** What is shown, and the address that says so: refreshing and going back work because this is the only truth. */

import { computed, signal } from "@preact/signals";

export type View = "list" | "archive" | "session" | "attention";

export interface Route {
  view: View;
  session?: string | undefined;
  message?: string | undefined;
}

function read(): Route {
  const words = new URLSearchParams(location.hash.slice(1));
  const session = words.get("session");
  if (session) return { view: "session", session, message: words.get("msg") ?? undefined };
  return { view: words.has("attention") ? "attention" : words.has("archived") ? "archive" : "list" };
}

export const route = signal<Route>(read());
export const shownSession = computed(() => route.value.session);

/** The address of a view. */
export function address(to: Route): string {
  if (to.view === "attention") return "#attention";
  if (to.view === "archive") return "#archived";
  if (to.view === "list" || !to.session) return "#";
  return `#session=${encodeURIComponent(to.session)}${to.message ? `&msg=${encodeURIComponent(to.message)}` : ""}`;
}

/** Goes there; back comes back. */
export function go(to: Route): void {
  history.pushState(null, "", address(to));
  route.value = to;
}

/** Notes which message is looked at, without another step back. */
export function note(message: string | undefined): void {
  const to: Route = { ...route.value, message };
  history.replaceState(null, "", address(to));
  route.value = to;
}

/** Shows what the address says. */
export function readAddress(): void {
  const to = read();
  const now = route.peek();
  if (to.view !== now.view || to.session !== now.session || to.message !== now.message) route.value = to;
}

export function followAddress(): void {
  addEventListener("popstate", readAddress);
  addEventListener("hashchange", () => {
    // A one-time address that was pasted where the page is open already: it has to log in from the beginning.
    if (new URLSearchParams(location.hash.slice(1)).has("boot")) location.reload();
    else readAddress();
  });
}
