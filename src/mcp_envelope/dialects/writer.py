"""Putting an envelope together, and saying what did not fit and what had to be made up.

A dialect puts each field of the message where it belongs. Whatever is left over when it
calls :meth:`Writer.finish` is carried in the open place, if there is one, and is listed as
lost otherwise. Nothing disappears without a line.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

from mcp_envelope.core.canonical import canonical
from mcp_envelope.core.document import Document
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.message import Fault, Message
from mcp_envelope.core.pointer import is_index, pointer_of, steps_of
from mcp_envelope.core.ports import Encoded, Filling

from .carriage import pack, pack_flat

PLACEHOLDERS: Final[Mapping[str, str]] = {
    "timestamp": "1970-01-01T00:00:00Z",
    "tool": "unknown",
    "tool_version": "0.0.0",
    "version": "1.0.0",
    "tier": "community",
    "from_peer": "unknown",
    "correlation_id": "unknown",
    "method": "tools/call",
    "message": "unknown",
}
_NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "urn:mcp-envelope:placeholder")
NULL: Final = Document.of(None)
_NEVER_CARRIED: Final = frozenset({"auth"})


class Writer:
    """Writes one envelope; ``namespaces`` is as for :class:`Reader`."""

    def __init__(
        self,
        message: Message,
        namespaces: Mapping[str, str],
        filling: Filling,
        *,
        open_place: str | None = None,
        flat: bool = False,
        may_carry: Callable[[object], bool] = lambda value: True,
    ) -> None:
        self.message = message
        self._places = {namespace: place for place, namespace in namespaces.items()}
        self._filling = filling
        self._open_place = open_place
        self._flat = flat
        self._may_carry = may_carry
        self._root: dict[str, Any] = {}
        self._filled: list[str] = []
        self._lost: list[str] = []
        self._inexact: dict[str, tuple[str, ...]] = {}
        self._done: set[str] = set()
        self._verbatim = self._verbatim_alone = self._method_unknown = False
        self._refused: Callable[[str], bool] = lambda pointer: False
        origin = message.origin
        self.at_home = origin is None or origin.dialect == namespaces[""]
        self._made_up = frozenset() if self.at_home else message.filled

    # -- fields --------------------------------------------------------------------------

    def get(self, field: str) -> Any:
        """The field's value, None if it was only made up for another dialect."""
        return None if field in self._made_up else getattr(self.message, field, None)

    def put(self, pointer: str, value: object, *fields: str) -> None:
        """Write a value; the fields named are said by it exactly. None writes nothing."""
        self._done.update(fields)
        if value is not None:
            self._set(pointer, value)

    def place(self, pointer: str, field: str) -> None:
        """Write a field's own value, if it has one."""
        self.put(pointer, self.get(field), field)

    def need(self, pointer: str, field: str, option: str, default: object = None) -> None:
        """Write a field that the dialect requires; fill it in where the message lacks it."""
        value = self.get(field)
        if value is not None:
            self.put(pointer, value, field)
            return
        self._done.add(field)
        self.fill(pointer, option, default, known=getattr(self.message, field))

    def fill(
        self, pointer: str, option: str, default: object = None, *, known: object = None
    ) -> Any:
        """Write something that the message does not have, from an option or a placeholder."""
        own = self.extra(pointer)
        if own is not None and own.value is not None:
            return own.value
        value: object = self._filling.values.get(option)
        if value is None:
            value = known if known is not None else default
        if value is None:
            value = self.generated_id() if option == "id" else PLACEHOLDERS[option]
        self._set(pointer, value)
        self._filled.append(pointer)
        return value

    def filled(self, pointer: str) -> None:
        """List something that was written although the message does not have it."""
        self._filled.append(pointer)

    def inexact(self, field: str, *pointers: str) -> None:
        """Say that a field was written, but not exactly: it is carried whole, or listed.

        ``pointers`` are the places in the source to list; by default the field's own.
        """
        self._done.add(field)
        self._inexact[field] = pointers or (self._source(field),)

    def read_back(self, faults: tuple[Fault, ...]) -> None:
        """Say what faults the envelope will be read as having; where they differ is listed."""
        self._done.add("faults")
        own: tuple[Fault, ...] = self.get("faults")
        if own == faults:
            return
        pointers: list[str] = []
        for index, fault in enumerate(own):
            other = faults[index] if index < len(faults) else None
            if other is None:
                pointers.append(self._source_in("faults", f"faults.{index}"))
                continue
            for name in ("code", "message", "details", "retryable"):
                value = getattr(fault, name)
                if value is not None and value != getattr(other, name):
                    pointers.append(self._source_in(f"faults.{index}", f"faults.{index}.{name}"))
        self._inexact["faults"] = tuple(pointers)

    def parts_of(self, field: str, *steps: str | int) -> tuple[str, ...]:
        """Places inside a field's place in the source, for :meth:`inexact`."""
        return (self._source(field) + pointer_of(steps),)

    def option(self, name: str) -> str | None:
        """What the caller gave for filling in, if anything."""
        return self._filling.values.get(name)

    def extra(self, pointer: str) -> Document | None:
        """The message's own member for this place, kept from when it was read."""
        return self.message.extras.get(self._key(pointer))

    def withhold(self, refused: Callable[[str], bool]) -> None:
        """Never write own extras at certain places: they are listed as lost."""
        self._refused = refused

    def verbatim(self, *, alone: bool = True) -> None:
        """Mark the payload as standing exactly as it is, where a reader might change it.

        Unless ``alone``, the mark is only made where something is carried anyway.
        """
        self._verbatim = True
        self._verbatim_alone = alone

    def null_or(self, pointer: str, payload: Document | None, *, required: bool) -> None:
        """Write a payload where null also stands for none at all."""
        self._done.add("payload")
        if payload is None and required:
            self.fill(pointer, "payload", NULL)
        else:
            self._set(pointer, payload if payload is not None else NULL)
            if payload is not None and payload.value is None and not required:
                self.inexact("payload")

    def method_is_unknown(self) -> None:
        """Carry along that the method is not known, for a dialect that implies one."""
        self._method_unknown = True

    def drop(self, *fields: str) -> None:
        """Say that a field needs no place, because the dialect implies it."""
        self._done.update(fields)

    def text_id(self, pointer: str) -> None:
        """Write the id into a dialect that knows string ids only."""
        value = self.get("id")
        if value is None or isinstance(value, str):
            self.need(pointer, "id", "id")
        else:
            self.put(pointer, str(value))
            self.inexact("id")

    def generated_id(self) -> str:
        """An id that depends on nothing but the source: a UUIDv5 of its digest."""
        origin = self.message.origin
        if origin is not None:
            source = origin.document
        else:
            names = self.message.field_names()
            fields = {name: getattr(self.message, name) for name in names if name != "auth"}
            source = Document.of(pack(fields, self.message.extras, []))
        try:
            seed = canonical(source)
        except EnvelopeError:  # outside the canonical form's domain
            seed = source.raw
        return str(uuid.uuid5(_NAMESPACE, hashlib.sha256(seed).hexdigest()))

    def has_extra(self, pointer: str) -> bool:
        """Whether the message brings its own member for this place."""
        return self._key(pointer) in self.message.extras

    # -- the end -------------------------------------------------------------------------

    def finish(self) -> Encoded:
        """The envelope. Extras of the dialect's own are put back, the rest carried or listed."""
        foreign: dict[str, Document | None] = {}
        for key, value in self.message.extras.items():
            namespace, pointer = key.split("#", 1)
            if namespace in self._places and value is not None:
                place = self._places[namespace] + pointer
                if self._refused(place):
                    self._lost.append(self._source(key))
                else:
                    self._set_extra(place, value, key)
            elif namespace not in self._places and key not in self.message.filled:
                foreign[key] = value
        self._carry(self._left_over(), foreign)
        return Encoded(Document.of(self._root), tuple(sorted(set(self._lost))), tuple(self._filled))

    def _left_over(self) -> dict[str, object]:
        left: dict[str, object] = {"method": None} if self._method_unknown else {}
        for name in self.message.field_names():
            value = self.get(name)
            said = name in self._done and name not in self._inexact
            if said or value is None or value is False:
                continue
            if name in _NEVER_CARRIED:
                self._lost.append(self._source(name))
            else:
                left[name] = value
        return left

    def _carry(self, fields: dict[str, object], extras: dict[str, Document | None]) -> None:
        filled = [*self._old_filled(), *self._filled]
        place = self._open_place
        if place is None:
            for name in fields:
                self._lose(name)
            for key, value in extras.items():
                if value is not None:
                    self._lose(key)
            return
        for name in [n for n, v in fields.items() if not self._may_carry(v)]:
            del fields[name]
            self._lose(name)
        for key in [k for k, v in extras.items() if not self._may_carry(v)]:
            del extras[key]
            self._lose(key)
        empty = self._is_empty(place)
        if self._flat:
            texts, too_long = pack_flat(fields, extras, filled, empty=empty)
            for name in too_long:
                self._lose(name)
            packed: Mapping[str, object] = texts
        else:
            anything = self._verbatim_alone or fields or extras or filled
            verbatim = self._verbatim and bool(anything)
            packed = pack(fields, extras, filled, verbatim=verbatim, empty=empty)
        for key, part in packed.items():
            self._set(place + pointer_of([key]), part)

    def _lose(self, name: str) -> None:
        self._lost += self._inexact.get(name, (self._source(name),))

    def _is_empty(self, pointer: str) -> bool:
        """Whether the envelope so far has an empty object there."""
        found: Any = self._root
        for step in steps_of(pointer):
            if not isinstance(found, dict) or step not in found:
                return False
            found = found[step]
            if isinstance(found, Document):
                found = found.value
        return bool(found == {})

    def _old_filled(self) -> list[str]:
        if not self.at_home or self.message.origin is None:
            return []
        pointers = self.message.origin.pointers
        return [pointers[name] for name in sorted(self.message.filled) if name in pointers]

    # -- inside --------------------------------------------------------------------------

    def _key(self, pointer: str) -> str:
        namespace, place = max(
            ((n, p) for n, p in self._places.items() if pointer.startswith(p + "/")),
            key=lambda known: len(known[1]),
        )
        return f"{namespace}#{pointer[len(place) :]}"

    def _source(self, name: str) -> str:
        origin = self.message.origin
        if origin is not None and name in origin.pointers:
            return origin.pointers[name]
        return "/" + name.split("#/", 1)[-1]

    def _source_in(self, whole: str, part: str) -> str:
        pointers = self.message.origin.pointers if self.message.origin is not None else {}
        return pointers.get(part) or pointers.get(whole) or self._source("faults")

    def _set(self, pointer: str, value: object) -> None:
        *path, last = steps_of(pointer)
        container: Any = self._root
        for step in path:
            container = _enter(container, step)
        container[int(last) if isinstance(container, list) else last] = value

    def _set_extra(self, pointer: str, value: Document, key: str) -> None:
        """Put an extra back where it stood, unless what it belonged to is not there."""
        *path, last = steps_of(pointer)
        container: Any = self._root
        for step in path:
            container = _enter(container, step) if isinstance(container, (dict, list)) else None
        if isinstance(container, dict):
            container.setdefault(last, value)
        else:
            self._lost.append(self._source(key))


def _enter(container: dict[str, Any] | list[Any], step: str) -> Any:
    """The container inside, made or opened up where need be; None if there can be none."""
    if isinstance(container, list):
        return container[int(step)] if is_index(step) and int(step) < len(container) else None
    inside = container.setdefault(step, {})
    if isinstance(inside, Document):
        if not inside.is_object and inside.value is not None:
            return None
        inside = container[step] = dict(inside.members())
    return inside
