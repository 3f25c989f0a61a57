import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");

test("every test of the page that the proof names is one", () => {
  const proof = readFileSync(join(root, "docs/proof.md"), "utf8");
  const section = proof.split("\n## ").find((it) => it.startsWith("The page")) ?? "";
  const rows = section.split("\n").filter((line) => line.startsWith("| ") && line.includes('"'));
  expect(rows.length).toBeGreaterThan(20);
  for (const row of rows) {
    const cell = row.split(" | ").at(-1) ?? "";
    for (const part of cell.replace(/ \|$/, "").split("; ")) {
      const file = part.match(/^(\w+): "/)?.[1];
      const source = readFileSync(join(root, `web/browser/${file}.test.ts`), "utf8");
      for (const [, name] of part.matchAll(/"([^"]+)"/g))
        expect(
          [`"${name}`, `\`${name}`].some((it) => source.includes(it)),
          `${file}: ${name}`,
        ).toBe(true);
    }
  }
});
