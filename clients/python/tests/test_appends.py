"""Appends: in order, together, split, and never twice, whatever becomes of the answers."""

from __future__ import annotations

import unittest
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from claude_agent_sdk import SessionKey, fold_session_summary

from rethread_session_store import BadEntry, Refused, RethreadSessionStore, Unreachable
from rethread_session_store.appends import Batch, Unresolved

from .place import keeper

KEY: SessionKey = {"project_key": "-home-me", "session_id": "0198f2c4-0000-7000-8000-000000000000"}


def entry(**members: Any) -> Any:
    return {"type": "x", **members}


def run(test: Callable[[], Awaitable[None]]) -> None:
    anyio.run(test)


class Appends(unittest.TestCase):
    def test_nothing_is_doubled_or_lost_when_answers_are(self) -> None:
        async def test() -> None:
            store, expected = keeper("RETHREAD_PROXY"), []
            for number in range(5):
                batch = [entry(uuid=f"u{number}", n=number), entry(mode="same"), entry(mode="same")]
                await store.append(KEY, batch)
                expected += batch
            self.assertEqual(await store.load(KEY), expected)
            await store.delete(KEY)
            self.assertIsNone(await store.load(KEY))

        run(test)

    def test_an_append_that_failed_and_is_made_again_is_applied_once(self) -> None:
        """The SDK makes a failed append again, up to three times, with the same entries."""

        async def test() -> None:
            namespace = "made-again"
            hasty = keeper("RETHREAD_PROXY", attempts=1, namespace=namespace)
            expected, failures = [], 0
            for number in range(10):
                batch = [entry(mode="same"), entry(uuid=f"u{number}"), entry(mode="same")]
                for _ in range(10):
                    try:
                        await hasty.append(KEY, batch)
                        break
                    except Unreachable:
                        failures += 1
                expected += batch
            self.assertGreater(failures, 5)
            self.assertEqual(await keeper(namespace=namespace).load(KEY), expected)

        run(test)

    def test_of_equal_appends_that_failed_each_keeps_the_name_it_had(self) -> None:
        """Under one name, the keeper would take two of them for one."""
        unresolved, key, lines = Unresolved(), ("-home-me", "s", None), [b"{}"]
        failed = Batch(unresolved.take_name(key, lines), lines)
        unresolved.keep(key, failed)
        names = [unresolved.take_name(key, lines) for _ in range(2)]
        self.assertEqual(names[0], failed.name)
        self.assertNotEqual(names[1], failed.name)
        for name in names:
            unresolved.keep(key, Batch(name, lines))
        self.assertEqual([unresolved.take_name(key, lines) for _ in range(2)], names)
        self.assertNotIn(unresolved.take_name(key, lines), names)

    def test_appends_at_once_keep_their_order_and_share_requests(self) -> None:
        async def test() -> None:
            store = keeper()
            asked = count_requests(store)
            async with anyio.create_task_group() as tasks:
                for number in range(200):
                    tasks.start_soon(store.append, KEY, [entry(n=number)])
            self.assertEqual(await store.load(KEY), [entry(n=number) for number in range(200)])
            self.assertLess(len(asked), 20)

        run(test)

    def test_one_bad_entry_among_appends_at_once_harms_no_other(self) -> None:
        async def test() -> None:
            store, refused = keeper(), []
            deep: Any = {}
            for _ in range(200):
                deep = {"deeper": deep}

            async def append(number: int) -> None:
                try:
                    await store.append(KEY, [entry(n=number, deep=deep if number == 5 else None)])
                except Refused as error:
                    refused.append((number, error.status))

            async with anyio.create_task_group() as tasks:
                for number in range(10):
                    tasks.start_soon(append, number)
            self.assertEqual(refused, [(5, 400)])
            loaded = await store.load(KEY)
            self.assertEqual([each["n"] for each in loaded or []], [0, 1, 2, 3, 4, 6, 7, 8, 9])  # type: ignore[typeddict-item]

        run(test)

    def test_a_large_append_goes_in_parts_and_an_entry_of_five_megabytes_passes(self) -> None:
        async def test() -> None:
            store = keeper()
            batch = [entry(text="x" * 1_000_000, n=number) for number in range(5)]
            batch += [entry(text="ü" * 2_500_000), *(entry(n=number) for number in range(2_500))]
            await store.append(KEY, batch)
            self.assertEqual(await store.load(KEY), batch)

        run(test)

    def test_whatever_json_can_say_comes_back(self) -> None:
        async def test() -> None:
            store = keeper()
            odd = [
                entry(half="\ud83d", text="\u0000\u2028ü\n", number=10**30, small=-0.0, none=None),
                entry(uuid="has space", nested={"uuid": "u"}, list=[[], {}, ""]),
                entry(uuid=""),
                entry(uuid=""),
                entry(uuid=3),
            ]
            await store.append(KEY, odd)
            self.assertEqual(await store.load(KEY), odd)

        run(test)

    def test_a_store_outlives_its_event_loop(self) -> None:
        store = keeper()

        async def append() -> None:
            await store.append(KEY, [entry(uuid="u1")])

        anyio.run(append)
        anyio.run(append)

        async def load() -> None:
            self.assertEqual(await store.load(KEY), [entry(uuid="u1")])
            await store.aclose()
            self.assertEqual(await store.load(KEY), [entry(uuid="u1")])

        anyio.run(load)


class Summaries(unittest.TestCase):
    def test_a_listing_reads_only_what_came_since_the_last_one(self) -> None:
        async def test() -> None:
            store = keeper()
            batch = [entry(customTitle=f"title {number}", cwd="/tmp") for number in range(50)]
            await store.append(KEY, batch)
            await store.list_session_summaries("-home-me")
            asked = count_requests(store)
            await store.list_session_summaries("-home-me")
            self.assertEqual([verb for verb, _ in asked], ["summaries"])
            await store.append(KEY, [entry(tag="t", type="tag")])
            asked.clear()
            summary = (await store.list_session_summaries("-home-me"))[0]
            whole = fold_session_summary(None, KEY, await store.load(KEY) or [])
            self.assertEqual(summary["data"], whole["data"])
            pages = [body for verb, body in asked if verb == "load"]
            self.assertGreater(pages[0]["after"], 50)

        run(test)


class Errors(unittest.TestCase):
    def test_errors_say_what_is_wrong_and_what_to_do(self) -> None:
        async def test() -> None:
            with self.assertRaises(Unreachable) as nobody:
                await RethreadSessionStore("http://127.0.0.1:9", token="t", attempts=2).load(KEY)
            self.assertIn("no keeper answers at http://127.0.0.1:9, asked 2 times", str(nobody.exception))
            with self.assertRaises(Refused) as refused:
                await keeper(namespace="no such/namespace").load(KEY)
            self.assertEqual((refused.exception.status, refused.exception.code), (404, "not-found"))
            with self.assertRaises(BadEntry) as bad:
                await keeper().append(KEY, [entry(), entry(number=float("nan"))])
            self.assertEqual(bad.exception.place, 1)
            with self.assertRaises(BadEntry):
                await keeper().append(KEY, [[]])  # type: ignore[list-item]

        run(test)


def count_requests(store: RethreadSessionStore) -> list[tuple[str, Any]]:
    """Writes down what a store asks from now on, in this event loop."""
    asked: list[tuple[str, Any]] = []
    keeper = store._run().keeper
    ask = keeper.ask

    async def counted(verb: str, body: Any) -> Any:
        asked.append((verb, body))
        return await ask(verb, body)

    keeper.ask = counted  # type: ignore[method-assign]
    return asked


if __name__ == "__main__":
    unittest.main()
