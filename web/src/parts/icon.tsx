/** The page's marks, drawn for the sizes they are shown at: 12 for states, 16 for actions. */

import type { JSX } from "preact";

const SMALL = {
  running: (
    <>
      <circle cx="6" cy="6" r="4.5" />
      <circle class="breathing" cx="6" cy="6" r="2" fill="currentColor" stroke="none" />
    </>
  ),
  waiting: <path class="gem" d="M6 .5 11.5 6 6 11.5.5 6Z" />,
  idle: <circle cx="6" cy="6" r="3.5" />,
  elsewhere: <path d="m2 3 3 3-3 3M6.5 9.5H10" />,
  failed: <path d="m2.5 2.5 7 7m0-7-7 7" stroke-width="2" />,
  damaged: <path d="M6 0v3L3.5 5M6 12V9l2.5-2M2 6.5l1.5-1.5M8.5 7l1.5-1.5" />,
  pending: <circle cx="6" cy="6" r="4" stroke-dasharray="2 2.2" />,
  ok: <path d="m2 6.5 2.8 2.8L10 3.5" stroke-width="2" />,
} satisfies Record<string, JSX.Element>;

const LARGE = {
  find: (
    <>
      <circle cx="7" cy="7" r="4.5" />
      <path d="m10.5 10.5 3.5 3.5" />
    </>
  ),
  read: <path d="M3.5 2h6l3 3v9h-9zM6 7.5h4M6 10.5h4" />,
  edit: <path d="m3 13 .7-3L11 2.7l2.3 2.3L6 12.3zM9.5 4.2l2.3 2.3" />,
  terminal: <path d="M2 3h12v10H2zM4.5 6l2 2-2 2M8.5 10h3" />,
  think: <path d="M3 4h10M3 8h7M3 12h4" />,
  copy: <path d="M5.5 5.5h8v8h-8zM3 10.5v-8h8" />,
  fork: <path d="M5 2v12M5 5c0 4 6 2 6 7M9 10l2 2.5 2-2.5" />,
  back: <path d="M6 3 3 6l3 3M3 6h6.5a3.5 3.5 0 0 1 0 7H6" />,
  dots: <path d="M3.5 8h0M8 8h0M12.5 8h0" stroke-width="2" />,
  theme: (
    <>
      <circle cx="8" cy="8" r="5.5" />
      <path d="M8 2.5v11a5.5 5.5 0 0 0 0-11" fill="currentColor" />
    </>
  ),
  right: <path d="m6 4 4 4-4 4" />,
  down: <path d="m4 6 4 4 4-4" />,
  up: <path d="m4 10 4-4 4 4" />,
  list: <path d="M2.5 4h0M2.5 8h0M2.5 12h0M6 4h8M6 8h8M6 12h8" />,
  gem: <path d="M8 2 14 8 8 14 2 8Z" />,
  thread: (
    <>
      <path d="M4.5 1v14M9 5h5M9 11h4" />
      <path d="M4.5 5h0M4.5 11h0" stroke-width="4" />
    </>
  ),
  panel: <path d="M2 3h12v10H2zM10 3v10" />,
  plus: <path d="M8 3v10M3 8h10" />,
  close: <path d="m4 4 8 8m0-8-8 8" />,
  globe: (
    <>
      <circle cx="8" cy="8" r="5.5" />
      <path d="M2.5 8h11M8 2.5c-4 4-4 7 0 11M8 2.5c4 4 4 7 0 11" />
    </>
  ),
  todo: <path d="m2.5 4.5 1.2 1.2 2-2.4M2.5 10.5l1.2 1.2 2-2.4M8.5 4.5h5M8.5 10.5h5" />,
  question: <path d="M5.5 6a2.5 2.5 0 1 1 3.4 2.3c-.6.3-.9.8-.9 1.7M8 12.8h0" />,
  picture: <path d="M2 3h12v10H2zM2 11l3.5-3.5L9 11l2-2 3 3M10.5 6h0" />,
  tool: <path d="M8 2v3M8 11v3M2 8h3M11 8h3M8 5.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5" />,
  folder: <path d="M2 4h4l1.5 2H14v7H2z" />,
} satisfies Record<string, JSX.Element>;

export type Mark = keyof typeof SMALL;
export type Sign = keyof typeof LARGE;

/** A mark of a state, or a sign of an action. */
export function Icon({ name, tone }: { name: Mark | Sign; tone?: string | undefined }) {
  const isSmall = name in SMALL;
  const side = isSmall ? 12 : 16;
  const shape = isSmall ? SMALL[name as Mark] : LARGE[name as Sign];
  return (
    <svg
      class={[isSmall ? "s" : "i", tone].filter(Boolean).join(" ")}
      viewBox={`0 0 ${side} ${side}`}
      aria-hidden="true"
    >
      {shape}
    </svg>
  );
}

/** The loop with the strand that passes over it: a checkpoint, and the page's own sign. Lies on whole pixels at 24. */
export function Knot({ label }: { label?: string }) {
  return (
    <svg class="knot-sign" viewBox="0 0 24 24" aria-hidden="true" data-label={label}>
      <path d="M12 0v3c0 5 7 4.5 7 10 0 5.3-14 5.3-14 0 0-5.500 7-5.500 7 .5" />
      <path class="behind" d="M12 14.500v4.500" />
      <path d="M12 13v11" />
    </svg>
  );
}
