/** A tool call: one line until it is opened, and never folded when it failed. */

import { type Signal, signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Copy } from "../parts/copy.tsx";
import { Icon } from "../parts/icon.tsx";
import { showRaw } from "../state/details.ts";
import { Coloured } from "../text/code.tsx";
import { firstLineOf, numberedFrom } from "../text/edit_place.ts";
import type { Diff } from "../text/line_diff.ts";
import { Markdown } from "../text/markdown.tsx";
import { plain } from "../text/safe.ts";
import { count, duration, number } from "../text/words.ts";
import type { ToolResult, ToolUse } from "./blocks.ts";
import { edits, languageOf, outcome, words } from "./tool_words.ts";

const opened = new Map<string, Signal<boolean>>();

/** Whether something is open; remembered while it is scrolled out of sight. */
export function openness(key: string, usual: boolean): Signal<boolean> {
  let known = opened.get(key);
  if (!known) {
    known = signal(usual);
    opened.set(key, known);
  }
  return known;
}

const EDITS = ["Edit", "MultiEdit", "Write", "NotebookEdit"];

/** Whether a call shows more than its line: when somebody opened it, when it failed, and a command while it runs. An edit that
 * was seen while it happened stays open. */
export function isShown(call: ToolUse, result: ToolResult | undefined, isRunning: boolean): boolean {
  const isLive = isRunning && !result;
  const isOpen = openness(call.id, isLive && EDITS.includes(call.name)).value;
  return isOpen || !!result?.isError || (isLive && call.name === "Bash");
}

/** How many lines of a long output are shown at its head and tail. */
const HEAD = 4;
const TAIL = 9;

const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** A program's output: head and tail of a long one, all of it on demand. */
export function Output({ text: whole, isError }: { text: string; isError: boolean }) {
  const [all, showAll] = useState(false);
  const lines = useMemo(() => plain(whole).replace(/\n$/, "").split("\n"), [whole]);
  if (whole.trim() === "") return <p class="nothing">no output</p>;
  const hidden = lines.length - HEAD - TAIL;
  const cut = (some: string[]) =>
    some.map((line) => (line.length > 5000 && !all ? `${line.slice(0, 5000)}…` : line)).join("\n");
  if (all || hidden < 4) {
    return (
      <pre class={isError ? "out bad-text" : "out"} tabIndex={0}>
        {cut(lines)}
      </pre>
    );
  }
  return (
    <pre class="out cut-short" tabIndex={0}>
      {cut(lines.slice(0, HEAD))}
      <span class="more">
        {number(hidden)} more lines
        <button type="button" class="text" onClick={() => showAll(true)}>
          Show all
        </button>
      </span>
      {cut(lines.slice(-TAIL))}
    </pre>
  );
}

/** What changed: number, number, mark, text. */
export function DiffView({ diff, language }: { diff: Diff; language?: string | undefined }) {
  const [all, showAll] = useState(false);
  const lines = all ? diff.lines : diff.lines.slice(0, 200);
  return (
    <div class="diff" tabIndex={0} role="group" aria-label={`${diff.added} lines added, ${diff.removed} removed`}>
      {lines.map((line, at) => {
        if (line.mark === "@") {
          return (
            <div key={at} class="h">
              {line.words[0]?.text}
            </div>
          );
        }
        const kind = line.mark === "+" ? "a" : line.mark === "-" ? "d" : "";
        return (
          <div key={at} class={kind}>
            <i>{line.before}</i>
            <i>{line.after}</i>
            <i>{line.mark === "-" ? "−" : line.mark}</i>
            <span>
              {line.words.map((word, place) =>
                word.changed ? (
                  <b key={place}>{plain(word.text)}</b>
                ) : line.words.length === 1 ? (
                  <Coloured key={place} text={plain(word.text)} language={language} />
                ) : (
                  plain(word.text)
                ),
              )}
            </span>
          </div>
        );
      })}
      {lines.length < diff.lines.length && (
        <div class="h">
          <button type="button" class="text" onClick={() => showAll(true)}>
            {number(diff.lines.length - lines.length)} more lines
          </button>
        </div>
      )}
    </div>
  );
}

/** The to-do list, the questions, the plan: what a person reads rather than JSON. */
function Input({ call }: { call: ToolUse }): ComponentChildren {
  const { input } = call;
  if (call.name === "Bash") {
    const command = text(input.command);
    return (
      <div class="in">
        <pre tabIndex={0}>
          <Coloured text={plain(command)} language="bash" />
        </pre>
        <Copy text={command} label="Copy the command" />
      </div>
    );
  }
  if (call.name === "TodoWrite" && Array.isArray(input.todos)) {
    return (
      <ul class="todos">
        {(input.todos as { content?: unknown; status?: unknown }[]).map((todo, at) => (
          <li key={at} class={String(todo?.status)}>
            <Icon name={todo?.status === "completed" ? "ok" : todo?.status === "in_progress" ? "running" : "idle"} />
            <span>{plain(text(todo?.content))}</span>
            <span class="vh">{String(todo?.status).replace("_", " ")}</span>
          </li>
        ))}
      </ul>
    );
  }
  if (call.name === "ExitPlanMode") {
    return (
      <div class="plan-text prose-text">
        <Markdown text={text(input.plan)} />
      </div>
    );
  }
  if (call.name === "AskUserQuestion" && Array.isArray(input.questions)) {
    return (
      <div class="questions">
        {(input.questions as { question?: unknown; options?: { label?: unknown; description?: unknown }[] }[]).map(
          (it, at) => (
            <div key={at}>
              <p>{plain(text(it?.question))}</p>
              <ul>
                {(Array.isArray(it?.options) ? it.options : []).map((option, place) => (
                  <li key={place}>
                    <b>{plain(text(option?.label))}</b> {plain(text(option?.description))}
                  </li>
                ))}
              </ul>
            </div>
          ),
        )}
      </div>
    );
  }
  if (["Read", "Grep", "Glob", "LS"].includes(call.name)) return null;
  return (
    <div class="in">
      <pre tabIndex={0}>{plain(JSON.stringify(input, null, 2))}</pre>
    </div>
  );
}

interface ToolProps {
  call: ToolUse;
  result: ToolResult | undefined;
  directory: string | null | undefined;
  uuid: string | null | undefined;
  startedAt: string | null | undefined;
  isRunning: boolean;
  /** Since when it runs, if the agent said so. */
  since?: number | undefined;
  /** How many files it left changed, and a way to look at them. */
  files?: number | undefined;
  openFiles?: (() => void) | undefined;
  /** Reads the line of its result as it was written. */
  readResult?: (() => Promise<string>) | undefined;
}

/** How long something has been running; a moment is nothing to tell of. */
function Running({ since }: { since: number }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((it) => it + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  const elapsed = Date.now() - since;
  return elapsed >= 2000 ? <span class="elapsed">{duration(elapsed)}</span> : null;
}

/** How long a call took; nothing where that is too short to matter. */
function took(startedAt: string | null | undefined, result: ToolResult | undefined): string {
  const from = Date.parse(startedAt ?? "");
  const to = Date.parse(result?.timestamp ?? "");
  return to - from >= 2000 ? duration(to - from) : "";
}

const isDenied = (result: ToolResult | undefined): boolean =>
  !!result?.isError &&
  /^(The user doesn't want|Permission to use|User rejected|Tool permission request failed)/.test(result.text);

/** The diff of an edit, with the numbers of its file as soon as they are known. */
function useNumbers(diff: Diff | undefined, before: string, readResult: ToolProps["readResult"]): Diff | undefined {
  const [first, place] = useState<number | undefined>(undefined);
  const isWanted = !!readResult;
  useEffect(() => {
    if (!readResult) return;
    let isHere = true;
    readResult().then(
      (line) => isHere && place(firstLineOf(line, before)),
      // Without them the lines are counted from the first that is shown.
      () => undefined,
    );
    return () => {
      isHere = false;
    };
  }, [isWanted]);
  return useMemo(() => (diff && first !== undefined ? numberedFrom(diff, first) : diff), [diff, first]);
}

export function Tool(props: ToolProps) {
  const { call, result, directory, uuid, startedAt, isRunning, since, files, openFiles, readResult } = props;
  const isFailed = !!result?.isError;
  const shown = isShown(call, result, isRunning);
  const isOpen = openness(call.id, false);
  const about = words(call, directory, !isRunning || !!result);
  // What changed within lines takes long to find, and a line that is folded does not show it.
  const diff = useMemo(() => edits(call, shown ? "shown" : "counted"), [call, shown]);
  const isPlaced = shown && call.name === "Edit" && !!result && !isFailed;
  const placed = useNumbers(diff, text(call.input.old_string), isPlaced ? readResult : undefined);
  const path = text(call.input.file_path);
  const line = (
    <button
      type="button"
      class="call"
      aria-expanded={shown}
      disabled={isFailed}
      onClick={() => (isOpen.value = !shown)}
    >
      <Icon name={about.sign} />
      <span class="cut">
        {about.verb} {about.object && <code>{plain(about.object)}</code>} {about.rest && plain(about.rest)}
      </span>
      <span class="end">
        {diff && (diff.added > 0 || diff.removed > 0) && (
          <span class="counts">
            {diff.added > 0 && <span class="plus">+{diff.added}</span>}{" "}
            {diff.removed > 0 && <span class="minus">−{diff.removed}</span>}
          </span>
        )}
        {[took(startedAt, result), result ? outcome(call, result) : ""].filter(Boolean).join(" · ")}
        {isFailed ? (
          <>
            <b class="bad">{isDenied(result) ? "denied" : "failed"}</b>
            <Icon name="failed" tone="bad" />
          </>
        ) : result ? (
          (diff || call.name === "Bash") && <Icon name="ok" tone="good" />
        ) : isRunning ? (
          <>
            <Running since={since ?? (Date.parse(startedAt ?? "") || Date.now())} />
            <Icon name="running" tone="accent" />
          </>
        ) : (
          <span>no answer</span>
        )}
      </span>
    </button>
  );
  if (!shown) return line;
  return (
    <div class={isFailed ? "card failed" : "card"}>
      {line}
      {placed ? <DiffView diff={placed} language={languageOf(path)} /> : <Input call={call} />}
      {result && !(diff && !isFailed) && <Output text={result.text} isError={isFailed} />}
      {result?.pictures.map((source, at) => (
        <img key={at} src={source} alt={`Shown by ${call.name}`} />
      ))}
      <footer>
        <span class="grow cut" title={path || undefined}>
          {call.name}
          {result && result.text.length > 20_000 ? ` · ${number(result.text.length)} characters` : ""}
        </span>
        {files ? (
          <button type="button" class="bare" title="What it did to files" onClick={openFiles}>
            {count(files, "file")} changed
          </button>
        ) : null}
        {result?.text && <Copy text={plain(result.text)} label="Copy the output" words="Copy output" />}
        {uuid && (
          <button type="button" class="bare" onClick={() => showRaw(uuid)}>
            Raw
          </button>
        )}
      </footer>
    </div>
  );
}
