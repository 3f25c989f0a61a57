/** A list of which only what is in view is in the document: thousands of rows scroll like twenty. */

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

interface VirtualProps<T> {
  rows: T[];
  height: (row: T) => number;
  render: (row: T) => ComponentChildren;
  keyOf: (row: T) => string;
  label: string;
  class?: string;
  /** The key of a row that is to be in view. */
  reveal?: string | undefined;
}

const MARGIN = 400;

export function VirtualList<T>({ rows, height, render, keyOf, label, class: name, reveal }: VirtualProps<T>) {
  const scroller = useRef<HTMLElement>(null);
  const [view, look] = useState({ top: 0, height: 800 });
  const tops: number[] = [];
  let sum = 0;
  for (const row of rows) {
    tops.push(sum);
    sum += height(row);
  }
  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const measure = () => look({ top: element.scrollTop, height: element.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    const element = scroller.current;
    const at = reveal === undefined ? -1 : rows.findIndex((row) => keyOf(row) === reveal);
    const row = rows[at];
    const top = tops[at];
    if (!element || row === undefined || top === undefined) return;
    if (top < element.scrollTop) element.scrollTop = top - 40;
    else if (top + height(row) > element.scrollTop + element.clientHeight)
      element.scrollTop = top + height(row) - element.clientHeight + 40;
  }, [reveal]);
  const first = Math.max(0, lowerBound(tops, view.top - MARGIN) - 1);
  const last = Math.min(rows.length, lowerBound(tops, view.top + view.height + MARGIN) + 1);
  return (
    <nav
      class={name}
      ref={scroller}
      aria-label={label}
      onScroll={(event) => look({ top: event.currentTarget.scrollTop, height: event.currentTarget.clientHeight })}
    >
      <div class="tall" style={{ height: `${sum}px` }}>
        <div class="window" style={{ transform: `translateY(${tops[first] ?? 0}px)` }}>
          {rows.slice(first, last).map((row) => (
            <div key={keyOf(row)} style={{ height: `${height(row)}px` }} class="slot">
              {render(row)}
            </div>
          ))}
        </div>
      </div>
    </nav>
  );
}

/** The first place in a sorted list whose number is not below a number. */
function lowerBound(numbers: number[], wanted: number): number {
  let [from, to] = [0, numbers.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((numbers[middle] ?? 0) < wanted) from = middle + 1;
    else to = middle;
  }
  return from;
}
