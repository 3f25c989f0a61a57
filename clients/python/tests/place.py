"""The keeper that the tests run against: ``RETHREAD_URL`` and ``RETHREAD_TOKEN`` name it.

``RETHREAD_PROXY`` is the same keeper behind somebody who loses its answers.
"""

from __future__ import annotations

import itertools
import os
import unittest

from rethread_session_store import RethreadSessionStore

_numbers = itertools.count()


def keeper(name: str = "RETHREAD_URL", *, attempts: int = 6, namespace: str | None = None) -> RethreadSessionStore:
    """A store with a namespace of its own."""
    if name not in os.environ:
        raise unittest.SkipTest(f"{name} names no keeper")
    namespace = namespace or f"test-{os.getpid()}-{next(_numbers)}"
    return RethreadSessionStore(
        os.environ[name], token=os.environ["RETHREAD_TOKEN"], namespace=namespace, attempts=attempts
    )
