"""The neutral model: what an envelope says, apart from how a dialect writes it.

A dialect decodes bytes into one of four messages and encodes them again. What only one
dialect knows stays in ``extras``, keyed ``<namespace>#<pointer>``, so that nothing is lost on
the way back. All are frozen, and none changes what it is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import inf
from types import MappingProxyType
from typing import Any, Final

from .document import Document
from .errors import UsageError

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})

Id = str | int | float


@dataclass(frozen=True, slots=True)
class Peer:
    """Whoever sent a message: a participant, an agent, a server."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that went wrong.

    ``code`` is a canonical code where the dialect's own code stands for one, else the tool's
    own code, as it came. It and ``retryable`` are None where the envelope does not say.
    """

    code: str | None
    message: str
    details: Document | None = None
    retryable: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a message was read from: the ground for saying what a conversion loses.

    ``pointers`` leads from each field and each key of ``extras`` to its place in ``document``.
    """

    dialect: str
    part: str
    document: Document
    pointers: Mapping[str, str] = field(default_factory=lambda: _NOTHING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What all four kinds of message share. Fields that an envelope does not have are None.

    - ``id``: what ties an answer to its question. ``7`` and ``"7"`` are different.
    - ``method``: the MCP method; ``target``: the tool, prompt or resource that it names.
    - ``envelope_id``, ``correlation_id``: ids of the envelope and of the one it answers,
      where these are other than ``id``.
    - ``extras``: what only one dialect knows; None stands for a member that the dialect would
      write by itself, and that was not there.
    - ``filled``: fields and extras that a conversion made up because its target needed them.
    """

    id: Id | None = None
    method: str | None = None
    target: str | None = None
    time: str | None = None
    trace_id: str | None = None
    peer: Peer | None = None
    to: tuple[str, ...] | None = None
    envelope_id: str | None = None
    correlation_id: str | None = None
    meta: Document | None = None
    extras: Mapping[str, Document | None] = field(default_factory=lambda: _NOTHING)
    filled: frozenset[str] = frozenset()
    origin: Origin | None = field(default=None, compare=False, repr=False)

    @classmethod
    def field_names(cls) -> tuple[str, ...]:
        """The fields that carry meaning, without the bookkeeping ones."""
        return tuple(f.name for f in fields(cls) if f.name not in _BOOKKEEPING)

    def check(self) -> None:
        """Raise UsageError if a message that was made by hand cannot be written."""
        faults = self.faults if isinstance(self, Failure) else ()
        documents = {name: getattr(self, name, None) for name in _DOCUMENTS}
        documents |= {f"extras[{key!r}]": value for key, value in self.extras.items()}
        documents |= {f"faults[{at}].details": each.details for at, each in enumerate(faults)}
        for name, value in documents.items():
            if value is not None and not isinstance(value, Document):
                hint = f"{name.partition('[')[0]}: Document.of(…) makes one of a plain value"
                raise UsageError(f"{name} is no Document but {type(value).__name__}", hint=hint)
        duration = getattr(self, "duration_ms", None)
        if duration is not None and not 0 <= duration < inf:
            raise UsageError(f"duration_ms is {duration}", hint="a finite number of 0 or more")
        if isinstance(self, Request) and not self.method:
            raise UsageError("a request has a method", hint='method="tools/call"')

    def place_of(self, name: str) -> str:
        """A pointer to where a field or an extra was read from; ``/<field>`` if made by hand."""
        if self.origin is not None and name in self.origin.pointers:
            return self.origin.pointers[name]
        return "/" + name.split("#/", 1)[-1]


_DOCUMENTS: Final = ("meta", "arguments", "payload", "auth")
_BOOKKEEPING: Final = ("extras", "filled", "origin")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Message):
    """Somebody asks for something; a ``proposal`` asks others to ask for it.

    ``auth`` holds credentials: it is never shown, and goes into no other dialect.
    """

    arguments: Document | None = None
    proposal: bool = False
    auth: Document | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Success(Message):
    """An answer.

    ``payload`` is what came back, None where the envelope has no place filled with it (null
    is a document). ``arguments`` are those of the request, where the dialect repeats them.
    ``accepted`` means that the work goes on and the result comes later, ``waiting`` that it
    goes on once the caller has answered a question (MCP's ``input_required``).
    """

    payload: Document | None = None
    arguments: Document | None = None
    accepted: bool = False
    waiting: bool = False
    duration_ms: int | float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure(Message):
    """An answer that says what went wrong; ``payload`` is the partial result, if there is one."""

    faults: tuple[Fault, ...]
    payload: Document | None = None
    arguments: Document | None = None
    duration_ms: int | float | None = None

    def __post_init__(self) -> None:
        given: object = self.faults
        if not isinstance(given, tuple) or not given:
            hint = "faults=(Fault(code=…, message=…),)"
            raise UsageError("a failure has a tuple of at least one Fault", hint=hint)

    @property
    def code(self) -> str | None:
        """The code of the first fault."""
        return self.faults[0].code

    @property
    def message(self) -> str:
        """The text of the first fault."""
        return self.faults[0].message


@dataclass(frozen=True, slots=True, kw_only=True)
class Event(Message):
    """Something that wants no answer: a notification, a chat line, a gateway's announcement.

    ``name`` is ``notification`` (then ``method`` says which), ``chat`` or ``system/…``.
    """

    name: str
    payload: Document | None = None
