"""One turn of the real CLI through the SDK, mirrored: ``python -m tests.turn PROMPT [SESSION]``."""

from __future__ import annotations

import json
import os
import sys

import anyio
from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, SystemMessage, query

from rethread_session_store import RethreadSessionStore


async def main(prompt: str, resume: str | None = None) -> None:
    options = ClaudeAgentOptions(
        cli_path=os.environ["CLAUDE"],
        cwd=os.environ["PROJECT"],
        permission_mode="bypassPermissions",
        resume=resume,
        session_store=RethreadSessionStore.from_environment(),
    )
    async for message in query(prompt=prompt, options=options):
        if isinstance(message, SystemMessage) and message.subtype == "mirror_error":
            raise SystemExit(f"something was not mirrored: {message}")
        if isinstance(message, ResultMessage):
            print(json.dumps({"session_id": message.session_id, "subtype": message.subtype}))


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)
