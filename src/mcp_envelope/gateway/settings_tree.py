"""Settings while they are gathered: a tree of plain values that knows where each came from."""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .settings_mistakes import KeyPath, Mistake, SettingsError, dotted

_DEEPEST: Final = 24
_LARGEST: Final = 2**63


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value was written. ``base`` is its key there, None if ``label`` says it all.

    Relative paths in the value count from ``folder``.
    """

    label: str
    base: KeyPath | None
    folder: Path

    def of(self, rest: KeyPath) -> str:
        """How to speak of a place below the one that this is the origin of."""
        key = dotted((*self.base, *rest)) if self.base is not None else ""
        return f"{self.label}: {key}" if key else self.label


class Tree:
    """The values of all layers, the later ones over the earlier, and the mistakes found so far."""

    def __init__(self) -> None:
        self.value: dict[str, Any] = {}
        self.mistakes: list[Mistake] = []
        self.notes: list[str] = []
        self._origins: dict[KeyPath, Origin] = {}

    def begin(self, value: dict[str, Any], origin: Origin) -> None:
        """Take a whole file as the lowest layer."""
        self._origins[()] = origin
        self.value = self._plain(value, ())

    def put(self, path: KeyPath, value: object, origin: Origin) -> None:
        """Set a value over what was there."""
        here: Any = self.value
        for step in path[:-1]:
            here = here.setdefault(step, {})
            if not isinstance(here, dict):
                return  # what stands there is a mistake itself, and is said
        here[path[-1]] = value
        self._origins = {p: o for p, o in self._origins.items() if p[: len(path)] != path}
        self._origins[path] = origin

    def clean(self, path: KeyPath) -> None:
        """Make plain what was put at a place, if it may not be so."""
        found = self._fit(self.get(path), path)
        if found is None:
            self.drop(path)
        else:
            self.get(path[:-1])[path[-1]] = found

    def get(self, path: KeyPath) -> Any:
        """The value at a place, None if there is none."""
        here: Any = self.value
        for step in path:
            if isinstance(here, dict):
                here = here.get(step)
            elif isinstance(here, list) and isinstance(step, int) and step < len(here):
                here = here[step]
            else:
                return None
        return here

    def drop(self, path: KeyPath) -> KeyPath:
        """Forget the value at a place; of an array, the whole array. What was dropped."""
        while path and isinstance(self.get(path[:-1]), list):
            path = path[:-1]
        holder = self.get(path[:-1])
        if not path:
            self.value = {}
        elif isinstance(holder, dict):
            holder.pop(path[-1], None)
        return path

    def origin(self, path: KeyPath) -> Origin:
        """Where the value at a place came from."""
        return self._origin(path)[0]

    def where(self, path: KeyPath) -> str:
        """How to speak of a place: ``FILE: key.path``, a variable or a flag."""
        origin, rest = self._origin(path)
        return origin.of(rest)

    def complain(self, path: KeyPath, message: str, hint: str = "") -> None:
        """Note a mistake."""
        mistake = Mistake(self.where(path), message, hint)
        if mistake not in self.mistakes:
            self.mistakes.append(mistake)

    def stop_if_wrong(self) -> None:
        """Raise SettingsError if there are mistakes."""
        if self.mistakes:
            raise SettingsError(self.mistakes)

    def _origin(self, path: KeyPath) -> tuple[Origin, KeyPath]:
        for length in range(len(path), -1, -1):
            if path[:length] in self._origins:
                return self._origins[path[:length]], path[length:]
        inside = [o for p, o in self._origins.items() if p[: len(path)] == path]
        return inside[0] if inside else Origin("settings", (), Path()), ()

    def _plain(self, value: dict[str, Any], path: KeyPath) -> dict[str, Any]:
        """The value as JSON can hold it; what it cannot hold is a mistake, and left out."""
        fit = {}
        for name, part in value.items():
            found = self._fit(part, (*path, name))
            if found is not None:
                fit[name] = found
        return fit

    def _fit(self, value: Any, path: KeyPath) -> Any:
        if len(path) > _DEEPEST:
            self.complain(path[:3], "is nested too deep to be a setting", "leave it out")
        elif isinstance(value, dict):
            return self._plain(value, path)
        elif isinstance(value, list):
            items = [self._fit(item, (*path, index)) for index, item in enumerate(value)]
            return items if all(item is not None for item in items) else None
        elif isinstance(value, (datetime.date, datetime.time)):
            self.complain(path, "must not be a date or time", "put it in quotes if it is a text")
        elif isinstance(value, float) and not math.isfinite(value):
            self.complain(path, "must be a finite number", "leave it out for no bound")
        elif isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST:
            return int(value)  # the schema does not tell 4096.0 from 4096, and what comes must
        elif type(value) is int and not -_LARGEST <= value < _LARGEST:
            self.complain(path, "is too large a number", "write a smaller one")
        else:
            return value
        return None
