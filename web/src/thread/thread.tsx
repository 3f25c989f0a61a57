/** The conversation as a thread: pages of it are in the document only near what is looked at. */

import { computed, signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { Card, Item } from "../api/types.ts";
import { rewinds } from "../state/changes.ts";
import { checkpoints, claudeCheckpoints, problems, tree } from "../state/details.ts";
import { partingsAt } from "../state/forks.ts";
import type { TakenBack } from "../state/taken_back.ts";
import { PAGE, type Transcript } from "../state/transcript.ts";
import { Minimap } from "./minimap.tsx";
import { RowView } from "./row.tsx";
import { type Around, points, rowsOf } from "./rows.ts";
import { Tail } from "./tail.tsx";

/** How far beyond the edges of the view rows are kept ready, in pixels. */
const MARGIN = 600;
/** How high a page is taken for until it was seen. */
const GUESS = 700;

/** How long a page is near the view before it is read, in milliseconds. */
const DWELL = 40;

/** Where the view is; others ask it to go elsewhere. */
export const jump = signal<{ number: number; uuid?: string | undefined } | "end" | undefined>(undefined);
/** The number of the message at the top of the view, and the one that keys work on. */
export const topNumber = signal(0);
export const current = signal<number | undefined>(undefined);
export const isAtEnd = signal(true);
export const abandonedShown = signal(true);

export const knots = computed(() => points(checkpoints.value, claudeCheckpoints.value));

/** What rows depend on beside the messages of their page. */
function around(transcript: Transcript): Around {
  return {
    problems: problems.value,
    points: knots.value,
    branches: abandonedShown.value ? (tree.value?.branches ?? []) : [],
    partings: partingsAt.value,
    rewinds: rewinds.value,
    isTaken: (number, item) => rewinds.value.some((it) => isWithin(transcript, it, number, item)),
    isResultKnown: (call) => transcript.isCallKnown(call),
    previous: (number) => transcript.item(number - 1),
    ordinal: (number) => transcript.ordinal(number),
  };
}

/** Whether a message lies between the prompt that files went back to and the moment when they did. */
function isWithin(transcript: Transcript, taken: TakenBack, number: number, item: Item): boolean {
  if (!item.timestamp || Date.parse(item.timestamp) > Date.parse(taken.at)) return false;
  const first = transcript.numberOf(taken.message);
  if (first !== undefined) return number >= first;
  return Date.parse(item.timestamp) >= Date.parse(knots.value.get(taken.message)?.at ?? taken.at);
}

function PageView({ transcript, page, card }: { transcript: Transcript; page: number; card: Card | undefined }) {
  transcript.version(page).value;
  const isLast = page === transcript.pages - 1;
  const rows = rowsOf(transcript.of(page), around(transcript));
  const isRunning = isLast && (card?.state === "running" || card?.state === "waiting");
  return (
    <>
      {rows.map((row) => (
        <RowView key={row.key} row={row} transcript={transcript} card={card} isRunning={isRunning} />
      ))}
    </>
  );
}

function Skeleton() {
  return (
    <div class="skeleton" aria-hidden="true">
      {[72, 40, 56, 30].map((width) => (
        <span key={width} class={`bar-${width}`} />
      ))}
    </div>
  );
}

export function Thread({ transcript, card }: { transcript: Transcript; card: Card | undefined }) {
  const scroller = useRef<HTMLDivElement>(null);
  const view = useMemo(() => new View(transcript), [transcript]);
  const { first, last } = view.range.value;
  const pages = Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => first + at);
  const total = transcript.total.value;

  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element) return;
    return view.attach(element);
  }, [view]);
  // After every change: those who are at the end stay there, and those who want to go somewhere get there.
  useLayoutEffect(() => view.settle());
  useEffect(() => {
    const read = () => {
      transcript.ensureAll(first, last);
      transcript.keepNear(first, last);
    };
    if (jump.peek() !== undefined) {
      read();
      return;
    }
    // What only flies past is not read.
    const timer = setTimeout(read, DWELL);
    return () => clearTimeout(timer);
  }, [transcript, first, last, total, transcript.reads.value]);
  useEffect(() => {
    if (jump.value !== undefined) view.settle();
  }, [jump.value, view]);

  const shape = { before: view.height(0, first), after: view.height(last + 1, transcript.pages) };
  return (
    <div class="body">
      <section class="scroll" ref={scroller} onScroll={() => view.look()} tabIndex={0} aria-label="Conversation">
        <div class="thread">
          <div class="space" style={{ height: `${shape.before}px` }} />
          {pages.map((page) => (
            <div key={page} class="page" data-page={page} ref={(element) => view.watch(page, element)}>
              {transcript.isLoaded(page) || transcript.of(page).length > 0 ? (
                <PageView transcript={transcript} page={page} card={card} />
              ) : (
                <Unread transcript={transcript} page={page} height={view.height(page, page + 1)} />
              )}
            </div>
          ))}
          <div class="space" style={{ height: `${shape.after}px` }} />
          {last >= transcript.pages - 1 && <Tail transcript={transcript} card={card} isEmpty={total === 0} />}
        </div>
      </section>
      <Minimap transcript={transcript} card={card} view={view} />
    </div>
  );
}

/** A page that is being read; it changes when it is here. */
function Unread({ transcript, page, height }: { transcript: Transcript; page: number; height: number }) {
  transcript.version(page).value;
  if (transcript.isLoaded(page)) return <PageView transcript={transcript} page={page} card={undefined} />;
  return (
    <div class="unread" style={{ height: `${height}px` }}>
      <Skeleton />
    </div>
  );
}

/** Which pages are in the document, and where the view stands among them. */
export class View {
  readonly range = signal({ first: 0, last: 0 });
  /** The part of the thread that is in view, from 0 to 1; for the minimap. */
  readonly seen = signal({ from: 0, to: 1 });
  private readonly heights = new Map<number, number>();
  private readonly elements = new Map<Element, number>();
  private element: HTMLElement | undefined;
  private observer: ResizeObserver | undefined;
  private isStuck = true;
  private frame = 0;
  private tries = 0;

  constructor(private readonly transcript: Transcript) {
    const last = transcript.pages - 1;
    this.range.value = { first: Math.max(0, last - 1), last: Math.max(0, last) };
  }

  attach(element: HTMLElement): () => void {
    this.element = element;
    this.observer = new ResizeObserver((changes) => {
      for (const change of changes) {
        // What has left the document has no height any more, but it will have one again.
        if (!change.target.isConnected) {
          this.observer?.unobserve(change.target);
          this.elements.delete(change.target);
          continue;
        }
        const page = this.elements.get(change.target);
        if (page !== undefined) this.heights.set(page, change.borderBoxSize[0]?.blockSize ?? change.contentRect.height);
      }
      this.settle();
      this.look();
    });
    for (const known of this.elements.keys()) this.observer.observe(known);
    this.observer.observe(element);
    const content = element.firstElementChild;
    if (content) this.observer.observe(content);
    if (jump.peek() !== undefined) this.isStuck = false;
    this.settle();
    this.look();
    return () => {
      this.observer?.disconnect();
      cancelAnimationFrame(this.frame);
    };
  }

  watch(page: number, element: HTMLElement | null): void {
    if (!element || this.elements.has(element)) return;
    this.elements.set(element, page);
    this.observer?.observe(element);
  }

  private get usual(): number {
    if (this.heights.size === 0) return GUESS;
    let sum = 0;
    for (const height of this.heights.values()) sum += height;
    return Math.max(120, sum / this.heights.size);
  }

  height(from: number, to: number): number {
    const usual = this.usual;
    let sum = 0;
    for (let page = from; page < to; page++) sum += this.heights.get(page) ?? usual;
    return Math.round(sum);
  }

  /** Follows the scrolling, once a frame. */
  look(): void {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.measure();
    });
  }

  private measure(): void {
    const element = this.element;
    if (!element) return;
    const { scrollTop, clientHeight, scrollHeight } = element;
    const atEnd = scrollHeight - scrollTop - clientHeight < 48;
    if (jump.peek() === undefined) this.isStuck = atEnd;
    isAtEnd.value = atEnd;
    this.seen.value = {
      from: scrollTop / Math.max(1, scrollHeight),
      to: (scrollTop + clientHeight) / Math.max(1, scrollHeight),
    };
    const pages = this.transcript.pages;
    const usual = this.usual;
    let top = 0;
    let first = pages - 1;
    let last = 0;
    for (let page = 0; page < pages; page++) {
      const height = this.heights.get(page) ?? usual;
      if (top + height > scrollTop - MARGIN && top < scrollTop + clientHeight + MARGIN) {
        first = Math.min(first, page);
        last = Math.max(last, page);
      }
      top += height;
    }
    if (this.isStuck) last = pages - 1;
    first = Math.max(0, Math.min(first, last));
    const now = this.range.peek();
    if (now.first !== first || now.last !== last) this.range.value = { first, last };
    this.noteTop(element);
  }

  private noteTop(element: HTMLElement): void {
    const edge = element.getBoundingClientRect().top + 24;
    for (const row of element.querySelectorAll<HTMLElement>("[data-number]")) {
      if (row.getBoundingClientRect().bottom < edge) continue;
      topNumber.value = Number(row.dataset.number);
      return;
    }
  }

  /** Keeps the end in view for those who are there, and goes where somebody wants to go. */
  settle(): void {
    const element = this.element;
    if (!element) return;
    const target = jump.peek();
    if (target === "end") {
      this.isStuck = true;
      jump.value = undefined;
    } else if (target) {
      this.isStuck = false;
      this.approach(element, target);
      return;
    }
    if (!this.isStuck) return;
    const last = this.transcript.pages - 1;
    if (this.range.peek().last < last) {
      this.range.value = { first: Math.max(0, last - 1), last: Math.max(0, last) };
      return;
    }
    const end = element.scrollHeight - element.clientHeight;
    if (Math.abs(element.scrollTop - end) > 1) element.scrollTop = end;
  }

  private approach(element: HTMLElement, target: { number: number; uuid?: string | undefined }): void {
    const page = Math.floor(target.number / PAGE);
    const row = element.querySelector<HTMLElement>(`[data-number="${target.number}"]`);
    if (!row) {
      const now = this.range.peek();
      if (page < now.first || page > now.last)
        this.range.value = { first: Math.max(0, page - 1), last: Math.min(this.transcript.pages - 1, page + 1) };
      else if (this.tries++ > 120) this.arrive();
      else requestAnimationFrame(() => this.settle());
      element.scrollTop = this.height(0, page);
      return;
    }
    if (target.number === 0) element.scrollTop = 0;
    else row.scrollIntoView({ block: "start" });
    current.value = target.number;
    // Pages around it may still be read, and push it away; it is held until they are there.
    const near = [page - 1, page, page + 1].filter((it) => it >= 0 && it < this.transcript.pages);
    if (near.every((it) => this.transcript.isLoaded(it)) || this.tries++ > 120) this.arrive();
  }

  private arrive(): void {
    this.tries = 0;
    jump.value = undefined;
    this.look();
  }
}

/** Goes to a message, wherever in the session it is. */
export async function jumpTo(transcript: Transcript, uuid: string): Promise<boolean> {
  const number = await transcript.find(uuid);
  if (number === undefined) return false;
  jump.value = { number, uuid };
  return true;
}
