"""A server on standard input and output that interleaves what it says to calls side by side.

With ``grandchild`` as argument it starts a process of its own; with ``deaf`` it ends neither at
the end of its input nor on SIGTERM.
"""

from __future__ import annotations

import heapq
import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

from tests.faults.script import Message, last, nonce_of, note, plain, spoken

_PROCESSES: list[subprocess.Popen[bytes]] = []


class Server:
    """One client's server."""

    def __init__(self) -> None:
        self.active: list[Iterator[bytes]] = []
        self.due: list[tuple[float, int, Message]] = []
        self.hanging: dict[str, str] = {}
        self.count = 0
        self.is_deaf = "deaf" in sys.argv
        self.chance = random.Random(7)

    def serve(self) -> None:
        """Until the end of input, and then until what is under way is answered."""
        rest = b""
        open_ = True
        while open_ or self.active or self.due or self.is_deaf:
            if select.select([0] if open_ else [], [], [], self._pause())[0]:
                data = os.read(0, 65536)
                open_ = bool(data)
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._take(json.loads(line))
            while self.due and self.due[0][0] <= time.monotonic():
                write(last(heapq.heappop(self.due)[2]))
            for _ in range(20):
                self._say()
        note("eof", os.getpid())

    def _pause(self) -> float | None:
        if self.active:
            return 0
        if self.due:
            return max(0.0, self.due[0][0] - time.monotonic())
        return 0.2 if self.is_deaf else None

    def _take(self, message: Message) -> None:
        method = message.get("method")
        if method == "notifications/cancelled":
            wanted = json.dumps(message["params"]["requestId"])
            note("cancelled", self.hanging.pop(wanted, "?"))
        elif method != "tools/call":
            said = plain(message)
            if said is not None:
                write(said)
        else:
            self._call(message)

    def _call(self, message: Message) -> None:
        note("got", nonce_of(message))
        name = message["params"]["name"]
        if name == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        elif name == "hang":
            self.hanging[json.dumps(message["id"])] = nonce_of(message)
        elif name == "slow":
            self.count += 1
            when = time.monotonic() + message["params"]["arguments"].get("ms", 0) / 1000
            heapq.heappush(self.due, (when, self.count, message))
        else:
            self.active.append(spoken(message))

    def _say(self) -> None:
        """One message of any of the calls."""
        if self.active:
            at = self.chance.randrange(len(self.active))
            said = next(self.active[at], None)
            if said is None:
                del self.active[at]
            else:
                write(said)


def write(data: bytes) -> None:
    """Write a line, all of it."""
    data += b"\n"
    while data:
        data = data[os.write(1, data) :]


def main() -> None:
    """Serve."""
    note("pid", os.getpid())
    if "deaf" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "grandchild" in sys.argv:
        _PROCESSES.append(subprocess.Popen(["sleep", "300"], stdout=subprocess.DEVNULL))
        note("pid", _PROCESSES[0].pid)
    try:
        Server().serve()
    except BrokenPipeError:
        note("eof", os.getpid())


if __name__ == "__main__":
    main()
