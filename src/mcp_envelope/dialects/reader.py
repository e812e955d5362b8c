"""Taking an envelope apart without dropping anything.

A :class:`Reader` hands out the members that a dialect asks for, remembers where each came
from, and keeps what nobody asked for as extras. It also unpacks what an earlier conversion
carried along in the dialect's open place (see :mod:`mcp_envelope.dialects.carriage`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from mcp_envelope.core.document import Document, dump
from mcp_envelope.core.message import Message, Origin
from mcp_envelope.core.pointer import pointer_of, steps_of

from .carriage import Carried, unpack

M = TypeVar("M", bound=Message)


class ContradictionError(Exception):
    """What was carried along cannot belong to this envelope."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a part of a dialect is laid out.

    ``namespaces`` maps a place in the document to the namespace under which extras from there
    are kept: ``{"": "mcpx/0.1", "/payload": "mcp"}``. ``open_place`` is where a conversion may
    leave something; ``flat`` if that place holds short strings only.
    """

    namespaces: Mapping[str, str]
    open_place: str | None = None
    flat: bool = False


class Reader:
    """Reads one envelope for one dialect.

    Unless ``trusting``, what an earlier conversion carried along is left alone, as any other
    data. What was carried is not checked here: see ``SchemaDialect.decode``.
    """

    def __init__(
        self, document: Document, part: str, layout: Layout, *, trusting: bool = True
    ) -> None:
        self.document = document
        self._part = part
        self._namespaces = layout.namespaces
        #: The open place, ``""`` if there is none.
        self.place = layout.open_place or ""
        self._members: dict[str, dict[str, Document]] = {}
        self._taken: set[str] = set()
        self._pointers: dict[str, str] = {}
        self._kept: dict[str, Document | None] = {}
        place = self.peek(self.place) if self.place and trusting else None
        self._carried = Carried()
        if place is not None:
            self._carried = unpack(place, self.place, flat=layout.flat)

    def peek(self, pointer: str) -> Document | None:
        """The member at a pointer, left where it is. Looks into objects only."""
        found = self.document
        path = ""
        for step in steps_of(pointer):
            members = self._members_at(path, found)
            if step not in members:
                return None
            found = members[step]
            path += pointer_of([step])
        return found

    def take(self, pointer: str, field: str = "") -> Document | None:
        """The member at a pointer; it will not be among the extras."""
        found = self.peek(pointer)
        if found is not None:
            self._taken.add(pointer)
            if field:
                self._pointers[field] = pointer
        return found

    def value(self, pointer: str, field: str = "") -> Any:
        """The plain value at a pointer; None where there is none, or null, which then stays."""
        found = self.peek(pointer)
        if found is None or found.value is None:
            return None
        self.take(pointer, field)
        if type(found.value) is not str and dump(found.value) != found.raw:
            self.keep({pointer: found})  # a number in a spelling of its own, such as 1.0 or 1e2
        return found.value

    def text(self, pointer: str, field: str = "") -> str | None:
        """The string at a pointer; anything else stays where it is."""
        found = self.peek(pointer)
        return self.value(pointer, field) if found and isinstance(found.value, str) else None

    def is_filled(self, pointer: str) -> bool:
        """Whether an earlier conversion made up what stands here."""
        return pointer in self._carried.filled

    def mark(self, field: str, pointer: str) -> None:
        """Remember where a field came from that was not simply taken."""
        self._pointers[field] = pointer

    def keep(self, parts: Mapping[str, Document]) -> None:
        """Keep members of something that was taken as extras of their own."""
        for pointer, part in parts.items():
            key = self._key(pointer)
            self._kept[key] = part
            self._pointers[key] = pointer

    def meta(self, pointer: str, field: str = "meta", *names: str) -> Document | None:
        """An open place as a field of the message: without ours, and without some members.

        None if nothing remains, unless it was there and empty before we used it.
        """
        found = self.peek(pointer)
        rest = self.object_without_ours(pointer, field, *names)
        if rest is None or not rest.is_object or len(rest) or found is None or not len(found):
            return rest
        return rest if self._carried.empty else None

    def hint(self, field: str) -> Any:
        """What was carried along for a field, to know how to read the rest."""
        return self._carried.fields.get(field)

    @property
    def is_of_no_method(self) -> bool:
        """Whether it was carried along that nothing says what is answered here."""
        return "method" in self._carried.fields and self._carried.fields["method"] is None

    @property
    def verbatim(self) -> bool:
        """Whether the payload was marked as standing exactly as it is."""
        return self._carried.verbatim

    @property
    def comes_from_elsewhere(self) -> bool:
        """Whether the envelope was made from one of another dialect, as what it carries tells."""
        return bool(self._carried.consumed)

    def absent(self, pointer: str) -> None:
        """Remember that a member is not there which would be written without being asked."""
        self._kept[self._key(pointer)] = None

    def object_without_ours(self, pointer: str, field: str, *names: str) -> Document | None:
        """The object at a pointer, taken whole, without some members and without our key."""
        found = self.take(pointer, field)
        if found is None or not found.is_object:
            return found
        ours = self._carried.consumed if pointer == self.place else ()
        return found.without(*names, *ours)

    def message(self, kind: type[M], **fields: Any) -> M:
        """The message of these fields, with extras, origin, and what was carried along."""
        carried = self._carried
        ours = set(self._namespaces.values())
        if any(key.split("#")[0] in ours for key in carried.extras):
            raise ContradictionError("an extra of the envelope's own")
        if not carried.fields.keys() <= set(kind.field_names()):
            raise ContradictionError("a field of another kind of message")
        for name in carried.consumed:
            self._taken.add(self.place + pointer_of([name]))
        if carried.empty and self.place not in self._taken:
            self._kept[self._key(self.place)] = Document.of({})
        extras, filled = self._extras(carried)
        pointers = {**self._pointers, **carried.pointers}
        filled |= {f for f in fields if self._pointers.get(f) in carried.filled}
        filled -= {*carried.fields, "faults"}  # that something failed is never made up
        dialect = self._namespaces[""]
        return kind(
            **{**fields, **carried.fields},
            extras={**extras, **carried.extras},
            filled=frozenset(filled),
            origin=Origin(
                dialect=dialect, part=self._part, document=self.document, pointers=pointers
            ),
        )

    @property
    def claims(self) -> frozenset[str]:
        """The places of which an earlier conversion says that it made up what stands there."""
        return self._carried.filled

    # -- inside --------------------------------------------------------------------------

    def _members_at(self, path: str, document: Document) -> dict[str, Document]:
        known = self._members.get(path)
        if known is None:
            known = self._members[path] = document.members()
        return known

    def _extras(self, carried: Carried) -> tuple[dict[str, Document | None], set[str]]:
        extras = dict(self._kept)
        filled: set[str] = set()
        opened = {p[:cut] for p in self._taken for cut in range(1, len(p)) if p[cut] == "/"}
        opened |= {place for place in self._namespaces if place}
        pending = [("", self.document)]
        while pending:
            path, document = pending.pop()
            for name, part in self._members_at(path, document).items():
                pointer = path + pointer_of([name])
                if pointer in self._taken:
                    continue
                if pointer in opened and part.is_object and len(part):
                    pending.append((pointer, part))
                    continue
                key = self._key(pointer)
                extras[key] = part
                self._pointers[key] = pointer
                if pointer in carried.filled:
                    filled.add(key)
        return extras, filled

    def _key(self, pointer: str) -> str:
        place = max((p for p in self._namespaces if pointer.startswith(p + "/")), key=len)
        return f"{self._namespaces[place]}#{pointer[len(place) :]}"
