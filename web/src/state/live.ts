/** Where everything meets: the stream, the list, the session that is shown. */

import { effect, signal } from "@preact/signals";
import { isLoggedOut } from "../api/keeper.ts";
import { Stream } from "../api/stream.ts";
import type { Card } from "../api/types.ts";
import { hearOfAttention, loadAttention, pending } from "./attention.ts";
import { loadOverview } from "./changes.ts";
import { loadDetails } from "./details.ts";
import { loadPartings } from "./forks.ts";
import { route } from "./route.ts";
import {
  cardOf,
  hearOfSessions,
  info,
  isArchiveListed,
  isListed,
  loadArchive,
  loadCard,
  loadInfo,
  loadSessions,
  title,
} from "./sessions.ts";
import { Transcript } from "./transcript.ts";

/** The session that is shown. */
export const transcript = signal<Transcript | undefined>(undefined);

const bare = (name: string): string => name.replace(/^(stored|native):/, "");
const topicOf = (name: string): string => `session:${bare(name)}`;

export const stream = new Stream({
  event(frame) {
    if (frame.type.startsWith("attention.")) hearOfAttention(frame);
    if (frame.type.startsWith("session.") || frame.type === "health.changed") hearOfSessions(frame);
    const shown = transcript.value;
    if (shown && frame.topic === topicOf(shown.name)) shown.hear(frame);
  },
  resync(topics) {
    if (topics.includes("sessions")) {
      void loadSessions();
      if (isArchiveListed.peek()) void loadArchive();
      void loadAttention();
      void loadInfo();
    }
    const shown = transcript.value;
    if (shown && topics.includes(topicOf(shown.name))) void shown.reload();
  },
});

let loads = 0;

/** Shows the session of the address, each time it changes. */
function follow(): void {
  const name = route.value.session;
  const before = transcript.peek();
  if (before?.name === name) return;
  if (before) stream.unsubscribe(topicOf(before.name));
  if (!name) {
    transcript.value = undefined;
    return;
  }
  const opened = new Transcript(name, (head) => stream.subscribe(topicOf(name), head));
  transcript.value = opened;
  const load = ++loads;
  void opened.open(route.peek().message).then(() => {
    if (load !== loads) return;
    // Looks at the whole of the file, so the conversation comes first.
    setTimeout(() => void loadAround(name), 50);
  });
}

let tried: Card | undefined;

/** A link may be followed a moment before the keeper has found its session: it is read again once it is there. */
function lookAgain(): void {
  const shown = transcript.value;
  const reading = shown?.reading.value;
  if (!shown || reading?.state !== "failed" || reading.error.problem.status !== 404) return;
  const card = cardOf(shown.name);
  if (!card || card === tried) return;
  tried = card;
  void shown.open(route.peek().message).then(() => {
    shown.around.value++;
  });
}

/** Reads what hangs on the thread beside its messages. */
async function loadAround(name: string): Promise<void> {
  await loadDetails(name);
  if (route.peek().session === name) await loadOverview(name);
}

export async function start(): Promise<void> {
  effect(follow);
  effect(lookAgain);
  await loadInfo();
  // Whatever happens while the list is read is told again, and is the same by its id.
  const head = info.value;
  stream.subscribe("sessions", head ? { epoch: head.epoch, seq: head.seq } : undefined);
  stream.start();
  await Promise.all([loadSessions(), loadAttention()]);
  effect(() => {
    const shown = transcript.value;
    if (!shown || shown.around.value === 0) return;
    void loadAround(shown.name);
  });
  effect(() => {
    const name = route.value.session;
    const card = name ? cardOf(name) : undefined;
    if (card && isListed.value && transcript.value?.reading.value.state === "ready") void loadPartings(card);
  });
  effect(() => {
    const name = route.value.session;
    if (name && isListed.value && !cardOf(name)) void loadCard(name);
  });
  effect(() => {
    if (route.value.view === "archive" && !isArchiveListed.peek()) void loadArchive();
  });
  effect(() => {
    const count = pending.value.length;
    const name = route.value.session;
    const card = name ? cardOf(name) : undefined;
    const what =
      route.value.view === "attention"
        ? "Attention"
        : route.value.view === "archive"
          ? "Archive"
          : card
            ? title(card)
            : info.value?.demo
              ? "Demo"
              : "Sessions";
    document.title = `${count ? `(${count}) ` : ""}${isLoggedOut.value ? "" : `${what} · `}Rethread`;
  });
}
