"""Plug-ins by name, loaded when first asked for, so that what is not used costs nothing."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from .errors import UsageError

T = TypeVar("T")


class Registry(Generic[T]):
    """A family of plug-ins: a table from names to ``module:Class``, one line each.

    The table is read anew at each miss, so that a line added at run time counts at once.
    """

    def __init__(self, what: str, table: Mapping[str, str]) -> None:
        self._what = what
        self._table = table
        self._loaded: dict[str, T] = {}

    def __getitem__(self, name: object) -> T:
        """The plug-in of that name; UsageError, with the nearest known name, if there is none."""
        if not isinstance(name, str):
            hint = f"known: {', '.join(sorted(self._table))}"
            raise UsageError(f"the name of a {self._what} is a string", hint=hint)
        found = self._loaded.get(name)
        if found is None:
            if name not in self._table:
                raise UsageError(f"no {self._what} {name!r}", hint=self._suggestion(name))
            module, _, attribute = self._table[name].partition(":")
            found = self._loaded[name] = getattr(importlib.import_module(module), attribute)()
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __contains__(self, name: object) -> bool:
        return name in self._table

    def _suggestion(self, name: str) -> str:
        near = difflib.get_close_matches(name, self._table, n=1, cutoff=0.4)
        known = ", ".join(sorted(self._table))
        return f"did you mean {near[0]!r}? known: {known}" if near else f"known: {known}"
