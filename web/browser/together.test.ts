import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { composer, Drive, hold, idle, say } from "./driving.ts";
import { PHONE, pictured, show, type Tab, tab } from "./kit.ts";

const drive = await Drive.make();
const { api, desk } = drive;
let one: Tab;

beforeAll(async () => {
  if (!drive.hasAgent) return;
  await desk.start();
  one = await tab(desk);
});
beforeEach(() => api.forget());
afterAll(() => drive.clear());

const QUESTIONS = {
  questions: [
    {
      question: "Which database?",
      header: "Database",
      multiSelect: false,
      options: [
        { label: "Postgres", description: "As in production" },
        { label: "SQLite", description: "One file" },
      ],
    },
    {
      question: "Which checks?",
      header: "Checks",
      multiSelect: true,
      options: [
        { label: "Types", description: "tsc" },
        { label: "Lint", description: "biome" },
        { label: "Tests", description: "vitest" },
      ],
    },
  ],
};

describe.runIf(drive.hasAgent)("a session and the people around it", () => {
  test("a question is answered with choices, and Claude gets them", async () => {
    const { page } = one;
    await drive.begin(page, "questions");
    await say(page, "set it up");
    (await api.asked()).tool("AskUserQuestion", QUESTIONS).end();
    await page.getByRole("heading", { name: "Claude has a question" }).waitFor();
    const answer = page.getByRole("button", { name: "Answer", exact: true });
    expect(await answer.isDisabled()).toBe(true);
    await page.getByLabel("SQLite").check();
    await page.getByLabel("Types").check();
    await page.getByLabel("Tests").check();
    await pictured(page, "question");
    await answer.click();
    const next = await api.asked();
    expect(next.heard).toContain("SQLite");
    expect(next.heard).toContain("Types, Tests");
    next.say("SQLite it is.");
    await page.getByText("SQLite it is.").waitFor();
    await idle(page);
  });

  test("a plan is read as prose, sent back with a reason, and then begun", async () => {
    const { page } = one;
    await drive.begin(page, "plans", "Ready.", { permission_mode: "plan" });
    await say(page, "plan it");
    // Claude writes its plan to a file that it is told of.
    const first = await api.asked();
    const file = first.told.match(/[^\s"`]+\/plans\/[^\s"`]+\.md/)?.[0];
    first.tool("Write", { file_path: file, content: "## The plan\n\n1. Read **first**\n2. Then write" }).end();
    (await api.asked()).tool("ExitPlanMode", {}).end();
    await page.getByRole("heading", { name: "Claude proposes a plan" }).waitFor();
    expect(await page.locator(".request .plan-text li").allInnerTexts()).toEqual(["Read first", "Then write"]);
    await pictured(page, "plan");
    await page.getByRole("button", { name: "Say what to change" }).click();
    await page.getByLabel("What Claude should do instead").fill("measure before reading");
    await page.getByRole("button", { name: "Keep planning" }).click();
    const next = await api.asked();
    expect(next.heard).toContain("measure before reading");
    next.tool("ExitPlanMode", {}).end();
    await hold(page, "Hold to begin");
    (await api.asked()).say("Measuring.");
    await page.getByText("Measuring.").waitFor();
    await idle(page);
  });

  test("a notification comes when nobody looks, and only where it was wanted and permitted", async () => {
    const context = await tab(desk);
    await context.context.grantPermissions(["notifications"], { origin: desk.address });
    await context.page.addInitScript(() => {
      const shown: string[] = [];
      (window as unknown as { __notes: string[] }).__notes = shown;
      const Real = window.Notification;
      window.Notification = class extends Real {
        constructor(title: string, options?: NotificationOptions) {
          super(title, options);
          shown.push(title);
        }
      };
      // The page of a test is always in front.
      document.hasFocus = () => false;
    });
    await context.page.goto(`${desk.address}/#attention`);
    await context.page.reload();
    const notes = () => context.page.evaluate(() => (window as unknown as { __notes: string[] }).__notes);
    const ask = async (name: string): Promise<void> => {
      await drive.begin(one.page, name);
      await say(one.page, "touch it");
      (await api.asked()).tool("Bash", { command: "touch note.txt", description: "Touch" }).end();
      await context.page.locator(".request").waitFor();
    };
    const deny = async (): Promise<void> => {
      await context.page.getByRole("button", { name: "Deny", exact: true }).click();
      (await api.asked()).say("Then not.");
      await one.page.getByText("Then not.").waitFor();
      await idle(one.page);
    };
    await ask("unwanted");
    expect(await notes()).toEqual([]);
    await deny();
    await context.page.reload();
    await context.page.getByRole("button", { name: "Notify me when one does" }).click();
    await context.page.getByRole("button", { name: "Notify me when one does" }).waitFor({ state: "detached" });
    await ask("wanted");
    expect(await notes()).toEqual(["wanted wants to run a command"]);
    await deny();
    expect(context.troubles).toEqual([]);
    await context.context.close();
  });

  test("a session that a terminal drives is watched, forked, and taken over", async () => {
    const { page } = one;
    const session = await drive.begin(page, "terminal", "Begun here.");
    await desk.api(`/sessions/${session}/lease`, "POST", { action: "release" });
    const terminal = drive.terminal(session, "from the terminal");
    const answer = await api.asked();
    await page.locator(".bar .state", { hasText: "Open elsewhere" }).waitFor();
    await page.getByText("Open in a terminal").waitFor();
    expect(await composer(page).count()).toBe(0);
    // Watched: what happens there shows here.
    await page.locator(".prompt", { hasText: "from the terminal" }).waitFor();
    await pictured(page, "elsewhere");
    // Forked: the thread parts, on both sides.
    await page.locator(".elsewhere").getByRole("button", { name: "Fork" }).click();
    await page.locator(".fork.origin", { hasText: "terminal" }).waitFor();
    await say(page, "another way");
    (await api.asked()).say("Forked it.");
    await page.getByText("Forked it.").waitFor();
    await idle(page);
    await page.locator(".kin li", { hasText: "terminal" }).first().waitFor();
    await pictured(page, "fork");
    await page.locator(".fork.origin").getByRole("link").click();
    await page.locator(".row.fork:not(.origin)").waitFor();
    await pictured(page, "forked");
    // Taken over: a decision.
    await page.getByRole("button", { name: "Take over" }).click();
    await composer(page).waitFor();
    const over = new Promise((then) => terminal.once("exit", then));
    answer.say("Said in the terminal.");
    await page.getByText("Said in the terminal.").waitFor();
    await over;
    await say(page, "ours now");
    (await api.asked()).say("Yours.");
    await page.getByText("Yours.").waitFor();
  });

  test("two tabs and a phone follow the same turn, and one decision counts for all", async () => {
    const { page } = one;
    const session = await drive.begin(page, "together");
    const other = await tab(desk, { theme: "dark" });
    const phone = await tab(desk, { size: PHONE, theme: "dark" });
    for (const it of [other, phone]) {
      await show(it.page, `session=${session}`);
      await it.page.getByText("Ready.").waitFor();
    }
    await say(page, "do it together");
    const answer = await api.asked();
    answer.text().more("Working on ");
    for (const it of [page, other.page, phone.page]) await it.getByText("Working on").waitFor();
    await pictured(other.page, "live-together");
    await pictured(phone.page, "live-phone");
    answer.more("it.").stopBlock().tool("Bash", { command: "touch together.txt", description: "Touch" }).end();
    for (const it of [page, other.page, phone.page]) await it.locator(".request").waitFor();
    await pictured(other.page, "asked-together");
    await pictured(phone.page, "asked-phone-thread");
    await hold(phone.page, "Hold to allow once");
    for (const it of [page, other.page]) await it.locator(".asked:not(.over)").waitFor({ state: "detached" });
    (await api.asked()).say("Done by all.");
    for (const it of [page, other.page, phone.page]) {
      await it.getByText("Done by all.").waitFor();
      expect(await it.locator(".prompt").allInnerTexts()).toHaveLength(2);
      expect(await it.getByText("Working on it.").count()).toBe(1);
      expect(await it.getByText("Done by all.").count()).toBe(1);
    }
    for (const it of [other, phone]) {
      expect(it.troubles).toEqual([]);
      await it.context.close();
    }
    await idle(page);
  });

  test("a fork from a reply has what came before, and goes on by itself", async () => {
    const { page } = one;
    await drive.begin(page, "the trunk", "First reply.");
    await say(page, "second prompt");
    (await api.asked()).say("Second reply.");
    await page.getByText("Second reply.").waitFor();
    await idle(page);
    const first = page.locator(".row.prose", { hasText: "First reply." });
    await first.hover();
    await first.getByRole("button", { name: "Fork", exact: true }).click();
    await page.locator(".fork.origin", { hasText: "the trunk" }).waitFor();
    expect(await page.locator(".prompt .words").allInnerTexts()).toEqual(["the trunk"]);
    await say(page, "another second prompt");
    const next = await api.asked();
    expect(next.told).toContain("First reply.");
    expect(next.told).not.toContain("Second reply.");
    next.say("Another second reply.");
    await page.getByText("Another second reply.").waitFor();
    await idle(page);
  });

  test("caused no error, no refused policy and no request to elsewhere", () => {
    expect(one.troubles).toEqual([]);
  });
});
