/** What lists and damaged places show of sessions, and the way to the demo. */

import { appendFileSync, readFileSync } from "node:fs";
import type { Locator } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Conversation, id } from "./conversation.ts";
import { closeBrowser, Desk, PHONE, pictured, show, tab, withAgent } from "./kit.ts";

afterAll(closeBrowser);

const text = async (of: Locator): Promise<string> => (await of.textContent()) ?? "";

/** Lines of a file, of which some are others. */
const numbered = (count: number, change: (at: number) => boolean): string =>
  Array.from({ length: count }, (_, at) => `line ${at}${change(at) ? " changed" : ""}\n`).join("");

describe("a list", () => {
  const desk = new Desk();
  const long = new Conversation(id(), desk.project).named("Long");
  const words = new Conversation(id(), desk.project).named("Words");
  beforeAll(async () => {
    for (let at = 0; at < 40; at++) long.prompt(`Prompt ${at}`).says("Done.");
    long.write(desk, 3);
    new Conversation(id(), desk.project)
      .named("Edits")
      .prompt("one")
      .says("Nothing to change.")
      .prompt("two")
      .edit(
        `${desk.project}/a`,
        numbered(30, () => false),
        numbered(30, (at) => at % 10 === 0),
        "head\n".repeat(40),
      )
      .edit(`${desk.project}/b`, "a\n", "a\nb\n")
      .write(desk, 1);
    words.prompt("only words").says("Yes.").write(desk, 2);
    await desk.start();
  });
  afterAll(() => desk.clear());

  test("draws each session's thread in small, and counts the lines of its edits", async () => {
    const { page, troubles } = await tab(desk);
    const row = (name: string) => page.locator(".sess", { hasText: name });
    const told = (name: string) => row(name).locator(".sketch").getAttribute("aria-label");
    await row("Edits").locator(".ln .add").waitFor();
    expect(await text(row("Edits").locator(".ln"))).toMatch(/\+4\s*−3/);
    expect(await text(row("Edits").locator(".n"))).toBe("7");
    expect(await told("Edits")).toBe("2 prompts, files edited once");
    expect(await told("Words")).toBe("1 prompt, no file edited");
    expect(await text(row("Words").locator(".ln"))).toBe("");
    expect(await told("Long")).toBe("40 prompts, no file edited");
    // However long it is, it stays in its column.
    const [drawing, next] = [row("Long").locator(".sketch path.line"), row("Long").locator(".n")];
    const right = (await drawing.boundingBox())?.x ?? 0;
    expect(right + ((await drawing.boundingBox())?.width ?? 0)).toBeLessThan((await next.boundingBox())?.x ?? 0);
    expect(troubles).toEqual([]);
  });

  test("draws a session again when it goes on", async () => {
    const { page } = await tab(desk);
    const drawn = page.locator(".sess", { hasText: "Words" }).locator(".sketch");
    await drawn.waitFor();
    words.prompt("and now").edit(`${desk.project}/c`, "", "x\ny\n").append(desk);
    await page.locator('.sess [aria-label="2 prompts, files edited once"]').nth(1).waitFor();
  });

  test("leads to edits whose lines have the numbers of their file", async () => {
    const { page, troubles } = await tab(desk);
    await page.locator(".sess", { hasText: "Edits" }).click();
    const call = page.locator(".row.tool", { hasText: "edited a" });
    await call.getByRole("button").first().click();
    // Without the file as it was, the first line that is shown would be the first of all.
    await call.locator(".diff .d > i:first-child", { hasText: /^51$/ }).waitFor();
    expect(await call.locator(".diff .d > i:first-child").allInnerTexts()).toEqual(["41", "51", "61"]);
    expect(await call.locator(".diff .a > i:nth-child(2)").allInnerTexts()).toEqual(["41", "51", "61"]);
    expect(troubles).toEqual([]);
  });

  test("asks for no more drawings than are near the view, however many sessions there are", async () => {
    const many = new Desk();
    for (let at = 0; at < 1500; at++)
      new Conversation(id(), many.project).named(`Session ${at}`).prompt("x").write(many, at);
    await many.start();
    const asked: number[] = [];
    const { page } = await tab(many);
    page.on("request", (request) => {
      const list = new URL(request.url()).searchParams.get("sessions");
      if (list) asked.push(list.split(",").length);
    });
    await page.reload();
    await page.locator(".sess .sketch").nth(20).waitFor();
    await page.locator(".rows").evaluate((it) => it.scrollTo(0, it.scrollHeight));
    await page.getByText("Session 1499", { exact: true }).waitFor();
    await page.locator(".sess", { hasText: "Session 1499" }).locator(".sketch").waitFor();
    expect(asked.reduce((sum, it) => sum + it, 0)).toBeLessThan(300);
    expect(Math.max(...asked)).toBeLessThanOrEqual(48);
    await many.clear();
  });
});

describe("a damaged place", () => {
  const desk = new Desk();
  // Nothing is said to it here; a fork needs no model.
  const hasAgent = withAgent(desk, "http://127.0.0.1:9");
  const talk = new Conversation(id(), desk.project).named("Torn");
  let offset = 0;
  beforeAll(async () => {
    talk.prompt("before").says("still there");
    const path = talk.write(desk);
    offset = readFileSync(path).length;
    const rest = new Conversation(talk.session, desk.project);
    const broken = '{"type":"assistant","message":{"content":[{"type":"text","text":"I will edit src/rou';
    appendFileSync(path, `${broken}${"\0".repeat(412)}\n`);
    rest.lines.length = 0;
    for (let at = 0; at < 3; at++) rest.add("system", {});
    rest.lines.length = 0;
    rest.from(talk.lastUuid).prompt("after").says("also there");
    appendFileSync(path, rest.lines.map((line) => `${line}\n`).join(""));
    appendFileSync(path, '{"type":"user","message":{"content":"a rejected request sh');
    await desk.start();
  });
  afterAll(() => desk.clear());

  test("shows its bytes, where they are, and what can still be read", async () => {
    const { page, troubles } = await tab(desk);
    await show(page, `session=${talk.session}`);
    const frays = page.locator(".fray");
    await frays.nth(1).waitFor();
    const [gap, end] = [frays.nth(0), frays.nth(1)];
    expect(await text(gap.locator("p"))).toContain(`damaged (byte ${offset})`);
    expect(await text(gap.locator(".bytes"))).toContain("I will edit src/rou00 × 412");
    expect(await gap.locator("mark").allInnerTexts()).toEqual(["00 × 412"]);
    expect(await text(gap.locator("footer"))).toContain("line 4 · 496 B, 412 of them zero");
    expect(await end.locator("mark").allInnerTexts()).toEqual(["end of file"]);
    expect(await text(end.locator(".bytes"))).toContain("a rejected request shend of file");
    const info = page.locator(".info");
    await info.getByText("Damaged line 4").waitFor();
    await info.getByText("Torn end, line 7").waitFor();
    expect(await text(info.locator(".facts").first())).toContain("5 of 7");
    // The same line, small, is interrupted twice.
    await page.waitForFunction(() => document.querySelector(".map .line")?.getAttribute("d")?.split("M").length === 3);
    await pictured(page, "damaged-bytes");
    await gap.getByText("Raw bytes").click();
    const dump = await text(info.locator(".dump", { hasText: "00 00 00 00 00 00 00 00" }));
    expect(dump.split("\n")[0]).toMatch(new RegExp(`^0*${offset}  7b 22 74 79 70 65`));
    expect(troubles).toEqual([]);
  });

  test.runIf(hasAgent)("is not in a clean copy, which has everything else", async () => {
    const { page, troubles } = await tab(desk);
    await show(page, `session=${talk.session}`);
    await page.locator(".fray").nth(1).waitFor();
    await page.locator(".composer").getByRole("button", { name: "Fork a clean copy" }).click();
    await page.waitForURL((url) => !url.hash.includes(talk.session));
    // The address is the fork's a moment before the page is.
    await page.waitForFunction(() => document.querySelectorAll(".fray").length === 0);
    await page.locator(".prose", { hasText: "also there" }).waitFor();
    expect(await page.locator(".prompt .words").allInnerTexts()).toEqual(["before", "after"]);
    await page.locator(".facts", { hasText: "every line checked" }).waitFor();
    expect(await page.locator(".fray").count()).toBe(0);
    expect(troubles).toEqual([]);
  });

  test("is on a phone too", async () => {
    const { page, troubles } = await tab(desk, { size: PHONE });
    await show(page, `session=${talk.session}`);
    await page.locator(".fray .bytes").first().waitFor();
    await page.locator(".fray").first().scrollIntoViewIfNeeded();
    await pictured(page, "damaged-phone");
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(PHONE.width);
    expect(troubles).toEqual([]);
  });
});

describe("with no sessions at all", () => {
  test("a click opens the demo, which asks, and is taken back to where it was by the browser", async () => {
    const desk = new Desk();
    await desk.start();
    const { page } = await tab(desk);
    await page.getByText("No sessions here yet").waitFor();
    await page.getByRole("button", { name: "Open the demo" }).click();
    await page.getByText("This is a demonstration").waitFor();
    expect(new URL(page.url()).origin).not.toBe(desk.address);
    expect(page.url()).toMatch(/#session=[0-9a-f-]{36}$/);
    await page.locator(".asked").first().waitFor();
    await pictured(page, "demo");
    await page.goBack();
    await page.getByText("No sessions here yet").waitFor();
    // Enter does the same, and there is one demo.
    const before = page.url();
    await page.keyboard.press("Enter");
    await page.getByText("This is a demonstration").waitFor();
    expect(page.url()).not.toBe(before);
    await desk.clear();
  });
});
