"""What a client of the older revisions said to open its conversation, to be said again."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Iterator
from typing import Final

from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, id_key

from .backoff import UnavailableError
from .child import Child
from .lines import one_line
from .replies import OWN_IDS, Call

_log: Final = logging.getLogger("mcp_envelope.upstreams")
_PATIENCE: Final = 30.0


class Opening:
    """Remembers how a conversation was opened, and opens it again with another child."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._initialize: Frame | None = None
        self._offered: Frame | None = None
        self._initialized: Frame | None = None
        self._level: Frame | None = None
        self._count: Iterator[int] = itertools.count(1)
        self._awaited: dict[object, asyncio.Future[Frame] | None] = {}

    def sent(self, frame: Frame) -> None:
        """A message goes to the child."""
        method = frame.method
        if method == "initialize":
            self._offered = frame
        elif method == "notifications/initialized":
            self._initialized = frame
        elif method == "logging/setLevel":
            self._level = frame

    def answered(self, call: Call, frame: Frame) -> None:
        """A request was answered: only what was agreed on is worth repeating."""
        offered = self._offered
        if call.method == "initialize" and offered is not None and offered.id == call.id:
            self._offered = None
            if "result" in frame.value:
                self._initialize, self._initialized, self._level = offered, None, None

    def is_needed(self, frame: Frame) -> bool:
        """Whether a new child must be told before this message."""
        return self._initialize is not None and frame.method != "initialize"

    def swallow(self, frame: Frame) -> bool:
        """Whether a response answers one of our repetitions."""
        found = frame.id
        if not self._awaited or found is None or id_key(found) not in self._awaited:
            return False
        waiter = self._awaited.pop(id_key(found))
        if waiter is not None and not waiter.done():
            waiter.set_result(frame)
        return True

    def lost(self, error: EnvelopeError) -> None:
        """The child is gone."""
        awaited, self._awaited = self._awaited, {}
        for waiter in awaited.values():
            if waiter is not None and not waiter.done():
                waiter.set_exception(error)

    async def repeat(self, child: Child) -> None:
        """Say it again; UnavailableError if the new child does not accept it."""
        if self._initialize is None:
            return
        waiter: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._say(child, self._initialize, waiter)
        try:
            async with asyncio.timeout(_PATIENCE):
                answer = await waiter
        except TimeoutError:
            raise self._refusal(f"did not answer initialize in {_PATIENCE:.0f} s") from None
        except EnvelopeError as error:
            raise self._refusal(error.message) from None
        if "error" in answer.value:
            raise self._refusal("refused initialize")
        if self._initialized is not None:
            child.write(one_line(self._initialized.raw))
        if self._level is not None:
            self._say(child, self._level, None)
        _log.warning(
            "upstream %r: started again; the conversation was opened anew for its client, "
            "subscriptions and other state of the lost process are gone",
            self._name,
        )

    def _say(self, child: Child, frame: Frame, waiter: asyncio.Future[Frame] | None) -> None:
        own = f"{OWN_IDS}again-{next(self._count)}"
        self._awaited[id_key(own)] = waiter
        if not child.write(one_line(frame.put(("id",), own).raw)) and waiter is not None:
            waiter.set_exception(UnavailableError("it ended"))

    def _refusal(self, why: str) -> UnavailableError:
        return UnavailableError(
            f"upstream {self._name!r} was started again, but its conversation could not be "
            f"opened anew: {why}",
            hint="let the client connect anew",
        )
