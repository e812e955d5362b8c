"""Carrying along what a target has no name for.

Where a dialect has an open place, what it cannot say rides there under one key, so that a
later conversion can put it back. There are two forms. In an object that may hold anything:

    {"dev.mcp-envelope/carried": {"fields": {…}, "extras": {…}, "filled": ["/timestamp"]}}

and in one that may hold only short strings (``schema_hints``), a key each, the value being
JSON text:

    {"dev.mcp-envelope/field:trace_id": "…", "dev.mcp-envelope/extra:tiered/1.0#/tier": "…"}

``fields`` are fields of the neutral model, ``extras`` members of other dialects, ``absent``
such members that were not there although they are usually written, ``filled`` pointers at what
the conversion made up, which a way back leaves out again. ``verbatim`` says that the payload
stands as it is, where it would be read as a wrapped one, ``empty`` that the open place was
there before, and empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mcp_envelope.core.document import Document, build, parse
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.message import Fault, Peer
from mcp_envelope.core.pointer import pointer_of, steps_of

#: What every text begins with under which something is carried.
MARK: Final = "dev.mcp-envelope/"
KEY: Final = "dev.mcp-envelope/carried"
_FIELD: Final = "dev.mcp-envelope/field:"
_EXTRA: Final = "dev.mcp-envelope/extra:"
_FILLED: Final = "dev.mcp-envelope/filled"
_ABSENT: Final = "dev.mcp-envelope/absent"
_EMPTY: Final = "dev.mcp-envelope/empty"
SHORT: Final = 200

_TEXTS: Final = ("method", "target", "time", "trace_id", "envelope_id", "correlation_id", "name")
_DOCUMENTS: Final = ("meta", "arguments", "payload")
_FLAGS: Final = ("proposal", "accepted", "waiting")


@dataclass(frozen=True, slots=True)
class Carried:
    """What an open place held: ``consumed`` are its keys that were ours."""

    fields: Mapping[str, Any] = field(default_factory=dict)
    extras: Mapping[str, Document | None] = field(default_factory=dict)
    filled: frozenset[str] = frozenset()
    pointers: Mapping[str, str] = field(default_factory=dict)
    consumed: tuple[str, ...] = ()
    verbatim: bool = False
    empty: bool = False


def pack(
    fields: Mapping[str, object],
    extras: Mapping[str, Document | None],
    filled: list[str],
    *,
    verbatim: bool = False,
    empty: bool = False,
) -> dict[str, object]:
    """The members to put into an open place that may hold anything."""
    carried: dict[str, object] = {}
    if fields:
        carried["fields"] = {name: written(value) for name, value in fields.items()}
    if present := {key: value for key, value in extras.items() if value is not None}:
        carried["extras"] = present
    if absent := [key for key, value in extras.items() if value is None]:
        carried["absent"] = absent
    if filled:
        carried["filled"] = filled
    if verbatim:
        carried["verbatim"] = True
    if carried and empty:
        carried["empty"] = True
    return {KEY: carried} if carried else {}


def pack_flat(
    fields: Mapping[str, object],
    extras: Mapping[str, Document | None],
    filled: list[str],
    *,
    empty: bool = False,
) -> tuple[dict[str, str], list[str]]:
    """The members for a place of short strings, and the names of what is too long for it."""
    named = {_FIELD + name: (name, written(value)) for name, value in fields.items()}
    named |= {_EXTRA + key: (key, value) for key, value in extras.items() if value is not None}
    texts: dict[str, str] = {}
    too_long: list[str] = []
    for key, (name, value) in named.items():
        text = Document.of(value).raw.decode()
        if len(text) <= SHORT:
            texts[key] = text
        else:
            too_long.append(name)
    listed = Document.of(filled).raw.decode()
    if filled and len(listed) <= SHORT:
        texts[_FILLED] = listed
    absent = Document.of([key for key, value in extras.items() if value is None])
    if len(absent) and len(absent.raw) <= SHORT:
        texts[_ABSENT] = absent.raw.decode()
    if texts and empty:
        texts[_EMPTY] = "true"
    return texts, too_long


def unpack(place: Document, pointer: str, *, flat: bool) -> Carried:
    """What an earlier conversion carried; what does not look like ours is left alone."""
    return _unpack_flat(place, pointer) if flat else _unpack_whole(place, pointer)


def _unpack_whole(place: Document, pointer: str) -> Carried:
    carried = place.members().get(KEY)
    if carried is None or not carried.is_object:
        return Carried()
    members = carried.members()
    if not set(members) <= {"fields", "extras", "absent", "filled", "verbatim", "empty"}:
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
    extras: dict[str, Document | None] = dict(_items(members.get("extras")))
    pointers |= {key: base + pointer_of(["extras", key]) for key in extras}
    filled, absent = members.get("filled"), members.get("absent")
    if not _is_list_of_texts(filled) or not _is_list_of_texts(absent):
        return Carried()
    extras |= dict.fromkeys(absent.value if absent is not None else ())
    if not all(_may_ride(key) for key in extras):
        return Carried()
    return Carried(
        fields,
        extras,
        frozenset(filled.value if filled is not None else ()),
        pointers,
        (KEY,),
        verbatim="verbatim" in members,
        empty="empty" in members,
    )


def _unpack_flat(place: Document, pointer: str) -> Carried:
    fields: dict[str, Any] = {}
    extras: dict[str, Document | None] = {}
    filled: frozenset[str] = frozenset()
    pointers: dict[str, str] = {}
    for key, text in place.value.items():
        if not key.startswith((_FIELD, _EXTRA, _FILLED, _ABSENT, _EMPTY)) or not isinstance(
            text, str
        ):
            continue
        try:
            document = parse(text.encode())
            if key == _EMPTY:
                pointers[key] = key
            elif key == _ABSENT and _is_list_of_texts(document):
                extras |= dict.fromkeys(filter(_may_ride, document.value))
                pointers[key] = key
            elif key == _FILLED and _is_list_of_texts(document):
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
    return Carried(fields, extras, filled, places, consumed, empty=_EMPTY in pointers)


def _may_ride(key: str) -> bool:
    """Whether a key names an extra; credentials never ride."""
    return "#/" in key and not (key + "/").startswith("tool/1.0#/auth/")


def _items(document: Document | None) -> Iterator[tuple[str, Document]]:
    return iter(document.members().items() if document is not None else ())


def _is_list_of_texts(document: Document | None) -> bool:
    if document is None:
        return True
    return isinstance(document.value, list) and all(isinstance(t, str) for t in document.value)


def written(value: object) -> object:
    """The JSON form of a field's value."""
    if isinstance(value, Peer):
        return value.id
    if isinstance(value, tuple):
        return [written(part) for part in value]
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
        if name == "meta" and not document.is_object:
            raise TypeError(name)
        return document
    if name == "faults":
        faults = tuple(_read_fault(part) for part in document.elements())
        return faults or _checked(None, tuple)
    if name == "to":
        return tuple(_checked(part, str) for part in _checked(value, list))
    if name == "peer":
        return Peer(_checked(value, str))
    if name == "method" and value is None:  # known not to be known
        return None
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


def without_ours(value: Any, pointer: str | None) -> Any:
    """A plain envelope without what was carried in its open place.

    The place goes too if nothing else is in it, and what only led there.
    """
    steps = steps_of(pointer) if pointer is not None else []
    return _pruned(value, steps) if steps else value


def _pruned(value: Any, steps: list[str]) -> Any:
    if not isinstance(value, dict):
        return value
    if not steps:
        return {name: part for name, part in value.items() if not name.startswith(MARK)}
    first, *rest = steps
    if first not in value:
        return value
    inner = _pruned(value[first], rest)
    kept = {name: part for name, part in value.items() if name != first}
    return kept if inner in ({}, None) else {**kept, first: inner}


def _checked(value: Any, kind: type | tuple[type, ...]) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(type(value).__name__)
    return value
