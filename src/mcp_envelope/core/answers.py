"""How an error is said at the MCP door, which differs between MCP's revisions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

STATELESS: Final = "2026-07-28"


class Answer(Enum):
    """The shape that an answer takes."""

    ERROR = "a JSON-RPC error"
    RESULT_IS_ERROR = "a result that is marked isError"
    UPSTREAM_OWN = "the upstream's own answer"
    HTTP_ONLY = "an HTTP status, without a JSON-RPC message"
    NO_ANSWER = "no answer"
    NEVER = "does not occur"


RESULT_IS_ERROR: Final = Answer.RESULT_IS_ERROR
UPSTREAM_OWN: Final = Answer.UPSTREAM_OWN
HTTP_ONLY: Final = Answer.HTTP_ONLY
NO_ANSWER: Final = Answer.NO_ANSWER
NEVER: Final = Answer.NEVER


@dataclass(frozen=True, slots=True)
class McpAnswer:
    """What the MCP door says for a code.

    ``code`` is the JSON-RPC number, None unless ``answer`` is ``Answer.ERROR``. ``http`` is the
    status over Streamable HTTP and never 5xx, because older clients drop the whole session
    then; ``stateless_http`` replaces it from 2026-07-28 on. ``unread_http`` is for a body that
    was not read to its end, ``unparsable`` the number where no JSON could be read.
    ``one_shot`` is the shape for an upstream without an MCP answer of its own. ``challenge``
    asks for a ``WWW-Authenticate`` header, ``retry_after`` for ``data.retryAfter``.
    """

    answer: Answer
    code: int | None = None
    http: int = 200
    stateless_http: int | None = None
    unread_http: int | None = None
    unparsable: int | None = None
    one_shot: Answer | None = None
    since: str | None = None
    challenge: bool = False
    retry_after: bool = False

    def at(self, revision: str) -> McpAnswer:
        """The answer for one revision (they are dates, and compare as text)."""
        if self.since is not None and revision < self.since:
            return McpAnswer(NEVER)
        stateless = self.stateless_http if revision >= STATELESS else None
        http = self.http if stateless is None else stateless
        return replace(self, http=http, stateless_http=None, since=None)

    def __str__(self) -> str:
        said = str(self.code) if self.code is not None else self.answer.value
        if self.answer in (NO_ANSWER, NEVER):
            return said
        said += f", HTTP {self.http}"
        notes = [
            (self.unparsable, f"{self.unparsable} where nothing could be parsed"),
            (self.stateless_http, f"from {STATELESS} on HTTP {self.stateless_http}"),
            (self.unread_http, f"HTTP {self.unread_http} if the body was not read"),
            (self.one_shot, f"for a one-shot command {self.one_shot and self.one_shot.value}"),
            (self.since, f"from {self.since} on"),
            (self.challenge or None, "with WWW-Authenticate"),
            (self.retry_after or None, "with data.retryAfter"),
        ]
        told = "; ".join(text for value, text in notes if value is not None)
        return f"{said} ({told})" if told else said


def error(code: int, http: int = 200) -> McpAnswer:
    """An answer that is a JSON-RPC error."""
    return McpAnswer(Answer.ERROR, code, http)
