/** What can be said to a session, what waits to be said, and how to stop what runs. */

import { type Signal, signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Card } from "../api/types.ts";
import { Icon } from "../parts/icon.tsx";
import { Quoted } from "../parts/quoted.tsx";
import { fork, interrupt, resumeQueue, takeOver, unqueue } from "../state/actions.ts";
import { filesOf, KINDS, type Picture, picture } from "../state/pictures.ts";
import { can, info } from "../state/sessions.ts";
import type { Transcript } from "../state/transcript.ts";
import { plain } from "../text/safe.ts";
import { jump } from "../thread/thread.tsx";
import { Pictures } from "./pictures.tsx";

/** What was typed and not sent, by session: changing to another loses nothing. */
interface Draft {
  text: Signal<string>;
  pictures: Signal<Picture[]>;
}

const drafts = new Map<string, Draft>();
const taken = signal<ReadonlySet<string>>(new Set());

function draftOf(name: string): Draft {
  let draft = drafts.get(name);
  if (!draft) {
    draft = { text: signal(""), pictures: signal([]) };
    drafts.set(name, draft);
  }
  return draft;
}

export function focusComposer(): void {
  document.querySelector<HTMLTextAreaElement>(".composer textarea")?.focus();
}

export function Composer({ transcript, card }: { transcript: Transcript; card: Card | undefined }) {
  const { text: draft, pictures } = draftOf(transcript.name);
  const field = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const [isOver, hover] = useState(false);
  const [refused, refuse] = useState<string | undefined>(undefined);
  // Grows with what is typed; the browser does it where it can.
  useEffect(() => {
    const element = field.current;
    if (!element || CSS.supports("field-sizing", "content")) return;
    element.style.height = "auto";
    element.style.height = `${Math.min(element.scrollHeight, 200)}px`;
  }, [draft.value]);
  if (card?.home === "stored" && !can("share"))
    return (
      <ReadOnly words="This session is in a store, and read here. `rethread export --claude` makes it one of Claude Code's own." />
    );
  if (!can("drive")) {
    return (
      <ReadOnly
        words={`This keeper only reads. ${info.value?.agent.missing ?? "Claude Code was not found when it was started."}`}
      />
    );
  }
  const isElsewhere = card?.state === "elsewhere" || !!card?.driver_host;
  if (card && isElsewhere && !taken.value.has(transcript.name)) return <Elsewhere name={transcript.name} card={card} />;
  const isBusy = card?.state === "running" || card?.state === "waiting" || transcript.turnSince.value !== undefined;
  const isDamaged = !isBusy && !!card && card.health.status !== "ok";
  const send = () => {
    const text = draft.value.trim();
    const sent = pictures.value;
    if (!text && sent.length === 0) return;
    draft.value = "";
    pictures.value = [];
    refuse(undefined);
    jump.value = "end";
    void transcript.send(text, isBusy, sent);
  };
  const add = async (files: Iterable<File>) => {
    refuse(undefined);
    for (const file of files) {
      try {
        const added = await picture(file, pictures.value);
        pictures.value = [...pictures.value, added];
      } catch (error) {
        refuse((error as Error).message);
      }
    }
  };
  return (
    <div class="speak">
      <Queue transcript={transcript} />
      <form
        class={isOver ? "composer over" : "composer"}
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
        onDragOver={(event) => {
          if (!event.dataTransfer?.types.includes("Files")) return;
          event.preventDefault();
          hover(true);
        }}
        onDragLeave={() => hover(false)}
        onDrop={(event) => {
          hover(false);
          const files = filesOf(event.dataTransfer);
          if (files.length === 0) return;
          event.preventDefault();
          void add(files);
        }}
      >
        <Pictures
          all={pictures.value}
          drop={(gone) => {
            pictures.value = pictures.value.filter((it) => it !== gone);
          }}
        />
        {refused && (
          <p class="refused" role="alert">
            {plain(refused)}
          </p>
        )}
        <textarea
          ref={field}
          rows={1}
          value={draft.value}
          aria-label={isBusy ? "Queue a prompt" : "Prompt"}
          placeholder={
            isBusy
              ? "Queue a message for when this turn ends"
              : isDamaged
                ? "Continue from the last whole message"
                : "What should Claude do next"
          }
          onInput={(event) => (draft.value = event.currentTarget.value)}
          onPaste={(event) => {
            const files = filesOf(event.clipboardData);
            if (files.length === 0) return;
            event.preventDefault();
            void add(files);
          }}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
              event.preventDefault();
              send();
            }
            if (event.key === "Escape") event.currentTarget.blur();
          }}
        />
        <footer>
          <input
            ref={picker}
            type="file"
            accept={KINDS.join(",")}
            multiple
            hidden
            aria-label="Pictures"
            onChange={(event) => {
              const files = [...(event.currentTarget.files ?? [])];
              event.currentTarget.value = "";
              void add(files);
            }}
          />
          <button
            type="button"
            class="bare icon"
            title="Add a picture; one can be pasted or dropped as well"
            aria-label="Add a picture"
            onClick={() => picker.current?.click()}
          >
            <Icon name="picture" />
          </button>
          <span class="grow cut">
            {isDamaged
              ? "Claude Code will not see the damaged lines"
              : `${info.value?.agent.version ? `Claude Code ${info.value.agent.version}` : "Claude Code"} · asks before commands`}
          </span>
          {isDamaged && (
            <button
              type="button"
              class="bare"
              title="Another session with every message that can be read, and nothing else (f)"
              onClick={() => void fork(transcript.name)}
            >
              Fork a clean copy
            </button>
          )}
          {isBusy && (
            <button type="button" class="bare" onClick={() => void interrupt(transcript.name)}>
              Interrupt <kbd>Esc</kbd>
            </button>
          )}
          <button type="submit" class="go" disabled={!draft.value.trim() && pictures.value.length === 0}>
            {isBusy ? "Queue" : isDamaged ? "Continue" : "Send"} <kbd>Enter</kbd>
          </button>
        </footer>
      </form>
    </div>
  );
}

function Queue({ transcript }: { transcript: Transcript }) {
  const waiting = transcript.queue.value;
  if (waiting.length === 0) return null;
  return (
    <ol class="waiting-prompts" aria-label="Prompts that wait for their turn">
      {waiting.map((turn, at) => (
        <li key={turn.client_message_id}>
          <span class="quiet">{at + 1}</span>
          <span class="grow cut">{plain(turn.parts.map((part) => part.text ?? "[picture]").join(" "))}</span>
          <button
            type="button"
            class="bare icon"
            title="Take it back"
            aria-label="Take this prompt back"
            onClick={() => void unqueue(transcript.name, turn.client_message_id)}
          >
            <Icon name="close" />
          </button>
        </li>
      ))}
      {transcript.isHeld.value && (
        <li>
          <span class="grow quiet">Not sent: the keeper ended, or somebody took the session over.</span>
          <button type="button" onClick={() => void resumeQueue(transcript.name)}>
            Send now
          </button>
        </li>
      )}
    </ol>
  );
}

function ReadOnly({ words }: { words: string }) {
  return (
    <div class="speak">
      <p class="read-only">
        <Icon name="read" />
        <span>
          <Quoted words={words} />
        </span>
      </p>
    </div>
  );
}

/** Somebody else is at work on it: never driven twice in silence. */
function Elsewhere({ name, card }: { name: string; card: Card }) {
  const host = card.driver_host;
  return (
    <div class="speak">
      <div class="read-only elsewhere">
        <Icon name="elsewhere" />
        <span class="grow">
          <b>{host ? `Driven by the keeper on ${host}` : "Open in a terminal"}</b>
          {card.driver_pid ? ` (process ${card.driver_pid})` : ""}. What happens there shows here. Watch, fork, or take
          over.
        </span>
        <button type="button" onClick={() => void fork(name)}>
          Fork
        </button>
        <button
          type="button"
          class="bare"
          title={
            host
              ? "The agent there is ended first, and the session goes on here."
              : "Two programs on one session can leave one of them behind. The terminal is not told."
          }
          onClick={() =>
            void takeOver(name).then((done) => {
              if (done) taken.value = new Set([...taken.value, name]);
            })
          }
        >
          Take over
        </button>
      </div>
    </div>
  );
}
