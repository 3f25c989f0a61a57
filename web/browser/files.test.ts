/** What sessions did to files: checkpoints on the thread, diffs by turn and by file, going back, and going forward again. */

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Conversation, id } from "./conversation.ts";
import { Drive } from "./driving.ts";
import { PHONE, pictured, show, type Tab, tab, violations } from "./kit.ts";

const drive = await Drive.make();
const { api, desk } = drive;
let one: Tab;

beforeAll(async () => {
  if (!drive.hasAgent) return;
  desk.flags.push("--allowed-root", desk.folder);
  await desk.start();
  one = await tab(desk);
});
beforeEach(() => api.forget());
afterAll(() => drive.clear());

const path = (name: string) => join(desk.project, name);
const read = (name: string) => readFileSync(path(name), "utf8");

describe.runIf(drive.hasAgent)("files", () => {
  test("are taken back after a look, are pale on the thread meanwhile, and come back with undo", async () => {
    const { page } = one;
    writeFileSync(path("notes.txt"), "as it was\nand more\n");
    await drive.begin(page, "rewind me");
    await drive.work(page, "change the notes", `echo changed > ${path("notes.txt")}`, "Changed.");
    expect(read("notes.txt")).toBe("changed\n");
    await page.locator(".knot-button").first().hover();
    await page.locator(".pop").waitFor();
    expect(await page.locator(".pop li").allInnerTexts()).toEqual(["notes.txt\n19 B"]);
    await pictured(page, "knot");
    // A click opens the diff; a key leads back while the card is open.
    await page.locator(".knot-button").first().click();
    await page
      .getByRole("heading", { name: /Changed/ })
      .first()
      .waitFor();
    await page.mouse.move(700, 5);
    await page.locator(".knot-button").first().hover();
    await page.locator(".pop").waitFor();
    await page.keyboard.press("r");
    await page.getByText("Nothing has changed yet").waitFor();
    await page.getByRole("heading", { name: "Rewind to before prompt 2" }).waitFor();
    await pictured(page, "rewind");
    expect(read("notes.txt")).toBe("changed\n");
    await page.getByRole("button", { name: /^Rewind 1 file/ }).click();
    await page.getByText("Rewound 1 file").waitFor();
    expect(read("notes.txt")).toBe("as it was\nand more\n");
    await page.locator(".prompt.taken", { hasText: "change the notes" }).waitFor();
    expect(await page.locator(".prompt:not(.taken)").allInnerTexts()).toHaveLength(1);
    await pictured(page, "receipt");
    await page.locator(".plan").getByRole("button", { name: "Undo" }).click();
    await page.getByText("Every file is as it was before the rewind").waitFor();
    expect(read("notes.txt")).toBe("changed\n");
    await page.locator(".taken").first().waitFor({ state: "detached" });
  });

  test("go back together with the conversation, which goes on in a fork", async () => {
    const { page } = one;
    writeFileSync(path("plan.txt"), "first\n");
    await drive.begin(page, "both go back");
    await drive.work(page, "another plan", `echo second > ${path("plan.txt")}`, "Planned.");
    const before = page.url();
    await page.getByRole("button", { name: "Rewind to here" }).first().click();
    await page.getByRole("button", { name: "Rewind and fork" }).click();
    await page.waitForURL((url) => url.toString() !== before);
    expect(read("plan.txt")).toBe("first\n");
    // The fork knows nothing of what was taken back, and goes on.
    await page.getByText("Forked from").waitFor();
    expect(await page.locator(".prompt", { hasText: "another plan" }).count()).toBe(0);
    await drive.work(page, "a third plan", `echo third > ${path("plan.txt")}`, "Planned again.");
    expect(read("plan.txt")).toBe("third\n");
  });

  test("that were taken back are told after a refresh, and come back from the thread", async () => {
    const { page } = one;
    writeFileSync(path("draft.txt"), "first\n");
    await drive.begin(page, "from the thread");
    await drive.work(page, "second draft", `echo second > ${path("draft.txt")}`, "Drafted.");
    await page.getByRole("button", { name: "Rewind to here" }).first().click();
    await page.getByRole("button", { name: /^Rewind 1 file/ }).click();
    await page.getByText("Rewound 1 file").waitFor();
    await page.reload();
    await page.locator(".taken-note", { hasText: /Taken back .+: 1 file/ }).waitFor();
    await page.locator(".prompt.taken", { hasText: "second draft" }).waitFor();
    await pictured(page, "taken");
    expect(read("draft.txt")).toBe("first\n");
    // Pale, and still readable for everybody.
    for (const theme of ["light", "dark"] as const) {
      const other = await tab(desk, { theme, url: desk.open(), more: { bypassCSP: true } });
      await show(other.page, new URL(page.url()).hash.slice(1));
      await other.page.locator(".taken-note").waitFor();
      await other.page.locator(".points").getByRole("button", { name: "1 file" }).click();
      await other.page.locator(".plan .diff").waitFor();
      expect(await violations(other.page)).toEqual([]);
      await other.context.close();
    }
    await page.locator(".taken-note").getByRole("button", { name: "Undo" }).waitFor();
    await page.keyboard.press("u");
    await page.locator(".taken").first().waitFor({ state: "detached" });
    expect(read("draft.txt")).toBe("second\n");
  });

  test("show what a turn, a call and the whole session did to each of them", async () => {
    const { page } = one;
    for (const name of ["one.txt", "two.txt"]) writeFileSync(path(name), "a\nb\nc\n");
    await drive.begin(page, "diffs");
    await drive.work(page, "first change", `sed -i s/b/B/ ${path("one.txt")}; echo new > ${path("three.txt")}`, "One.");
    await drive.work(page, "second change", `sed -i s/a/A/ ${path("one.txt")}; rm ${path("two.txt")}`, "Two.");
    // By turn, from its knot.
    await page.locator(".knot-button").first().hover();
    await page.locator(".pop").getByRole("button", { name: "Open diff" }).click();
    await page.getByRole("heading", { name: "Changed by prompt 2" }).waitFor();
    const paths = page.locator(".plan .file .call code");
    await paths.first().waitFor();
    expect(await paths.allInnerTexts()).toEqual(["one.txt", "three.txt"]);
    const changes = page.locator(".plan .file").first().locator(".diff .a, .diff .d");
    expect((await changes.allInnerTexts()).map((it) => it.split(/\s+/))).toEqual([
      ["2", "−", "b"],
      ["2", "+", "B"],
    ]);
    await pictured(page, "diff");
    await page.locator(".plan").getByRole("button", { name: "Close" }).click();
    // By file, since the session began: what both turns did.
    const files = page.locator(".info .files").first();
    await files.getByText("one.txt").waitFor();
    expect(await files.locator("code").allInnerTexts()).toEqual(["one.txt", "three.txt", "two.txt"]);
    await files.getByText("one.txt").click();
    await page.locator(".plan .diff").waitFor();
    expect(await page.locator(".plan .diff .a > span").allInnerTexts()).toEqual(["A", "B"]);
    await page.locator(".plan").getByRole("button", { name: "Close" }).click();
    // By call; its card is open if it was seen running.
    const tool = page.locator(".tool", { hasText: "ran sed -i s/a/A/" });
    if ((await tool.locator(".call").getAttribute("aria-expanded")) === "false") await tool.locator(".call").click();
    await tool.getByRole("button", { name: "2 files changed" }).click();
    await page.getByRole("heading", { name: "Changed by this call" }).waitFor();
    await paths.first().waitFor();
    expect(await paths.allInnerTexts()).toEqual(["one.txt", "two.txt"]);
  });

  test("that somebody else changed are a conflict: explained, and nothing is done before it is decided", async () => {
    const { page } = one;
    writeFileSync(path("Cargo.toml"), "[package]\n");
    writeFileSync(path("lib.rs"), "one\n");
    const session = await drive.begin(page, "conflict");
    await drive.work(
      page,
      "add a dependency",
      `echo 'serde = "1"' >> ${path("Cargo.toml")}; echo two > ${path("lib.rs")}`,
      "Added.",
    );
    writeFileSync(path("Cargo.toml"), '[package]\nserde = "1"\nwiremock = "0.6"\n');
    await page.getByRole("button", { name: "Rewind to here" }).first().click();
    const clash = page.locator(".clash", { hasText: "Cargo.toml" });
    await clash.waitFor();
    await page.getByText("1 file is in conflict and needs your choice.").waitFor();
    expect(await clash.locator(".why p").first().textContent()).toBe("It is not as the agent left it.");
    // What is at stake is shown: what Claude did, and what somebody else did.
    await clash.locator(".diff").waitFor();
    expect(await clash.locator(".diff .a > span").allInnerTexts()).toEqual(['serde = "1"', 'wiremock = "0.6"']);
    const go = page.getByRole("button", { name: /^Rewind 1 file/ });
    expect(await go.isDisabled()).toBe(true);
    await pictured(page, "conflict");
    // The same on a phone, in the dark.
    const phone = await tab(desk, { size: PHONE, theme: "dark" });
    await show(phone.page, `session=${session}`);
    await phone.page.getByText("Added.").waitFor();
    await phone.page.getByRole("button", { name: "Details" }).click();
    await phone.page.getByRole("button", { name: "Rewind to here" }).first().click();
    await phone.page.locator(".clash").waitFor();
    await pictured(phone.page, "conflict-phone");
    expect(phone.troubles).toEqual([]);
    await phone.context.close();
    await clash.getByText("Leave it as it is now").click();
    await page.waitForFunction((it) => !(it as HTMLButtonElement).disabled, await go.elementHandle());
    await go.click();
    await page.getByText("Rewound 1 file").waitFor();
    await page.getByText("left as it is, as you chose").waitFor();
    expect([read("lib.rs"), read("Cargo.toml")]).toEqual(["one\n", '[package]\nserde = "1"\nwiremock = "0.6"\n']);
  });

  test("that Claude Code itself kept are labelled as its own and compared, and no way back to them is offered", async () => {
    const { page } = one;
    const talk = new Conversation(id(), desk.project)
      .prompt("tidy up")
      .kept(desk, { "tidy.txt": "old\n", "made.txt": null })
      .says("Tidied.")
      .prompt("once more")
      .kept(desk, { "tidy.txt": "new\n" })
      .says("Tidied again.");
    writeFileSync(path("tidy.txt"), "newer\n");
    writeFileSync(path("made.txt"), "fresh\n");
    talk.write(desk);
    await show(page, `session=${talk.session}`);
    // On the thread, with what each of them holds; the key that leads back elsewhere does nothing.
    const knot = page.getByRole("button", { name: "Checkpoint of Claude Code's own before prompt 1, 2 files" });
    await knot.hover();
    const pop = page.locator(".pop");
    await pop.getByText("Claude Code's own: its /rewind goes back to it.").waitFor();
    expect(await pop.locator("li code").allInnerTexts()).toEqual(["made.txt", "tidy.txt"]);
    await page.keyboard.press("r");
    await pictured(page, "kept-by-claude");
    await pop.getByRole("button", { name: "Open diff" }).click();
    await page.getByRole("heading", { name: "Changed by prompt 1" }).waitFor();
    const tidied = page.locator(".plan .file", { hasText: "tidy.txt" });
    await tidied.getByText("kept by Claude Code itself").waitFor();
    expect(await tidied.locator(".diff .d > span, .diff .a > span").allInnerTexts()).toEqual(["old", "new"]);
    // Beside the thread.
    await page.locator(".plan").getByRole("button", { name: "Close" }).click();
    const points = page.locator(".points li");
    await points.first().waitFor();
    expect(await points.getByText("kept by Claude Code").count()).toBe(2);
    expect(await page.getByRole("button", { name: /rewind/i }).count()).toBe(0);
    expect([read("tidy.txt"), read("made.txt")]).toEqual(["newer\n", "fresh\n"]);
  });

  test("a new session begins in a directory that was found by looking, and only where that is allowed", async () => {
    const { page } = one;
    for (const name of ["alpha/inner", "beta"]) mkdirSync(join(desk.folder, "work", name), { recursive: true });
    await page.keyboard.press("c");
    const dialog = page.getByRole("dialog", { name: "New session" });
    await dialog.getByLabel("Directory").fill("/etc");
    await dialog.getByText("There is no such directory, or it is not an allowed one.").waitFor();
    await dialog.getByLabel("Directory").fill(desk.folder);
    expect(await dialog.getByRole("button", { name: "nothing above is allowed" }).isDisabled()).toBe(true);
    await dialog.getByRole("button", { name: "work" }).click();
    await dialog.getByRole("button", { name: "alpha" }).click();
    await dialog.getByRole("button", { name: "inner" }).click();
    await dialog.getByText("No directories in it.").waitFor();
    await pictured(page, "new-session");
    expect(await dialog.getByLabel("Directory").inputValue()).toBe(join(desk.folder, "work/alpha/inner"));
    await dialog.getByLabel("First prompt").fill("begin here");
    await dialog.getByRole("button", { name: "Start" }).click();
    (await api.asked()).say("Begun there.");
    await page.getByText("Begun there.").waitFor();
    const session = new URLSearchParams(new URL(page.url()).hash.slice(1)).get("session");
    const card = await desk.api<{ cwd: string }>(`/sessions/${session}`);
    expect(card.cwd).toBe(join(desk.folder, "work/alpha/inner"));
  });

  test("caused no error, no refused policy and no request to elsewhere", () => {
    expect(one.troubles).toEqual([]);
  });
});
