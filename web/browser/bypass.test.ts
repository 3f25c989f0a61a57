/** A session that asks nobody, on the page: it says so for as long as it is looked at. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Drive } from "./driving.ts";
import { show, type Tab, tab } from "./kit.ts";

const drive = await Drive.make();
const { desk } = drive;
let one: Tab;

beforeAll(async () => {
  if (!drive.hasAgent) return;
  desk.flags.push("--allow-bypass");
  await desk.start();
  one = await tab(desk);
});

afterAll(() => drive.clear());

describe.runIf(drive.hasAgent)("a session that asks nobody", () => {
  test("has a banner that stays, and others say what may happen here", async () => {
    const { page } = one;
    const asksNobody = page.locator(".banner", { hasText: "This session asks nobody before it acts." });
    const mayHappen = page.locator(".banner", { hasText: "Sessions may run without asking anybody." });
    const id = await drive.begin(page, "go ahead", "Gone.", { permission_mode: "bypassPermissions" });
    await asksNobody.waitFor();
    await page.reload();
    await asksNobody.waitFor();
    await drive.begin(page, "ask first", "Asked.");
    await mayHappen.waitFor();
    expect(await asksNobody.count()).toBe(0);
    await show(page, `session=${id}`);
    await asksNobody.waitFor();
    expect(await mayHappen.count()).toBe(0);
  });
});
