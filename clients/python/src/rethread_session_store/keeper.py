"""A keeper's session store over HTTP: every question may be asked again, and is until it is answered."""

from __future__ import annotations

import json
import random
from typing import Any

import anyio
import httpx2

from .errors import Refused, Unreachable

# The first pause between two tries, and the longest one.
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0
# What a proxy says when it, or what is behind it, cannot answer just now.
PASSING = frozenset({408, 425, 429, 502, 503, 504})


class Keeper:
    """Asks one namespace of one keeper. It belongs to one event loop."""

    def __init__(self, url: str, token: str, namespace: str, attempts: int, timeout: float) -> None:
        self._url = url.rstrip("/")
        self._place = f"{self._url}/api/v1/session-store/{namespace}/"
        self._attempts = attempts
        headers = {"Authorization": f"Bearer {token}", "X-Rethread": "1", "Content-Type": "application/json"}
        self._client = httpx2.AsyncClient(headers=headers, timeout=timeout)

    async def close(self) -> None:
        await self._client.aclose()

    async def ask(self, verb: str, body: dict[str, Any] | bytes) -> Any:
        """Asks until there is an answer: all that can be asked here changes nothing when it is asked again."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        why = ""
        for attempt in range(1, self._attempts + 1):
            wait: float | None = None
            try:
                response = await self._client.post(self._place + verb, content=content)
                if response.is_success:
                    return response.json() if response.content else None
                problem = _problem(response)
                if not _may_pass(response.status_code, problem):
                    raise _refused(response.status_code, problem)
                why = str(_refused(response.status_code, problem))
                wait = _retry_after(response)
            except (httpx2.TransportError, json.JSONDecodeError) as error:
                # An answer that was cut off is as good as none.
                why = f"{type(error).__name__} {error}".strip()
            if attempt < self._attempts:
                await anyio.sleep(_pause(attempt) if wait is None else wait)
        raise Unreachable(self._url, self._attempts, why)


def _pause(attempt: int) -> float:
    longest: float = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (attempt - 1))
    # Those who were cut off together do not come back together.
    return longest * (0.5 + random.random() / 2)


def _retry_after(response: httpx2.Response) -> float | None:
    try:
        return min(max(float(response.headers["retry-after"]), 0.0), LONGEST_PAUSE)
    except (KeyError, ValueError):
        return None


def _problem(response: httpx2.Response) -> dict[str, Any]:
    try:
        problem = response.json()
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}


def _may_pass(status: int, problem: dict[str, Any]) -> bool:
    return problem.get("retryable") is True or (status in PASSING and "retryable" not in problem)


def _refused(status: int, problem: dict[str, Any]) -> Refused:
    detail = problem.get("detail") or problem.get("title") or "it does not say why"
    return Refused(status, str(problem.get("code", "unknown")), str(detail), problem.get("hint"))
