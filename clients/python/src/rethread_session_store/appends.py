"""Appends on their way to a keeper: in order, several in one request, and each applied once."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio

from .errors import BadEntry, Refused
from .keeper import Keeper

# How much goes into one request, unless a single entry is larger.
MOST_BYTES = 4 << 20
MOST_ENTRIES = 2_000
# How many appends are remembered that nobody knows the end of.
MOST_UNRESOLVED = 1_024

Key = tuple[str, str, str | None]


@dataclass
class Batch:
    """The entries of one append, and the name by which the keeper knows them again."""

    name: str
    lines: list[bytes]
    sent: bool = False

    def size(self) -> int:
        return sum(len(line) for line in self.lines)


@dataclass
class Line:
    """The appends to one session that wait, in the order they were made."""

    lock: anyio.Lock = field(default_factory=anyio.Lock)
    waiting: deque[Batch] = field(default_factory=deque)


class Unresolved:
    """Appends that failed, though the keeper may have applied them.

    The SDK makes such an append once more. If it went by another name then, entries without a uuid would be there twice.
    """

    def __init__(self) -> None:
        self._names: OrderedDict[tuple[Key, bytes], list[str]] = OrderedDict()

    def take_name(self, key: Key, lines: Sequence[bytes]) -> str:
        """Returns the name of such an append, or a new one. Of two equal appends, each has a name of its own."""
        if not self._names:
            return uuid.uuid4().hex
        content = (key, _digest(lines))
        names = self._names.get(content)
        if not names:
            return uuid.uuid4().hex
        name = names.pop(0)
        if not names:
            del self._names[content]
        return name

    def keep(self, key: Key, batch: Batch) -> None:
        self._names.setdefault((key, _digest(batch.lines)), []).append(batch.name)
        while len(self._names) > MOST_UNRESOLVED:
            self._names.popitem(last=False)


class Appends:
    """All appends of one event loop."""

    def __init__(self, keeper: Keeper, unresolved: Unresolved) -> None:
        self._keeper = keeper
        self._unresolved = unresolved
        self._lines: dict[Key, Line] = {}

    async def append(self, key: Key, entries: Sequence[Mapping[str, Any]]) -> None:
        lines = [_line(place, entry) for place, entry in enumerate(entries)]
        batch = Batch(self._unresolved.take_name(key, lines), lines)
        line = self._lines.setdefault(key, Line())
        line.waiting.append(batch)
        try:
            async with line.lock:
                # Whoever had the lock before may have taken it along.
                if not batch.sent:
                    await self._send(key, line, batch)
        except BaseException:
            # Cancelled or failed: it may be applied or not.
            self._unresolved.keep(key, batch)
            raise
        finally:
            if batch in line.waiting:
                line.waiting.remove(batch)
            if not line.waiting and not line.lock.statistics().tasks_waiting and not line.lock.locked():
                self._lines.pop(key, None)

    async def _send(self, key: Key, line: Line, batch: Batch) -> None:
        """Sends a batch, and those that wait behind it as far as they fit."""
        group = _group(batch, line.waiting)
        if len(group) > 1:
            try:
                await self._keeper.ask("append", _body(key, [(each, 0, each.lines) for each in group]))
            except Refused:
                # It may be about another one, who will hear of it; this one is sent alone.
                group = [batch]
            else:
                return _mark(group, line)
        for offset, part in _parts(batch.lines):
            await self._keeper.ask("append", _body(key, [(batch, offset, part)]))
        _mark([batch], line)


def _mark(group: Sequence[Batch], line: Line) -> None:
    for batch in group:
        batch.sent = True
        line.waiting.remove(batch)


def _group(first: Batch, waiting: Sequence[Batch]) -> list[Batch]:
    group: list[Batch] = []
    size = count = 0
    for batch in waiting:
        size += batch.size()
        count += len(batch.lines)
        if batch is not first and (size > MOST_BYTES or count > MOST_ENTRIES):
            break
        group.append(batch)
    return group


def _parts(lines: Sequence[bytes]) -> list[tuple[int, Sequence[bytes]]]:
    """Cuts a batch into requests; its first entry's place goes with each."""
    parts: list[tuple[int, Sequence[bytes]]] = []
    begin = size = 0
    for place, line in enumerate(lines):
        if place > begin and (size + len(line) > MOST_BYTES or place - begin >= MOST_ENTRIES):
            parts.append((begin, lines[begin:place]))
            begin, size = place, 0
        size += len(line)
    parts.append((begin, lines[begin:]))
    return parts


def _body(key: Key, batches: Sequence[tuple[Batch, int, Sequence[bytes]]]) -> bytes:
    """Writes a request around lines that are written already."""
    written = [
        b'{"id":"%s","offset":%d,"entries":[%s]}' % (batch.name.encode(), offset, b",".join(lines))
        for batch, offset, lines in batches
    ]
    return b'{"key":%s,"batches":[%s]}' % (json.dumps(wire_key(key)).encode(), b",".join(written))


def wire_key(key: Key) -> dict[str, str]:
    """Writes a key as the keeper reads it."""
    project_key, session_id, subpath = key
    wire = {"project_key": project_key, "session_id": session_id}
    return wire if subpath is None else {**wire, "subpath": subpath}


def _line(place: int, entry: Mapping[str, Any]) -> bytes:
    try:
        text = json.dumps(entry, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise BadEntry(place, str(error)) from error
    if not text.startswith("{"):
        raise BadEntry(place, f"it is {type(entry).__name__}")
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Half a character, as the CLI's own transcripts hold at times: JSON can write it, UTF-8 cannot.
        return json.dumps(entry, allow_nan=False, separators=(",", ":")).encode()


def _digest(lines: Sequence[bytes]) -> bytes:
    return hashlib.sha256(b"\n".join(lines)).digest()
