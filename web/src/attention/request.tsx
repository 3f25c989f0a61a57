/** A question that a person has to answer. It shows exactly what will run; the safe answer has the focus, and the other one
 * takes a deliberate act. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { Attention } from "../api/events.ts";
import { takeFocus } from "../parts/focus.ts";
import { Icon } from "../parts/icon.tsx";
import { decide, refusals, who } from "../state/attention.ts";
import { now } from "../state/clock.ts";
import { branchOf, cardOf, title } from "../state/sessions.ts";
import { hasHidden } from "../text/safe.ts";
import { age, exact, place } from "../text/words.ts";
import { Exact, What } from "./what.tsx";

/** How long a question is shown before it can be answered: a key that is already down is no answer. */
const ARMING = 500;
/** How long "allow" is held, and how much of that a single frame may be. */
const HOLD = 600;
const LONGEST_FRAME = 100;

function question(attention: Attention): string {
  const { tool_name: tool, cwd } = attention.shown;
  const where = cwd ? ` in ${place(cwd)}` : "";
  switch (tool) {
    case "Bash":
      return `Claude wants to run a command${where}`;
    case "Edit":
    case "MultiEdit":
    case "NotebookEdit":
      return `Claude wants to edit a file${where}`;
    case "Write":
      return `Claude wants to write a file${where}`;
    case "WebFetch":
      return "Claude wants to fetch a page";
    case "ExitPlanMode":
      return "Claude proposes a plan";
    case "AskUserQuestion":
      return "Claude has a question";
    default:
      return `Claude wants to use ${tool}${where}`;
  }
}

interface Asked {
  question?: unknown;
  options?: { label?: unknown; description?: unknown }[];
  multiSelect?: unknown;
}

/** A question with answers to choose from. */
function Answers({ attention, armed }: { attention: Attention; armed: boolean }) {
  const input = attention.shown.input as { questions?: Asked[] };
  const questions = Array.isArray(input.questions) ? input.questions : [];
  const [answers, choose] = useState<Record<string, string>>({});
  const isComplete = questions.every((it) => answers[String(it.question)]);
  return (
    <>
      <div class="answers">
        {questions.map((it, at) => {
          const name = String(it.question ?? "");
          return (
            <fieldset key={at}>
              <legend>
                <Exact text={name} />
              </legend>
              {(Array.isArray(it.options) ? it.options : []).map((option, number) => (
                <label key={number} class="pick">
                  <input
                    type={it.multiSelect ? "checkbox" : "radio"}
                    name={`${attention.shown.id}.${at}`}
                    checked={(answers[name] ?? "").split(", ").includes(String(option.label))}
                    onChange={() =>
                      choose({ ...answers, [name]: toggled(answers[name], String(option.label), !!it.multiSelect) })
                    }
                  />
                  <span>
                    <b>
                      <Exact text={String(option.label ?? "")} />
                    </b>{" "}
                    <span class="quiet">
                      <Exact text={String(option.description ?? "")} />
                    </span>
                  </span>
                </label>
              ))}
              <input
                class="other"
                placeholder="Or in your own words"
                aria-label={`${name}: in your own words`}
                onInput={(event) => choose({ ...answers, [name]: event.currentTarget.value })}
              />
            </fieldset>
          );
        })}
      </div>
      <div class="choose">
        <button
          type="button"
          disabled={!armed}
          onClick={() => void decide(attention, { decision: "deny", message: "The person would rather not answer." })}
        >
          Do not answer
        </button>
        <button
          type="button"
          class="go"
          disabled={!armed || !isComplete}
          onClick={() =>
            void decide(attention, {
              decision: "allow",
              scope: "once",
              updated_input: { ...(attention.shown.input as object), answers },
            })
          }
        >
          Answer
        </button>
      </div>
    </>
  );
}

function toggled(before: string | undefined, label: string, isMany: boolean): string {
  if (!isMany) return label;
  const all = (before ?? "").split(", ").filter(Boolean);
  return (all.includes(label) ? all.filter((it) => it !== label) : [...all, label]).join(", ");
}

/** A button that does something only when it is held: a slip is no decision. */
function Hold({
  label,
  armed,
  isLesser = false,
  act,
}: {
  label: string;
  armed: boolean;
  isLesser?: boolean;
  act: () => void;
}) {
  const [isHeld, hold] = useState(false);
  const frame = useRef(0);
  const begin = () => {
    if (!armed || frame.current) return;
    hold(true);
    let held = 0;
    let last = performance.now();
    // Only what was seen counts: a page that stutters must not take a short press for a long one.
    const count = (at: number) => {
      held += Math.min(LONGEST_FRAME, Math.max(0, at - last));
      last = at;
      if (held < HOLD) {
        frame.current = requestAnimationFrame(count);
        return;
      }
      end();
      act();
    };
    frame.current = requestAnimationFrame(count);
  };
  const end = () => {
    cancelAnimationFrame(frame.current);
    frame.current = 0;
    hold(false);
  };
  useEffect(() => end, []);
  const isKey = (event: KeyboardEvent) => event.key === "Enter" || event.key === " ";
  return (
    <button
      type="button"
      class={`hold${isHeld ? " held" : ""}${isLesser ? " lesser" : ""}`}
      disabled={!armed}
      onPointerDown={(event) => event.button === 0 && begin()}
      onPointerUp={end}
      onPointerLeave={end}
      onPointerCancel={end}
      onContextMenu={(event) => event.preventDefault()}
      onKeyDown={(event) => {
        // A key that repeats was down before.
        if (isKey(event)) {
          event.preventDefault();
          if (!event.repeat) begin();
        }
      }}
      onKeyUp={(event) => isKey(event) && end()}
      onBlur={end}
    >
      {label}
    </button>
  );
}

/** The question, or what became of it. */
export function Request({
  attention,
  isInThread = false,
  takesFocus = false,
}: {
  attention: Attention;
  isInThread?: boolean;
  takesFocus?: boolean;
}) {
  const [armed, arm] = useState(false);
  const [isSaying, say] = useState(false);
  const [reason, write] = useState("");
  const deny = useRef<HTMLButtonElement>(null);
  const { shown } = attention;
  // What is shown under the same name may become something else: then it is looked at anew.
  useEffect(() => {
    arm(false);
    const timer = setTimeout(() => arm(true), ARMING);
    return () => clearTimeout(timer);
  }, [attention.digest]);
  useEffect(() => {
    if (armed && takesFocus && !isSaying) deny.current?.focus({ preventScroll: true });
  }, [armed, takesFocus, isSaying]);
  const card = cardOf(shown.session_id);
  const refusal = refusals.value.get(shown.id);
  const isPending = attention.state === "pending";
  const isQuestion = shown.tool_name === "AskUserQuestion";
  const isPlan = shown.tool_name === "ExitPlanMode";
  const refuse = () =>
    void decide(attention, { decision: "deny", ...(reason.trim() ? { message: reason.trim() } : {}) });
  const text = JSON.stringify(shown.input);
  return (
    <div class={isPending ? "row asked" : "row asked over"} data-request={shown.id}>
      <svg class="gem" viewBox="0 0 20 20" aria-hidden="true">
        <path d="M10 .8 19.200 10 10 19.200.8 10Z" />
      </svg>
      <section class="request" aria-label={question(attention)}>
        <header>
          <h2>{question(attention)}</h2>
          <p>
            {!isInThread && card ? `${title(card)} · ` : ""}
            <span title={exact(attention.requested_at)}>
              asked{" "}
              {age(attention.requested_at, now.value) === "now"
                ? "just now"
                : `${age(attention.requested_at, now.value)} ago`}
            </span>
            {attention.repeats ? " · asked again, after the keeper restarted" : ""}
          </p>
        </header>
        {!isQuestion && <What attention={attention} />}
        <dl>
          <dt>Where</dt>
          <dd>
            <code>{shown.cwd ? place(shown.cwd) : "not said"}</code>
            {branchOf(card) ? (
              <>
                {" "}
                on <code>{branchOf(card)}</code>
              </>
            ) : null}
          </dd>
          <dt>Who</dt>
          <dd>{shown.agent_id ? `a subagent, ${shown.agent_id}` : "the main thread, not a subagent"}</dd>
          {shown.description && (
            <>
              <dt>Why</dt>
              <dd>
                <Exact text={shown.description} /> <span class="quiet">(says the model)</span>
              </dd>
            </>
          )}
          <dt>Note</dt>
          <dd class={hasHidden(text) || attention.hidden_characters ? "bad" : undefined}>
            {hasHidden(text) || attention.hidden_characters
              ? "There are hidden characters in it; they are shown as their codes."
              : "No hidden characters."}
          </dd>
        </dl>
        {refusal && (
          <p class="refused" role="status">
            {refusal}
          </p>
        )}
        {!isPending ? (
          <p class="outcome" role="status">
            <Icon name={attention.state === "allowed" ? "ok" : attention.state === "denied" ? "failed" : "pending"} />
            {OUTCOMES[attention.state]} {attention.decided_by ? `by ${who(attention.decided_by)}` : ""}
          </p>
        ) : isQuestion ? (
          <Answers attention={attention} armed={armed} />
        ) : (
          <div class="choose">
            {isSaying ? (
              <input
                class="why"
                ref={takeFocus}
                placeholder="What Claude should do instead"
                aria-label="What Claude should do instead"
                value={reason}
                onInput={(event) => write(event.currentTarget.value)}
                onKeyDown={(event) => event.key === "Enter" && refuse()}
              />
            ) : null}
            <button type="button" ref={deny} disabled={!armed} onClick={refuse}>
              {isPlan ? "Keep planning" : "Deny"}
            </button>
            <Hold
              label={isPlan ? "Hold to begin" : "Hold to allow once"}
              armed={armed}
              act={() => void decide(attention, { decision: "allow", scope: "once" })}
            />
            <button type="button" class="bare lesser" onClick={() => say(!isSaying)}>
              {isPlan
                ? isSaying
                  ? "Say nothing"
                  : "Say what to change"
                : isSaying
                  ? "Deny without a word"
                  : "Deny and say why"}
            </button>
            {!isPlan && (
              <Hold
                label="Hold to allow for session"
                isLesser
                armed={armed}
                act={() => void decide(attention, { decision: "allow", scope: "session" })}
              />
            )}
          </div>
        )}
      </section>
    </div>
  );
}

export const OUTCOMES: Record<Attention["state"], string> = {
  pending: "Waiting",
  allowed: "Allowed",
  denied: "Denied",
  withdrawn: "No longer asked",
  lost: "Lost when the keeper stopped",
};
