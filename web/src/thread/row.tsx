/** One thing on the thread. */

import { useEffect, useState } from "preact/hooks";
import { raw } from "../api/keeper.ts";
import type { Card } from "../api/types.ts";
import { Copy } from "../parts/copy.tsx";
import { Icon, Knot } from "../parts/icon.tsx";
import { Time } from "../parts/time.tsx";
import { fork } from "../state/actions.ts";
import { byCall } from "../state/attention.ts";
import { filesOfCalls, lookAt } from "../state/changes.ts";
import { now } from "../state/clock.ts";
import { preview, showRaw, showTab } from "../state/details.ts";
import { shownSession } from "../state/route.ts";
import { can } from "../state/sessions.ts";
import type { Transcript } from "../state/transcript.ts";
import { Markdown } from "../text/markdown.tsx";
import { plain } from "../text/safe.ts";
import { count, dayName, exact, number, shortened, timeOfDay } from "../text/words.ts";
import { Branch } from "./branch.tsx";
import { Fray } from "./fray.tsx";
import { PartingRow } from "./parting.tsx";
import { promptName } from "./prompt_name.ts";
import type { Point, Row } from "./rows.ts";
import { Strand } from "./strand.tsx";
import { TakenRow } from "./taken_row.tsx";
import { current } from "./thread.tsx";
import { isShown, Output, openness, Tool } from "./tool.tsx";

interface RowProps {
  row: Row;
  transcript: Transcript;
  card: Card | undefined;
  isRunning: boolean;
}

/** Longer texts are cut until somebody wants them: laying them out takes longer than a frame. */
const LONG = 24_000;

export function RowView({ row, transcript, card, isRunning }: RowProps) {
  const place = `${current.value === row.number ? " current" : ""}${row.isTaken ? " taken" : ""}`;
  const about = { "data-number": row.number, "data-uuid": row.item.uuid ?? undefined };
  switch (row.kind) {
    case "day":
      return (
        <div class="day" title={exact(row.at)}>
          {dayName(row.at, now.value)}
        </div>
      );
    case "prompt":
      return (
        <article class={`row prompt${place}`} {...about} aria-label="Prompt">
          <Time at={row.item.timestamp} />
          <span class="bead" />
          <div class="said">
            <div class="words">
              <Long text={row.text} isPlain />
              {row.pictures.map((source, at) => (
                <img key={at} src={source} alt="Sent with the prompt" />
              ))}
            </div>
            <small>{row.ordinal ? `prompt ${row.ordinal}` : ""}</small>
            <Actions uuid={row.item.uuid} text={row.text} forkAfter={row.item.parent_uuid} isPrompt />
          </div>
        </article>
      );
    case "prose":
      return (
        <div class={`row prose${place}`} {...about}>
          <div class="prose-text">
            <Long text={row.text} />
          </div>
          <Actions uuid={row.item.uuid} text={row.text} forkAfter={row.item.uuid} />
        </div>
      );
    case "thinking":
      return <Thinking row={row} place={place} about={about} />;
    case "tool": {
      const result = transcript.result(row.call.id);
      const asked = byCall.value.get(row.call.id);
      const isFailed = !!result?.isError;
      const isOpen = isShown(row.call, result, isRunning);
      // While somebody is asked about it, the question stands at the end of the thread.
      if (asked?.state === "pending" && !result) return null;
      return (
        <div class={`row tool${isOpen ? " open" : ""}${isFailed ? " failed" : ""}${place}`} {...about}>
          {isFailed && <Cross />}
          <Tool
            call={row.call}
            result={result}
            directory={card?.cwd}
            uuid={row.item.uuid}
            startedAt={row.item.timestamp}
            isRunning={isRunning}
            since={result ? undefined : transcript.running.value.get(row.call.id)}
            files={filesOfCalls.value.get(row.call.id)?.length}
            readResult={resultReader(transcript, row.call.id)}
            openFiles={() => void lookAt(transcript.name, { kind: "tool", id: row.call.id })}
          />
        </div>
      );
    }
    case "strand":
      return (
        <div class={`row sub${place}`} {...about}>
          <Strand
            call={row.call}
            result={transcript.result(row.call.id)}
            transcript={transcript}
            card={card}
            isRunning={isRunning}
            item={row.item}
          />
        </div>
      );
    case "picture":
      return (
        <div class={`row prose${place}`} {...about}>
          <img src={row.source} alt="In the conversation" />
        </div>
      );
    case "other":
      return (
        <div class={`row tool${place}`} {...about}>
          <Folded sign="tool" words={row.name} text={row.json} id={row.key} />
        </div>
      );
    case "orphan":
      return (
        <div class={`row tool${place}`} {...about}>
          <Folded sign="terminal" words="the result of a call that is not here" text={row.text} id={row.key} />
        </div>
      );
    case "marker":
      return <Marker row={row} place={place} about={about} />;
    case "fray":
      return <Fray problem={row.problem} isEnd={row.isEnd} />;
    case "knot":
      return <KnotRow point={row.point} transcript={transcript} isTaken={!!row.isTaken} />;
    case "taken":
      return <TakenRow taken={row.taken} transcript={transcript} />;
    case "parting":
      return <PartingRow parting={row.parting} isTaken={!!row.isTaken} />;
    case "branch":
      return <Branch leaf={row.leaf} from={row.item.uuid ?? ""} transcript={transcript} card={card} />;
  }
}

/** Reads what Claude Code wrote beside a result; nothing while only the stream knows it. */
function resultReader(transcript: Transcript, call: string): (() => Promise<string>) | undefined {
  const item = transcript.resultItem(call);
  const uuid = item?.uuid;
  return uuid && !item.provisional ? () => raw(transcript.name, uuid) : undefined;
}

function Cross() {
  return (
    <svg class="mark" viewBox="0 0 16 16" aria-hidden="true">
      <path d="m4 4 8 8m0-8-8 8" />
    </svg>
  );
}

/** A text, or its beginning and the rest of it on demand. */
function Long({ text, isPlain = false }: { text: string; isPlain?: boolean }) {
  const [all, showAll] = useState(false);
  const shown = all || text.length <= LONG ? text : text.slice(0, LONG);
  return (
    <>
      {isPlain && !/[`*_#[|-]/.test(shown) ? <p class="as-typed">{plain(shown)}</p> : <Markdown text={shown} />}
      {shown.length < text.length && (
        <button type="button" class="text" onClick={() => showAll(true)}>
          {number(text.length - shown.length)} more characters
        </button>
      )}
    </>
  );
}

/** What can be done with a message: there on hover and focus. */
function Actions({
  uuid,
  text,
  forkAfter,
  isPrompt = false,
}: {
  uuid: string | null | undefined;
  text: string;
  /** The last message that a fork from here has. */
  forkAfter: string | null | undefined;
  isPrompt?: boolean;
}) {
  if (!uuid) return null;
  const session = shownSession.value;
  const link = `${location.pathname}${location.hash.split("&")[0]}&msg=${uuid}`;
  return (
    <span class="actions">
      <Copy text={text} label="Copy the text" words="Copy" />
      <Copy text={location.origin + link} label="Copy a link to this message" words="Link" />
      <button type="button" class="bare" title="The line as it was written" onClick={() => showRaw(uuid)}>
        Raw
      </button>
      {can("drive") && session && forkAfter && (
        <button
          type="button"
          class="bare"
          title={
            isPrompt ? "Another session that goes on before this prompt" : "Another session that goes on from here"
          }
          onClick={() => void fork(session, forkAfter)}
        >
          Fork
        </button>
      )}
    </span>
  );
}

function Folded({
  sign,
  words,
  text,
  id,
}: {
  sign: "tool" | "terminal" | "think" | "read";
  words: string;
  text: string;
  id: string;
}) {
  const isOpen = openness(id, false);
  return (
    <div class={isOpen.value ? "card" : undefined}>
      <button type="button" class="call" aria-expanded={isOpen.value} onClick={() => (isOpen.value = !isOpen.value)}>
        <Icon name={sign} />
        <span class="cut">{words}</span>
      </button>
      {isOpen.value && <Output text={text} isError={false} />}
    </div>
  );
}

function Thinking({ row, place, about }: { row: Row & { kind: "thinking" }; place: string; about: object }) {
  const isOpen = openness(row.key, false);
  const words = row.text.trim();
  if (!words) {
    return (
      <div class={`row tool${place}`} {...about}>
        <span class="call still">
          <Icon name="think" />
          <span class="cut">thought</span>
        </span>
      </div>
    );
  }
  return (
    <div class={`row tool${isOpen.value ? " opened" : ""}${place}`} {...about}>
      <button type="button" class="call" aria-expanded={isOpen.value} onClick={() => (isOpen.value = !isOpen.value)}>
        <Icon name="think" />
        <span class="cut">{isOpen.value ? "thought" : `thought: ${plain(words.split("\n", 1)[0] ?? "")}`}</span>
      </button>
      {isOpen.value && (
        <div class="thought prose-text">
          <Markdown text={words} />
        </div>
      )}
    </div>
  );
}

function Marker({ row, place, about }: { row: Row & { kind: "marker" }; place: string; about: object }) {
  const isOpen = openness(row.key, false);
  if (row.what === "error") {
    return (
      <div class={`row tool open failed${place}`} {...about}>
        <Cross />
        <div class="card failed">
          <p class="refused">{plain(row.words)}</p>
        </div>
      </div>
    );
  }
  return (
    <div class={`row marker ${row.what}${place}`} {...about}>
      <span class="notch" aria-hidden="true" />
      {row.text ? (
        <button
          type="button"
          class="text quiet"
          aria-expanded={isOpen.value}
          onClick={() => (isOpen.value = !isOpen.value)}
        >
          {plain(row.words)}
        </button>
      ) : row.what === "command" ? (
        <code>{plain(row.words)}</code>
      ) : (
        <span>{plain(row.words)}</span>
      )}
      {row.what === "compacted" && <span class="quiet"> · what came before reaches the model as a summary</span>}
      {isOpen.value && (
        <div class="thought prose-text">
          <Markdown text={row.text.slice(0, LONG)} />
        </div>
      )}
    </div>
  );
}

/** A checkpoint: what it holds on hover or focus, and the way back. */
function KnotRow({ point, transcript, isTaken }: { point: Point; transcript: Transcript; isTaken: boolean }) {
  const [isShown, show] = useState(false);
  const [isLow, sink] = useState(false);
  // It opens to the side where there is room.
  const open = (event: Event) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    sink(box.bottom > innerHeight - 320);
    show(true);
  };
  const name = promptName(transcript, point.message);
  const isOurs = point.keptBy === "rethread";
  const goBack = () => {
    if (!isOurs) return;
    show(false);
    void preview(transcript.name, point.message);
    showTab("changes");
  };
  const openDiff = () => {
    show(false);
    void lookAt(transcript.name, { kind: "turn", id: point.message });
  };
  // Before the keys of the page: what is open has them first.
  useEffect(() => {
    if (!isShown) return;
    const press = (event: KeyboardEvent) => {
      const act = { r: goBack, d: openDiff, Escape: () => show(false) }[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey || event.target instanceof HTMLTextAreaElement) return;
      event.preventDefault();
      event.stopPropagation();
      act();
    };
    addEventListener("keydown", press, true);
    return () => removeEventListener("keydown", press, true);
  }, [isShown]);
  return (
    <div class={`row knot${isShown ? " on" : ""}${isTaken ? " taken" : ""}`} onMouseLeave={() => show(false)}>
      <button
        type="button"
        class="knot-button"
        aria-expanded={isShown}
        aria-label={`Checkpoint ${isOurs ? "" : "of Claude Code's own "}before ${name}, ${count(point.files.length, "file")}`}
        onPointerEnter={(event) => event.pointerType === "mouse" && open(event)}
        onClick={(event) => {
          // Who points at it has seen what it holds; a finger or a key opens that first.
          if ((event as MouseEvent as PointerEvent).pointerType === "mouse") openDiff();
          else if (isShown) show(false);
          else open(event);
        }}
      >
        <Knot />
      </button>
      <span>
        <b>Checkpoint</b> before {name} · {count(point.files.length, "file")}
        {!isOurs && " · kept by Claude Code"}
      </span>
      {isShown && (
        <div class={isLow ? "pop above" : "pop"}>
          <header>
            <b>Before {name}</b> <span class="quiet">· {timeOfDay(point.at)}</span>
          </header>
          <ul>
            {point.files.slice(0, 8).map((path) => (
              <li key={path}>
                <code class="grow cut" title={path}>
                  {shortened(path, 44)}
                </code>
                <span class="quiet">{point.was.get(path)}</span>
              </li>
            ))}
            {point.files.length > 8 && <li class="quiet">{count(point.files.length - 8, "more file")}</li>}
          </ul>
          <footer>
            {isOurs ? (
              <button type="button" onClick={goBack} disabled={!can("checkpoints")}>
                Rewind to here <kbd>r</kbd>
              </button>
            ) : (
              <span class="quiet">Claude Code's own: its /rewind goes back to it.</span>
            )}
            <button type="button" onClick={openDiff}>
              Open diff <kbd>d</kbd>
            </button>
          </footer>
        </div>
      )}
    </div>
  );
}
