/** A keeper that drives the real CLI, which talks to an API of the test's own; and what a person does on the page. */

import { type ChildProcess, spawn } from "node:child_process";
import type { Page } from "playwright-core";
import { Api } from "./api.ts";
import { closeBrowser, Desk, show, withAgent } from "./kit.ts";

export class Drive {
  readonly desk = new Desk();
  private readonly others: ChildProcess[] = [];

  /** Whether the CLI could be installed. */
  readonly hasAgent: boolean;

  private constructor(readonly api: Api) {
    this.hasAgent = withAgent(this.desk, api.url);
  }

  static async make(): Promise<Drive> {
    return new Drive(await Api.start());
  }

  async clear(): Promise<void> {
    for (const other of this.others) other.kill("SIGKILL");
    await closeBrowser();
    await this.desk.clear();
    this.api.stop();
  }

  /** Begins a session over the API, and shows it; its first turn is answered. */
  async begin(page: Page, prompt: string, reply = "Ready.", more: object = {}): Promise<string> {
    const card = await this.desk.api<{ session_id: string }>("/sessions", "POST", {
      cwd: this.desk.project,
      prompt,
      name: prompt,
      ...more,
    });
    (await this.api.asked()).say(reply);
    await show(page, `session=${card.session_id}`);
    await page.locator(".prose", { hasText: reply }).waitFor();
    await idle(page);
    return card.session_id;
  }

  /** Has Claude do something that nobody needs to allow, or that is allowed at once; the turn is over when this returns. */
  async work(page: Page, prompt: string, command: string, reply: string): Promise<void> {
    await say(page, prompt);
    (await this.api.asked()).tool("Bash", { command, description: prompt }).end();
    await hold(page, "Hold to allow once");
    (await this.api.asked()).say(reply);
    await page.locator(".prose", { hasText: reply }).waitFor();
    await idle(page);
  }

  /** Resumes a session in a terminal. It says nothing by itself: its question is left to the test. */
  terminal(session: string, prompt: string): ChildProcess {
    const bin = this.desk.flags[this.desk.flags.indexOf("--claude-bin") + 1] ?? "claude";
    const child = spawn(bin, ["--resume", session, "-p", prompt], {
      cwd: this.desk.project,
      env: { PATH: process.env.PATH, ...this.desk.more },
      stdio: "ignore",
    });
    this.others.push(child);
    return child;
  }
}

export const idle = (page: Page) => page.locator(".bar .state", { hasText: "Idle" }).waitFor();
export const composer = (page: Page) => page.locator(".composer textarea");

export async function say(page: Page, words: string): Promise<void> {
  await composer(page).fill(words);
  await composer(page).press("Enter");
}

/** Presses long enough to mean it: with a key, which stays on its button whatever moves on the page. */
export async function hold(page: Page, name: string): Promise<void> {
  const button = page.getByRole("button", { name, exact: true });
  await button.waitFor();
  await page.waitForFunction((it) => !(it as HTMLButtonElement).disabled, await button.elementHandle());
  await button.focus();
  const request = await page.locator(".asked:not(.over)").first().getAttribute("data-request");
  await page.keyboard.down("Enter");
  await page.locator(`.asked:not(.over)[data-request="${request}"]`).waitFor({ state: "detached" });
  await page.keyboard.up("Enter");
}
