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
from mcp_envelope.core.pointer import pointer_of, steps_of
from mcp_envelope.core.ports import Encoded, Filling

from .carriage import MARK, pack, pack_flat
from .draft import Draft

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
_FREE: Final = frozenset({*PLACEHOLDERS, "id", "kind"})
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
        self._draft = Draft()
        self._filled: list[str] = []
        #: What was filled in where an option of the caller's may say something else.
        self.free: set[str] = set()
        self._lost: list[str] = []
        self._inexact: dict[str, tuple[str, ...]] = {}
        self._done: set[str] = set()
        self._required: dict[str, object] = {}
        self._instead: dict[str, object] = {}
        self._whole: Document | None = None
        self._verbatim = self._verbatim_alone = self._method_unknown = False
        self._refused: Callable[[str], bool] = lambda pointer: False
        origin = message.origin
        self.at_home = origin is None or origin.dialect == namespaces[""]
        #: Whether it is only tried whether a message is what was read (see contradictions.py).
        self.is_trial = origin is not None and not origin.dialect
        self._made_up = frozenset() if self.at_home else message.filled

    # -- fields --------------------------------------------------------------------------

    def get(self, field: str) -> Any:
        """The field's value, None if it was only made up for another dialect."""
        return None if field in self._made_up else getattr(self.message, field, None)

    def put(self, pointer: str, value: object, *fields: str) -> None:
        """Write a value; the fields named are said by it exactly. None writes nothing."""
        self._done.update(fields)
        if value is not None:
            self._draft.set(pointer, value)

    def place(self, pointer: str, field: str) -> None:
        """Write a field's own value, if it has one."""
        self.put(pointer, self.get(field), field)

    def need(self, pointer: str, field: str, option: str, default: object = None) -> None:
        """Write a field that the dialect requires; fill it in where the message lacks it."""
        value = self.unless_given(field, option)
        if value is not None:
            self.put(pointer, value, field)
            return
        self._done.add(field)
        self.fill(pointer, option, default, known=getattr(self.message, field))

    def unless_given(self, field: str, option: str) -> Any:
        """The field's value; None if it is only carried along, and an option says what it is.

        Anybody could have written into the open place of an envelope; the option is the caller's.
        """
        value = self.get(field)
        if value is None or option not in self._filling.values or not self._is_carried(field):
            return value
        self._done.add(field)
        self._lost.append(self.message.place_of(field))
        return None

    def fill(
        self, pointer: str, option: str, default: object = None, *, known: object = None
    ) -> Any:
        """Write something that the message does not have, from an option or a placeholder."""
        own = self.extra(pointer)
        value: object = self._filling.values.get(option)
        carried = self._is_carried(self._key(pointer))
        if own is not None and own.value is not None and not (carried and value is not None):
            return own.value
        if value is None:
            value = known if known is not None else default
        if value is None:
            value = self.generated_id() if option == "id" else PLACEHOLDERS[option]
        self._draft.set(pointer, value)
        self._filled.append(pointer)
        if option in _FREE:
            self.free.add(pointer)
        return value

    def offer(self, pointer: str, value: object) -> None:
        """Fill something in that is better there, unless the source is known to be without."""
        if not self.has_extra(pointer):
            self._draft.set(pointer, value)
            self._filled.append(pointer)

    def require(self, pointer: str, value: object) -> None:
        """Fill something in that must be there, if in the end nothing else is."""
        self._required[pointer] = value

    def filled(self, pointer: str) -> None:
        """List something that was written although the message does not have it."""
        self._filled.append(pointer)

    def inexact(self, field: str, *pointers: str) -> None:
        """Say that a field was written, but not exactly: it is carried whole, or listed.

        ``pointers`` are the places in the source to list; by default the field's own.
        """
        self._done.add(field)
        self._inexact[field] = pointers or (self.message.place_of(field),)

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

    def carry_instead(self, field: str, value: object) -> None:
        """What to carry for a field that is not exactly said, and may not be carried as it is."""
        self._instead[field] = value

    def parts_of(self, field: str, *steps: str | int) -> tuple[str, ...]:
        """Places inside a field's place in the source, for :meth:`inexact`."""
        return (self.message.place_of(field) + pointer_of(steps),)

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
            self._draft.set(pointer, payload if payload is not None else NULL)
            if payload is not None and payload.value is None and not required:
                self.inexact("payload")

    def method_is_unknown(self) -> None:
        """Carry along that the method is not known, where another would be taken for it."""
        self._method_unknown = self.message.method is None

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
            # Of credentials not even a digest goes elsewhere.
            secret = steps_of(origin.pointers.get("auth", ""))
            source = origin.document.without(*secret) if secret else origin.document
        else:
            names = self.message.field_names()
            fields = {name: getattr(self.message, name) for name in names if name != "auth"}
            source = Document.of(pack(fields, self.message.extras, []))
        try:
            seed = canonical(source)
        except EnvelopeError:  # outside the canonical form's domain
            seed = source.raw
        return str(uuid.uuid5(_NAMESPACE, hashlib.sha256(seed).hexdigest()))

    def pass_through(self, document: Document) -> None:
        """Let this document be the whole envelope, to the byte; the rest is lost."""
        self._whole = document
        self._open_place = None
        self._done |= {"payload", "method"}

    def has_extra(self, pointer: str) -> bool:
        """Whether the message brings its own member for this place."""
        return self._key(pointer) in self.message.extras

    # -- the end -------------------------------------------------------------------------

    def finish(self) -> Encoded:
        """The envelope. Extras of the dialect's own are put back, the rest carried or listed."""
        foreign: dict[str, Document | None] = {}
        for key, value in self.message.extras.items():
            namespace, _, pointer = key.partition("#")
            if namespace not in self._places or self._whole is not None:
                if key not in self.message.filled:
                    foreign[key] = value
            elif value is not None:
                place = self._places[namespace] + pointer
                if self._refused(place) or not self._draft.set_extra(place, value):
                    self._lost.append(self.message.place_of(key))
        for pointer, default in self._required.items():
            if not self._draft.has(pointer):
                self._draft.set(pointer, default)
                self._filled.append(pointer)
        self._carry(self._left_over(), foreign)
        document = self._whole if self._whole is not None else self._draft.document()
        return Encoded(document, tuple(sorted(set(self._lost))), tuple(self._filled))

    def _left_over(self) -> dict[str, object]:
        left: dict[str, object] = {"method": None} if self._method_unknown else {}
        for name in self.message.field_names():
            value = self.get(name)
            said = name in self._done and name not in self._inexact
            if said or value is None or value is False:
                continue
            if name in _NEVER_CARRIED:
                self._lost.append(self.message.place_of(name))
            else:
                left[name] = value
        return left

    def _carry(self, fields: dict[str, object], extras: dict[str, Document | None]) -> None:
        filled = [*self._old_filled(), *self._filled]
        place = self._open_place
        if place is None or self._is_occupied(place):
            for name in fields:
                self._lose(name)
            for key, value in extras.items():
                if value is not None:
                    self._lose(key)
            return
        self._lose_unfit(fields, extras)
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
            self._draft.set(place + pointer_of([key]), part)

    def _lose_unfit(self, fields: dict[str, object], extras: dict[str, Document | None]) -> None:
        """Take out, or replace, what may not ride here."""
        for name in [n for n, v in fields.items() if not self._may_carry(v)]:
            self._lose(name)
            if name in self._instead:
                fields[name] = self._instead[name]
            else:
                del fields[name]
        for key in [k for k, v in extras.items() if not self._may_carry(v)]:
            del extras[key]
            self._lose(key)

    def _lose(self, name: str) -> None:
        self._lost += self._inexact.get(name, (self.message.place_of(name),))

    def _is_empty(self, pointer: str) -> bool:
        """Whether the envelope so far has an empty object there."""
        return bool(self._draft.found(pointer) == {})

    def _is_occupied(self, pointer: str) -> bool:
        """Whether something stands there that is not ours, and in our way."""
        found = self._draft.found(pointer)
        return found is not None and (
            not isinstance(found, dict) or any(name.startswith(MARK) for name in found)
        )

    def _old_filled(self) -> list[str]:
        if not self.at_home or self.message.origin is None:
            return []
        pointers = self.message.origin.pointers
        return [pointers[name] for name in sorted(self.message.filled) if name in pointers]

    # -- inside --------------------------------------------------------------------------

    def _is_carried(self, name: str) -> bool:
        """Whether a field or an extra was not said by the envelope itself."""
        return pointer_of([MARK]) in self.message.place_of(name)

    def _key(self, pointer: str) -> str:
        namespace, place = max(
            ((n, p) for n, p in self._places.items() if pointer.startswith(p + "/")),
            key=lambda known: len(known[1]),
        )
        return f"{namespace}#{pointer[len(place) :]}"

    def _source_in(self, whole: str, part: str) -> str:
        pointers = self.message.origin.pointers if self.message.origin is not None else {}
        return pointers.get(part) or pointers.get(whole) or self.message.place_of("faults")
