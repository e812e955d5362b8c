"""Strict JSON documents: what :func:`parse` lets through is what everybody reads the same way.

Two readers agree on a document only if it leaves nothing to choose: no key twice, no number
that overflows, no text that is not UTF-8. A :class:`Document` keeps the bytes beside the
value, because Python's numbers cannot hold what JSON can write (``1.0``, ``-0``, ``1e2``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Any

import orjson

from . import spans
from .errors import EnvelopeError, Problem, UsageError
from .plain import MAX_DEPTH, bounded_text, dump_plain, load_plain, same_value
from .pointer import is_index, is_pointer, steps_of
from .strict import DEFAULT_LIMITS, Limits, allow_short_way, parse_carefully

__all__ = ["DEFAULT_LIMITS", "Document", "Limits", "build", "dump", "parse"]


class Document:
    """A JSON text that was read strictly: its exact bytes, and its value in plain Python.

    Treat both as frozen. Parts are documents too (:meth:`at`, ``document["name"]``) and keep
    their own exact bytes. Two documents are equal if they are the same JSON value, and a
    document equals the plain Python value it stands for.
    """

    __slots__ = ("_plain", "_raw", "_value")

    def __init__(self, raw: bytes | None, value: Any, *, plain: bool = False) -> None:
        # Only for this module. ``plain``: printing the value gives exactly the original text
        # (see parse), so the texts of its parts need not be searched for.
        self._raw = raw
        self._value = value
        self._plain = plain

    @classmethod
    def of(cls, value: object) -> Document:
        """A document of a plain Python value, which may hold documents anywhere inside."""
        if isinstance(value, Document):
            return value
        raw = dump(value)
        return cls(raw, load_plain(raw))

    @property
    def raw(self) -> bytes:
        """The exact JSON text."""
        if self._raw is None:
            self._raw = orjson.dumps(self._value)
        return self._raw

    # A getter in C, since this is what everything asks for.
    value = property(attrgetter("_value"), doc="dict, list, str, int, float, bool or None.")

    @property
    def is_object(self) -> bool:
        """Whether it is an object: only these have members."""
        return type(self._value) is dict

    def members(self) -> dict[str, Document]:
        """The members of an object, each with its exact bytes; empty for anything else."""
        if type(self._value) is not dict:
            return {}
        if self._plain:
            return {name: Document(None, part, plain=True) for name, part in self._value.items()}
        texts = spans.members(self.raw)
        return {
            name: Document(text, part)
            for (name, part), (_, text) in zip(self._value.items(), texts, strict=True)
        }

    def elements(self) -> list[Document]:
        """The elements of an array, each with its exact bytes; empty for anything else."""
        if type(self._value) is not list:
            return []
        if self._plain:
            return [Document(None, part, plain=True) for part in self._value]
        texts = spans.elements(self.raw)
        return [Document(text, part) for part, text in zip(self._value, texts, strict=True)]

    def at(self, pointer: str) -> Document | None:
        """The part at an RFC 6901 pointer, or None where there is none, or that is no pointer."""
        if not is_pointer(pointer):
            return None
        found: Document = self
        for step in steps_of(pointer):
            value = found._value
            if type(value) is dict and step in value:
                found = found._member(step)
            elif type(value) is list and is_index(step) and int(step) < len(value):
                found = found.elements()[int(step)]
            else:
                return None
        return found

    def without(self, *names: str) -> Document:
        """The same object without some of its members."""
        if not any(name in self._value for name in names):
            return self
        return build({k: v for k, v in self.members().items() if k not in names})

    def __getitem__(self, key: str | int) -> Document:
        if not isinstance(key, str):
            return self.elements()[key]
        if type(self._value) is not dict or key not in self._value:
            raise KeyError(key)
        return self._member(key)

    def _member(self, name: str) -> Document:
        """One member that is there, without a look at those behind it."""
        part = self._value[name]
        if self._plain:
            return Document(None, part, plain=True)
        return Document(spans.member(self.raw, name), part)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._value)

    def __len__(self) -> int:
        return len(self._value)

    def __bool__(self) -> bool:
        return True  # a document is always something, empty or null as it may be

    def __contains__(self, name: object) -> bool:
        return name in self._value

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Document):
            if self._raw is not None and self._raw == other._raw:
                return True
            return same_value(self._value, other._value)
        # None means "absent" wherever a document is optional, and null is not absent.
        return other is not None and same_value(self._value, other)

    __hash__ = None  # type: ignore[assignment]  # equal documents may be written differently

    def __repr__(self) -> str:
        # Contents stay out of it: representations end up in logs, and payloads hold secrets.
        return f"<Document {type(self._value).__name__}, {len(self.raw)} bytes>"


def parse(
    data: bytes | bytearray | memoryview,
    *,
    limits: Limits = DEFAULT_LIMITS,
    size: int | None = None,
) -> Document:
    """Read one JSON document, or raise :class:`EnvelopeError` saying what is wrong where.

    ``size`` is the most bytes to accept (default: the limit for results). UTF-8 without a
    byte order mark; no duplicate keys, NaN, Infinity, numbers beyond a double's range or
    lone surrogates.
    """
    raw = data if type(data) is bytes else _bytes_of(data)
    most = limits.result if size is None else size
    if len(raw) > most:
        raise EnvelopeError(
            f"the document has {len(raw):,} bytes, more than the {most:,} accepted",
            code="TOO_LARGE",
            problems=[Problem("", "document/size", f"{len(raw):,} bytes, limit {most:,}")],
        )
    if limits is DEFAULT_LIMITS or allow_short_way(limits):
        try:
            value = orjson.loads(raw)
            printed = bounded_text(value) if len(raw) > 2 * MAX_DEPTH else orjson.dumps(value)
        except (ValueError, TypeError):
            pass
        else:
            # The short way. If the value prints as exactly the bytes it was read from, then
            # no key was dropped as a duplicate and no number changed; orjson itself refuses
            # what is not UTF-8, unpaired surrogates and overflow.
            if printed == raw:
                return Document(raw, value, plain=True)
            # The same if only spaces differ: both texts have the same tokens in the same
            # order, but for spaces in strings, which no reader changes.
            if len(printed) < len(raw) and printed.translate(None, b" ") == raw.translate(
                None, b" \t\r\n"
            ):
                return Document(raw, value)
    return Document(raw, parse_carefully(raw, limits))


def dump(value: object) -> bytes:
    """The JSON text of a document (its exact bytes) or of a plain Python value.

    Plain values may hold documents, whose bytes are spliced in. What is not JSON (NaN,
    non-string keys, lone surrogates, other types, nesting beyond 200) is an EnvelopeError.
    """
    if isinstance(value, Document):
        return value.raw
    return dump_plain(value, _splice, _unfold)


def build(members: Mapping[str, object]) -> Document:
    """An object of the given members: documents keep their bytes, the rest is plain Python."""
    return Document.of(dict(members))


def _bytes_of(data: object) -> bytes:
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    hint = "a str has no encoding to check: .encode() it" if isinstance(data, str) else ""
    raise UsageError(f"parse takes bytes, not {type(data).__name__}", hint=hint)


def _splice(value: object) -> Any:
    if isinstance(value, Document):
        return orjson.Fragment(value.raw)
    raise TypeError(type(value).__name__)


def _unfold(value: object) -> Any:
    if isinstance(value, Document):
        return value.value
    raise TypeError(type(value).__name__)
