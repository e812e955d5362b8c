"""Calls that were admitted and not settled, of the lines of a ledger one after the other."""

from __future__ import annotations

from .pieces import Entry
from .verdict import MOST_LISTED, Dangling

#: Number, request, tool, time and kind, as the line has them.
_Said = tuple[int, object, object, object, object]


class Calls:
    """Follows calls and runs. In memory are the calls of the current run, and so many others."""

    def __init__(self) -> None:
        self._open: dict[object, _Said] = {}
        self._listed: list[Dangling] = []
        self._count = 0
        #: Lines ``settled`` that no ``admitted`` belongs to: how many, and the first.
        self.unadmitted = 0
        self.first_unadmitted = 0
        #: Runs that began while the one before had not ended.
        self.cut_off = 0
        self._is_running = False

    def admit(self, entry: Entry) -> None:
        """A call was admitted."""
        value, seq = entry.value, entry.seq
        name = value["request_id"]
        key = name if type(name) is str else seq
        if key in self._open:
            self._lose(self._open[key])
        self._open[key] = (seq, name, value["tool"], value["time"], value["kind"])

    def settle(self, entry: Entry) -> None:
        """A call was settled."""
        name = entry.value["request_id"]
        if self._open.pop(name if type(name) is str else entry.seq, None) is None:
            self.first_unadmitted = self.first_unadmitted if self.unadmitted else entry.seq
            self.unadmitted += 1

    def start(self) -> None:
        """A run began. What is open now nobody will settle."""
        self.cut_off += self._is_running
        self._is_running = True
        for said in self._open.values():
            self._lose(said)
        self._open.clear()

    def stop(self) -> None:
        """A run ended."""
        self._is_running = False

    def dangling(self) -> tuple[tuple[Dangling, ...], int]:
        """The first of them, and how many there are."""
        for said in self._open.values():
            self._lose(said)
        self._open.clear()
        return tuple(sorted(self._listed, key=lambda one: one.seq)), self._count

    def _lose(self, said: _Said) -> None:
        self._count += 1
        if len(self._listed) < MOST_LISTED:
            self._listed.append(Dangling(said[0], *map(_text, said[1:])))


def _text(found: object) -> str | None:
    return found.encode("utf-8", "replace").decode() if isinstance(found, str) else None
