/** What the browser tests share: a home of their own, a real keeper in it, and Debian's Chromium. */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";

const root = resolve(import.meta.dirname, "../..");

/** The program under test: the one that was just built. */
export function program(): string {
  const target = process.env.CARGO_TARGET_DIR ?? join(root, "target");
  const named = process.env.RETHREAD_BIN;
  const found = [named, join(target, "release/rethread"), join(target, "debug/rethread")].find(
    (path) => path && existsSync(path),
  );
  if (!found) throw new Error("build rethread first: cargo build");
  return named ?? found;
}

export function chromiumPath(): string | undefined {
  return [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(
    (path) => path && existsSync(path),
  );
}

/** All of them, so that nothing stays of those whose tests were left out. */
const desks = new Set<Desk>();

export class Desk {
  readonly folder = mkdtempSync(join(tmpdir(), "rethread-web-"));
  readonly claude = join(this.folder, ".claude");
  readonly project = join(this.folder, "api");
  readonly home = join(this.folder, "home");
  private keeper: ChildProcess | undefined;
  address = "";

  constructor() {
    for (const path of [join(this.claude, "projects"), this.project, this.home]) mkdirSync(path, { recursive: true });
    desks.add(this);
  }

  private get environment(): NodeJS.ProcessEnv {
    const { PATH, HOME, LANG } = process.env;
    return {
      PATH,
      HOME,
      LANG,
      RETHREAD_HOME: this.home,
      // What a keeper that is killed leaves behind goes with everything else.
      TMPDIR: this.folder,
      XDG_CONFIG_HOME: join(this.folder, "config"),
      XDG_CACHE_HOME: join(this.folder, "cache"),
      ...this.more,
    };
  }

  /** Added to what the keeper finds in its environment. */
  more: Record<string, string> = {};
  flags: string[] = [];

  /** Starts the keeper; returns the address that logs a browser in. */
  async start(): Promise<string> {
    const keeper = spawn(
      program(),
      [
        "serve",
        "--listen",
        this.address ? new URL(this.address).host.replace("localhost", "127.0.0.1") : "127.0.0.1:0",
        "--claude-dir",
        this.claude,
        ...this.flags,
      ],
      {
        env: this.environment,
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    this.keeper = keeper;
    let complaint = "";
    keeper.stderr?.on("data", (text) => {
      complaint += text;
    });
    const lines = createInterface({ input: keeper.stdout ?? process.stdin });
    for await (const line of lines) {
      const url = line.match(/http:\S+/)?.[0];
      if (!url) continue;
      this.address = new URL(url).origin;
      return url;
    }
    throw new Error(`the keeper ended: ${complaint}`);
  }

  /** A fresh address that logs another browser in. */
  open(): string {
    const said = execFileSync(program(), ["open"], { env: this.environment, encoding: "utf8" }).trim();
    return said.match(/http:[^"\s]+/)?.[0] ?? said;
  }

  get token(): string {
    return readFileSync(join(this.home, "keeper/token"), "utf8").trim();
  }

  async api<T>(path: string, method = "GET", body?: unknown): Promise<T> {
    const answer = await fetch(`${this.address}/api/v1${path}`, {
      method,
      headers: { Authorization: `Bearer ${this.token}`, "X-Rethread": "1", "Content-Type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return (await answer.json()) as T;
  }

  /** Ends the keeper: politely, or as a power cut would. */
  async stop(how: NodeJS.Signals = "SIGTERM"): Promise<void> {
    const keeper = this.keeper;
    if (!keeper || keeper.exitCode !== null) return;
    const over = new Promise((then) => keeper.once("exit", then));
    keeper.kill(how);
    await over;
    this.keeper = undefined;
  }

  async clear(): Promise<void> {
    await this.stop("SIGKILL");
    // What the keeper drove ends a moment after it, and may still write.
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}

let shared: Browser | undefined;

export async function browser(): Promise<Browser> {
  const executablePath = chromiumPath();
  if (!executablePath) throw new Error("Chromium is missing. Install it, e.g. sudo apt-get install chromium");
  shared ??= await chromium.launch({ executablePath, args: ["--no-sandbox", "--force-color-profile=srgb"] });
  return shared;
}

export async function closeBrowser(): Promise<void> {
  await shared?.close();
  shared = undefined;
  for (const desk of desks) await desk.clear();
}

export interface Tab {
  page: Page;
  context: BrowserContext;
  /** Everything that must not happen: errors, refused policies, requests to elsewhere. */
  troubles: string[];
}

export const PHONE = { width: 390, height: 844 };
export const DESKTOP = { width: 1440, height: 900 };

/** Opens a tab in a browser of its own. */
export async function tab(
  desk: Desk,
  options: { url?: string; theme?: "light" | "dark"; size?: { width: number; height: number }; more?: object } = {},
): Promise<Tab> {
  const context = await (await browser()).newContext({
    viewport: options.size ?? DESKTOP,
    colorScheme: options.theme ?? "light",
    reducedMotion: "reduce",
    timezoneId: "UTC",
    ...(options.size === PHONE ? { deviceScaleFactor: 2, hasTouch: true, isMobile: true } : {}),
    ...options.more,
  });
  context.setDefaultTimeout(120_000);
  const troubles: string[] = [];
  const page = await context.newPage();
  watch(page, desk, troubles);
  await page.goto(options.url ?? desk.open());
  // Whoever goes on before the code was changed for a cookie is not logged in.
  await page.locator("#page > *").first().waitFor();
  return { page, context, troubles };
}

function watch(page: Page, desk: Desk, troubles: string[]): void {
  page.on("pageerror", (error) => troubles.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() !== "error") return;
    // A keeper that is away is part of some tests.
    if (/ERR_CONNECTION|Failed to load resource|WebSocket connection/.test(message.text())) return;
    troubles.push(`console: ${message.text()}`);
  });
  page.on("dialog", (dialog) => {
    troubles.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(desk.address) && !/^(data|blob):/.test(url)) troubles.push(`request: ${url}`);
  });
}

/** Where pictures of the page's states are kept, to be looked at. */
export const pictures = join(root, "target/web");

/** Takes a picture of what is shown, in both themes. */
export async function pictured(page: Page, name: string): Promise<void> {
  mkdirSync(pictures, { recursive: true });
  for (const theme of ["dark", "light"] as const) {
    await page.emulateMedia({ colorScheme: theme });
    await page.screenshot({ path: join(pictures, `${name}-${theme}.png`) });
  }
}

const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

/** What axe finds in what is shown. The policy of the page would refuse axe itself: the tab has to go without. */
export async function violations(page: Page): Promise<string[]> {
  if (!(await page.evaluate(() => "axe" in window))) await page.addScriptTag({ path: axe });
  return page.evaluate(async () => {
    const { violations: found } = await (
      window as unknown as { axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> } }
    ).axe.run();
    return found.map((it) => `${it.id}: ${it.nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`);
  });
}

/** Goes to a place in the page without loading it again. */
export async function show(page: Page, hash: string): Promise<void> {
  await page.evaluate((to) => {
    location.hash = to;
  }, hash);
}

/** Lets the keeper drive the real CLI, which talks to an API of the test's own; false where it cannot be installed. */
export function withAgent(desk: Desk, url: string): boolean {
  let folder: string;
  try {
    folder = execFileSync(join(root, "scripts/setup"), ["claude"], { encoding: "utf8" }).trim();
  } catch {
    return false;
  }
  desk.flags.push("--claude-bin", join(folder, "node_modules/.bin/claude"));
  desk.more = {
    HOME: desk.folder,
    CLAUDE_CONFIG_DIR: desk.claude,
    ANTHROPIC_API_KEY: "sk-ant-dummy",
    ANTHROPIC_BASE_URL: url,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    DISABLE_TELEMETRY: "1",
    DISABLE_AUTOUPDATER: "1",
    DISABLE_ERROR_REPORTING: "1",
    IS_SANDBOX: "1",
    CLAUDE_CODE_MAX_RETRIES: "1",
  };
  return true;
}

/** Scrolls a thread from its end to its beginning: at first as fast as one can look at it, then two screens a frame. Returns
 * the tasks that held up the page. */
export function scrollToTop(page: Page): Promise<number[]> {
  return page.evaluate(async () => {
    const long: number[] = [];
    new PerformanceObserver((list) => long.push(...list.getEntries().map((it) => Math.round(it.duration)))).observe({
      type: "longtask",
    });
    const scroller = document.querySelector(".scroll");
    if (!scroller) throw new Error("no thread");
    const frame = () => new Promise((then) => requestAnimationFrame(then));
    for (let frames = 0; scroller.scrollTop > 0 && frames < 5000; frames++) {
      scroller.scrollTop -= scroller.clientHeight * (frames < 300 ? 0.2 : 2);
      await frame();
    }
    for (let frames = 0; frames < 30; frames++) await frame();
    return long;
  });
}
