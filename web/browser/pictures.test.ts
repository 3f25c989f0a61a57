/** Pictures of the page in its states, in both themes and on a phone. They are kept in `target/web`, to be looked at. */

import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Conversation, flaky, id, others } from "./conversation.ts";
import { closeBrowser, DESKTOP, Desk, PHONE, pictured, show, tab, withAgent } from "./kit.ts";

const folder = resolve(import.meta.dirname, "../../target/web");
const desk = new Desk();
const main = id();
const damaged = id();

beforeAll(async () => {
  mkdirSync(folder, { recursive: true });
  flaky(desk, main).write(desk, 0);
  others(desk);
  const talk = new Conversation(damaged, desk.project, { branch: "axum-08", minutesAgo: 1500 });
  talk.named("Upgrade axum to 0.8").prompt("Bump axum and fix what breaks.");
  talk.edit(`${desk.project}/src/routes/orders.rs`, "a\nb", "a\nc\nd");
  talk.says("The extractors compile. What is left is the change of path syntax: `/:id` became `/{id}` in every route.");
  const path = talk.write(desk, 0);
  const before = readFileSync(path, "utf8");
  const rest = new Conversation(damaged, desk.project, { branch: "axum-08", minutesAgo: 1400 });
  for (let at = 0; at < 5; at++) rest.add("system", {});
  rest.lines.length = 0;
  rest
    .from(talk.lastUuid)
    .tool("Bash", { command: "cargo test --workspace" }, "212 passed", { seconds: 86, id: "toolu_rest" });
  rest
    .prompt("Good. Now the middleware: `from_fn_with_state` first, then the tower layers.")
    .says("I’ll start with `auth.rs`, the only one that reads the body.");
  writeFileSync(
    path,
    `${before}{"type":"assistant","uuid":"7c1e09b4-5d30-4e6a-9d57-0e5b8a1c2f44","message":{"role":"assistant","content":[{"type":"tool_use","name":"Edit","input":{"file_path":"${desk.project}/src/rou${"\0".repeat(412)}\n${rest.lines.map((line) => `${line}\n`).join("")}`,
  );
  appendFileSync(
    path,
    '{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"The layer order matters here: tracing has to wrap auth, because a rejected request sh',
  );
  withAgent(desk, "http://127.0.0.1:9");
  await desk.start();
});

afterAll(async () => {
  await closeBrowser();
  await desk.clear();
});

for (const theme of ["light", "dark"] as const) {
  test(`the states of the page look as they should, ${theme}`, async () => {
    const { page, troubles } = await tab(desk, { theme });
    const take = (name: string) => page.screenshot({ path: join(folder, `${name}-${theme}.png`) });
    await page.locator(".sess", { hasText: "Flaky retry test" }).locator(".sketch").waitFor();
    await take("list");
    await show(page, `session=${main}`);
    await page.getByText("as unkind as CI").waitFor();
    await page.waitForFunction(() => document.querySelector(".hl-keyword"));
    await take("thread-end");
    await page.keyboard.press("g");
    await page.getByText("I’ll try to reproduce it first").waitFor();
    await page.mouse.move(700, 5);
    await take("thread");
    await page.getByText("edited src/retry.rs").click();
    await page.locator(".diff").first().scrollIntoViewIfNeeded();
    await page
      .locator(".diff")
      .first()
      .evaluate((it) => it.scrollIntoView({ block: "center" }));
    await take("thread-diff");
    await show(page, `session=${damaged}`);
    await page.getByText("in this session file cannot be read").waitFor();
    await take("damaged");
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox").fill("retry");
    await page.locator(".choice mark").first().waitFor();
    await take("palette");
    await page.keyboard.press("Escape");
    await show(page, "attention");
    await page.getByText("Nothing needs you").waitFor();
    await take("nothing");
    expect(troubles).toEqual([]);
  });

  test(`a phone shows the same in one column, ${theme}`, async () => {
    const { page, troubles } = await tab(desk, { theme, size: PHONE });
    const take = (name: string) => page.screenshot({ path: join(folder, `${name}-phone-${theme}.png`) });
    await page.getByText("Flaky retry test").first().waitFor();
    await take("list");
    await show(page, `session=${main}`);
    await page.getByText("as unkind as CI").waitFor();
    await take("thread-end");
    await page.getByRole("button", { name: "Details" }).click();
    await take("details");
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(width).toBe(PHONE.width);
    expect(troubles).toEqual([]);
  });
}

test("with no sessions at all the page says what to do", async () => {
  const empty = new Desk();
  await empty.start();
  const { page, troubles } = await tab(empty, { size: DESKTOP });
  await page.getByText("No sessions here yet").waitFor();
  await pictured(page, "empty");
  expect(troubles).toEqual([]);
  await empty.clear();
});
