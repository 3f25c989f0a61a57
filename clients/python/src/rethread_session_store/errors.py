"""Why something was not done, by what the caller can do about it."""

from __future__ import annotations


class RethreadError(Exception):
    """What this package raises; the others are kinds of it."""


class Unreachable(RethreadError):
    """No keeper answered, however often it was asked. What was appended may be in the store all the same."""

    def __init__(self, url: str, attempts: int, why: str) -> None:
        times = "once" if attempts == 1 else f"{attempts} times"
        super().__init__(f"no keeper answers at {url}, asked {times}: {why}")
        self.url = url
        self.attempts = attempts


class Refused(RethreadError):
    """The keeper said no, and would say so again."""

    def __init__(self, status: int, code: str, detail: str, hint: str | None = None) -> None:
        after = f"; {hint}" if hint else ""
        super().__init__(f"the keeper refuses ({status} {code}): {detail}{after}")
        self.status = status
        self.code = code
        self.detail = detail
        self.hint = hint


class BadEntry(RethreadError):
    """An entry is nothing that JSON can say."""

    def __init__(self, place: int, why: str) -> None:
        super().__init__(f"entry {place} of the batch is no JSON object: {why}")
        self.place = place
