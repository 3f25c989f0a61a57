"""The suite that the SDK itself holds session stores to."""

from __future__ import annotations

import unittest

import anyio
from claude_agent_sdk.testing import run_session_store_conformance

from .place import keeper


class Conformance(unittest.TestCase):
    def test_all_fourteen_contracts_hold(self) -> None:
        anyio.run(run_session_store_conformance, keeper)

    def test_none_of_them_is_left_out(self) -> None:
        optional = ["list_sessions", "list_session_summaries", "delete", "list_subkeys"]
        for method in optional:
            self.assertIn(method, vars(type(keeper())))


if __name__ == "__main__":
    unittest.main()
