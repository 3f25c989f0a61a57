/** Driving sessions from the page: the real keeper, the real CLI, and an API that answers as the test says. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Drive, hold, idle, say } from "./driving.ts";
import { PHONE, pictured, show, type Tab, tab } from "./kit.ts";

const drive = await Drive.make();
const { api, desk } = drive;
let one: Tab;

beforeAll(async () => {
  if (!drive.hasAgent) return;
  await desk.start();
  one = await tab(desk);
});

// What a test that failed left behind is not the next one's.
beforeEach(() => api.forget());
afterAll(() => drive.clear());

describe.runIf(drive.hasAgent)("a session that is driven from the page", () => {
  test("shows each message once, live, and after a refresh in the middle of a turn", async () => {
    const { page } = one;
    await drive.begin(page, "say hello", "Hello there.");
    await say(page, "continue");
    await page.locator("[data-optimistic], .prompt:not(.mine) >> text=continue").first().waitFor();
    const answer = await api.asked();
    answer.text().more("First half, ");
    await page.getByText("First half,").waitFor();
    await page.reload();
    await page.getByText("First half,").waitFor();
    expect(await page.getByText("First half,").count()).toBe(1);
    expect(await page.locator(".prompt", { hasText: "continue" }).count()).toBe(1);
    answer.more("second half.").stopBlock().end();
    await page.getByText("First half, second half.").waitFor();
    await idle(page);
    await page.reload();
    await page.getByText("First half, second half.").waitFor();
    expect(await page.getByText("First half").count()).toBe(1);
    expect(await page.locator(".prompt").count()).toBe(2);
  });

  test("takes two identical prompts for two", async () => {
    const { page } = one;
    await drive.begin(page, "twice", "Once.");
    for (const reply of ["Second.", "Third."]) {
      await say(page, "continue");
      (await api.asked()).say(reply);
      await page.locator(".prose", { hasText: reply }).waitFor();
      await idle(page);
    }
    expect(await page.locator(".prompt", { hasText: "continue" }).count()).toBe(2);
    expect(await page.locator("[data-optimistic]").count()).toBe(0);
  });

  test("queues what is said while it works, lets it be taken back, and can be interrupted", async () => {
    const { page } = one;
    await drive.begin(page, "work", "Begun.");
    await say(page, "go on");
    const answer = await api.asked();
    answer.text().more("Working on it");
    await page.getByText("Working on it").waitFor();
    await say(page, "then this");
    await say(page, "and that");
    await page.locator(".waiting-prompts li", { hasText: "and that" }).waitFor();
    await pictured(page, "live");
    await page.locator(".waiting-prompts li", { hasText: "and that" }).getByRole("button").click();
    await page.locator(".waiting-prompts li", { hasText: "and that" }).waitFor({ state: "detached" });
    expect(await page.locator(".waiting-prompts li").count()).toBe(1);
    await page.locator(".waiting-prompts li").getByRole("button").click();
    await page.locator(".waiting-prompts").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Interrupt" }).click();
    await page.locator(".interrupted").first().waitFor();
    await idle(page);
  });

  test("keeps what waits when the session is let go, and sends it when told to", async () => {
    const { page } = one;
    const session = await drive.begin(page, "leave", "Begun.");
    await say(page, "go on");
    (await api.asked()).text().more("Working on it");
    await page.getByText("Working on it").waitFor();
    await say(page, "what I still wanted");
    await page.locator(".waiting-prompts li", { hasText: "what I still wanted" }).waitFor();
    expect(await page.getByRole("button", { name: "Send now" }).count()).toBe(0);
    await desk.api(`/sessions/${session}/lease`, "POST", { action: "release" });
    await page.getByRole("button", { name: "Send now" }).waitFor();
    await page.reload();
    await page.locator(".waiting-prompts li", { hasText: "what I still wanted" }).waitFor();
    await pictured(page, "left");
    await page.getByRole("button", { name: "Send now" }).click();
    (await api.asked()).say("Got it.");
    await page.getByText("Got it.").waitFor();
    await page.locator(".waiting-prompts").waitFor({ state: "detached" });
    await idle(page);
  });

  test("asks before it runs a command, and nothing runs until somebody holds the button", async () => {
    const { page } = one;
    await drive.begin(page, "permissions", "Ready.");
    await say(page, "make a file");
    const file = join(desk.project, "made.txt");
    (await api.asked()).tool("Bash", { command: `touch ${file}`, description: "Make a file" }).end();
    await page.locator(".request").waitFor();
    expect(await page.locator(".request pre").textContent()).toContain(`touch ${file}`);
    expect(await page.title()).toMatch(/^\(1\) /);
    await pictured(page, "asked");
    // A click is not enough, and neither is a key that goes down once. Both halves are sent at once: a slow test holds nothing.
    const button = page.getByRole("button", { name: "Hold to allow once" });
    await button.click({ trial: true });
    await button.hover();
    await Promise.all([page.mouse.down(), page.mouse.up()]);
    await button.focus();
    await Promise.all([page.keyboard.down("Enter"), page.keyboard.up("Enter")]);
    expect(existsSync(file)).toBe(false);
    const pending = await desk.api<{ items: unknown[] }>("/attention?state=pending");
    expect(pending.items.length).toBe(1);
    await hold(page, "Hold to allow once");
    (await api.asked()).say("Made it.");
    await page.getByText("Made it.").waitFor();
    expect(existsSync(file)).toBe(true);
    await idle(page);
    expect(await page.title()).not.toMatch(/^\(/);
  });

  test("denies with a reason, from a phone", async () => {
    const { page } = one;
    await drive.begin(page, "deny me", "Ready.");
    await say(page, "remove everything");
    (await api.asked()).tool("Bash", { command: "rm -rf ./\u202egpj.tixe\u200b", description: "Clean up" }).end();
    const phone = await tab(desk, { size: PHONE, theme: "dark" });
    await phone.page.getByRole("link", { name: "Attention" }).click();
    await phone.page.locator(".request").waitFor();
    expect(await phone.page.locator(".hidden-character").allInnerTexts()).toEqual(["U+202E", "U+200B"]);
    await pictured(phone.page, "asked-phone");
    await phone.page.getByRole("button", { name: "Deny and say why" }).click();
    await phone.page.getByLabel("What Claude should do instead").fill("use the fixture");
    await phone.page.getByRole("button", { name: "Deny", exact: true }).click();
    await phone.page
      .getByText("Nothing needs you")
      .or(phone.page.locator(".outcome", { hasText: "Denied" }))
      .first()
      .waitFor();
    (await api.asked()).say("As you wish.");
    await page.getByText("As you wish.").waitFor();
    await page.locator(".card.failed", { hasText: "use the fixture" }).waitFor();
    expect(phone.troubles).toEqual([]);
    await phone.context.close();
    await idle(page);
  });

  test("takes the first of two decisions, and both tabs see it", async () => {
    const { page } = one;
    const session = await drive.begin(page, "two tabs", "Ready.");
    const other = await tab(desk);
    await show(other.page, `session=${session}`);
    await say(page, "touch it");
    (await api.asked()).tool("Bash", { command: "touch two-tabs.txt", description: "Touch it" }).end();
    await page.locator(".request").waitFor();
    await other.page.locator(".request").waitFor();
    const pending = await desk.api<{ items: { shown: { id: string }; digest: string }[] }>("/attention?state=pending");
    const [request] = pending.items;
    await hold(other.page, "Hold to allow once");
    await page.locator(".request").waitFor({ state: "detached" });
    const late = await desk.api<{ code: string }>(`/attention/${request?.shown.id}/decision`, "POST", {
      decision: "deny",
      shown_digest: request?.digest,
    });
    expect(late.code).toBe("already-decided");
    (await api.asked()).say("Done in the other tab.");
    for (const it of [page, other.page]) await it.getByText("Done in the other tab.").waitFor();
    expect(await page.getByText("Done in the other tab.").count()).toBe(1);
    await other.context.close();
  });

  test("shows a request as lost when its keeper dies, and never as allowed", async () => {
    const { page } = one;
    const session = await drive.begin(page, "power cut", "Ready.");
    await say(page, "run it");
    (await api.asked()).tool("Bash", { command: "touch never.txt", description: "Never" }).end();
    await page.locator(".request").waitFor();
    await desk.stop("SIGKILL");
    await page.getByText("The keeper does not answer.").waitFor();
    await pictured(page, "stale");
    await desk.start();
    // The page comes back by itself.
    await page.getByText("The keeper does not answer.").waitFor({ state: "detached" });
    await page.locator(".request").waitFor({ state: "detached" });
    await show(page, "attention");
    await page.getByText("Lost when the keeper stopped").first().waitFor();
    expect(existsSync(join(desk.project, "never.txt"))).toBe(false);
    await show(page, `session=${session}`);
    await page.getByText("Ready.").waitFor();
    expect(await page.locator(".asked:not(.over)").count()).toBe(0);
  });

  test("caused no error, no refused policy and no request to elsewhere", () => {
    expect(one.troubles).toEqual([]);
  });
});
