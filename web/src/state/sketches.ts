/** Sessions in small, for those that are in view: asked for together, and again when they have changed. */

import { type Signal, signal } from "@preact/signals";
import { get, Refused } from "../api/keeper.ts";
import type { Card, Sketch, SketchPage } from "../api/types.ts";
import { nameOf } from "./sessions.ts";

/** How many are asked for at once, how long others are waited for, and how often one that works is drawn again. */
const TOGETHER = 48;
const GATHER = 60;
const AGAIN = 5000;

interface Known {
  sketch: Signal<Sketch | undefined>;
  /** What the session was like when it was asked for. */
  version: string;
  at: number;
}

const known = new Map<string, Known>();
/** Those that somebody looks at, the last ones first in line: who scrolls does not wait for what has flown past. */
let wanted: string[] = [];
let isAsking = false;

const versionOf = (card: Card): string => `${card.updated_at}.${card.size ?? 0}`;

function knownOf(name: string): Known {
  let it = known.get(name);
  if (!it) {
    it = { sketch: signal(undefined), version: "", at: 0 };
    known.set(name, it);
  }
  return it;
}

/** A session in small; nothing until it was drawn. */
export const sketchOf = (card: Card): Signal<Sketch | undefined> => knownOf(nameOf(card)).sketch;

/** Has a session drawn that is in view, unless that is still as it was. */
export function wantSketch(card: Card): void {
  const it = knownOf(nameOf(card));
  const version = versionOf(card);
  if (card.home === "stored" || card.state === "pending" || it.version === version) return;
  if (card.state === "running" && Date.now() - it.at < AGAIN) return;
  [it.version, it.at] = [version, Date.now()];
  wanted.push(nameOf(card));
  if (!isAsking) {
    isAsking = true;
    setTimeout(() => void askAll(), GATHER);
  }
}

async function askAll(): Promise<void> {
  while (wanted.length > 0) {
    const names = [...new Set(wanted.splice(-TOGETHER))];
    try {
      const page = await get<SketchPage>(`/sketches?sessions=${names.map(encodeURIComponent).join(",")}`);
      for (const { session, sketch } of page.items) knownOf(session).sketch.value = sketch;
    } catch (error) {
      // They are an ornament: who looks again asks again.
      if (!(error instanceof Refused)) throw error;
      for (const name of names) knownOf(name).version = "";
      wanted = [];
    }
  }
  isAsking = false;
}
