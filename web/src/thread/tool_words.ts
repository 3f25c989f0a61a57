/** What a tool call is, in plain words: one line each. */

import type { Sign } from "../parts/icon.tsx";
import { compare, type Depth, type Diff } from "../text/line_diff.ts";
import { count, firstLine, within } from "../text/words.ts";
import type { ToolResult, ToolUse } from "./blocks.ts";

/** A line about a call: a verb, what it was about, and something more. */
export interface Words {
  sign: Sign;
  verb: string;
  /** Shown as code. */
  object?: string | undefined;
  rest?: string | undefined;
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** The words for a call; `isDone` chooses between "ran" and "running". */
export function words(call: ToolUse, directory: string | null | undefined, isDone: boolean): Words {
  const { input } = call;
  const path = () => within(text(input.file_path) || text(input.notebook_path) || text(input.path), directory);
  const verb = (done: string, now: string) => (isDone ? done : now);
  switch (call.name) {
    case "Bash":
    case "PowerShell": {
      const description = text(input.description);
      const ran = description.match(/^runs? (.+)/i)?.[1];
      if (ran) return { sign: "terminal", verb: verb("ran", "running"), rest: ran };
      return { sign: "terminal", verb: verb("ran", "running"), object: firstLine(text(input.command)) };
    }
    case "BashOutput":
    case "TaskOutput":
      return {
        sign: "terminal",
        verb: verb("looked at the output of", "looking at the output of"),
        object: text(input.bash_id) || text(input.task_id),
      };
    case "KillShell":
    case "KillBash":
      return { sign: "terminal", verb: "stopped", object: text(input.shell_id) };
    case "Read":
      return { sign: "read", verb: verb("read", "reading"), object: path() };
    case "NotebookRead":
      return { sign: "read", verb: verb("read", "reading"), object: path() };
    case "Edit":
    case "MultiEdit":
    case "NotebookEdit":
      return { sign: "edit", verb: verb("edited", "editing"), object: path() };
    case "Write":
      return { sign: "edit", verb: verb("wrote", "writing"), object: path() };
    case "Grep":
      return {
        sign: "find",
        verb: verb("searched", "searching"),
        object: text(input.pattern),
        rest: where(input.path, directory),
      };
    case "Glob":
      return {
        sign: "find",
        verb: verb("looked for", "looking for"),
        object: text(input.pattern),
        rest: where(input.path, directory),
      };
    case "LS":
      return { sign: "folder", verb: verb("listed", "listing"), object: path() };
    case "Task":
    case "Agent":
      return { sign: "fork", verb: "Subagent", rest: text(input.description) || firstLine(text(input.prompt)) };
    case "TodoWrite": {
      const todos = Array.isArray(input.todos) ? input.todos : [];
      const done = todos.filter((todo) => (todo as { status?: unknown })?.status === "completed").length;
      return {
        sign: "todo",
        verb: verb("updated the to-do list", "updating the to-do list"),
        rest: todos.length ? `· ${done} of ${todos.length} done` : undefined,
      };
    }
    case "WebFetch":
      return { sign: "globe", verb: verb("fetched", "fetching"), object: text(input.url) };
    case "WebSearch":
      return { sign: "globe", verb: verb("searched the web for", "searching the web for"), object: text(input.query) };
    case "AskUserQuestion":
      return { sign: "question", verb: verb("asked", "asking"), rest: question(input) };
    case "ExitPlanMode":
      return { sign: "think", verb: verb("proposed a plan", "proposing a plan") };
    case "Skill":
    case "SlashCommand":
      return { sign: "tool", verb: verb("used", "using"), object: text(input.skill) || text(input.command) };
    default: {
      const mcp = call.name.match(/^mcp__(.+?)__(.+)$/);
      const rest = firstLine((Object.values(input).find((value) => typeof value === "string") as string) ?? "");
      return { sign: "tool", verb: mcp ? `${mcp[1]}: ${mcp[2]}` : call.name, object: rest.slice(0, 120) || undefined };
    }
  }
}

function where(path: unknown, directory: string | null | undefined): string | undefined {
  return typeof path === "string" && path !== directory ? `in ${within(path, directory)}` : undefined;
}

function question(input: Record<string, unknown>): string {
  const questions = Array.isArray(input.questions) ? input.questions : [];
  return questions
    .map((it) => text((it as { question?: unknown })?.question))
    .filter(Boolean)
    .join(" · ");
}

/** What an edit changes; nothing for a call that edits nothing. */
export function edits(call: ToolUse, depth: Depth = "shown"): Diff | undefined {
  const { input } = call;
  switch (call.name) {
    case "Edit":
      return compare(text(input.old_string), text(input.new_string), depth);
    case "Write":
      return compare("", text(input.content), depth);
    case "NotebookEdit":
      return compare("", text(input.new_source), depth);
    case "MultiEdit": {
      const all = Array.isArray(input.edits) ? input.edits : [];
      const parts = all.map((it) =>
        compare(
          text((it as { old_string?: unknown })?.old_string),
          text((it as { new_string?: unknown })?.new_string),
          depth,
        ),
      );
      return {
        lines: parts.flatMap((part, at) =>
          at === 0 ? part.lines : [{ mark: "@" as const, words: [{ text: "", changed: false }] }, ...part.lines],
        ),
        added: parts.reduce((sum, part) => sum + part.added, 0),
        removed: parts.reduce((sum, part) => sum + part.removed, 0),
      };
    }
    default:
      return undefined;
  }
}

/** What came of a call, in a word or two at the end of its line. */
export function outcome(call: ToolUse, result: ToolResult): string {
  const lines = result.text ? result.text.replace(/\n$/, "").split("\n").length : 0;
  switch (call.name) {
    case "Read":
      return count(lines, "line");
    case "Grep":
    case "Glob": {
      if (lines === 0 || /^(No files found|No matches found)/.test(result.text)) return "nothing";
      const all = result.text.trim().split("\n");
      const hits = all.filter((line) => /^[^:]+:\d+/.test(line));
      if (hits.length < all.length) return call.name === "Glob" ? count(lines, "file") : count(lines, "line");
      return `${count(hits.length, "hit")} in ${count(new Set(hits.map((line) => line.split(":", 1)[0])).size, "file")}`;
    }
    case "Bash": {
      const passed = result.text.match(/(\d+) passed/);
      return passed && !result.isError ? `${passed[1]} passed` : "";
    }
    default:
      return "";
  }
}

/** The language that a file is written in, by its name. */
export function languageOf(path: string): string | undefined {
  const ending = path.toLowerCase().match(/\.([a-z0-9]+)$/)?.[1] ?? "";
  const known: Record<string, string> = {
    rs: "rust",
    ts: "typescript",
    tsx: "typescript",
    js: "javascript",
    jsx: "javascript",
    mjs: "javascript",
    py: "python",
    rb: "ruby",
    go: "go",
    java: "java",
    kt: "kotlin",
    swift: "swift",
    c: "c",
    h: "c",
    cc: "cpp",
    cpp: "cpp",
    hpp: "cpp",
    cs: "csharp",
    php: "php",
    sh: "bash",
    bash: "bash",
    sql: "sql",
    json: "json",
    yml: "yaml",
    yaml: "yaml",
    toml: "ini",
    ini: "ini",
    html: "xml",
    xml: "xml",
    css: "css",
    diff: "diff",
    patch: "diff",
    mk: "makefile",
  };
  return known[ending];
}
