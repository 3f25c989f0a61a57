/** Going back, as a conversation: what would change, then doing it, then a receipt with the way forward again. */

import { useEffect, useState } from "preact/hooks";
import type { Rewind } from "../api/events.ts";
import { Icon } from "../parts/icon.tsx";
import { fork, openFork } from "../state/actions.ts";
import { diffSince } from "../state/changes.ts";
import { preview, type RewindState, rewind, rewinding, undoRewind } from "../state/details.ts";
import type { Transcript } from "../state/transcript.ts";
import { plain } from "../text/safe.ts";
import { unified } from "../text/unified_diff.ts";
import { count, shortened } from "../text/words.ts";
import { promptName } from "../thread/prompt_name.ts";
import { DiffView } from "../thread/tool.tsx";
import { languageOf } from "../thread/tool_words.ts";

const ACTIONS: Record<string, string> = {
  restore: "put back",
  create: "bring back",
  remove: "remove; it did not exist then",
};
const DONE: Record<string, string> = { restore: "put back", create: "brought back", remove: "removed, kept for undo" };

/** Conflicts that are not what conflicts usually are. */
const REASONS: Record<string, string> = {
  blocked: "conflict: something is in its place",
  unknown: "conflict: what it was, or is, nobody knows",
  missing: "conflict: how it was is no longer kept",
};

function sentence(words: string): string {
  const text = plain(words).trim();
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
}

/** What putting a file back would undo: everything since then, whoever did it. */
function AtStake({ session, to, path }: { session: string; to: string; path: string }) {
  const [diff, put] = useState<string | null | undefined>(undefined);
  useEffect(() => {
    let isWanted = true;
    diffSince(session, to, path).then(
      (found) => isWanted && put(found),
      () => isWanted && put(null),
    );
    return () => {
      isWanted = false;
    };
  }, [session, to, path]);
  if (!diff) return null;
  return (
    <>
      <p class="quiet">Putting it back would undo all of this, whoever did it:</p>
      <DiffView diff={unified(diff)} language={languageOf(path)} />
    </>
  );
}

function Steps({ plan, words, isDone }: { plan: Rewind; words: Record<string, string>; isDone: boolean }) {
  return (
    <>
      {plan.steps.map((step) => (
        <div key={step.path}>
          <Icon name={isDone ? "ok" : step.action === "remove" ? "read" : "edit"} tone={isDone ? "good" : undefined} />
          <code class="cut" title={step.path}>
            {shortened(step.path, 34)}
          </code>
          <span class="quiet">{words[step.action] ?? step.action}</span>
          <span>
            {step.insertions ? <span class="plus">+{step.insertions}</span> : null}{" "}
            {step.deletions ? <span class="minus">−{step.deletions}</span> : null}
          </span>
        </div>
      ))}
    </>
  );
}

async function rewindAndFork(state: RewindState): Promise<void> {
  await rewind(state, true);
  const made = rewinding.value?.receipt?.fork;
  if (made) openFork(made);
}

export function RewindPanel({ state, transcript }: { state: RewindState; transcript: Transcript }) {
  const close = () => (rewinding.value = undefined);
  const { plan, receipt } = state;
  const number = transcript.numberOf(state.to);
  const parent = number === undefined ? undefined : transcript.item(number)?.parent_uuid;
  if (receipt) return <Receipt state={state} close={close} />;
  const conflicts = plan?.result.conflicts ?? [];
  const skipped = plan?.result.skipped ?? [];
  const left = [...state.choices].filter(([, choice]) => choice === "leave").map(([path]) => path);
  const open = conflicts.filter((it) => !state.choices.has(it.path));
  const choose = (path: string, choice: "leave" | "force") =>
    void preview(state.session, state.to, new Map(state.choices).set(path, choice));
  return (
    <section class="plan">
      <h2 class="step">Rewind to before {promptName(transcript, state.to)}</h2>
      {!plan && !state.problem && <p class="quiet">Comparing files.</p>}
      {plan && (
        <p class="sum">
          {plan.steps.length === 0 && conflicts.length === 0
            ? "Every file is already as it was then."
            : `${count(plan.steps.length, "file")} would go back to how ${plan.steps.length === 1 ? "it was" : "they were"}.`}{" "}
          {open.length > 0 &&
            `${count(open.length, "file")} ${open.length === 1 ? "is" : "are"} in conflict and ${open.length === 1 ? "needs" : "need"} your choice.`}{" "}
          Nothing has changed yet.
        </p>
      )}
      {plan && (plan.steps.length > 0 || conflicts.length > 0 || left.length > 0 || skipped.length > 0) && (
        <div class="tbl">
          <Steps plan={plan} words={ACTIONS} isDone={false} />
          {[...new Set([...conflicts.map((it) => it.path), ...state.choices.keys()])].map((path) => {
            const conflict = conflicts.find((it) => it.path === path);
            const choice = state.choices.get(path);
            return (
              <div key={path} class="clash">
                <Icon name="waiting" />
                <code class="cut" title={path}>
                  {shortened(path, 34)}
                </code>
                <b class="wait">{REASONS[conflict?.reason ?? ""] ?? "conflict: somebody else changed it since"}</b>
                <span />
                <div class="why">
                  {conflict && <p>{sentence(conflict.because)}</p>}
                  <AtStake session={state.session} to={state.to} path={path} />
                  <label class="pick">
                    <input
                      type="radio"
                      name={path}
                      checked={choice === "leave"}
                      onChange={() => choose(path, "leave")}
                    />{" "}
                    Leave it as it is now
                  </label>
                  <label class="pick">
                    <input
                      type="radio"
                      name={path}
                      disabled={!!REASONS[conflict?.reason ?? ""]}
                      checked={choice === "force"}
                      onChange={() => choose(path, "force")}
                    />{" "}
                    Put it back anyway; the present version is saved first
                  </label>
                </div>
              </div>
            );
          })}
          {skipped.map((it) => (
            <div key={it.path}>
              <Icon name="pending" />
              <code class="cut">{shortened(it.path, 34)}</code>
              <span class="quiet">
                left out{it.because || it.reason ? `: ${plain(it.because ?? it.reason ?? "")}` : ""}
              </span>
              <span />
            </div>
          ))}
        </div>
      )}
      {(plan?.result.incomplete ?? []).map((words) => (
        <p key={words} class="quiet">
          May not be everything: {plain(words)}
        </p>
      ))}
      {state.problem && (
        <p class="refused" role="alert">
          {state.problem.message}{" "}
          {state.problem.problem.hint && <span class="quiet">{state.problem.problem.hint}</span>}
        </p>
      )}
      <div class="acts">
        <button
          type="button"
          class="go"
          disabled={!plan || state.isBusy || open.length > 0 || plan.steps.length === 0}
          onClick={() => void rewind(state)}
        >
          {plan ? `Rewind ${count(plan.steps.length, "file")}` : "Rewind"}
        </button>
        {number !== 0 && (
          <button
            type="button"
            title="Files go back, and another session goes on before this prompt, so that both agree"
            disabled={!plan || state.isBusy || open.length > 0 || plan.steps.length === 0}
            onClick={() => void rewindAndFork(state)}
          >
            Rewind and fork
          </button>
        )}
        {parent && (
          <button
            type="button"
            title="Files stay as they are; another session goes on before this prompt"
            onClick={() => {
              close();
              void fork(state.session, parent);
            }}
          >
            Fork from here instead
          </button>
        )}
        <button
          type="button"
          class="bare"
          onClick={() => void preview(state.session, state.to, state.choices)}
          disabled={state.isBusy}
        >
          Look again
        </button>
        <button type="button" class="bare" onClick={close}>
          Close
        </button>
      </div>
      <p class="quiet">
        Undo stays available. A rewind never touches <code>.git</code>, files this session did not record, or anything
        outside its folder.
      </p>
    </section>
  );
}

function Receipt({ state, close }: { state: RewindState; close: () => void }) {
  const { receipt } = state;
  if (!receipt) return null;
  return (
    <section class="plan">
      <h2 class="step">{state.isUndone ? "Undone" : `Rewound ${count(receipt.steps.length, "file")}`}</h2>
      <p class="sum">
        {state.isUndone ? "Every file is as it was before the rewind." : "Done, and read back from disk."}
      </p>
      <div class="tbl">
        <Steps plan={receipt} words={DONE} isDone={!state.isUndone} />
        {[...state.choices].map(([path, choice]) => (
          <div key={path}>
            <Icon name="idle" />
            <code class="cut">{shortened(path, 34)}</code>
            <span class="quiet">{choice === "leave" ? "left as it is, as you chose" : "put back, as you chose"}</span>
            <span />
          </div>
        ))}
      </div>
      {state.problem && (
        <p class="refused" role="alert">
          {state.problem.message}
        </p>
      )}
      <div class="acts">
        {!state.isUndone && receipt.undo && (
          <button type="button" disabled={state.isBusy} onClick={() => void undoRewind(state)}>
            <Icon name="back" /> Undo
          </button>
        )}
        <button type="button" class="bare" onClick={close}>
          Close
        </button>
        {receipt.result.receipt && <code class="quiet cut">receipt {receipt.result.receipt.slice(0, 13)}</code>}
      </div>
    </section>
  );
}
