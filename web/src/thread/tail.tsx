/** The end of the thread: what is being said, asked, sent, or what came to nothing. */

import { useEffect, useState } from "preact/hooks";
import type { Partial } from "../api/events.ts";
import type { Card } from "../api/types.ts";
import { Request } from "../attention/request.tsx";
import { Icon } from "../parts/icon.tsx";
import { pending } from "../state/attention.ts";
import { problems } from "../state/details.ts";
import { source } from "../state/pictures.ts";
import type { Optimistic, Transcript } from "../state/transcript.ts";
import { Markdown } from "../text/markdown.tsx";
import { plain } from "../text/safe.ts";
import { Fray } from "./fray.tsx";
import { between } from "./rows.ts";

/** A text that grows: rendered at most once a frame, and only its last block anew. */
function Growing({ transcript }: { transcript: Transcript }) {
  const [shown, show] = useState(transcript.partial.peek());
  useEffect(() => {
    let frame = 0;
    const length = (it: Partial | undefined) => it?.blocks.reduce((sum, block) => sum + block.text.length, 0) ?? 0;
    let before = length(transcript.partial.peek());
    const stop = transcript.partial.subscribe((partial) => {
      const isShorter = length(partial) < before;
      before = length(partial);
      // What has arrived whole is not shown twice, not even for a frame.
      if (isShorter) {
        show(partial);
        return;
      }
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        show(transcript.partial.peek());
      });
    });
    return () => {
      stop();
      cancelAnimationFrame(frame);
    };
  }, [transcript]);
  return (
    <>
      {shown?.blocks.map((block, at) => {
        if (!block.text) return null;
        if (block.kind === "text") {
          return (
            <div key={at} class="row prose streaming" aria-live="off">
              <div class="prose-text">
                <Markdown text={block.text} />
              </div>
            </div>
          );
        }
        const isThought = block.kind === "thinking";
        return (
          <div key={at} class="row tool">
            <span class="call still">
              <Icon name={isThought ? "think" : "tool"} />
              <span class="cut">
                {isThought ? `thinking: ${plain(block.text.slice(-160))}` : "preparing a tool call"}
              </span>
            </span>
          </div>
        );
      })}
    </>
  );
}

function Mine({ mine, transcript }: { mine: Optimistic; transcript: Transcript }) {
  return (
    <article class={`row prompt mine ${mine.state}`} data-optimistic={mine.uuid}>
      <span class="bead" />
      <div class="said">
        <div class="words">
          <p class="as-typed">{mine.text}</p>
          {mine.pictures.map((it, at) => (
            <img key={at} src={source(it)} alt="Sent with the prompt" />
          ))}
        </div>
        <small aria-live="polite">
          {mine.state === "sending" ? "sending" : mine.state === "sent" ? "sent" : "not sent"}
        </small>
      </div>
      {mine.state === "failed" && (
        <p class="refused" role="alert">
          {mine.problem?.message ?? "It could not be sent."}{" "}
          {mine.problem?.problem.hint && <span class="quiet">{mine.problem.problem.hint}</span>}{" "}
          <button type="button" class="text" onClick={() => void transcript.deliver(mine, false)}>
            Send again
          </button>{" "}
          <button type="button" class="text" onClick={() => transcript.withdraw(mine.uuid)}>
            Discard
          </button>
        </p>
      )}
    </article>
  );
}

export function Tail({
  transcript,
  card,
  isEmpty,
}: {
  transcript: Transcript;
  card: Card | undefined;
  isEmpty: boolean;
}) {
  const last = transcript.item(transcript.total.value - 1);
  const torn = last || isEmpty ? between(problems.value, last, undefined) : [];
  const asked = pending.value.filter((it) => it.shown.session_id === card?.session_id);
  const isRunning = card?.state === "running" || transcript.turnSince.value !== undefined;
  const ending = transcript.ending.value;
  return (
    <>
      {torn.map((problem) => (
        <Fray key={problem.offset} problem={problem} isEnd />
      ))}
      {transcript.optimistic.value.map((mine) => (
        <Mine key={mine.uuid} mine={mine} transcript={transcript} />
      ))}
      <Growing transcript={transcript} />
      {asked.map((it) => (
        <Request key={it.shown.id} attention={it} isInThread />
      ))}
      {ending?.kind === "failed" && (
        <div class="row tool open failed" role="alert">
          <svg class="mark" viewBox="0 0 16 16" aria-hidden="true">
            <path d="m4 4 8 8m0-8-8 8" />
          </svg>
          <div class="card failed">
            <p class="refused">The turn failed. {plain(ending.why)}</p>
          </div>
        </div>
      )}
      {ending?.kind === "interrupted" && (
        <div class="row marker interrupted">
          <span class="notch" aria-hidden="true" />
          <span>Interrupted</span>
        </div>
      )}
      {isRunning && asked.length === 0 && (
        <div class="row live">
          <svg class="tip" viewBox="0 0 16 28" aria-hidden="true">
            <path d="M8 0v20" />
            <circle cx="8" cy="24" r="3" />
          </svg>
          <span class="vh" role="status">
            Claude is working
          </span>
        </div>
      )}
      {!isRunning && asked.length === 0 && torn.length === 0 && !isEmpty && (
        <div class="row rest">
          <span class="stop" aria-hidden="true" />
        </div>
      )}
    </>
  );
}
