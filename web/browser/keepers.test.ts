import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { composer, hold, say } from "./driving.ts";
import { closeBrowser, Desk, pictured, program, show, type Tab, tab } from "./kit.ts";
import { Postgres } from "./postgres.ts";

const postgres = await Postgres.start();
const [here, there] = [new Desk(), new Desk()];
let page: Tab["page"];
let troubles: string[];

/** The demo's agent: always the same plan, real files and real questions. */
function demoAgent(desk: Desk): void {
  const path = join(desk.folder, "agent");
  writeFileSync(path, `#!/bin/sh\nexec "${program()}" __demo_agent "$@"\n`);
  chmodSync(path, 0o755);
  desk.flags.push("--claude-bin", path, "--store", postgres?.url ?? "");
  desk.more = { HOME: desk.folder, CLAUDE_CONFIG_DIR: desk.claude };
}

beforeAll(async () => {
  if (!postgres) {
    if (process.env.CI === "true") throw new Error("PostgreSQL is not installed");
    return;
  }
  for (const desk of [here, there]) {
    demoAgent(desk);
    await desk.start();
  }
  ({ page, troubles } = await tab(there));
});
afterAll(async () => {
  await closeBrowser();
  await postgres?.stop();
});

describe.runIf(postgres)("a session that another keeper drives", () => {
  test("is shown live, allowed, taken over and gone on with", async () => {
    const card = await here.api<{ session_id: string }>("/sessions", "POST", {
      cwd: here.project,
      prompt: "Show me what you can do",
    });
    // It comes into the list by itself, and what is asked there is asked here.
    const row = page.locator(".sess", { hasText: "Show me what you can do" }).first();
    await row.waitFor();
    // As soon as something is asked, its row leads to that.
    await show(page, `#session=${card.session_id}`);
    await page.getByText("This is a demo: no model is asked.").first().waitFor();
    // Only whoever drives it can be told something while it waits.
    const banner = page.locator(".elsewhere", { hasText: "Driven by the keeper on" });
    await banner.waitFor();
    expect(await composer(page).count()).toBe(0);
    await pictured(page, "other-keeper-asks");
    await hold(page, "Hold to allow once");
    await hold(page, "Hold to allow once");
    await page.getByText("Done. Take the files back with rewind").first().waitFor();
    await banner.waitFor();
    await pictured(page, "other-keeper-drives");
    await page.getByRole("button", { name: "Take over" }).click();
    await say(page, "And once more, here");
    await hold(page, "Hold to allow once");
    await hold(page, "Hold to allow once");
    await page.locator(".bar .state", { hasText: "Idle" }).waitFor();
    await expect.poll(() => page.getByText("Done. Take the files back with rewind").count()).toBe(2);

    // Refreshed it is the same, once; and the other keeper shows it too.
    await page.reload();
    await expect.poll(() => page.getByText("Done. Take the files back with rewind").count()).toBe(2);
    expect(await page.getByText("And once more, here").count()).toBeGreaterThan(0);
    await page.locator(".nav .item.here", { hasText: "Show me what you can do" }).waitFor();
    await pictured(page, "taken-over");
    const said = async (desk: Desk) => {
      const { items } = await desk.api<{ items: { uuid: string }[] }>(`/sessions/${card.session_id}/messages`);
      return items.map((item) => item.uuid);
    };
    await expect.poll(async () => (await said(here)).join()).toBe((await said(there)).join());
    expect(troubles).toEqual([]);
  });
});
