"""The SDK's session store, in a keeper."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import anyio
import anyio.lowlevel
import claude_agent_sdk
from claude_agent_sdk import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStore,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
    fold_session_summary,
)

from .appends import Appends, Key, Unresolved, wire_key
from .errors import Refused, RethreadError
from .keeper import Keeper

logger = logging.getLogger(__name__)

# How many sessions are summarised at once.
AT_ONCE = 8
# How often a session is read from its beginning that somebody deletes and begins again meanwhile.
MOST_BEGINNINGS = 5


@dataclass
class _Run:
    """What belongs to one event loop."""

    keeper: Keeper
    appends: Appends


@dataclass
class _Read:
    entries: list[SessionStoreEntry]
    log: str
    position: int
    version: str


class RethreadSessionStore(SessionStore):
    """Keeps sessions in one namespace of a Rethread keeper.

    An append is durable when it returns, and applied once however often it was sent. Appends to one session keep their
    order; those that wait for each other share requests. A store may be used from several event loops, one after another
    or at once, and by any number of processes beside each other.
    """

    def __init__(
        self,
        url: str = "http://localhost:7717",
        *,
        token: str,
        namespace: str = "default",
        attempts: int = 6,
        timeout: float = 40.0,
    ) -> None:
        """
        :param url: where the keeper is, or the proxy before it.
        :param token: what ``rethread token NAME --namespace NAMESPACE`` printed.
        :param attempts: how often each request is sent before :class:`Unreachable` is raised.
        :param timeout: how long each of them may take, in seconds.
        """
        if attempts < 1:
            raise ValueError("a request is sent at least once")
        self._settings = (url, token, namespace, attempts, timeout)
        self._unresolved = Unresolved()
        self._run_var: anyio.lowlevel.RunVar[_Run | None] = anyio.lowlevel.RunVar("rethread-session-store")
        version = ".".join(claude_agent_sdk.__version__.split(".")[:2])
        # The SDK may change what a summary holds.
        self._format = f"python-{version.replace('.', '-')}"

    @classmethod
    def from_environment(cls) -> Self:
        """Takes ``RETHREAD_URL``, ``RETHREAD_TOKEN`` and ``RETHREAD_NAMESPACE``; only the token must be there."""
        token = os.environ.get("RETHREAD_TOKEN")
        if not token:
            raise RethreadError("RETHREAD_TOKEN is not set; `rethread token NAME` on the keeper's machine makes one")
        url = os.environ.get("RETHREAD_URL", "http://localhost:7717")
        return cls(url, token=token, namespace=os.environ.get("RETHREAD_NAMESPACE", "default"))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes this event loop's connections. The store can be used again."""
        run = self._run_var.get(None)
        if run is not None:
            self._run_var.set(None)
            await run.keeper.close()

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Adds entries. Those with a ``uuid`` that the session holds are left out, those without are never merged."""
        if entries:
            await self._run().appends.append(_key(key), entries)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Reads a whole session, page by page; ``None`` if there is none."""
        read = await self._read(_key(key))
        return None if read is None else read.entries

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """Lists the sessions of a project."""
        answer = await self._ask("sessions", {"project_key": project_key})
        return [{"session_id": item["session_id"], "mtime": item["mtime"]} for item in answer["items"]]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """Summarises the sessions of a project. Of each only that is read which came since it was last asked for."""
        answer = await self._ask("summaries", {"project_key": project_key, "format": self._format})
        summaries: dict[str, SessionSummaryEntry] = {}
        limiter = anyio.CapacityLimiter(AT_ONCE)

        async def summarize(item: dict[str, Any]) -> None:
            async with limiter:
                data = await self._summarize(project_key, item)
            if data is not None:
                session_id = item["session_id"]
                summaries[session_id] = {"session_id": session_id, "mtime": item["mtime"], "data": data}

        async with anyio.create_task_group() as tasks:
            for item in answer["items"]:
                tasks.start_soon(summarize, item)
        return [summaries[item["session_id"]] for item in answer["items"] if item["session_id"] in summaries]

    async def delete(self, key: SessionKey) -> None:
        """Deletes a session for good, with its subagents' transcripts; with a ``subpath``, only that one."""
        await self._ask("delete", {"key": wire_key(_key(key))})

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """Lists a session's subagents' transcripts."""
        answer = await self._ask("subkeys", {"project_key": key["project_key"], "session_id": key["session_id"]})
        return list(answer["items"])

    async def _summarize(self, project_key: str, item: dict[str, Any]) -> dict[str, Any] | None:
        session_id, known = item["session_id"], item["summary"]
        if known is not None and known["version"] and known["version"] == item["version"]:
            return dict(known["data"])
        key: SessionKey = {"project_key": project_key, "session_id": session_id}
        before: SessionSummaryEntry | None = None
        read: _Read | None = None
        if known is not None:
            try:
                read = await self._read_once(_key(key), known["position"], known["log"])
                before = {"session_id": session_id, "mtime": item["mtime"], "data": known["data"]}
            except Refused as refused:
                if refused.code != "begun-again":
                    raise
        if read is None:
            before, read = None, await self._read(_key(key))
        if read is None:
            return None
        data = fold_session_summary(before, key, read.entries)["data"]
        kept = {"log": read.log, "position": read.position, "version": read.version, "data": data}
        try:
            await self._ask("summarize", {**key, "format": self._format, **kept})
        except RethreadError as error:
            # The next listing makes it again.
            logger.debug("the summary of %s is not kept: %s", session_id, error)
        return data

    async def _read(self, key: Key) -> _Read | None:
        for _ in range(MOST_BEGINNINGS):
            try:
                return await self._read_once(key, 0, None)
            except Refused as refused:
                if refused.code != "begun-again":
                    raise
        raise RethreadError(f"session {key[1]} is deleted again and again while it is read")

    async def _read_once(self, key: Key, position: int, log: str | None) -> _Read | None:
        entries: list[SessionStoreEntry] = []
        version: str | None = None
        while True:
            body: dict[str, Any] = {"key": wire_key(key), "after": position}
            page = await self._ask("load", body if log is None else {**body, "log": log})
            if page["entries"] is None:
                return None
            if page["lost"]:
                logger.warning("%s entries of session %s are damaged and cannot be read", page["lost"], key[1])
            # The version before the first page: what came meanwhile makes it look older than it is, never newer.
            version = page["version"] if version is None else version
            entries += page["entries"]
            log, position = page["log"], page["next"]
            if not page["more"]:
                return _Read(entries, page["log"], position, version or "")

    async def _ask(self, verb: str, body: dict[str, Any]) -> Any:
        return await self._run().keeper.ask(verb, body)

    def _run(self) -> _Run:
        run = self._run_var.get(None)
        if run is None:
            keeper = Keeper(*self._settings)
            run = _Run(keeper, Appends(keeper, self._unresolved))
            self._run_var.set(run)
        return run


def _key(key: SessionKey) -> Key:
    return key["project_key"], key["session_id"], key.get("subpath")
