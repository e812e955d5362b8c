"""Taking an envelope apart without dropping anything.

A :class:`Reader` hands out the members that a dialect asks for, remembers where each came
from, and keeps what nobody asked for as extras. It also unpacks what an earlier conversion
carried along in the dialect's open place (see :mod:`mcp_envelope.dialects.carriage`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from mcp_envelope.core.document import Document
from mcp_envelope.core.message import Fault, Message, Origin
from mcp_envelope.core.pointer import pointer_of, steps_of

from .carriage import Carried, unpack

M = TypeVar("M", bound=Message)


class Reader:
    """Reads one envelope for one dialect.

    ``namespaces`` maps a place in the document to the namespace under which extras from there
    are kept: ``{"": "mcpx/0.1", "/payload": "mcp"}``. ``open_place`` is where an earlier
    conversion may have left something; ``flat`` if that place holds short strings only.
    """

    def __init__(
        self,
        document: Document,
        part: str,
        namespaces: Mapping[str, str],
        *,
        open_place: str | None = None,
        flat: bool = False,
    ) -> None:
        self._document = document
        self._part = part
        self._namespaces = namespaces
        self._place = open_place or ""
        self._members: dict[str, dict[str, Document]] = {}
        self._taken: set[str] = set()
        self._pointers: dict[str, str] = {}
        self._kept: dict[str, Document | None] = {}
        place = self.peek(open_place) if open_place is not None else None
        self._carried = unpack(place, self._place, flat=flat) if place is not None else Carried()

    def peek(self, pointer: str) -> Document | None:
        """The member at a pointer, left where it is. Looks into objects only."""
        found = self._document
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
    def verbatim(self) -> bool:
        """Whether the payload was marked as standing exactly as it is."""
        return self._carried.verbatim

    def absent(self, pointer: str) -> None:
        """Remember that a member is not there which would be written without being asked."""
        self._kept[self._key(pointer)] = None

    def object_without_ours(self, pointer: str, field: str, *names: str) -> Document | None:
        """The object at a pointer, taken whole, without some members and without our key."""
        found = self.take(pointer, field)
        if found is None or not found.is_object:
            return found
        ours = self._carried.consumed if pointer == self._place else ()
        return found.without(*names, *ours)

    def message(
        self,
        kind: Callable[..., M],
        *,
        completes: Callable[[str, Any, Any], bool] | None = None,
        **fields: Any,
    ) -> M:
        """The message of these fields, with extras, origin, and what was carried along.

        A carried field may complete what the envelope says or make it more exact, but never
        contradict it: an open place must not name another tool than the envelope does.
        """
        carried = self._agreeing(fields, completes or Reader.completes)
        for name in carried.consumed:
            self._taken.add(self._place + pointer_of([name]))
        if carried.empty and self._place not in self._taken:
            self._kept[self._key(self._place)] = Document.of({})
        extras, filled = self._extras(carried)
        pointers = {**self._pointers, **carried.pointers}
        filled |= {f for f in fields if self._pointers.get(f) in carried.filled}
        filled -= set(carried.fields)
        dialect = self._namespaces[""]
        return kind(
            **{**fields, **carried.fields},
            extras={**extras, **carried.extras},
            filled=frozenset(filled),
            origin=Origin(
                dialect=dialect, part=self._part, document=self._document, pointers=pointers
            ),
        )

    @staticmethod
    def completes(name: str, native: Any, carried: Any) -> bool:
        """Whether a carried value may take the place of what the envelope itself says."""
        if native is None or native is False:
            return True
        if name == "arguments":  # where an object is required, an empty one stands in
            return bool(native == {} or native == carried)
        if name == "id":
            return bool(native == carried) or _same_text(carried, native)
        if name == "faults":
            return _same_faults(native, carried)
        return bool(native == carried)

    # -- inside --------------------------------------------------------------------------

    def _members_at(self, path: str, document: Document) -> dict[str, Document]:
        known = self._members.get(path)
        if known is None:
            known = self._members[path] = document.members()
        return known

    def _agreeing(
        self, fields: Mapping[str, Any], completes: Callable[[str, Any, Any], bool]
    ) -> Carried:
        carried = self._carried
        ours = set(self._namespaces.values())
        if any(key.split("#")[0] in ours for key in carried.extras):
            return Carried()
        if all(completes(name, fields.get(name), v) for name, v in carried.fields.items()):
            return carried
        return Carried()

    def _extras(self, carried: Carried) -> tuple[dict[str, Document | None], set[str]]:
        extras = dict(self._kept)
        filled: set[str] = set()
        opened = {p[:cut] for p in self._taken for cut in range(1, len(p)) if p[cut] == "/"}
        opened |= {place for place in self._namespaces if place}
        pending = [("", self._document)]
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


def _same_text(number: object, text: object) -> bool:
    return isinstance(number, (int, float)) and str(number) == text


def _same_faults(native: tuple[Fault, ...], carried: tuple[Fault, ...]) -> bool:
    if not carried or carried[0].message != native[0].message:
        return False
    return native[0].code in (None, "EXECUTION_FAILED", carried[0].code)
