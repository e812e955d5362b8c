"""What somebody looks for in a ledger: times, names with ``*``, and a text in the lines.

Nothing here reads a ledger: whoever holds one asks these for what they say of a name or a line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, get_args

import orjson

from .capability import Capabilities
from .entry import Event
from .errors import ConfigError, UsageError
from .globs import Globs

EVENTS: Final[tuple[str, ...]] = get_args(Event)
#: The outcome of a call that was admitted and of whose end the ledger knows nothing.
UNKNOWN: Final = "outcome_unknown"
#: What stands for every outcome but ``ok``.
FAILED: Final = "failed"
#: The fewest characters of an id that stand for the whole.
SHORTEST: Final = 6

_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_AGO: Final = re.compile(r"([0-9]{1,9})([smhdw])", re.IGNORECASE)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_DAY: Final = 86_400_000
_WHEN: Final = "write 2026-11-19T20:59:08Z, 2026-11-19, or how long ago: 90s, 15m, 2h, 3d, 1w"


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What to look for. What is None does not matter.

    Times are milliseconds since 1970, both ends included: of a call the time of its end, of one
    without end that of its beginning. Names are as :func:`matcher` takes them, ``event`` is one
    of :data:`EVENTS`. Without ``event`` and ``lines`` what is found are calls, one line each.
    ``limit`` 0 is for all.
    """

    since: int | None = None
    until: int | None = None
    tool: str | None = None
    peer: str | None = None
    outcome: str | None = None
    kind: str | None = None
    instance: str | None = None
    event: str | None = None
    trace: str | None = None
    text: str | None = None
    lines: bool = False
    oldest_first: bool = False
    limit: int = 100

    def __post_init__(self) -> None:
        if self.event is not None and self.event not in EVENTS:
            raise UsageError(f"no event {self.event!r}", hint=f"events: {', '.join(EVENTS)}")
        if self.limit < 0:
            raise UsageError("a limit is no negative number", hint="0 is for all")
        if self.trace is not None and len(self.trace) < SHORTEST:
            raise UsageError(
                f"{self.trace!r} is too short for a trace",
                hint=f"write {SHORTEST} characters of its id or more",
            )
        if "" in (self.tool, self.peer, self.outcome, self.kind, self.instance):
            raise UsageError("a name to look for is empty", hint="leave it out, or write * for all")
        if self.text == "":
            raise UsageError("the text to look for is empty", hint="leave it out to find all")

    @property
    def wants_calls(self) -> bool:
        """Whether calls are looked for, and not lines."""
        return not self.lines and self.event is None


def matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a name is the one meant. ``*`` is any run of characters, nothing else is special."""
    glob = re.sub(r"\*+", "*", pattern)
    if "*" not in glob:
        return lambda name: name == pattern
    globs = Globs({glob: glob})
    return lambda name: globs.find(name) is not None


def kind_matcher(pattern: str) -> Callable[[str], bool]:
    """The same for kinds, where ``mcp/request:tools/call`` means those of all its contexts.

    What is a capability is held against kinds as one (docs/kinds.md), the rest is a glob.
    """
    is_like = matcher(pattern)
    try:
        granted = Capabilities([pattern])
    except ConfigError:
        return is_like
    return lambda name: is_like(name) or granted.allows(name)


def outcome_matcher(pattern: str) -> Callable[[str], bool]:
    """The same for outcomes, in any case; ``failed`` is every one but ``ok``."""
    if pattern.lower() == FAILED:
        return lambda name: name != "ok"
    is_like = matcher(pattern.lower())
    return lambda name: is_like(name.lower())


def text_finder(text: str) -> Callable[[bytes], bool]:
    """Whether a text stands in JSON, in any case: in its values, or as it is written."""
    written = orjson.dumps(text).decode()[1:-1]
    if text.isascii():
        small = tuple({text.lower().encode(), written.lower().encode()})

        def has_ascii(data: bytes) -> bool:
            low = data.lower()
            return any(one in low for one in small)

        return has_ascii
    folded = tuple({text.casefold(), written.casefold()})

    def has(data: bytes) -> bool:
        low = data.decode(errors="replace").casefold()
        return any(one in low for one in folded)

    return has


def moment(text: str, now: int, *, is_end: bool = False) -> int:
    """Milliseconds since 1970 of a time, a date (UTC) or ``2h``, which is that long before ``now``.

    A date is its first millisecond, or its last one where ``is_end`` says so. UsageError for
    anything else.
    """
    given = text.strip()
    found = _AGO.fullmatch(given)
    if found:
        return now - int(found[1]) * _UNITS[found[2].lower()] * 1000
    try:
        when = datetime.fromisoformat(given)
        if when.tzinfo is None:
            when = when.replace(tzinfo=UTC)
        ms = (when - _EPOCH) // _MILLISECOND
    except (ValueError, OverflowError):
        raise UsageError(f"{text!r} is no time", hint=_WHEN) from None
    return ms + _DAY - 1 if is_end and _DATE.fullmatch(given) else ms


def milliseconds(text: object) -> int | None:
    """Milliseconds since 1970 of a time as lines say it; None if it is none."""
    try:
        return (datetime.fromisoformat(str(text)) - _EPOCH) // _MILLISECOND
    except (ValueError, TypeError, OverflowError):
        return None


_REDACTED: Final = re.compile(r"redacted: (input|output) at .*; the rest sha256:([0-9a-f]{64}), .*")


def bodies_in(entry: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Under which digests (hex) bodies of a line may be kept: ``input`` and ``output``, with each.

    Of what was redacted it is the digest of the rest, which a warning says.
    """
    found = []
    for part in ("input", "output"):
        said = entry.get(part)
        digest = said.get("digest") if isinstance(said, dict) else None
        if isinstance(digest, str):
            found.append((part, digest.removeprefix("sha256:")))
    warnings = entry.get("warnings")
    texts = [one for one in warnings if isinstance(one, str)] if isinstance(warnings, list) else []
    found += [(said[1], said[2]) for said in map(_REDACTED.fullmatch, texts) if said]
    return found
