"""Keeps the sessions of the Claude Agent SDK in a Rethread keeper.

    from claude_agent_sdk import ClaudeAgentOptions
    from rethread_session_store import RethreadSessionStore

    options = ClaudeAgentOptions(session_store=RethreadSessionStore("http://localhost:7717", token="rtk_…"))
"""

from .errors import BadEntry, Refused, RethreadError, Unreachable
from .store import RethreadSessionStore

__all__ = ["BadEntry", "Refused", "RethreadError", "RethreadSessionStore", "Unreachable"]
