// The store against a real keeper, which `RETHREAD_URL` and `RETHREAD_TOKEN` name; `RETHREAD_PROXY` is the same one
// behind somebody who loses its answers.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  foldSessionSummary,
  InMemorySessionStore,
  type SessionKey,
  type SessionStoreEntry,
} from "@anthropic-ai/claude-agent-sdk";
import { BadEntry, Refused, RethreadSessionStore, Unreachable } from "../src/index.js";

const KEY: SessionKey = { projectKey: "-home-me", sessionId: "0198f2c4-0000-7000-8000-000000000000" };
const { RETHREAD_URL, RETHREAD_PROXY, RETHREAD_TOKEN: token = "" } = process.env;
let number = 0;

interface Place {
  url?: string | undefined;
  namespace?: string;
  attempts?: number;
}

/** A store with a namespace of its own. */
function keeper({ url = RETHREAD_URL, namespace, attempts = 6 }: Place = {}): RethreadSessionStore {
  assert(url, "RETHREAD_URL and RETHREAD_PROXY name a keeper");
  number += 1;
  return new RethreadSessionStore({ url, token, attempts, namespace: namespace ?? `test-${process.pid}-${number}` });
}

const entry = (members: object): SessionStoreEntry => ({ type: "x", ...members });

test("it does what the SDK's own store does", async () => {
  const [ours, theirs] = [keeper(), new InMemorySessionStore()];
  const sub = { ...KEY, subpath: "subagents/agent-1" };
  const other = { projectKey: "-other", sessionId: KEY.sessionId };
  const odd = { projectKey: "-home-me", sessionId: "Odd one. ü" };
  for (const store of [ours, theirs]) {
    await store.append(KEY, [entry({ uuid: "a", customTitle: "one" }), entry({ uuid: "b" })]);
    await store.append(KEY, []);
    await store.append(sub, [entry({ uuid: "a", customTitle: "sub" })]);
    await store.append(other, [entry({ n: 1 })]);
    await store.append(odd, [entry({ n: 2, cwd: "/tmp" })]);
    await store.append(KEY, [entry({ customTitle: "two", gitBranch: "main" }), entry({ customTitle: "two" })]);
    await store.append({ ...KEY, sessionId: "gone" }, [entry({ n: 3 })]);
    await store.append({ ...KEY, sessionId: "gone", subpath: "subagents/agent-2" }, [entry({ n: 3 })]);
    await store.delete({ ...KEY, sessionId: "gone" });
    await store.delete({ ...KEY, sessionId: "never there" });
  }
  for (const key of [KEY, sub, other, odd, { ...KEY, sessionId: "gone" }, { ...KEY, subpath: "nope" }]) {
    assert.deepEqual(await ours.load(key), await theirs.load(key));
    assert.deepEqual(await ours.listSubkeys(key), await theirs.listSubkeys(key));
  }
  for (const project of ["-home-me", "-other", "-nobody"]) {
    const ids = async (store: { listSessions(project: string): Promise<{ sessionId: string; mtime: number }[]> }) =>
      (await store.listSessions(project)).map(({ sessionId }) => sessionId).sort();
    assert.deepEqual(await ids(ours), await ids(theirs as never));
    const data = async (store: Pick<RethreadSessionStore, "listSessionSummaries">) =>
      Object.fromEntries((await store.listSessionSummaries(project)).map(({ sessionId, data }) => [sessionId, data]));
    assert.deepEqual(await data(ours), await data(theirs));
  }
  const [listed] = await ours.listSessions("-other");
  assert(listed && Number.isInteger(listed.mtime) && listed.mtime > 1e12);
});

test("nothing is doubled or lost when answers are", async () => {
  const [store, expected] = [keeper({ url: RETHREAD_PROXY }), [] as SessionStoreEntry[]];
  for (let n = 0; n < 5; n += 1) {
    const batch = [entry({ uuid: `u${n}`, n }), entry({ mode: "same" }), entry({ mode: "same" })];
    await store.append(KEY, batch);
    expected.push(...batch);
  }
  assert.deepEqual(await store.load(KEY), expected);
  await store.delete(KEY);
  assert.equal(await store.load(KEY), null);
});

test("an append that failed and is made again, as the SDK does, is applied once", async () => {
  const namespace = "made-again-ts";
  const hasty = keeper({ url: RETHREAD_PROXY, namespace, attempts: 1 });
  const expected: SessionStoreEntry[] = [];
  let failures = 0;
  for (let n = 0; n < 10; n += 1) {
    const batch = [entry({ mode: "same" }), entry({ uuid: `u${n}` }), entry({ mode: "same" })];
    for (let attempt = 0; attempt < 10; attempt += 1) {
      try {
        await hasty.append(KEY, batch);
        break;
      } catch (error) {
        assert(error instanceof Unreachable);
        failures += 1;
      }
    }
    expected.push(...batch);
  }
  assert(failures > 5, `${failures}`);
  assert.deepEqual(await keeper({ namespace }).load(KEY), expected);
});

test("of two equal appends after one that failed, both are applied", async (context) => {
  const store = keeper({ attempts: 1 });
  const failing = context.mock.method(globalThis, "fetch", () => Promise.reject(new TypeError("fetch failed")));
  await assert.rejects(store.append(KEY, [entry({ mode: "same" })]), Unreachable);
  failing.mock.restore();
  await Promise.all([1, 2].map(() => store.append(KEY, [entry({ mode: "same" })])));
  assert.deepEqual(await store.load(KEY), [entry({ mode: "same" }), entry({ mode: "same" })]);
});

test("appends at once keep their order and share requests", async (context) => {
  const store = keeper();
  const asked = context.mock.method(globalThis, "fetch");
  const numbers = Array.from({ length: 200 }, (_, n) => n);
  await Promise.all(numbers.map((n) => store.append(KEY, [entry({ n })])));
  assert(asked.mock.callCount() < 20, `${asked.mock.callCount()}`);
  assert.deepEqual(
    await store.load(KEY),
    numbers.map((n) => entry({ n })),
  );
});

test("one bad entry among appends at once harms no other", async () => {
  let deep: object = {};
  for (let n = 0; n < 200; n += 1) {
    deep = { deep };
  }
  const store = keeper();
  const numbers = Array.from({ length: 10 }, (_, n) => n);
  const done = await Promise.allSettled(
    numbers.map((n) => store.append(KEY, [entry({ n, deep: n === 5 ? deep : null })])),
  );
  const refused = done.flatMap((each, n) => (each.status === "rejected" ? [[n, (each.reason as Refused).status]] : []));
  assert.deepEqual(refused, [[5, 400]]);
  assert.deepEqual(
    (await store.load(KEY))?.map(({ n }) => n),
    [0, 1, 2, 3, 4, 6, 7, 8, 9],
  );
});

test("a large append goes in parts, and an entry of five megabytes passes", async () => {
  const store = keeper();
  const batch = Array.from({ length: 5 }, (_, n) => entry({ text: "x".repeat(1_000_000), n }));
  batch.push(entry({ text: "ü".repeat(2_500_000) }), ...Array.from({ length: 2_500 }, (_, n) => entry({ n })));
  await store.append(KEY, batch);
  assert.deepEqual(await store.load(KEY), batch);
});

test("whatever JSON can say comes back", async () => {
  const store = keeper();
  const odd = [
    entry({ half: "\ud83d", text: "\u0000\u2028ü\n", number: 1e300, none: null }),
    entry({ uuid: "has space", nested: { uuid: "u" }, list: [[], {}, ""] }),
    entry({ uuid: "" }),
    entry({ uuid: "" }),
  ];
  await store.append(KEY, odd);
  assert.deepEqual(await store.load(KEY), odd);
});

test("a listing of summaries reads only what came since the last one", async (context) => {
  const store = keeper();
  await store.append(
    KEY,
    Array.from({ length: 50 }, (_, n) => entry({ customTitle: `title ${n}`, cwd: "/tmp" })),
  );
  await store.listSessionSummaries("-home-me");
  const asked = context.mock.method(globalThis, "fetch");
  await store.listSessionSummaries("-home-me");
  assert.equal(asked.mock.callCount(), 1);
  await store.append(KEY, [{ type: "tag", tag: "t" }]);
  asked.mock.resetCalls();
  const [summary] = await store.listSessionSummaries("-home-me");
  const loads = asked.mock.calls.filter(({ arguments: [url] }) => String(url).endsWith("/load"));
  assert(JSON.parse(String(loads[0]?.arguments[1]?.body)).after > 50);
  assert.deepEqual(summary?.data, foldSessionSummary(undefined, KEY, (await store.load(KEY)) ?? []).data);
});

test("errors say what is wrong and what to do", async () => {
  const nobody = new RethreadSessionStore({ url: "http://127.0.0.1:9", token: "t", attempts: 2 });
  await assert.rejects(nobody.load(KEY), (error) => {
    assert(error instanceof Unreachable);
    assert.match(error.message, /no keeper answers at http:\/\/127\.0\.0\.1:9, asked 2 times/);
    return true;
  });
  await assert.rejects(keeper({ namespace: "no such" }).load(KEY), (error) => {
    assert(error instanceof Refused);
    assert.deepEqual([error.status, error.code], [404, "not-found"]);
    return true;
  });
  await assert.rejects(keeper().append(KEY, [entry({}), [] as never]), BadEntry);
  await assert.rejects(keeper().append(KEY, [entry({ big: 1n })]), BadEntry);
  assert.throws(() => RethreadSessionStore.fromEnvironment({}), /RETHREAD_TOKEN is not set/);
});
