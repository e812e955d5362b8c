"""What the lines of a ledger tell, one after the other: calls without an end, runs, time."""

from __future__ import annotations

from .pieces import Entry
from .verdict import MOST_LISTED, Dangling

#: Number, request, tool, time and kind, as the line has them.
_Said = tuple[int, object, object, object, object]


class Calls:
    """Follows calls and runs.

    In memory are the calls that are open, and the first :data:`MOST_LISTED` that were lost. In a
    ledger that a gateway wrote no more are open than ran at once; one that somebody made up of
    nothing but ``admitted`` takes about 450 bytes for each such line until the next ``started``.
    """

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
        #: Lines that are earlier than the one before: how many, and the first.
        self.earlier = 0
        self.first_earlier = 0
        self._time = ""

    def follow(self, entry: Entry) -> None:
        """Take the next line."""
        event = entry.event
        if event == b"admitted":
            self._admit(entry)
        elif event == b"settled":
            self._settle(entry)
        elif event == b"started":
            self._start()
        elif event == b"stopped":
            self._is_running = False
        time = entry.value["time"]
        if type(time) is str:
            if time < self._time and len(time) == len(self._time):
                self.first_earlier = self.first_earlier if self.earlier else entry.seq
                self.earlier += 1
            self._time = time

    def _admit(self, entry: Entry) -> None:
        value, seq = entry.value, entry.seq
        name = value["request_id"]
        key = name if type(name) is str else seq
        if key in self._open:
            self._lose(self._open[key])
        self._open[key] = (seq, name, value["tool"], value["time"], value["kind"])

    def _settle(self, entry: Entry) -> None:
        name = entry.value["request_id"]
        if self._open.pop(name if type(name) is str else entry.seq, None) is None:
            self.first_unadmitted = self.first_unadmitted if self.unadmitted else entry.seq
            self.unadmitted += 1

    def _start(self) -> None:
        # What is open now nobody will settle.
        self.cut_off += self._is_running
        self._is_running = True
        for said in self._open.values():
            self._lose(said)
        self._open.clear()

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
    return found if isinstance(found, str) else None
