/** The same line, small: beads, knots, failures, damage, forks, subagents and questions; a click goes there. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Card } from "../api/types.ts";
import { pending } from "../state/attention.ts";
import { problems } from "../state/details.ts";
import { partingsAt } from "../state/forks.ts";
import { PAGE, type Transcript } from "../state/transcript.ts";
import { blocks } from "./blocks.ts";
import { isStrand } from "./rows.ts";
import { jump, knots, type View } from "./thread.tsx";

interface Dot {
  number: number;
  kind: "bead" | "tick" | "cross" | "knot" | "fray" | "strand" | "fork";
}

function dots(transcript: Transcript): Dot[] {
  const found: Dot[] = [];
  for (let page = 0; page < transcript.pages; page++) {
    for (const { number, item } of transcript.of(page)) {
      if (item.kind === "prompt") found.push({ number, kind: "bead" });
      if (item.uuid && knots.value.has(item.uuid)) found.push({ number: number - 0.4, kind: "knot" });
      const offset = item.offset ?? -1;
      const before = transcript.item(number - 1)?.offset ?? -1;
      if (problems.value.some((it) => it.damage && it.offset > before && it.offset < offset))
        found.push({ number: number - 0.5, kind: "fray" });
      if (item.uuid && partingsAt.value.has(item.uuid)) found.push({ number, kind: "fork" });
      for (const block of blocks(item)) {
        if (block.type !== "tool_use") continue;
        if (isStrand(block)) found.push({ number, kind: "strand" });
        else found.push({ number, kind: transcript.result(block.id)?.isError ? "cross" : "tick" });
      }
    }
  }
  // A torn end stands after the last message.
  const total = transcript.total.value;
  const end = transcript.item(total - 1)?.offset;
  if (typeof end === "number" && problems.value.some((it) => it.damage && it.offset > end))
    found.push({ number: total - 0.5, kind: "fray" });
  return found;
}

/** The line from its beginning to its end, interrupted where the file is. */
export function brokenLine(from: number, to: number, gaps: number[]): string {
  let [path, at] = ["", from];
  for (const gap of [...gaps].sort((one, other) => one - other)) {
    if (gap - 5 > at) path += `M24 ${at}V${gap - 5}`;
    at = Math.max(at, gap + 5);
  }
  return at < to ? `${path}M24 ${at}V${to}` : path;
}

export function Minimap({ transcript, card, view }: { transcript: Transcript; card: Card | undefined; view: View }) {
  const element = useRef<HTMLDivElement>(null);
  const [height, measure] = useState(600);
  const [marks, mark] = useState<Dot[]>(() => dots(transcript));
  const total = transcript.total.value;
  const { first, last } = view.range.value;
  useEffect(() => {
    const observer = new ResizeObserver(([change]) => measure(Math.max(80, change?.contentRect.height ?? 600)));
    if (element.current) observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  const version = last >= 0 ? transcript.version(last).value + transcript.version(first).value : 0;
  useEffect(() => {
    const timer = setTimeout(() => mark(dots(transcript)), 120);
    return () => clearTimeout(timer);
  }, [transcript, total, version, first, problems.value, knots.value, partingsAt.value]);

  const isWaiting = pending.value.some((it) => it.shown.session_id === card?.session_id);
  const top = 14;
  const room = height - 28;
  const y = (number: number) => Math.round((top + (room * (number + 0.5)) / Math.max(1, total)) * 2) / 2;
  /** All marks of a kind in one path, each pixel once: thousands of them cost as much as a few, and scrolling nothing. */
  const drawn = useMemo(() => {
    const path = (kind: Dot["kind"], draw: (at: number) => string): string =>
      [...new Set(marks.filter((it) => it.kind === kind).map((it) => y(it.number)))].map(draw).join("");
    const gaps = [...new Set(marks.filter((it) => it.kind === "fray").map((it) => y(it.number)))];
    return (
      <>
        <path class="line" d={brokenLine(top, height - 14, gaps)} />
        <path class="n" d={path("strand", (at) => `M28.500 ${at - 4}v8`)} />
        <path class="n" d={path("fork", (at) => `M24 ${at - 4}q0 4 4 4h5`)} />
        <path class="t" d={path("tick", (at) => `M25 ${at}h8`)} />
        <path class="e" d={path("fray", (at) => `M16 ${at}h4m2 0h4m2 0h4`)} />
        <path class="e" d={path("cross", (at) => `M21 ${at - 3}l6 6m0-6-6 6`)} />
        <path class="k" d={path("knot", (at) => `M21 ${at}a3 3 0 1 0 6 0a3 3 0 1 0-6 0`)} />
        <path class="b" d={path("bead", (at) => `M20 ${at}a4 4 0 1 0 8 0a4 4 0 1 0-8 0`)} />
      </>
    );
  }, [marks, height, total]);
  const { from, to } = view.seen.value;
  const click = (event: MouseEvent) => {
    const box = element.current?.getBoundingClientRect();
    if (!box || total === 0) return;
    const number = Math.floor(((event.clientY - box.top - top) / room) * total);
    const wanted = Math.min(total - 1, Math.max(0, number));
    void transcript.ensure(Math.floor(wanted / PAGE)).then(() => {
      jump.value = wanted >= total - 1 ? "end" : { number: rowNumber(transcript, wanted) };
    });
  };
  return (
    <div class="map" ref={element} onClick={click} aria-hidden="true">
      <svg viewBox={`0 0 48 ${height}`} width="48" height={height}>
        <rect
          class="see"
          x="0"
          y={Math.round(from * height)}
          width="48"
          height={Math.max(16, Math.round((to - from) * height))}
        />
        <rect
          class="now"
          x="46"
          y={Math.round(from * height)}
          width="2"
          height={Math.max(16, Math.round((to - from) * height))}
        />
        {total > 0 && drawn}
        {isWaiting ? (
          <path class="w" d={`M24 ${height - 20}l6 6-6 6-6-6Z`} />
        ) : (
          total > 0 &&
          !marks.some((it) => it.kind === "fray" && it.number >= total - 0.5) && (
            <circle class="b" cx="24" cy={height - 14} r="2.5" />
          )
        )}
      </svg>
    </div>
  );
}

/** The nearest message from there on that has a row of its own. */
function rowNumber(transcript: Transcript, number: number): number {
  for (let at = number; at < number + PAGE; at++) {
    const kind = transcript.item(at)?.kind;
    if (kind && kind !== "tool_result") return at;
  }
  return number;
}
