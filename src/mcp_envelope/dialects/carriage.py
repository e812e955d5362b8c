"""Carrying along what a target has no name for.

Where a dialect has an open place, what it cannot say rides there under one key, so that a
later conversion can put it back. There are two forms. In an object that may hold anything:

    {"dev.mcp-envelope/carried": {"fields": {…}, "extras": {…}, "filled": ["/timestamp"]}}

and in one that may hold only short strings (``schema_hints``), a key each, the value being
JSON text:

    {"dev.mcp-envelope/field:trace_id": "\\"t-1\\"", "dev.mcp-envelope/extra:tiered/1.0#/tier": "\\"pro\\""}

``fields`` are fields of the neutral model, ``extras`` members of other dialects, ``filled``
pointers at what the conversion made up, which a way back leaves out again. ``verbatim`` says
that the payload stands as it is, where it would be read as a wrapped one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mcp_envelope.core.document import Document, build, parse
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.message import Fault, Peer
from mcp_envelope.core.pointer import pointer_of

KEY: Final = "dev.mcp-envelope/carried"
_FIELD: Final = "dev.mcp-envelope/field:"
_EXTRA: Final = "dev.mcp-envelope/extra:"
_FILLED: Final = "dev.mcp-envelope/filled"
SHORT: Final = 200

_TEXTS: Final = ("method", "target", "time", "trace_id", "envelope_id", "correlation_id", "name")
_DOCUMENTS: Final = ("meta", "arguments", "payload")
_FLAGS: Final = ("proposal", "accepted")


@dataclass(frozen=True, slots=True)
class Carried:
    """What an open place held: ``consumed`` are its keys that were ours."""

    fields: Mapping[str, Any] = field(default_factory=dict)
    extras: Mapping[str, Document] = field(default_factory=dict)
    filled: frozenset[str] = frozenset()
    pointers: Mapping[str, str] = field(default_factory=dict)
    consumed: tuple[str, ...] = ()
    verbatim: bool = False


def pack(
    fields: Mapping[str, object],
    extras: Mapping[str, Document],
    filled: list[str],
    *,
    verbatim: bool = False,
) -> dict[str, object]:
    """The members to put into an open place that may hold anything."""
    carried: dict[str, object] = {}
    if fields:
        carried["fields"] = {name: _written(value) for name, value in fields.items()}
    if extras:
        carried["extras"] = dict(extras)
    if filled:
        carried["filled"] = filled
    if verbatim:
        carried["verbatim"] = True
    return {KEY: carried} if carried else {}


def pack_flat(name: str, value: object, *, extra: bool = False) -> tuple[str, str] | None:
    """The key and the text for a place of short strings; None if it is too long for one."""
    text = Document.of(_written(value)).raw.decode()
    key = (_EXTRA if extra else _FIELD) + name
    return (key, text) if len(text) <= SHORT else None


def pack_flat_filled(filled: list[str]) -> tuple[str, str] | None:
    """The same for the list of what was filled in."""
    text = Document.of(filled).raw.decode()
    return (_FILLED, text) if len(text) <= SHORT else None


def unpack(place: Document, pointer: str, *, flat: bool) -> Carried:
    """What an earlier conversion carried; what does not look like ours is left alone."""
    return _unpack_flat(place, pointer) if flat else _unpack_whole(place, pointer)


def _unpack_whole(place: Document, pointer: str) -> Carried:
    carried = place.members().get(KEY)
    if carried is None or not carried.is_object:
        return Carried()
    members = carried.members()
    if not set(members) <= {"fields", "extras", "filled", "verbatim"}:
        return Carried()
    fields: dict[str, Any] = {}
    pointers: dict[str, str] = {}
    base = pointer + pointer_of([KEY])
    for name, document in _items(members.get("fields")):
        try:
            fields[name] = _read(name, document)
        except (KeyError, TypeError, ValueError):
            return Carried()
        pointers[name] = base + pointer_of(["fields", name])
    extras = dict(_items(members.get("extras")))
    pointers |= {key: base + pointer_of(["extras", key]) for key in extras}
    filled = members.get("filled")
    if not all(_may_ride(key) for key in extras) or not _is_list_of_texts(filled):
        return Carried()
    return Carried(
        fields,
        extras,
        frozenset(filled.value if filled is not None else ()),
        pointers,
        (KEY,),
        verbatim="verbatim" in members,
    )


def _unpack_flat(place: Document, pointer: str) -> Carried:
    fields: dict[str, Any] = {}
    extras: dict[str, Document] = {}
    filled: frozenset[str] = frozenset()
    pointers: dict[str, str] = {}
    for key, text in place.value.items():
        if not key.startswith((_FIELD, _EXTRA, _FILLED)) or not isinstance(text, str):
            continue
        try:
            document = parse(text.encode())
            if key == _FILLED and _is_list_of_texts(document):
                filled = frozenset(document.value)
                pointers[key] = key
            elif key.startswith(_FIELD):
                name = key.removeprefix(_FIELD)
                fields[name] = _read(name, document)
                pointers[name] = key
            elif _may_ride(key):
                name = key.removeprefix(_EXTRA)
                extras[name] = document
                pointers[name] = key
        except (EnvelopeError, KeyError, TypeError, ValueError):
            continue
    consumed = tuple(pointers.values())
    places = {name: pointer + pointer_of([key]) for name, key in pointers.items() if name != key}
    return Carried(fields, extras, filled, places, consumed)


def _may_ride(key: str) -> bool:
    """Whether a key names an extra; credentials never ride."""
    return "#/" in key and "#/auth" not in key


def _items(document: Document | None) -> Iterator[tuple[str, Document]]:
    return iter(document.members().items() if document is not None else ())


def _is_list_of_texts(document: Document | None) -> bool:
    if document is None:
        return True
    return isinstance(document.value, list) and all(isinstance(t, str) for t in document.value)


def _written(value: object) -> object:
    """The JSON form of a field's value."""
    if isinstance(value, Peer):
        return value.id
    if isinstance(value, tuple):
        return [_written(part) for part in value]
    if isinstance(value, Fault):
        return build(
            {
                "message": value.message,
                **({"code": value.code} if value.code is not None else {}),
                **({"details": value.details} if value.details is not None else {}),
                **({"retryable": value.retryable} if value.retryable is not None else {}),
            }
        )
    return value


def _read(name: str, document: Document) -> object:
    """The field's value again; TypeError or KeyError if this cannot be one."""
    value = document.value
    if name in _DOCUMENTS:
        return document
    if name == "faults":
        return tuple(_read_fault(part) for part in document.elements())
    if name == "to":
        return tuple(_checked(part, str) for part in _checked(value, list))
    if name == "peer":
        return Peer(_checked(value, str))
    if name in _TEXTS:
        return _checked(value, str)
    if name in _FLAGS:
        return _checked(value, bool)
    if name in ("id", "duration_ms"):
        return _checked(value, (str, int, float) if name == "id" else (int, float))
    raise KeyError(name)


def _read_fault(document: Document) -> Fault:
    members = document.members()
    code, retryable = members.get("code"), members.get("retryable")
    return Fault(
        code=_checked(code.value, str) if code is not None else None,
        message=_checked(members["message"].value, str),
        details=members.get("details"),
        retryable=_checked(retryable.value, bool) if retryable is not None else None,
    )


def _checked(value: Any, kind: type | tuple[type, ...]) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(type(value).__name__)
    return value
