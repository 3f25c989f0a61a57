/** axe in the states that reading alone does not reach: damage, requests, questions, conflicts, pictures, dialogs, nothing. */

import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Conversation, id } from "./conversation.ts";
import { Drive, hold, say } from "./driving.ts";
import { Desk, PHONE, show, tab, violations } from "./kit.ts";

const drive = await Drive.make();
const { api, desk } = drive;
const damaged = new Conversation(id(), desk.project).named("Torn").prompt("before").says("still there");

beforeAll(async () => {
  const path = damaged.write(desk);
  appendFileSync(path, `{"type":"assistant"${"\0".repeat(40)}\n{"type":"user","message":{"content":"torn`);
  if (drive.hasAgent) await desk.start();
});
beforeEach(() => api.forget());
afterAll(() => drive.clear());

for (const theme of ["light", "dark"] as const) {
  for (const size of [undefined, PHONE]) {
    const where = `${theme}${size ? ", on a phone" : ""}`;
    const options = { theme, ...(size ? { size } : {}), more: { bypassCSP: true } };

    describe.runIf(drive.hasAgent)(`axe finds nothing, ${where}`, () => {
      test("in damage, a request, a conflict, pictures and dialogs", async () => {
        const { page, context } = await tab(desk, options);
        const check = async (what: string) => expect(await violations(page), what).toEqual([]);
        await show(page, `session=${damaged.session}`);
        await page.locator(".fray .bytes").first().waitFor();
        await check("damage");
        await page.getByRole("button", { name: "Raw bytes" }).first().click();
        await page.locator(".dump", { hasText: "00 00" }).waitFor();
        await check("bytes");
        if (size) await page.getByRole("button", { name: "Close the details" }).click();

        writeFileSync(join(desk.project, "notes.txt"), "as it was\n");
        const session = await drive.begin(page, `state ${where}`);
        await say(page, "change the notes");
        (await api.asked()).tool("Bash", { command: "echo changed > notes.txt", description: "Change it" }).end();
        await page.getByRole("button", { name: "Hold to allow once" }).waitFor();
        await check("a request in its thread");
        await show(page, "attention");
        await page.locator(".request").waitFor();
        await check("a request among others");
        await hold(page, "Hold to allow once");
        (await api.asked()).say("Changed.");
        await show(page, `session=${session}`);
        await page.locator(".prose", { hasText: "Changed." }).waitFor();
        await page.locator(".knot-button").first().focus();
        await page.keyboard.press("Enter");
        await page.locator(".pop").waitFor();
        await check("a checkpoint");
        writeFileSync(join(desk.project, "notes.txt"), "somebody else\n");
        await page.locator(".pop").getByRole("button", { name: "Rewind to here" }).click();
        await page.locator(".clash").waitFor();
        await check("a conflict");
        if (size) await page.getByRole("button", { name: "Close the details" }).click();

        await page.locator(".composer input[type=file]").setInputFiles({
          name: "pixel.gif",
          mimeType: "image/gif",
          buffer: Buffer.from("R0lGODlhAQABAIAAAP///wAAACwAAAAAAQABAAACAkQBADs=", "base64"),
        });
        await page.locator(".pictures img").waitFor();
        await check("pictures");
        await page.locator(".scroll").focus();
        await page.keyboard.press("Control+k");
        await page.getByRole("combobox").fill("state");
        await page.locator(".choice").first().waitFor();
        await check("the palette");
        await page.keyboard.press("Escape");
        await page.keyboard.press("c");
        await page.getByRole("dialog", { name: "New session" }).waitFor();
        await check("a new session");
        await context.close();
      });
    });

    test(`axe finds nothing where there is nothing, ${where}`, async () => {
      const empty = new Desk();
      await empty.start();
      const { page } = await tab(empty, options);
      await page.getByRole("button", { name: "Open the demo" }).waitFor();
      expect(await violations(page)).toEqual([]);
      await empty.clear();
    });
  }
}
