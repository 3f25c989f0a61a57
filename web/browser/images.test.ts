/** Pictures in prompts: pasted, dropped and picked, refused where no model reads them, and seen by the model. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { composer, Drive, idle } from "./driving.ts";
import { PHONE, pictured, show, tab } from "./kit.ts";

const drive = await Drive.make();
const { api, desk } = drive;

beforeAll(async () => {
  if (drive.hasAgent) await desk.start();
});
afterAll(() => drive.clear());

/** Gives the composer a picture as a browser would: over the clipboard, or by a drop. */
async function give(
  page: Page,
  how: "paste" | "drop",
  side: number,
  colour: string,
  type = "image/png",
): Promise<void> {
  await composer(page).evaluate(
    async (field, { how, side, colour, type }) => {
      const canvas = new OffscreenCanvas(side, side / 2);
      const context = canvas.getContext("2d");
      if (context) {
        context.fillStyle = colour;
        context.fillRect(0, 0, side, side / 2);
      }
      const blob = await canvas.convertToBlob({ type: type.startsWith("image/") ? type : "image/png" });
      const transfer = new DataTransfer();
      transfer.items.add(new File([blob], `${colour}.png`, { type }));
      const event =
        how === "paste"
          ? new ClipboardEvent("paste", { clipboardData: transfer, bubbles: true, cancelable: true })
          : new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true });
      field.dispatchEvent(event);
    },
    { how, side, colour, type },
  );
}

/** The pictures that the model was told of. */
function seen(told: string): { media_type: string; data: string }[] {
  const found: { media_type: string; data: string }[] = [];
  const body = JSON.parse(told) as { messages: { content: unknown }[] };
  for (const { content } of body.messages)
    if (Array.isArray(content)) for (const block of content) if (block.type === "image") found.push(block.source);
  return found;
}

describe.runIf(drive.hasAgent)("pictures", () => {
  test("that are pasted, dropped and picked go with the prompt, are seen by the model, and stay after a refresh", async () => {
    const { page, troubles } = await tab(desk);
    const session = await drive.begin(page, "Look at things", "Show me.");
    const small = page.locator(".pictures img");
    await give(page, "paste", 40, "teal");
    await small.nth(0).waitFor();
    await give(page, "drop", 3000, "orange");
    await small.nth(1).waitFor();
    const file = join(desk.folder, "picked.gif");
    writeFileSync(file, Buffer.from("R0lGODlhAQABAIAAAP///wAAACwAAAAAAQABAAACAkQBADs=", "base64"));
    await page.locator(".composer input[type=file]").setInputFiles(file);
    await small.nth(2).waitFor();
    // One may change one's mind.
    await page.getByRole("button", { name: "Take out teal.png" }).click();
    expect(await small.count()).toBe(2);
    await composer(page).fill("What do you see?");
    await pictured(page, "images");
    await composer(page).press("Enter");
    const asked = await api.asked();
    const pictures = seen(asked.told);
    expect(pictures.map((it) => it.media_type)).toEqual(["image/png", "image/gif"]);
    // The large one was made smaller before it was sent.
    const png = Buffer.from(pictures[0]?.data ?? "", "base64");
    expect([png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual([2000, 1000]);
    asked.say("Orange.");
    await page.locator(".prose", { hasText: "Orange." }).waitFor();
    await idle(page);
    expect(await small.count()).toBe(0);
    const shown = page.locator(".row.prompt", { hasText: "What do you see?" }).locator("img");
    expect(await shown.count()).toBe(2);
    await page.reload();
    await shown.nth(1).waitFor();
    const widths = await shown.evaluateAll((all) => all.map((it) => (it as HTMLImageElement).naturalWidth));
    expect(widths).toEqual([2000, 1]);
    expect(page.url()).toContain(session);
    expect(troubles).toEqual([]);
  });

  test("that no model reads are refused with the reason, and nothing is sent", async () => {
    const { page, troubles } = await tab(desk, { size: PHONE });
    await drive.begin(page, "Look at more", "Show me more.");
    await give(page, "drop", 20, "red", "image/svg+xml");
    await page.getByText("red.png is no picture that Claude can read").waitFor();
    expect(await page.locator(".pictures img").count()).toBe(0);
    // One that is not what it says cannot be opened.
    const file = join(desk.folder, "torn.png");
    writeFileSync(file, "no picture at all");
    await page.locator(".composer input[type=file]").setInputFiles(file);
    await page.getByText("torn.png is damaged").waitFor();
    for (let at = 0; at < 20; at++) {
      await give(page, "paste", 20, "navy");
      await page.locator(".pictures img").nth(at).waitFor();
    }
    await give(page, "paste", 20, "navy");
    await page.getByText("at most 20 pictures").waitFor();
    await pictured(page, "images-phone");
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(PHONE.width);
    expect(await page.getByRole("button", { name: "Send" }).isEnabled()).toBe(true);
    expect(troubles).toEqual([]);
  });

  test("wait in the queue without their bytes, and are sent whole", async () => {
    const { page, troubles } = await tab(desk);
    const session = await drive.begin(page, "Queue pictures", "Go on.");
    await composer(page).fill("Take your time.");
    await composer(page).press("Enter");
    const slow = await api.asked();
    slow.text().more("Thinking about it");
    await page.locator(".streaming").waitFor();
    await give(page, "paste", 60, "purple");
    await page.locator(".pictures img").waitFor();
    // No words at all.
    await page.getByRole("button", { name: "Queue" }).click();
    await page.locator(".waiting-prompts", { hasText: "[picture]" }).waitFor();
    const queue = await desk.api<{ items: { parts: { data: string }[] }[] }>(`/sessions/${session}/queue`);
    expect(queue.items[0]?.parts[0]?.data).toBe("");
    slow.stopBlock().end();
    const asked = await api.asked();
    expect(seen(asked.told).map((it) => it.data.length > 100)).toEqual([true]);
    asked.say("Purple.");
    await page.locator(".prose", { hasText: "Purple." }).waitFor();
    await idle(page);
    await show(page, "");
    expect(troubles).toEqual([]);
  });
});
