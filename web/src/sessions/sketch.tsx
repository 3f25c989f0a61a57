/** A session's thread in small: beads, what changed files, and how it ends. */

import { useEffect } from "preact/hooks";
import type { Card, Sketch } from "../api/types.ts";
import { type Look, look } from "../state/sessions.ts";
import { sketchOf, wantSketch } from "../state/sketches.ts";
import { count, number } from "../text/words.ts";

const STEP = 7;
const MIDDLE = 6;
/** As wide as its column. */
const WIDTH = 128;

/** What a drawing says, for those who hover or listen. */
export function sketchWords(sketch: Sketch): string {
  const { prompts, changes } = sketch;
  if (prompts === 0) return "no prompt yet";
  if (changes === 0) return `${count(prompts, "prompt")}, no file edited`;
  return `${count(prompts, "prompt")}, files edited ${changes === 1 ? "once" : `${number(changes)} times`}`;
}

function End({ x, state }: { x: number; state: Look }) {
  switch (state) {
    case "waiting":
      return <path class="gem" d={`M${x + 1} ${MIDDLE - 4}l4 4-4 4-4-4Z`} />;
    case "failed":
      return <path class="bad" d={`M${x - 2} ${MIDDLE - 3}l6 6m0-6-6 6`} />;
    case "damaged":
      return <path class="bad" d={`M${x} ${MIDDLE - 6}v4m0 2v2m0 2v2`} />;
    case "running":
      return <circle class="f breathing" cx={x + 1} cy={MIDDLE} r="2" />;
    default:
      return null;
  }
}

/** The drawing by itself. */
export function Drawing({ sketch, state }: { sketch: Sketch; state: Look }) {
  const x = (at: number) => 4 + at * STEP;
  // What was said since the last mark makes it longer.
  const end = Math.min(WIDTH - 8, x(Math.max(0, sketch.marks.length - 1)) + 14);
  const beads = sketch.marks.flatMap((mark, at) => (mark === "prompt" ? [x(at)] : []));
  const rings = sketch.marks.flatMap((mark, at) => (mark === "change" ? [x(at)] : []));
  return (
    <svg
      class="sketch"
      viewBox={`0 0 ${WIDTH} 12`}
      width={WIDTH}
      height="12"
      role="img"
      aria-label={sketchWords(sketch)}
    >
      <title>{sketchWords(sketch)}</title>
      <path class="line" d={`M2 ${MIDDLE}H${end}`} />
      <path class="f" d={beads.map((at) => `M${at - 2.5} ${MIDDLE}a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0-5 0`).join("")} />
      <path class="k" d={rings.map((at) => `M${at - 2.5} ${MIDDLE}a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0-5 0`).join("")} />
      <End x={end} state={state} />
    </svg>
  );
}

/** Has it drawn as long as it is in view. */
export function useSketch(card: Card): Sketch | undefined {
  useEffect(() => wantSketch(card), [card]);
  return sketchOf(card).value;
}

export function SketchCell({ card, sketch }: { card: Card; sketch: Sketch | undefined }) {
  return <span class="th">{sketch && sketch.marks.length > 0 && <Drawing sketch={sketch} state={look(card)} />}</span>;
}

/** Lines that edits added and removed. */
export function LinesCell({ sketch }: { sketch: Sketch | undefined }) {
  if (!sketch || sketch.insertions + sketch.deletions === 0) return <span class="ln" />;
  return (
    <span class="ln" title="Lines that its edits added and removed">
      <span class="add">+{number(sketch.insertions)}</span>
      <span class="del">−{number(sketch.deletions)}</span>
    </span>
  );
}
