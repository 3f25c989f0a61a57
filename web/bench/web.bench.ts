/** What the page must show: how fast it opens, scrolls and follows, in Chromium, with the real keeper. */

import { readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Api } from "../browser/api.ts";
import { Conversation, id, long } from "../browser/conversation.ts";
import { closeBrowser, Desk, scrollToTop, show, tab, withAgent } from "../browser/kit.ts";

const desk = new Desk();
const api = await Api.start();
const hasAgent = withAgent(desk, api.url);
const large = long(desk);
const small = new Conversation(id(), desk.project);
const figures: string[] = [];

function say(what: string, value: number, unit: string, bar: number): void {
  figures.push(
    `${value <= bar ? "ok  " : "MISS"}  ${what.padEnd(64)} ${String(Math.round(value * 100) / 100).padStart(8)} ${unit}  (at most ${bar})`,
  );
}

beforeAll(async () => {
  for (let at = 0; at < 5; at++) small.prompt(`ask ${at}`).says(at === 4 ? "the small end" : "ok");
  small.write(desk);
  figures.push(`a session of ${Math.round(statSync(large.write(desk)).size / 1e6)} MB, ${large.lines.length} lines`);
  await desk.start();
});

afterAll(async () => {
  await closeBrowser();
  await desk.clear();
  api.stop();
  console.log(figures.join("\n"));
});

const median = (values: number[]): number => values.sort((one, other) => one - other)[values.length >> 1] ?? Number.NaN;

test("first load", () => {
  const dist = resolve(import.meta.dirname, "../dist");
  const html = readFileSync(join(dist, "index.html"), "utf8");
  const named = [...html.matchAll(/(?:src|href)="\/(assets\/[^"]+)"/g)].map((match) => match[1] ?? "");
  const sizes = ["index.html", ...named].map((name) => gzipSync(readFileSync(join(dist, name))).length);
  say("first load, gzip", sizes.reduce((sum, size) => sum + size, 0) / 1000, "kB", 150);
});

test("opening and scrolling", async () => {
  const { page } = await tab(desk);
  const open = async (session: string, text: string): Promise<number> => {
    await page.goto("about:blank");
    const begun = performance.now();
    await page.goto(`${desk.address}/#session=${session}`);
    await page.getByText(text).first().waitFor();
    return performance.now() - begun;
  };
  const times: { small: number[]; large: number[] } = { small: [], large: [] };
  for (let round = 0; round < 5; round++) {
    times.large.push(await open(large.session, "the large end"));
    times.small.push(await open(small.session, "the small end"));
  }
  say(
    "last messages of the large one readable, times those of a small one",
    median(times.large) / median(times.small),
    "×",
    2,
  );
  await open(large.session, "the large end");
  const tasks = await scrollToTop(page);
  say("scrolled end to end: longest task", Math.max(0, ...tasks), "ms", 50);
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("HeapProfiler.collectGarbage");
  say("heap after that and a collection", (await devtools.send("Runtime.getHeapUsage")).usedSize / 1e6, "MB", 150);
});

test.runIf(hasAgent)("200 deltas a second while somebody types", async () => {
  const { page } = await tab(desk);
  const card = await desk.api<{ session_id: string }>("/sessions", "POST", {
    cwd: desk.project,
    prompt: "talk",
    name: "Talk",
  });
  const answer = await api.asked();
  await show(page, `session=${card.session_id}`);
  answer.text().more("It begins. ");
  await page.getByText("It begins.").waitFor();
  await page.locator(".composer textarea").focus();
  await page.evaluate(() => {
    const kept = { late: [] as number[], changes: 0 };
    (window as unknown as { __kept: typeof kept }).__kept = kept;
    const field = document.querySelector("textarea");
    field?.addEventListener("keydown", (event) => {
      const at = event.timeStamp;
      requestAnimationFrame(() => setTimeout(() => kept.late.push(performance.now() - at)));
    });
    new MutationObserver((records) => {
      kept.changes += records.reduce((sum, it) => sum + Math.max(1, it.addedNodes.length), 0);
    }).observe(document.querySelector(".thread") ?? document, { childList: true, characterData: true, subtree: true });
  });
  const deltas = 2000;
  const streaming = (async () => {
    const begun = performance.now();
    for (let sent = 0; sent < deltas; sent++) {
      answer.more(sent % 60 === 59 ? "word.\n\n" : "word ");
      const due = begun + (sent + 1) * 5;
      if (performance.now() < due) await new Promise((then) => setTimeout(then, due - performance.now()));
    }
  })();
  const typed = "the quick brown fox jumps over the lazy dog and then it types a hundred keys without one being lost"
    .slice(0, 99)
    .padEnd(100, ".");
  for (const key of typed) {
    await page.keyboard.type(key);
    await new Promise((then) => setTimeout(then, 80));
  }
  await streaming;
  answer.more("It ends.").stopBlock().end();
  await page.getByText("It ends.").waitFor();
  expect(await page.locator(".composer textarea").inputValue()).toBe(typed);
  const kept = await page.evaluate(() => (window as unknown as { __kept: { late: number[]; changes: number } }).__kept);
  expect(kept.late.length).toBe(100);
  say("200 deltas a second: slowest of 100 keys", Math.max(...kept.late), "ms", 100);
  say("200 deltas a second: nodes changed per delta", kept.changes / deltas, "", 5);
});
