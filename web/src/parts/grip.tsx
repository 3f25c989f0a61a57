/** The edge of a column, to be dragged, or moved with the arrow keys; the width is remembered. */

import type { Signal } from "@preact/signals";

interface GripProps {
  width: Signal<number>;
  usual: number;
  label: string;
  /** On which side of the edge the column is. */
  side: "left" | "right";
}

const LEAST = 200;
const MOST = 560;
const STEP = 16;

export function Grip({ width, usual, label, side }: GripProps) {
  const set = (value: number) => {
    width.value = Math.round(Math.min(MOST, Math.max(LEAST, value)));
  };
  const sign = side === "left" ? 1 : -1;
  const begin = (event: PointerEvent) => {
    if (event.button !== 0) return;
    event.preventDefault();
    const grip = event.currentTarget as HTMLElement;
    const [from, before] = [event.clientX, width.value];
    grip.setPointerCapture(event.pointerId);
    grip.onpointermove = (move) => set(before + sign * (move.clientX - from));
    grip.onlostpointercapture = () => {
      grip.onpointermove = null;
    };
  };
  return (
    <div
      class={`grip ${side}`}
      role="separator"
      tabIndex={0}
      aria-orientation="vertical"
      aria-label={label}
      aria-valuenow={width.value}
      aria-valuemin={LEAST}
      aria-valuemax={MOST}
      title={`${label}; a double click makes it as usual`}
      onPointerDown={begin}
      onDblClick={() => set(usual)}
      onKeyDown={(event) => {
        if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
        event.preventDefault();
        set(width.value + sign * (event.key === "ArrowRight" ? STEP : -STEP));
      }}
    />
  );
}
