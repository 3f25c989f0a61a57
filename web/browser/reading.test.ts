/** Finding and reading sessions: the acceptance criteria of session continuity by name, and everything that may go wrong. */

import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Conversation, flaky, id, long } from "./conversation.ts";
import { HOSTILE } from "./hostile.ts";
import { browser, closeBrowser, Desk, PHONE, pictured, scrollToTop, show, tab, violations } from "./kit.ts";

afterAll(closeBrowser);

/** The words of all rows, in order. */
const said = (page: Page) => page.locator(".thread .prompt .words, .thread .prose .prose-text").allInnerTexts();

async function ready(page: Page, text: string): Promise<void> {
  await page.getByText(text).first().waitFor();
}

describe("the acceptance criteria", () => {
  const desk = new Desk();
  const first = new Conversation(id(), desk.project);
  const second = new Conversation(id(), desk.project);
  const elsewhere = new Conversation(id(), join(desk.folder, "secret"));

  beforeAll(async () => {
    first.named("The first").prompt("What is one?").says("One is first.").write(desk);
    second.named("The second").prompt("What is two?").says("Two is second.").write(desk);
    elsewhere.named("Not yours").prompt("hidden").says("hidden").write(desk);
    desk.flags = ["--allowed-root", desk.project];
    await desk.start();
  });
  afterAll(() => desk.clear());

  test("1. history persists: after a refresh the messages are still visible", async () => {
    const { page, troubles } = await tab(desk);
    await show(page, `session=${first.session}`);
    await ready(page, "One is first.");
    const before = await said(page);
    await page.reload();
    await ready(page, "One is first.");
    expect(await said(page)).toEqual(before);
    expect(before).toEqual(["What is one?", "One is first."]);
    expect(troubles).toEqual([]);
  });

  test("2. correct session: each session shows its own history", async () => {
    const { page } = await tab(desk);
    for (const [talk, words] of [
      [first, ["What is one?", "One is first."]],
      [second, ["What is two?", "Two is second."]],
      [first, ["What is one?", "One is first."]],
    ] as const) {
      await show(page, `session=${talk.session}`);
      await ready(page, words[1]);
      expect(await said(page)).toEqual(words);
    }
    await page.goBack();
    await ready(page, "Two is second.");
    expect(await said(page)).toEqual(["What is two?", "Two is second."]);
  });

  test("3. real-time works: what another program writes appears", async () => {
    const { page } = await tab(desk);
    await show(page, `session=${second.session}`);
    await ready(page, "Two is second.");
    second.prompt("And three?").says("Three is live.").append(desk);
    await ready(page, "Three is live.");
    expect((await said(page)).slice(-2)).toEqual(["And three?", "Three is live."]);
  });

  test("4. no duplicates: the socket is cut after every message, and each message is there once", async () => {
    const talk = new Conversation(id(), desk.project).named("Cut").prompt("Begin").says("reply 0.");
    talk.write(desk);
    const context = await (await browser()).newContext();
    const page = await context.newPage();
    await page.addInitScript(() => {
      const Whole = window.WebSocket;
      window.WebSocket = class extends Whole {
        constructor(address: string | URL) {
          super(address);
          let heard = 0;
          this.addEventListener("message", (event) => {
            // Heartbeats and greetings are none; each of the others is the last one of its socket.
            if (String(event.data).includes('"message.upsert"') && ++heard >= 1) this.close();
          });
        }
      };
    });
    await page.goto(desk.open());
    await show(page, `session=${talk.session}`);
    await ready(page, "reply 0.");
    for (let number = 1; number <= 8; number++) {
      talk.prompt("continue").says(`reply ${number}.`).append(desk);
      await ready(page, `reply ${number}.`);
    }
    const expected = [
      "Begin",
      "reply 0.",
      ...Array.from({ length: 8 }, (_, at) => ["continue", `reply ${at + 1}.`]).flat(),
    ];
    expect(await said(page)).toEqual(expected);
    await page.reload();
    await ready(page, "reply 8.");
    expect(await said(page)).toEqual(expected);
    await context.close();
  });

  test("5. session discovery: all sessions of the allowed directories, and no others", async () => {
    const { page } = await tab(desk);
    await ready(page, "The first");
    const names = await page.locator(".sess .nm b").allInnerTexts();
    expect(names.filter((name) => name.startsWith("The ")).sort()).toEqual(["The first", "The second"]);
    expect(names).not.toContain("Not yours");
    await show(page, `session=${elsewhere.session}`);
    await ready(page, "There is no such session");
  });

  test("6. URL persistence: the address says what is shown, and a link leads to its message", async () => {
    const { page } = await tab(desk);
    await ready(page, "The first");
    await page.locator(".sess", { hasText: "The first" }).click();
    await ready(page, "One is first.");
    expect(new URL(page.url()).hash).toBe(`#session=${first.session}`);
    expect(page.url()).not.toContain("boot");
    await page.goto(`${desk.address}/#session=${first.session}&msg=${first.uuid(1)}`);
    await page.locator(`.current[data-uuid="${first.uuid(1)}"]`).waitFor();
    await page.reload();
    await page.locator(`.current[data-uuid="${first.uuid(1)}"]`).waitFor();
  });

  test("a link that is followed before its session is there shows it as soon as it is", async () => {
    const { page } = await tab(desk);
    const late = new Conversation(id(), desk.project).named("Late").prompt("late?").says("Late, but here.");
    await show(page, `session=${late.session}`);
    await ready(page, "There is no such session");
    late.write(desk);
    await ready(page, "Late, but here.");
    expect(await said(page)).toEqual(["late?", "Late, but here."]);
  });

  test("a one-time address logs in where the page is open and logged out", async () => {
    const { page, context } = await tab(desk, { url: desk.address });
    await ready(page, "You are not logged in");
    await page.evaluate((url) => {
      location.href = url;
    }, desk.open());
    await ready(page, "The first");
    expect(page.url()).not.toContain("boot");
    await context.close();
  });

  test("7. error handling: a corrupt session shows what is wrong, and the others still work", async () => {
    // Nobody knows the directory of such a session, so that it is not shown where directories are limited.
    const everywhere = new Desk();
    const broken = new Conversation(id(), everywhere.project);
    const sound = new Conversation(id(), everywhere.project).named("Sound").prompt("x").says("all is well");
    sound.write(everywhere);
    mkdirSync(dirname(broken.path(everywhere)), { recursive: true });
    writeFileSync(broken.path(everywhere), "\0".repeat(300));
    await everywhere.start();
    const { page, troubles } = await tab(everywhere);
    await page.locator(".sess", { hasText: "damaged" }).click();
    await ready(page, "Nothing of this session can be read");
    // Looking at every line shows what is there, and changes nothing about that.
    await page.locator(".bytes mark", { hasText: "00 × 300" }).waitFor();
    await ready(page, "nothing in the file can be read");
    await pictured(page, "unreadable");
    await show(page, `session=${sound.session}`);
    await ready(page, "all is well");
    expect(troubles).toEqual([]);
    await everywhere.clear();
  });
});

test("the first load is below 150 kB", () => {
  const dist = resolve(import.meta.dirname, "../dist");
  const html = readFileSync(join(dist, "index.html"), "utf8");
  const named = [...html.matchAll(/(?:src|href)="\/(assets\/[^"]+)"/g)].map((match) => match[1] ?? "");
  expect(named.length).toBeGreaterThanOrEqual(2);
  const sizes = ["index.html", ...named].map((name) => gzipSync(readFileSync(join(dist, name))).length);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(150_000);
  // Nothing is inline: the policy would refuse it.
  expect(html).not.toMatch(/<style|<script(?![^>]*src)|style="|\son\w+="/);
});

describe("a session that is damaged in the middle and at its end", () => {
  const desk = new Desk();
  const talk = new Conversation(id(), desk.project);
  beforeAll(async () => {
    talk.named("Torn").prompt("before").says("still there").prompt("after").says("also there");
    const path = talk.write(desk);
    const lines = readFileSync(path, "utf8").split("\n");
    lines.splice(3, 0, '{"type":"assistant","uuid":"\0\0\0\0');
    writeFileSync(path, lines.join("\n"));
    appendFileSync(path, '{"type":"user","message":{"content":"torn');
    await desk.start();
  });
  afterAll(() => desk.clear());

  test("shows everything that can be read, and where it cannot", async () => {
    const { page, troubles } = await tab(desk);
    await show(page, `session=${talk.session}`);
    await ready(page, "2 places in this session file cannot be read");
    expect(await said(page)).toEqual(["before", "still there", "after", "also there"]);
    expect(await page.locator(".fray").count()).toBe(2);
    expect(troubles).toEqual([]);
  });
});

describe("hostile transcripts", () => {
  const desk = new Desk();
  const talks: Conversation[] = [];
  beforeAll(async () => {
    // Every payload in every field: names, prompts, replies, thoughts, commands, paths, outputs, pictures, branches.
    for (let from = 0; from < HOSTILE.length; from += 40) {
      const talk = new Conversation(id(), desk.project, { branch: HOSTILE[from] ?? "x" });
      talk.named(HOSTILE[from + 1] ?? "x");
      for (const [at, text] of HOSTILE.slice(from, from + 40).entries()) {
        talk.prompt(text).reply({ type: "text", text }, { type: "thinking", thinking: text });
        talk.tool("Bash", { command: text, description: text }, text, { isError: true, id: `a${from}.${at}` });
        talk.tool("Edit", { file_path: text, old_string: text, new_string: `${text}!` }, text, {
          id: text.slice(0, 40) + at,
        });
        talk.tool(
          text.slice(0, 60),
          { [text.slice(0, 60)]: text, url: text },
          [
            { type: "text", text },
            { type: "image", source: { type: "url", url: text } },
          ],
          { isError: true, id: `b${from}.${at}` },
        );
        talk.tool(
          "TodoWrite",
          { todos: [{ content: text, status: text }] },
          { odd: text },
          { isError: true, id: `c${from}.${at}` },
        );
        talk.reply(
          { type: "image", source: { type: "base64", media_type: "image/svg+xml", data: text } },
          { type: text, [text]: text },
        );
      }
      const path = talk.write(desk);
      // What is no entry is shown too, and so are subagents.
      for (const text of HOSTILE.slice(from, from + 40)) appendFileSync(path, `${text.replaceAll("\n", " ")}\0\n`);
      const strand = join(path.replace(/\.jsonl$/, ""), "subagents/agent-abc123");
      mkdirSync(dirname(strand), { recursive: true });
      const words = HOSTILE[from + 2] ?? "x";
      const within = new Conversation(talk.session, desk.project).prompt(words).says(words);
      writeFileSync(`${strand}.jsonl`, within.lines.map((line) => line.replace("false", "true")).join("\n"));
      writeFileSync(`${strand}.meta.json`, JSON.stringify({ agentType: words, description: words }));
      talks.push(talk);
    }
    await desk.start();
  });
  afterAll(() => desk.clear());

  test(`run nothing and load nothing: ${HOSTILE.length} payloads in every field`, async () => {
    expect(HOSTILE.length).toBeGreaterThanOrEqual(300);
    const { page, troubles } = await tab(desk);
    await page.locator(".sess").first().waitFor();
    for (const talk of talks) {
      await show(page, `session=${talk.session}`);
      await page.locator(".thread .row").first().waitFor();
      await page.locator(`[data-uuid="${talk.lastUuid}"], .row.rest`).first().waitFor();
      // From the end to the beginning, with everything opened on the way.
      for (;;) {
        await page.evaluate(() => {
          for (const button of document.querySelectorAll<HTMLButtonElement>('.thread .call[aria-expanded="false"]'))
            button.click();
          for (const element of document.querySelectorAll(".thread a, .thread b, .thread code")) {
            element.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
          }
        });
        const isTop = await page.evaluate(() => {
          const scroller = document.querySelector(".scroll");
          if (!scroller) return true;
          scroller.scrollTop -= scroller.clientHeight * 4;
          return scroller.scrollTop === 0;
        });
        await page.evaluate(() => new Promise((then) => requestAnimationFrame(() => requestAnimationFrame(then))));
        if (isTop) break;
      }
      // The places that cannot be read, which are at the end, their bytes, and the subagents.
      await page.keyboard.press("G");
      await page.locator(".fray .bytes").first().waitFor();
      await page.getByRole("button", { name: "Raw bytes" }).first().click();
      await page.locator(".dump", { hasText: /^\d{8} / }).waitFor();
      for (const name of ["Subagents 1", "Problems"]) await page.getByRole("tab", { name }).click();
      const found = await page.evaluate(() => ({
        ran: (window as { __ran?: number }).__ran ?? 0,
        elements: document.querySelectorAll(
          "script:not([src]), iframe, object, embed, style, base, meta[http-equiv], form[action], link:not([rel=stylesheet]):not([rel=icon]), .thread svg script, [onerror], [onload], [onclick]",
        ).length,
        links: [...document.querySelectorAll("a[href]")]
          .map((it) => (it as HTMLAnchorElement).protocol)
          .filter((it) => !["http:", "https:", "mailto:"].includes(it)),
        escapes: (document.querySelector(".thread")?.textContent ?? "").includes("\u001b"),
      }));
      expect(found).toEqual({ ran: 0, elements: 0, links: [], escapes: false });
    }
    expect(troubles).toEqual([]);
  });
});

describe("ten thousand sessions", () => {
  const desk = new Desk();
  beforeAll(async () => {
    for (let number = 0; number < 10_000; number++) {
      const cwd = join(desk.folder, `project-${number % 40}`);
      new Conversation(id(), cwd, { minutesAgo: number })
        .named(`Session number ${number}`)
        .prompt(`Do thing ${number}`)
        .says("Done.")
        .write(desk, number);
    }
    await desk.start();
  });
  afterAll(() => desk.clear());

  test("are listed, filtered and scrolled with few elements in the document", async () => {
    const { page, troubles } = await tab(desk, { theme: "dark" });
    await page.locator(".chips", { hasText: "All 10,000" }).waitFor();
    expect(await page.locator(".sess:not(.head)").count()).toBeLessThan(120);
    await pictured(page, "list-10000");
    await page.keyboard.press("/");
    await page.keyboard.type("number 4321");
    await page.locator(".chips", { hasText: "1 of 10,000" }).waitFor();
    expect(await page.locator(".sess .nm b").allInnerTexts()).toEqual(["Session number 4321"]);
    await page.locator(".sess:not(.head)").click();
    await ready(page, "Do thing 4321");
    // The list beside the thread holds them all too.
    expect(await page.locator(".side .item").count()).toBeLessThan(120);
    await page.goBack();
    await page.getByRole("searchbox").fill("");
    await page.locator(".chips", { hasText: "All 10,000" }).waitFor();
    const end = await page.locator(".rows").evaluate((it) => {
      it.scrollTop = it.scrollHeight;
      return it.scrollTop;
    });
    expect(end).toBeGreaterThan(300_000);
    await page.locator(".sess", { hasText: "Session number 9999" }).waitFor();
    expect(troubles).toEqual([]);
  });
});

describe("a session of twenty thousand messages", () => {
  const desk = new Desk();
  const large = long(desk);
  beforeAll(async () => {
    large.write(desk);
    await desk.start();
  });
  afterAll(() => desk.clear());

  test("is scrolled from end to end with few rows in the document", async () => {
    const { page, troubles } = await tab(desk);
    await show(page, `session=${large.session}`);
    await ready(page, "the large end");
    await scrollToTop(page);
    await ready(page, "Question 0:");
    expect(await page.locator(".thread .row").count()).toBeLessThan(400);
    await page.goto(`${desk.address}/#session=${large.session}&msg=${large.uuid(9000)}`);
    await page.locator(`.current[data-uuid="${large.uuid(9000)}"]`).waitFor();
    await page.keyboard.press("G");
    await ready(page, "the large end");
    expect(troubles).toEqual([]);
  });
});

describe("for everybody", () => {
  const desk = new Desk();
  const talk = flaky(desk);
  beforeAll(async () => {
    talk.write(desk);
    await desk.start();
  });
  afterAll(() => desk.clear());

  for (const theme of ["light", "dark"] as const) {
    for (const size of [undefined, PHONE]) {
      test(`axe finds nothing, ${theme}${size ? ", on a phone" : ""}`, async () => {
        // The policy of the page would refuse axe itself.
        const { page } = await tab(desk, { theme, ...(size ? { size } : {}), more: { bypassCSP: true } });
        const check = async (where: string) => expect(await violations(page), where).toEqual([]);
        await ready(page, "Flaky retry test");
        await check("the list");
        await show(page, `session=${talk.session}`);
        await ready(page, "as unkind as CI");
        await check("a session");
        await show(page, "attention");
        await ready(page, "Nothing needs you");
        await check("attention");
        await show(page, "archived");
        await ready(page, "Nothing is in the archive");
        await check("the archive");
        if (!size) await page.keyboard.press("?");
        if (!size) await check("the keys");
      });
    }
  }

  test("a subagent opens in place, and an abandoned branch stays visible beside the thread", async () => {
    const other = new Conversation(id(), desk.project).named("Branches").prompt("look around");
    other.tool("Task", { description: "find the callers", prompt: "p" }, "Two callers.", { id: "toolu_sub" });
    const fork = other.lastUuid;
    other.prompt("the way not taken").says("a reply nobody follows");
    other.from(fork).prompt("the way taken").says("the end that counts");
    const path = other.write(desk);
    const within = new Conversation(other.session, desk.project).prompt("p");
    within.tool("Grep", { pattern: "Backoff::next" }, "src/a.rs").says("inside the strand");
    const strand = join(path.replace(/\.jsonl$/, ""), "subagents/agent-abc123");
    mkdirSync(dirname(strand), { recursive: true });
    const lines = within.lines.map((line) =>
      JSON.stringify({ ...JSON.parse(line), isSidechain: true, agentId: "abc123" }),
    );
    writeFileSync(`${strand}.jsonl`, `${lines.join("\n")}\n`);
    writeFileSync(
      `${strand}.meta.json`,
      JSON.stringify({ agentType: "Explore", description: "find the callers", toolUseId: "toolu_sub" }),
    );
    const { page, troubles } = await tab(desk);
    await show(page, `session=${other.session}`);
    await ready(page, "the end that counts");
    expect(await said(page)).toEqual(["look around", "the way taken", "the end that counts"]);
    await page
      .locator(".thread")
      .getByRole("button", { name: /Subagent/ })
      .click();
    await ready(page, "inside the strand");
    await page
      .locator(".thread")
      .getByRole("button", { name: /Subagent/ })
      .click();
    await page.getByText("inside the strand").waitFor({ state: "detached" });
    // It opens from the details too.
    await page.getByRole("tab", { name: "Subagents 1" }).click();
    await page.locator(".info").getByRole("button", { name: "find the callers" }).click();
    await ready(page, "inside the strand");
    await page.getByRole("tab", { name: "Changes" }).click();
    await page.locator(".back").getByRole("button", { name: "Show" }).click();
    await page.locator(".back .pale", { hasText: "a reply nobody follows" }).waitFor();
    await pictured(page, "branches");
    expect(troubles).toEqual([]);
  });

  test("keys lead through a session", async () => {
    const { page, troubles } = await tab(desk);
    await show(page, `session=${talk.session}`);
    await ready(page, "as unkind as CI");
    await page.keyboard.press("[");
    await page.locator(".prompt.current", { hasText: "Leave the jitter alone" }).waitFor();
    await page.keyboard.press("[");
    await page.locator(".prompt.current", { hasText: "Makes sense" }).waitFor();
    expect(new URL(page.url()).hash).toContain("&msg=");
    await page.keyboard.press("]");
    await page.locator(".prompt.current", { hasText: "Leave the jitter alone" }).waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("unkind");
    await page.locator(".find [role=status]", { hasText: "1 of 1" }).waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    await page.keyboard.press("Escape");
    // And through the list.
    await show(page, "");
    await page.locator(".sess", { hasText: "Flaky retry test" }).waitFor();
    for (const key of ["j", "j", "k"]) await page.keyboard.press(key);
    const focused = await page.evaluate(() => document.activeElement?.querySelector(".nm b")?.textContent);
    expect(focused).toBe(await page.locator(".rows .sess .nm b").first().textContent());
    await page.keyboard.press("Enter");
    await page.waitForURL(/#session=/);
    expect(troubles).toEqual([]);
  });

  test("a session is renamed, archived, deleted and brought back", async () => {
    const { page, troubles } = await tab(desk);
    const other = new Conversation(id(), desk.project).named("To be deleted").prompt("x").says("kept for undo");
    other.write(desk);
    await page.locator(".sess", { hasText: "To be deleted" }).click();
    await ready(page, "kept for undo");
    await page.getByRole("button", { name: "More" }).click();
    await page.getByRole("menuitem", { name: "Rename" }).click();
    await page.getByLabel("Name of the session").fill("Another name");
    await page.keyboard.press("Enter");
    await page.locator("h1", { hasText: "Another name" }).waitFor();
    await page.getByRole("button", { name: "More" }).click();
    await page.getByRole("menuitem", { name: "Move to trash" }).click();
    await page.getByRole("button", { name: "Undo" }).click();
    await ready(page, "kept for undo");
    await page.getByRole("button", { name: "More" }).click();
    await page.getByRole("menuitem", { name: "Archive" }).click();
    await page.locator(".toast", { hasText: "Archived" }).waitFor();
    await page.locator(".sess", { hasText: "Another name" }).waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Undo" }).click();
    await page.locator(".sess", { hasText: "Another name" }).waitFor();
    expect(troubles).toEqual([]);
  });

  test("columns are as wide as somebody made them, also after a refresh", async () => {
    const { page, troubles } = await tab(desk);
    await show(page, `session=${talk.session}`);
    await ready(page, "as unkind as CI");
    const width = (name: string) => page.locator(name).evaluate((it) => it.getBoundingClientRect().width);
    expect([await width(".side"), await width(".info")]).toEqual([260, 320]);
    await page.getByRole("separator", { name: "Width of the list of sessions" }).focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    const edge = await page.getByRole("separator", { name: "Width of the details" }).boundingBox();
    await page.mouse.move((edge?.x ?? 0) + 3, 400);
    await page.mouse.down();
    await page.mouse.move((edge?.x ?? 0) + 3 - 50, 400, { steps: 3 });
    await page.mouse.up();
    await page.reload();
    await ready(page, "as unkind as CI");
    expect([await width(".side"), await width(".info")]).toEqual([292, 370]);
    expect(troubles).toEqual([]);
  });

  test("the archive shows what was put away, reads it, and gives it back", async () => {
    const { page, troubles } = await tab(desk);
    const other = new Conversation(id(), desk.project).named("Put away").prompt("x").says("still readable");
    other.write(desk);
    await page.locator(".sess", { hasText: "Put away" }).click();
    await ready(page, "still readable");
    await page.getByRole("button", { name: "More" }).click();
    await page.getByRole("menuitem", { name: "Archive" }).click();
    await page.getByRole("link", { name: "Archived" }).click();
    await page.locator(".sess", { hasText: "Put away" }).waitFor();
    expect(new URL(page.url()).hash).toBe("#archived");
    expect(await page.locator(".sess .nm b").allInnerTexts()).toEqual(["Put away"]);
    await pictured(page, "archive");
    // A link to it works in a page that has never seen it.
    await page.goto("about:blank");
    await page.goto(`${desk.address}/#session=${other.session}`);
    await ready(page, "still readable");
    await page.locator("h1", { hasText: "Put away" }).waitFor();
    await ready(page, "This session is in the archive.");
    await show(page, "archived");
    await page.getByRole("button", { name: "Bring back Put away" }).click();
    await ready(page, "Nothing is in the archive");
    await show(page, "");
    await page.locator(".sess", { hasText: "Put away" }).waitFor();
    expect(troubles).toEqual([]);
  });

  test("pictures are shown from their bytes, and from nowhere else", async () => {
    const { page, troubles } = await tab(desk);
    const data =
      "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFklEQVR4nGP8z8DAwMDAxAADLAwMDAAMDQECh8yH3wAAAABJRU5ErkJggg==";
    const source = { type: "base64", media_type: "image/png", data };
    const other = new Conversation(id(), desk.project).named("Pictures");
    other.add("user", {
      role: "user",
      content: [
        { type: "text", text: "look at this" },
        { type: "image", source },
      ],
    });
    other.tool("Read", { file_path: `${desk.project}/x.png` }, [{ type: "image", source }]);
    other.tool("WebFetch", { url: "http://evil.invalid" }, [
      { type: "image", source: { type: "url", url: "http://evil.invalid/x.png" } },
    ]);
    other.says("Seen. ![far away](http://evil.invalid/y.png)");
    other.write(desk);
    await show(page, `session=${other.session}`);
    await ready(page, "Seen.");
    for (const name of ["read x.png", "fetched"]) await page.locator(".call", { hasText: name }).click();
    const pictures = page.locator(".thread img");
    await page.waitForFunction(() => document.querySelectorAll(".thread img").length === 2);
    expect(await pictures.evaluateAll((all) => all.map((it) => (it as HTMLImageElement).src.slice(0, 22)))).toEqual([
      "data:image/png;base64,",
      "data:image/png;base64,",
    ]);
    await ready(page, "[a picture that is not shown]");
    expect(troubles).toEqual([]);
  });
});
