/** The same line, small: beads, knots, failures and questions; a click goes there. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { Card } from "../api/types.ts";
import { pending } from "../state/attention.ts";
import { problems } from "../state/details.ts";
import { PAGE, type Transcript } from "../state/transcript.ts";
import { blocks } from "./blocks.ts";
import { jump, knots, type View } from "./thread.tsx";

interface Dot {
  number: number;
  kind: "bead" | "tick" | "cross" | "knot" | "fray";
}

/** More marks than this say nothing at this size. */
const MOST = 1500;

function dots(transcript: Transcript): Dot[] {
  const found: Dot[] = [];
  for (let page = 0; page < transcript.pages && found.length < MOST; page++) {
    for (const { number, item } of transcript.of(page)) {
      if (item.kind === "prompt") found.push({ number, kind: "bead" });
      if (item.uuid && knots.value.has(item.uuid)) found.push({ number: number - 0.4, kind: "knot" });
      const offset = item.offset ?? -1;
      const before = transcript.item(number - 1)?.offset ?? -1;
      if (problems.value.some((it) => it.damage && it.offset > before && it.offset < offset))
        found.push({ number, kind: "fray" });
      for (const block of blocks(item)) {
        if (block.type !== "tool_use") continue;
        found.push({ number, kind: transcript.result(block.id)?.isError ? "cross" : "tick" });
      }
    }
  }
  return found;
}

export function Minimap({ transcript, card, view }: { transcript: Transcript; card: Card | undefined; view: View }) {
  const element = useRef<HTMLDivElement>(null);
  const [height, measure] = useState(600);
  const [marks, mark] = useState<Dot[]>([]);
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
  }, [transcript, total, version, first, problems.value, knots.value]);

  const isWaiting = pending.value.some((it) => it.shown.session_id === card?.session_id);
  const top = 14;
  const room = height - 28;
  const y = (number: number) => Math.round((top + (room * (number + 0.5)) / Math.max(1, total)) * 2) / 2;
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
        {total > 0 && <path class="line" d={`M24 ${top}V${height - 14}`} />}
        {marks.map((it) => {
          const at = y(it.number);
          const key = `${it.kind}.${it.number}`;
          if (it.kind === "tick") return <path key={key} class="t" d={`M25 ${at}h8`} />;
          if (it.kind === "bead") return <circle key={key} class="b" cx="24" cy={at} r="4" />;
          if (it.kind === "knot") return <circle key={key} class="k" cx="24" cy={at} r="3" />;
          if (it.kind === "fray") return <path key={key} class="e" d={`M16 ${at}h16`} stroke-dasharray="4 2" />;
          return <path key={key} class="e" d={`m21 ${at - 3} 6 6m0-6-6 6`} />;
        })}
        {isWaiting ? (
          <path class="w" d={`M24 ${height - 20}l6 6-6 6-6-6Z`} />
        ) : (
          total > 0 && <circle class="b" cx="24" cy={height - 14} r="2.5" />
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
