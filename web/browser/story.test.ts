/** The session of the README's picture, driven from beginning to end: a flaky test, found and mended. */

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { others } from "./conversation.ts";
import { Drive, hold, idle, say } from "./driving.ts";
import { PHONE, pictured, show, tab } from "./kit.ts";

const drive = await Drive.make();
const { api, desk } = drive;
const billing = join(desk.folder, "billing");

const RETRY = `use crate::{backoff::Backoff, Error};
use std::time::Instant;
use tokio::time::sleep;

impl Retry {
    pub async fn run(&mut self) -> Result<(), Error> {
        let started = Instant::now();
        loop {
            match self.once().await {
                Ok(()) => return Ok(()),
                Err(e) => {
                    sleep(self.backoff.next()).await;
                    if started.elapsed() > self.deadline {
                        return Err(Error::DeadlineExceeded(e.into()));
                    }
                }
            }
        }
    }
}
`;
const RUNS = `printf 'running 7 tests\\ntest result: ok. 7 passed; 0 failed; finished in 0.41s\\n'
for i in $(seq 40); do echo "run $i ok"; done
printf -- "---- gives_up_after_deadline stdout ----\\nassertion failed: elapsed <= deadline + slack\\n  elapsed 312ms   deadline 250ms   slack 50ms\\n\\ntest result: FAILED. 6 passed; 1 failed; finished in 0.73s\\n"
exit 1`;

beforeAll(async () => {
  if (!drive.hasAgent) return;
  mkdirSync(join(desk.project, "src"), { recursive: true });
  mkdirSync(join(desk.project, "tests"), { recursive: true });
  writeFileSync(join(desk.project, "src/retry.rs"), RETRY);
  writeFileSync(
    join(desk.project, "tests/retry.rs"),
    Array.from({ length: 96 }, (_, at) => `// line ${at + 1}\n`).join(""),
  );
  mkdirSync(billing, { recursive: true });
  others(desk);
  await desk.start();
});
afterAll(() => drive.clear());

describe.runIf(drive.hasAgent)("the story of a flaky test", () => {
  test("is told by the thread: what failed, what changed, where it parted, and what runs", async () => {
    const { page, troubles } = await tab(desk);
    const source = join(desk.project, "src/retry.rs");
    const card = await desk.api<{ session_id: string }>("/sessions", "POST", {
      cwd: desk.project,
      name: "Flaky retry test",
      permission_mode: "acceptEdits",
      prompt:
        "tests/retry.rs is flaky on CI. `gives_up_after_deadline` fails about once in twenty runs, never on my machine. Find out why before you change anything.",
    });
    const begun = await api.asked();
    begun.text().more("I’ll try to reproduce it first, then read the retry loop and its test.").stopBlock();
    begun.tool("Read", { file_path: source });
    begun.tool("Read", { file_path: join(desk.project, "tests/retry.rs") }).end();
    await show(page, `session=${card.session_id}`);
    (await api.asked()).tool("Bash", { command: RUNS, description: "Run the retry tests 50 times" }).end();
    await hold(page, "Hold to allow once");
    (await api.asked()).say(
      "It reproduces: 3 of 50. `Retry::run` sleeps first and looks at the deadline afterwards, so the last wait is always added on top of it. Jitter decides whether that crosses the test’s slack.\n\n| Run | Last wait | Elapsed | Allowed |\n|---|---:|---:|---:|\n| 11 | 118 ms | 304 ms | 300 ms |\n| 24 | 121 ms | 309 ms | 300 ms |\n| 37 | 126 ms | 312 ms | 300 ms |",
    );
    await page.getByText("It reproduces").waitFor();
    await idle(page);
    await desk.api(`/sessions/${card.session_id}/fork`, "POST", { name: "Jitter as a trait" });
    await say(page, "Makes sense. Fix it in the code, not by loosening the test. Keep the public API as it is.");
    const fix = await api.asked();
    fix.text().more("The check moves before the wait, and a wait that cannot fit is not started.").stopBlock();
    fix.tool("Edit", {
      file_path: source,
      old_string:
        "                    sleep(self.backoff.next()).await;\n                    if started.elapsed() > self.deadline {\n                        return Err(Error::DeadlineExceeded(e.into()));\n                    }\n",
      new_string:
        "                    // A wait that cannot fit is not worth starting.\n                    let wait = self.backoff.next();\n                    if started.elapsed() + wait > self.deadline {\n                        return Err(Error::DeadlineExceeded(e.into()));\n                    }\n                    sleep(wait).await;\n",
    });
    fix.end();
    (await api.asked()).say("Nothing is slept away after the deadline any more.");
    await page.getByText("Nothing is slept away").waitFor();
    await idle(page);
    await say(page, "Run it 200 times under load, then write the commit message.");
    const live = await api.asked();
    live.text().more("Running the suite with all cores busy, so that the scheduler is as unkind as CI.");
    await page.getByText("as unkind as CI").waitFor();
    // What hangs on the thread.
    await page.locator(".row.fork", { hasText: "Jitter as a trait" }).waitFor();
    await page.locator(".knot-button").waitFor();
    await page.locator(".info .files").first().getByText("src/retry.rs").waitFor();
    expect(await page.locator(".card.failed .call .end b").allInnerTexts()).toEqual(["failed"]);
    await page.mouse.move(720, 4);
    await page.locator(".composer textarea").blur();
    for (const [name, part] of [
      ["story", 0],
      ["story-middle", 0.55],
      ["story-end", 1],
    ] as const) {
      await page.locator(".scroll").evaluate((it, to) => {
        it.scrollTop = (it.scrollHeight - it.clientHeight) * to;
      }, part);
      await page.evaluate(() => new Promise((then) => requestAnimationFrame(() => requestAnimationFrame(then))));
      await pictured(page, name);
    }
    const phone = await tab(desk, { size: PHONE });
    await show(phone.page, `session=${card.session_id}`);
    await phone.page.getByText("as unkind as CI").waitFor();
    await pictured(phone.page, "story-phone");
    // The list of a busy day: one works, one waits for somebody.
    await desk.api("/sessions", "POST", { cwd: billing, name: "Invoice rounding", prompt: "Sums are a cent off." });
    (await api.asked()).tool("Bash", { command: "cargo test rounding", description: "Test it" }).end();
    for (const it of [page, phone.page]) {
      await show(it, "");
      await it.locator(".chips", { hasText: "Waiting 1" }).waitFor();
      await it.locator(".sess", { hasText: "Rotate the staging certificates" }).waitFor();
    }
    const drawn = (name: string) => page.locator(".sess", { hasText: name }).locator(".sketch");
    await drawn("Replace the PDF renderer").waitFor();
    await drawn("Invoice rounding").locator(".gem").waitFor();
    await drawn("Flaky retry test").locator(".breathing").waitFor();
    await pictured(page, "list-busy");
    await pictured(phone.page, "list-busy-phone");
    await show(page, "attention");
    await page.locator(".request").waitFor();
    await pictured(page, "attention");
    await page.getByRole("button", { name: "Deny", exact: true }).click();
    (await api.asked()).say("As you wish.");
    await show(page, `session=${card.session_id}`);
    live.stopBlock().end();
    await idle(page);
    expect([...troubles, ...phone.troubles]).toEqual([]);
    await phone.context.close();
  });
});
