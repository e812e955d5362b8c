"""Questions of several upstreams to one client: their ids may be the same, so they get new ones."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeGuard

from mcp_envelope.core.door import Answer, Outlet
from mcp_envelope.core.frame import Frame, Id, IdKey, id_key
from mcp_envelope.core.link import Item, Reply

_CANCELLED: Final = "notifications/cancelled"
_PROGRESS: Final = "notifications/progress"
_MOST: Final = 10_000


class Questions:
    """Which server asked which question, and under which id.

    Ids and progress tokens of servers' requests are replaced on the way to the client, and put
    back on the way to the server.
    """

    def __init__(self) -> None:
        self._count = 0
        self._asked: dict[str, tuple[str, Id]] = {}
        self._shown: dict[tuple[str, IdKey], str] = {}
        self._tokens: dict[str, tuple[str, Id]] = {}

    def to_client(self, server: str, frame: Frame) -> Frame:
        """A server's message as the client is to see it."""
        if frame.shape == "request" and frame.id is not None:
            return self._ask(server, frame, frame.id)
        if frame.method == _CANCELLED:
            wanted = frame.params.get("requestId")
            shown = self._shown.get((server, id_key(wanted))) if _is_id(wanted) else None
            if shown is not None:
                return frame.put(("params", "requestId"), shown)
        return frame

    def to_server(self, frame: Frame) -> tuple[str, Frame] | None:
        """The server that a client's answer or notification is for, and what it is to get.

        None if it belongs to no question.
        """
        if frame.shape == "response":
            server, known = self._asked.pop(str(frame.id), (None, None))
            if server is None or known is None:
                return None
            self._shown.pop((server, id_key(known)), None)
            self._tokens.pop(str(frame.id), None)
            return server, frame.put(("id",), known)
        if frame.method == _PROGRESS:
            found = self._tokens.get(str(frame.params.get("progressToken")))
            if found is not None:
                return found[0], frame.put(("params", "progressToken"), found[1])
        return None

    def _ask(self, server: str, frame: Frame, own: Id) -> Frame:
        self._count += 1
        shown = f"{server}/{self._count}"
        if len(self._asked) >= _MOST:
            oldest = next(iter(self._asked))
            gone, known = self._asked.pop(oldest)
            self._shown.pop((gone, id_key(known)), None)
            self._tokens.pop(oldest, None)
        self._asked[shown] = (server, own)
        self._shown[server, id_key(own)] = shown
        changed = frame.put(("id",), shown)
        token = frame.meta.get("progressToken")
        if _is_id(token):
            self._tokens[shown] = (server, token)
            changed = changed.put(("params", "_meta", "progressToken"), shown)
        return changed


class AskingOutlet:
    """The outlet of a call to one of several servers; its questions get their new ids."""

    def __init__(self, inner: Outlet, change: Callable[[Frame], Frame]) -> None:
        self._inner = inner
        self._change = change

    async def begin(self, reply: Reply) -> None:
        """The upstream has begun to answer; the stream towards the client is our own."""
        await self._inner.begin(_OURS)

    async def item(self, item: Item) -> None:
        """Something on the way to the answer."""
        if item.frame is not None:
            await self._inner.item(Item(self._change(item.frame)))

    async def suspend(self) -> bool:
        """There is no other stream."""
        return False

    async def answer(self, answer: Answer) -> None:
        """The answer; what HTTP said on the far side stays there."""
        plain: Mapping[str, str] = {}
        await self._inner.answer(Answer(raw=answer.raw, status=answer.status, headers=plain))


class _Begun:
    """A reply of which nothing is known but that it has begun."""

    status = 200
    headers: Mapping[str, str] = MappingProxyType({})
    streams: bool | None = None
    body = b""

    async def __aiter__(self) -> AsyncIterator[Item]:
        """Nothing."""
        nothing: tuple[Item, ...] = ()
        for item in nothing:
            yield item

    async def close(self) -> None:
        """Nothing."""


_OURS: Final = _Begun()


def _is_id(value: object) -> TypeGuard[Id]:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)
