import { defineConfig } from "vitest/config";

export default defineConfig({
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2023",
    // Nothing inline: the content security policy allows files only.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  test: {
    projects: [
      { extends: true, test: { name: "unit", include: ["test/**/*.test.{ts,tsx}"] } },
      {
        extends: true,
        test: {
          name: "browser",
          include: ["browser/**/*.test.ts"],
          // Only what hangs takes this long; a machine that does something else for a minute is no failure.
          testTimeout: 300_000,
          hookTimeout: 300_000,
          // One browser and one machine: files one after the other.
          fileParallelism: false,
          // A browser, the keeper and the real CLI share two cores: what is wrong is wrong twice.
          retry: 1,
        },
      },
      {
        extends: true,
        test: {
          name: "bench",
          include: ["bench/**/*.bench.ts"],
          testTimeout: 300_000,
          hookTimeout: 300_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
