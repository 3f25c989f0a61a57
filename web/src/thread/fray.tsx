/** A place where the file cannot be read: the thread frays, what stands there is shown, and both sides stay. */

import type { Excerpt, ProblemItem } from "../api/types.ts";
import { Copy } from "../parts/copy.tsx";
import { showBytes } from "../state/details.ts";
import { plain } from "../text/safe.ts";
import { number, size } from "../text/words.ts";

const UP = (
  <svg class="up" viewBox="0 0 24 40" aria-hidden="true">
    <path d="M12 0v9" />
    <path
      class="thin"
      d="M11.500 8c.5 9-3 11-6 15M12 8c-.5 10-2 14-1.500 26M12 8c1 9 3.500 12 3 21M12.500 8c.5 5 3 8 7 9.500"
    />
  </svg>
);
const DOWN = (
  <svg class="down" viewBox="0 0 24 40" aria-hidden="true">
    <path d="M12 40V30" />
    <path
      class="thin"
      d="M11.500 31c0-7-2-9-5.500-12M12 31c.5-9-.5-15-2.500-22M12 31c0-8 2-12 2-19M12.500 31c0-5 3-7 5-12"
    />
  </svg>
);

/** What happened to the file there, as a sentence. */
export function damageWords(problem: ProblemItem, isEnd: boolean): string {
  const at = number(problem.offset);
  if (isEnd && problem.kind === "torn_tail")
    return `The file ends in the middle of a line (byte ${at}). The program stopped while writing it.`;
  const what = problem.excerpt ? "This line of the session file" : "This part of the session file";
  return `${what} is damaged (byte ${at}). Everything else is shown.`;
}

/** Where it is and what is wrong with it, in few words. */
export function damageFacts(problem: ProblemItem): string {
  const { excerpt } = problem;
  const zeros = excerpt?.zeros ? `${number(excerpt.zeros)} of them zero` : "";
  const bytes = [size(problem.length), zeros].filter(Boolean).join(", ");
  const reason = problem.kind === "nul_run" && zeros ? "" : problem.reason;
  return [excerpt ? `line ${number(excerpt.line)}` : "", bytes, reason].filter(Boolean).join(" · ");
}

/** What stands in a damaged line. */
export function Bytes({ excerpt }: { excerpt: Excerpt }) {
  return (
    <pre class="bytes" tabIndex={0}>
      {excerpt.pieces.map((piece, at) =>
        piece.damaged ? <mark key={at}>{plain(piece.text)}</mark> : <span key={at}>{plain(piece.text)}</span>,
      )}
    </pre>
  );
}

export function Fray({ problem, isEnd }: { problem: ProblemItem; isEnd: boolean }) {
  return (
    <div class={isEnd ? "row fray" : "row fray gap"} data-problem={problem.offset}>
      {UP}
      <div class="card">
        <p>{damageWords(problem, isEnd)}</p>
        {problem.excerpt && <Bytes excerpt={problem.excerpt} />}
        <footer>
          <span class="grow cut" title={plain(damageFacts(problem))}>
            {plain(damageFacts(problem))}
          </span>
          {problem.length > 0 && (
            <button
              type="button"
              class="bare"
              title="The bytes of the file, as they are"
              onClick={() => showBytes(problem.offset, problem.length)}
            >
              Raw bytes
            </button>
          )}
          <Copy text={String(problem.offset)} label="Copy the place in the file" words="Copy offset" />
        </footer>
      </div>
      {!isEnd && DOWN}
    </div>
  );
}
