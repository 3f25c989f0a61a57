/** A session's state: a shape and a word, and then a colour. */

import type { Card } from "../api/types.ts";
import { type Look, look } from "../state/sessions.ts";
import { Icon } from "./icon.tsx";

export const TONES: Record<Look, string | undefined> = {
  running: "accent",
  waiting: "wait",
  idle: undefined,
  elsewhere: undefined,
  failed: "bad",
  damaged: "bad",
  pending: undefined,
};

export const WORDS: Record<Look, string> = {
  running: "Working",
  waiting: "Needs you",
  idle: "Idle",
  elsewhere: "Open elsewhere",
  failed: "Failed",
  damaged: "Damaged",
  pending: "Starting",
};

export function StateMark({ card }: { card: Card }) {
  const shown = look(card);
  return <Icon name={shown in WORDS ? shown : "idle"} tone={TONES[shown]} />;
}
