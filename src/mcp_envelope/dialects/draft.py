"""An envelope while it is being put together: members set by their pointers."""

from __future__ import annotations

from typing import Any

from mcp_envelope.core.document import Document
from mcp_envelope.core.errors import ConversionError
from mcp_envelope.core.pointer import is_index, pointer_of, steps_of


class Draft:
    """The members set so far. Documents keep their text unless something is set inside them."""

    def __init__(self) -> None:
        self._root: dict[str, Any] = {}

    def document(self) -> Document:
        """All of it."""
        return Document.of(self._root)

    def found(self, pointer: str) -> Any:
        """The plain value at a pointer; None if there is none."""
        return Document.of(self._look(steps_of(pointer))).value

    def has(self, pointer: str) -> bool:
        """Whether an object has a member there."""
        *path, last = steps_of(pointer)
        inside = self._look(path)
        return _is_object(inside) and last in inside

    def set(self, pointer: str, value: object) -> None:
        """Set a member or element, and make the objects that lead to it."""
        *path, last = steps_of(pointer)
        container = self._container(path)
        if container is None:
            place = pointer_of(path)
            raise ConversionError(f"{place} is no object, and {last!r} would have to stand in it")
        container[int(last) if isinstance(container, list) else last] = value

    def set_extra(self, pointer: str, value: Document) -> bool:
        """Put something back where it stood; false if something else stands there now.

        What stands there may be the same value in another spelling, which is replaced, an
        object of which some members were set already, or an array that has more elements.
        """
        *path, last = steps_of(pointer)
        container = self._container(path)
        if not isinstance(container, dict):
            return False
        if last not in container or value == container[last]:
            container[last] = value
            return True
        if isinstance(container[last], list) and type(value.value) is list:
            return bool(container[last][: len(value)] == value.elements())
        if not value.is_object or not _is_object(container[last]):
            return False
        fits = True
        for name, part in value.members().items():
            fits = self.set_extra(pointer + pointer_of([name]), part) and fits
        return fits

    def _look(self, path: list[str]) -> Any:
        found: Any = self._root
        for step in path:
            if not _is_object(found) or step not in found:
                return None
            found = found[step]
        return found

    def _container(self, path: list[str]) -> Any:
        """The object or array that a path leads to; None if there can be none."""
        container: Any = self._root
        for step in path:
            if isinstance(container, list):
                known = is_index(step) and int(step) < len(container)
                container = container[int(step)] if known else None
            elif isinstance(container, dict):
                container = _opened(container, step)
        return container if isinstance(container, (dict, list)) else None


def _opened(container: dict[str, Any], name: str) -> Any:
    """A member that can be changed: made if there is none, and no longer a document."""
    inside = container.setdefault(name, {})
    if isinstance(inside, Document) and (inside.is_object or inside.value is None):
        inside = container[name] = dict(inside.members())
    return inside


def _is_object(value: object) -> bool:
    return value.is_object if isinstance(value, Document) else isinstance(value, dict)
