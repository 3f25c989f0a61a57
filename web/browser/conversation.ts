/** Transcripts as Claude Code writes them. */

import { appendFileSync, mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { structuredPatch } from "diff";
import type { Desk } from "./kit.ts";

let next = 1;

/** A new id that is the same in every run. */
export function id(): string {
  return `${(next++).toString(16).padStart(8, "0")}-1111-4111-8111-111111111111`;
}

export class Conversation {
  readonly lines: string[] = [];
  private last: string | null = null;
  private at: number;
  private calls = 0;

  constructor(
    readonly session: string,
    readonly cwd: string,
    options: { branch?: string; minutesAgo?: number } = {},
  ) {
    this.branch = options.branch ?? "main";
    this.at = Date.now() - (options.minutesAgo ?? 60) * 60_000;
  }

  private readonly branch: string;

  /** The id of the n-th message that has one. */
  uuid(number: number): string {
    return `${this.session.slice(0, 8)}-0000-4000-8000-${String(number).padStart(12, "0")}`;
  }

  private count = 0;

  get lastUuid(): string {
    return this.last ?? "";
  }

  later(seconds: number): this {
    this.at += seconds * 1000;
    return this;
  }

  /** Goes on from an earlier message instead. */
  from(uuid: string): this {
    this.last = uuid;
    return this;
  }

  add(type: string, message: object, more: object = {}): this {
    const uuid = this.uuid(this.count++);
    this.at += 1000;
    const line = {
      parentUuid: this.last,
      isSidechain: false,
      userType: "external",
      cwd: this.cwd,
      sessionId: this.session,
      version: "2.1.325",
      gitBranch: this.branch,
      type,
      message,
      uuid,
      timestamp: new Date(this.at).toISOString(),
      ...more,
    };
    this.lines.push(JSON.stringify(line));
    this.last = uuid;
    return this;
  }

  prompt(text: string): this {
    return this.add("user", { role: "user", content: text });
  }

  reply(...content: object[]): this {
    return this.add("assistant", {
      id: `msg_${this.count}`,
      type: "message",
      role: "assistant",
      model: "claude-opus-4-6",
      content,
    });
  }

  says(text: string): this {
    return this.reply({ type: "text", text });
  }

  thinks(text: string): this {
    return this.reply({ type: "thinking", thinking: text, signature: "x" });
  }

  /** A tool call and its result. */
  tool(
    name: string,
    input: object,
    output: unknown,
    options: { isError?: boolean; seconds?: number; id?: string; result?: object | undefined } = {},
  ): this {
    const call = options.id ?? `toolu_${this.session.slice(0, 8)}_${this.calls++}`;
    this.reply({ type: "tool_use", id: call, name, input });
    this.later(options.seconds ?? 0);
    if (output === undefined) return this;
    return this.add(
      "user",
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: call, content: output, ...(options.isError ? { is_error: true } : {}) },
        ],
      },
      options.result ? { toolUseResult: options.result } : {},
    );
  }

  /** An edit, with the patch that Claude Code writes beside its result; something may stand above it in the file. */
  edit(path: string, before: string, after: string, above = ""): this {
    const { hunks } = structuredPatch("a", "b", above + before, above + after);
    const result = {
      filePath: path,
      oldString: before,
      newString: after,
      originalFile: above + before,
      structuredPatch: hunks,
    };
    const input = { file_path: path, old_string: before, new_string: after };
    return this.tool("Edit", input, "The file has been updated.", { result });
  }

  named(name: string): this {
    this.lines.push(JSON.stringify({ type: "custom-title", customTitle: name, sessionId: this.session }));
    return this;
  }

  /** What Claude Code itself keeps of files before it changes them for the last prompt: their texts, or null if there were none. */
  kept(desk: Desk, files: Record<string, string | null>): this {
    const folder = join(desk.claude, "file-history", this.session);
    mkdirSync(folder, { recursive: true });
    const backups = Object.entries(files).map(([path, text]) => {
      const name = text === null ? null : `${path}@v${this.lines.length}`;
      if (name !== null) writeFileSync(join(folder, name), text ?? "");
      return [path, { backupFileName: name, version: this.lines.length }];
    });
    const snapshot = {
      messageId: this.last,
      trackedFileBackups: Object.fromEntries(backups),
      timestamp: new Date(this.at).toISOString(),
    };
    const line = { type: "file-history-snapshot", messageId: this.last, snapshot, isSnapshotUpdate: false };
    this.lines.push(JSON.stringify(line));
    return this;
  }

  path(desk: Desk): string {
    return join(desk.claude, "projects", this.cwd.replace(/[^A-Za-z0-9]/g, "-"), `${this.session}.jsonl`);
  }

  write(desk: Desk, minutesAgo = 0): string {
    const path = this.path(desk);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, this.lines.map((line) => `${line}\n`).join(""));
    const time = Date.now() / 1000 - minutesAgo * 60;
    utimesSync(path, time, time);
    this.written = this.lines.length;
    return path;
  }

  private written = 0;

  /** Appends what was added since the last time, as a program in a terminal would. */
  append(desk: Desk): void {
    for (const line of this.lines.slice(this.written)) appendFileSync(this.path(desk), `${line}\n`);
    this.written = this.lines.length;
  }
}

/** The session of the README's picture: a flaky test, found and mended. */
export function flaky(desk: Desk, session = id()): Conversation {
  const talk = new Conversation(session, desk.project, { branch: "fix/retry-deadline", minutesAgo: 26 });
  const before =
    "use crate::{backoff::Backoff, Error};\nuse std::time::Instant;\nuse tokio::time::sleep;\n\nimpl Retry {\n            Err(e) => {\n                sleep(self.backoff.next()).await;\n                if started.elapsed() > self.deadline {\n                    return Err(Error::DeadlineExceeded(e.into()));\n                }\n            }\n}\n";
  const after =
    "use crate::{backoff::Backoff, Error};\nuse tokio::time::{sleep, Instant};\n\nimpl Retry {\n            Err(e) => {\n                // A wait that cannot fit is not worth starting.\n                let wait = self.backoff.next();\n                if started.elapsed() + wait > self.deadline {\n                    return Err(Error::DeadlineExceeded(e.into()));\n                }\n                sleep(wait).await;\n            }\n}\n";
  const output = [
    "running 7 tests",
    "test result: ok. 7 passed; 0 failed; finished in 0.41s",
    ...Array.from({ length: 412 }, (_, at) => `run ${at} ok`),
    "---- gives_up_after_deadline stdout ----",
    "thread 'gives_up_after_deadline' panicked at tests/retry.rs:58:5:",
    "assertion failed: elapsed <= deadline + slack",
    "  elapsed 312ms   deadline 250ms   slack 50ms",
    "",
    "test result: FAILED. 6 passed; 1 failed; finished in 0.73s",
    "FAIL 37",
  ].join("\n");
  talk
    .named("Flaky retry test")
    .prompt(
      "tests/retry.rs is flaky on CI. `gives_up_after_deadline` fails about once in twenty runs, never on my machine. Find out why before you change anything.",
    )
    .says("I’ll try to reproduce it first, then read the retry loop and its test.")
    .thinks("The test sleeps before it looks at the deadline. Jitter may decide.")
    .tool(
      "Read",
      { file_path: `${desk.project}/src/retry.rs` },
      Array.from({ length: 148 }, (_, at) => `${at + 1}\tline`).join("\n"),
    )
    .tool(
      "Read",
      { file_path: `${desk.project}/tests/retry.rs` },
      Array.from({ length: 96 }, (_, at) => `${at + 1}\tline`).join("\n"),
    )
    .tool(
      "Grep",
      { pattern: "Instant::now", path: `${desk.project}/src` },
      "src/retry.rs:12\nsrc/retry.rs:40\nsrc/clock.rs:3\nsrc/lib.rs:9",
    )
    .tool(
      "Bash",
      {
        command:
          'rc=0; for i in $(seq 50); do\n  cargo test -q --test retry || { echo "FAIL $i"; rc=1; }\ndone; exit $rc',
        description: "Run the retry tests 50 times",
      },
      output,
      { isError: true, seconds: 111 },
    )
    .says(
      "It reproduces: 3 of 50. `Retry::run` sleeps first and looks at the deadline afterwards, so the last wait is always added on top of it. Jitter decides whether that crosses the test’s slack.\n\n| Run | Last wait | Elapsed | Allowed |\n|---|---:|---:|---:|\n| 11 | 118 ms | 304 ms | 300 ms |\n| 24 | 121 ms | 309 ms | 300 ms |\n| 37 | 126 ms | 312 ms | 300 ms |",
    )
    .tool(
      "Task",
      {
        description: "who else relies on sleeping before the check?",
        prompt: "Look for callers",
        subagent_type: "Explore",
      },
      "Two callers. `webhooks/deliver.rs` passes its own deadline and would benefit; `jobs/poll.rs` has none. Nothing depends on the old order.",
      { seconds: 41 },
    )
    .later(300)
    .prompt("Makes sense. Fix it in the code, not by loosening the test. Keep the public API as it is.")
    .says(
      "The check moves before the wait, and a wait that cannot fit is not started. What is left of the deadline is never slept away.",
    )
    .edit(`${desk.project}/src/retry.rs`, before, after)
    .edit(`${desk.project}/tests/retry.rs`, "a\nb\nc", "a\nB\nc\nd")
    .tool("Bash", { command: "cargo test --test retry" }, "test result: ok. 7 passed; 0 failed; finished in 0.38s", {
      seconds: 14,
    })
    .tool(
      "TodoWrite",
      {
        todos: [
          { content: "Reproduce it", status: "completed" },
          { content: "Check before the wait", status: "completed" },
          { content: "Run it 200 times under load", status: "in_progress" },
        ],
      },
      "ok",
    )
    .later(400)
    .prompt("Leave the jitter alone. Run it 200 times under load, then write the commit message.")
    .says(
      'Running the suite with all cores busy, so that the scheduler is as unkind as CI.\n\n```rust\nfn main() {\n    let deadline = Duration::from_millis(250); // as in the test\n    println!("{deadline:?}");\n}\n```',
    );
  return talk;
}

/** Sessions as a list has them after a few weeks: some long, some short, some of which edited files. */
export function others(desk: Desk): void {
  const all: [string, string, string, string, number, string][] = [
    // name, first prompt, directory, branch, minutes ago, and what it did: prompts and edits
    ["Rate limits per token", "limits are per address, and offices share one", "api", "rate-limits", 180, "pepppepepp"],
    ["Trace ids in every log line", "every log line needs the trace id", "api", "main", 1500, "ppepepe"],
    ["Why is the release build 90 MB", "the binary grew from 31 to 90 MB since May", "api", "main", 2900, "pppp"],
    ["Pagination off by one in /orders", "page 2 repeats the last row of page 1", "api", "orders-paging", 5800, "ppe"],
    ["Health check that checks something", "healthz says ok while the pool is empty", "api", "main", 6100, "pepep"],
    ["Review: idempotency keys", "read the diff of idem-keys like a reviewer", "api", "idem-keys", 7300, "pp"],
    [
      "VAT for reverse-charge invoices",
      "invoices to other EU countries show 0 %",
      "billing",
      "vat-rc",
      300,
      "ppepepep",
    ],
    ["Replace the PDF renderer", "compare typst with the present one", "billing", "pdf", 8700, "pepeppe"],
    ["Currency table out of date", "three currencies changed their decimals", "billing", "main", 11600, "pep"],
    ["Rotate the staging certificates", "certificates end on the 21st", "infra", "main", 700, "pppe"],
    ["Alert when disk is 80 % full", "we found out from a user last time", "infra", "alerts", 4400, "pe"],
  ];
  for (const [name, prompt, folder, branch, ago, did] of all) {
    const cwd = folder === "api" ? desk.project : join(desk.folder, folder);
    const talk = new Conversation(id(), cwd, { branch, minutesAgo: ago }).named(name);
    for (const [at, what] of [...did].entries()) {
      if (what === "p") talk.prompt(at === 0 ? prompt : "And then?").says("I looked at it, and this is what I found.");
      else {
        const lines = (count: number, word: string) =>
          Array.from({ length: count }, (_, it) => `${word} ${it}\n`).join("");
        talk.edit(`${cwd}/src/lib.rs`, lines(3 + ((at * 7) % 11), "old"), lines(5 + ((at * 13) % 29), "new"));
      }
    }
    talk.write(desk, ago);
  }
}

/** A session of fifty megabytes. */
export function long(desk: Desk, session = id()): Conversation {
  const talk = new Conversation(session, desk.project);
  const output = Array.from({ length: 80 }, (_, at) => `line ${at} of some output that a tool wrote, as tools do`).join(
    "\n",
  );
  for (let at = 0; talk.lines.length < 20_000; at++) {
    talk.prompt(`Question ${at}: what about **this** and \`that\`?`);
    const words = "A sentence that says something, and then another one. ".repeat(8);
    talk.says(`Answer ${at}. ${words}\n\n- one\n- two\n\n\`\`\`rust\nfn main() {}\n\`\`\``);
    talk.tool("Bash", { command: `cargo test ${at}` }, output + output + output);
    talk.tool(
      "Edit",
      { file_path: `${desk.project}/src/lib.rs`, old_string: output.slice(0, 400), new_string: output.slice(0, 420) },
      "ok",
    );
  }
  return talk.says("the large end");
}
