/** What transcripts may hold that a person must not be fooled by: escape sequences, and characters nobody sees. */

// CSI, OSC (up to its end or a newline), other two-character escapes, and C1's own forms of them.
const ESCAPES =
  /\u001b\[[0-?]*[ -/]*[@-~]|\u001b[\]PX^_][^\u0007\u001b\u009c\n]*(?:\u0007|\u001b\\|\u009c)?|\u001b[ -/]*[0-~]|\u009b[0-?]*[ -/]*[@-~]/g;
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;

/** A program's output as text: no escape sequence is left, and a line that was overwritten shows its last state. */
export function plain(text: string): string {
  const stripped = text.includes("\u001b") || text.includes("\u009b") ? text.replace(ESCAPES, "") : text;
  const overwritten = stripped.includes("\r") ? stripped.replace(/\r+\n/g, "\n").replace(/[^\n]*\r/g, "") : stripped;
  return overwritten.replace(CONTROLS, "");
}

const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]|[\u{1d173}-\u{1d17a}]/gu;

/** A part of a text that a person is to decide about: as it is, or the name of a character that nobody sees. */
export interface Piece {
  text: string;
  hidden: boolean;
}

/** Splits a text so that every character in it can be seen. */
export function visible(text: string): Piece[] {
  const pieces: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (match.index > from) pieces.push({ text: text.slice(from, match.index), hidden: false });
    const code = match[0].codePointAt(0) ?? 0;
    pieces.push({ text: `U+${code.toString(16).toUpperCase().padStart(4, "0")}`, hidden: true });
    from = match.index + match[0].length;
  }
  if (from < text.length) pieces.push({ text: text.slice(from), hidden: false });
  return pieces;
}

/** Returns whether there is anything in a text that nobody sees. */
export function hasHidden(text: string): boolean {
  HIDDEN.lastIndex = 0;
  const found = HIDDEN.test(text);
  HIDDEN.lastIndex = 0;
  return found;
}

/** The address of a link that may be followed; nothing else ever becomes one. */
export function safeAddress(address: string): string | undefined {
  try {
    const url = new URL(address);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : undefined;
  } catch {
    return undefined;
  }
}
