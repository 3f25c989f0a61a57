/** How the page says numbers, times and places: short, exact, the whole of it on hover. */

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** `now`, `3m`, `5h`, `2d`, `3mo`, `2y`. */
export function age(then: string | null | undefined, now: number): string {
  const at = then ? Date.parse(then) : Number.NaN;
  if (Number.isNaN(at)) return "";
  const seconds = Math.max(0, (now - at) / 1000);
  if (seconds < MINUTE) return "now";
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)}m`;
  if (seconds < DAY) return `${Math.floor(seconds / HOUR)}h`;
  if (seconds < 60 * DAY) return `${Math.floor(seconds / DAY)}d`;
  if (seconds < 730 * DAY) return `${Math.floor(seconds / (30 * DAY))}mo`;
  return `${Math.floor(seconds / (365 * DAY))}y`;
}

/** `0.4 s`, `41 s`, `1m 52s`, `2h 3m`. */
export function duration(milliseconds: number): string {
  const seconds = milliseconds / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)}s`;
  if (seconds < MINUTE) return `${Math.round(seconds)}s`;
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)}m ${Math.floor(seconds % MINUTE)}s`;
  return `${Math.floor(seconds / HOUR)}h ${Math.floor((seconds % HOUR) / MINUTE)}m`;
}

const numbers = new Intl.NumberFormat("en");

/** `1,796`. */
export const number = (value: number): string => numbers.format(value);

/** `1 file`, `3 files`. */
export const count = (value: number, noun: string): string => `${number(value)} ${noun}${value === 1 ? "" : "s"}`;

/** `312 B`, `4.2 kB`, `48 MB`. */
export function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = "B";
  for (const next of units) {
    if (value < 1000) break;
    value /= 1000;
    unit = next;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${unit}`;
}

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { weekday: "long", day: "numeric", month: "long", year: "numeric" });

/** `10:46:31`. */
export const timeOfDay = (then: string): string => clock.format(new Date(then));

/** The whole of a time, for hovering. */
export function exact(then: string | null | undefined): string {
  if (!then || Number.isNaN(Date.parse(then))) return "";
  return `${day.format(new Date(then))}, ${timeOfDay(then)}`;
}

/** `Today`, `Yesterday`, or the day. */
export function dayName(then: string, now: number): string {
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  const at = Date.parse(then);
  if (at >= midnight) return "Today";
  if (at >= midnight - DAY * 1000) return "Yesterday";
  return day.format(at);
}

let home: string | undefined;

/** Tells where the home is, so that paths can be shown from there. */
export function setHome(folder: string | null | undefined): void {
  // Claude Code's folder lies in the home unless somebody moved it.
  const match = folder?.match(/^(.+)\/\.claude$/) ?? folder?.match(/^(\/(?:home|Users)\/[^/]+|\/root)(?=\/|$)/);
  home = match?.[1];
}

/** `~/api` for a directory beneath the home. */
export function place(path: string | null | undefined): string {
  if (!path) return "";
  if (home && (path === home || path.startsWith(`${home}/`))) return `~${path.slice(home.length)}`;
  return path;
}

/** A path that is shortened in its middle. */
export function shortened(path: string, most = 48): string {
  const whole = place(path);
  if (whole.length <= most) return whole;
  const parts = whole.split("/");
  let end = parts.pop() ?? "";
  // No directory to leave out: its end is.
  if (parts.length < 2) return `${whole.slice(0, most - 1)}…`;
  while (parts.length > 1 && end.length + (parts.at(-1)?.length ?? 0) + 1 < most - (parts[0]?.length ?? 0) - 2) {
    end = `${parts.pop()}/${end}`;
  }
  return `${parts[0]}/…/${end}`;
}

/** A path beneath the directory of its session. */
export function within(path: string, directory: string | null | undefined): string {
  if (directory && path.startsWith(`${directory}/`)) return path.slice(directory.length + 1);
  return shortened(path);
}

/** The first line of a text, without what markdown and tags put around it. */
export function firstLine(text: string): string {
  const line = text.trim().split("\n", 1)[0] ?? "";
  return line.length > 300 ? `${line.slice(0, 300)}…` : line;
}
