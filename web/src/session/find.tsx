/** Finding a text in the session that is open, also where it was not read yet. */

import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { get } from "../api/keeper.ts";
import type { Hit, SearchPage } from "../api/types.ts";
import { takeFocus } from "../parts/focus.ts";
import { Icon } from "../parts/icon.tsx";
import type { Transcript } from "../state/transcript.ts";
import { jumpTo } from "../thread/thread.tsx";

const isOpen = signal(false);

export function openFind(): void {
  isOpen.value = true;
  document.querySelector<HTMLInputElement>(".find input")?.focus();
}

export function closeFind(): boolean {
  const was = isOpen.value;
  isOpen.value = false;
  return was;
}

export function FindBar({ transcript }: { transcript: Transcript }) {
  return isOpen.value ? <Bar transcript={transcript} /> : null;
}

function Bar({ transcript }: { transcript: Transcript }) {
  const [text, write] = useState("");
  const [hits, put] = useState<Hit[] | undefined>(undefined);
  const [at, move] = useState(0);
  useEffect(() => {
    put(undefined);
    move(0);
    if (text.trim().length < 2) return;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      const id = transcript.name.replace(/^native:/, "");
      get<SearchPage>(
        `/search?limit=500&session=${encodeURIComponent(id)}&q=${encodeURIComponent(text.trim())}`,
        abort.signal,
      ).then(
        (page) => {
          const found = page.items.filter((hit) => hit.message && !hit.agent_id);
          put(found);
          const last = found.length - 1;
          move(Math.max(0, last));
          if (found[last]?.message) void jumpTo(transcript, found[last].message);
        },
        () => {},
      );
    }, 200);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text, transcript]);
  const step = (by: number) => {
    if (!hits?.length) return;
    const next = (at + by + hits.length) % hits.length;
    move(next);
    const message = hits[next]?.message;
    if (message) void jumpTo(transcript, message);
  };
  return (
    <div class="find" role="search">
      <label class="field">
        <Icon name="find" />
        <input
          ref={takeFocus}
          type="search"
          aria-label="Find in this session"
          placeholder="Find in this session"
          value={text}
          onInput={(event) => write(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter") step(event.shiftKey ? 1 : -1);
            if (event.key === "Escape") closeFind();
          }}
        />
      </label>
      <span class="quiet" role="status">
        {hits ? (hits.length ? `${at + 1} of ${hits.length}` : "Nothing") : ""}
      </span>
      <button type="button" class="bare icon" aria-label="Earlier" disabled={!hits?.length} onClick={() => step(-1)}>
        <Icon name="up" />
      </button>
      <button type="button" class="bare icon" aria-label="Later" disabled={!hits?.length} onClick={() => step(1)}>
        <Icon name="down" />
      </button>
      <button type="button" class="bare icon" aria-label="Close" onClick={closeFind}>
        <Icon name="close" />
      </button>
    </div>
  );
}
