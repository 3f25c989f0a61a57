/** A PostgreSQL of the tests' own, for keepers that share a store. */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Where its programs are; nothing where it is not installed. */
function programs(): string | undefined {
  const all = "/usr/lib/postgresql";
  const versions = existsSync(all) ? readdirSync(all).sort((one, other) => Number(other) - Number(one)) : [];
  const folders = [...versions.map((version) => join(all, version, "bin")), ...(process.env.PATH ?? "").split(":")];
  return folders.find((folder) => existsSync(join(folder, "initdb")));
}

/** It refuses to run as root. */
const NOBODY = 65534;
const asRoot = process.getuid?.() === 0;
const owned = (words: string[]): [string, string[]] => {
  const all = asRoot ? ["setpriv", `--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups", "--", ...words] : words;
  return [all[0] ?? "", all.slice(1)];
};

export class Postgres {
  private constructor(
    private readonly server: ChildProcess,
    private readonly folder: string,
    readonly url: string,
  ) {}

  /** Starts one; nothing where it is not installed. */
  static async start(): Promise<Postgres | undefined> {
    const bin = programs();
    if (!bin) return undefined;
    const folder = mkdtempSync(join(tmpdir(), "rethread-web-postgres-"));
    if (asRoot) chownSync(folder, NOBODY, NOBODY);
    const data = join(folder, "data");
    const initdb = [join(bin, "initdb"), "-D", data, "-U", "rethread", "-A", "trust", "-E", "UTF8", "--no-sync"];
    execFileSync(...owned(initdb), { stdio: "ignore", cwd: "/" });
    const port = await freePort();
    const postgres = [join(bin, "postgres"), "-D", data, `-p${port}`, "-c", `unix_socket_directories=${folder}`];
    const server = spawn(...owned([...postgres, "-c", "listen_addresses=127.0.0.1"]), { stdio: "ignore", cwd: "/" });
    const url = `postgres://rethread@127.0.0.1:${port}/postgres?sslmode=disable`;
    const ready = [join(bin, "pg_isready"), "-h", "127.0.0.1", "-p", String(port)];
    for (let tries = 0; tries < 600; tries++) {
      try {
        execFileSync(...owned(ready), { stdio: "ignore", cwd: "/" });
        return new Postgres(server, folder, url);
      } catch {
        await new Promise((then) => setTimeout(then, 100));
      }
    }
    throw new Error("PostgreSQL does not start");
  }

  async stop(): Promise<void> {
    const over = new Promise((then) => this.server.once("exit", then));
    this.server.kill("SIGINT");
    await over;
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function freePort(): Promise<number> {
  return new Promise((then) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => then(typeof address === "object" && address ? address.port : 0));
    });
  });
}
