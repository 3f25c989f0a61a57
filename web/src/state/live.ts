/** Where everything meets: the stream, the list, the session that is shown. */

import { effect, signal } from "@preact/signals";
import { isLoggedOut } from "../api/keeper.ts";
import { Stream } from "../api/stream.ts";
import { hearOfAttention, loadAttention, pending } from "./attention.ts";
import { loadDetails } from "./details.ts";
import { route } from "./route.ts";
import { cardOf, hearOfSessions, info, loadInfo, loadSessions, title } from "./sessions.ts";
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
    setTimeout(() => void loadDetails(name), 50);
  });
}

export async function start(): Promise<void> {
  effect(follow);
  await loadInfo();
  // Whatever happens while the list is read is told again, and is the same by its id.
  const head = info.value;
  stream.subscribe("sessions", head ? { epoch: head.epoch, seq: head.seq } : undefined);
  stream.start();
  await Promise.all([loadSessions(), loadAttention()]);
  effect(() => {
    const shown = transcript.value;
    if (!shown || shown.around.value === 0) return;
    void loadDetails(shown.name);
  });
  effect(() => {
    const count = pending.value.length;
    const name = route.value.session;
    const card = name ? cardOf(name) : undefined;
    const what =
      route.value.view === "attention" ? "Attention" : card ? title(card) : info.value?.demo ? "Demo" : "Sessions";
    document.title = `${count ? `(${count}) ` : ""}${isLoggedOut.value ? "" : `${what} · `}Rethread`;
  });
}
