/** What is damaged in a session, what is not, and what can be done about it. */

import type { Card, ProblemItem } from "../api/types.ts";
import { Copy } from "../parts/copy.tsx";
import { Icon } from "../parts/icon.tsx";
import { fork } from "../state/actions.ts";
import { checkpoints, isChecked, lines, problems, showBytes } from "../state/details.ts";
import { can } from "../state/sessions.ts";
import type { Transcript } from "../state/transcript.ts";
import { plain } from "../text/safe.ts";
import { count, number } from "../text/words.ts";
import { goToProblem, nextProblem } from "./session.tsx";

/** A place, in the words of a list. */
export function problemName(problem: ProblemItem): string {
  const { excerpt, kind } = problem;
  if (!excerpt) return problem.reason;
  const line = number(excerpt.line);
  if (kind === "torn_tail") return `Torn end, line ${line}`;
  if (kind === "lone_surrogate") return `Half a character, line ${line}`;
  return `Damaged line ${line}`;
}

/** Whether every message says what it follows: then the conversation is whole but for what is damaged. */
export function chainWords(all: ProblemItem[]): string {
  const broken = all.filter((it) => it.kind === "dangling_parent" || it.kind === "cycle").length;
  if (broken === 0) return "unbroken by parent ids";
  return `${count(broken, "message")} put after the one before ${broken === 1 ? "it" : "them"} in the file`;
}

export function ProblemPanel({ transcript, card }: { transcript: Transcript; card: Card | undefined }) {
  const all = problems.value;
  const report = JSON.stringify({ session: card?.session_id, health: card?.health, problems: all }, null, 2);
  return (
    <>
      <section>
        <h2>
          Problems <span class="quiet">{all.length || ""}</span>
        </h2>
        {all.length === 0 && (
          <p class="quiet">
            {isChecked.value ? "Every line was checked; all of them can be read." : "Checking every line."}
          </p>
        )}
        <ul class="files two">
          {all.slice(0, 100).map((it) => (
            <li key={`${it.offset}.${it.kind}`} class={it.damage ? undefined : "quiet"}>
              <Icon name={it.damage ? "damaged" : "idle"} tone={it.damage ? "bad" : undefined} />
              <button type="button" class="place" title={plain(it.reason)} onClick={() => goToProblem(it.offset)}>
                {plain(problemName(it))}
              </button>
              <code class="quiet">byte {number(it.offset)}</code>
            </li>
          ))}
        </ul>
        {all.length > 100 && <p class="quiet">{number(all.length - 100)} more</p>}
      </section>
      {all.length > 0 && (
        <>
          <Whole all={all} />
          <section>
            <h2>What you can do</h2>
            <div class="acts column">
              <button type="button" class="bare" onClick={nextProblem}>
                <Icon name="down" /> Go to the next <kbd>p</kbd>
              </button>
              {can("drive") && (
                <button
                  type="button"
                  class="bare"
                  title="Another session with every message that can be read, and nothing else"
                  onClick={() => void fork(transcript.name)}
                >
                  <Icon name="fork" /> Fork a clean copy <kbd>f</kbd>
                </button>
              )}
              <button type="button" class="bare" onClick={() => showBytes(all[0]?.offset ?? 0, all[0]?.length || 4096)}>
                <Icon name="read" /> Look at the bytes
              </button>
              <Copy text={report} label="Copy a report for a bug" words="Copy a report for a bug" sign="copy" />
            </div>
          </section>
        </>
      )}
    </>
  );
}

/** What the damage has left alone. */
function Whole({ all }: { all: ProblemItem[] }) {
  const total = lines.value;
  const damaged = new Set(all.filter((it) => it.damage && it.excerpt).map((it) => it.excerpt?.line)).size;
  const kept = checkpoints.value.length;
  return (
    <section>
      <h2>What is whole</h2>
      <dl class="facts">
        {total !== undefined && (
          <>
            <dt>Lines</dt>
            <dd>
              {number(total - damaged)} of {number(total)}
            </dd>
          </>
        )}
        <dt>Chain</dt>
        <dd>{chainWords(all)}</dd>
        <dt>Files</dt>
        <dd>{kept > 0 ? `${count(kept, "checkpoint")}, kept elsewhere` : "no checkpoints"}</dd>
      </dl>
    </section>
  );
}
