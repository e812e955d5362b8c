"""What several upstreams say by themselves to one client of the stateful revisions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Final

from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, frame_of
from mcp_envelope.core.link import Item

from . import merging
from .gathering import Inbox
from .ground import log
from .members import Member, pause_before
from .questions import Questions

_CHANGES: Final = {
    "tools/list": "notifications/tools/list_changed",
    "prompts/list": "notifications/prompts/list_changed",
    "resources/list": "notifications/resources/list_changed",
}


class Hearing:
    """Listens to all members; what they say is in ``inbox``, their questions under new ids.

    It says that lists have changed when a member is there (again) that was absent from some.
    """

    def __init__(self, members: Mapping[str, Member]) -> None:
        self.questions = Questions()
        self.inbox = Inbox(self._unheard)
        self._members = members
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._missed: dict[str, int] = {}
        for member in members.values():
            member.heard = self._hand_on(member)

    def begin(self, opening: Frame | None, is_ready: Callable[[], bool]) -> None:
        """Listen from now on; ``opening`` is how those are greeted that are absent yet."""
        for member in self._members.values():
            if f"hear/{member.name}" not in self._tasks:
                self._do(f"hear/{member.name}", self._hear(member, opening, is_ready))

    def changed(self, member: Member) -> Callable[[Frame], Frame]:
        """How a member's message looks to the client."""
        return lambda frame: self.questions.to_client(member.name, frame)

    def missed(self, found: Iterable[str], absent: Iterable[str]) -> None:
        """Some members were absent from a list: say so when they are back."""
        for name in found:
            self._missed.pop(name, None)
        for name in absent:
            key, member = f"return/{name}", self._members[name]
            if member.greeting is not None and key not in self._tasks:
                self._do(key, self._await(member, self._missed.setdefault(name, 0)))
                self._missed[name] += 1

    async def close(self) -> None:
        """Listen no longer."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self.inbox.shut()

    def _do(self, key: str, work: Coroutine[Any, Any, None]) -> None:
        task = self._tasks[key] = asyncio.create_task(work)
        task.add_done_callback(lambda done: self._done(key, done))

    def _done(self, key: str, task: asyncio.Task[None]) -> None:
        if not key.startswith("hear/"):
            self._tasks.pop(key, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s went wrong: %s", key, error, exc_info=error)

    async def _hear(
        self, member: Member, opening: Frame | None, is_ready: Callable[[], bool]
    ) -> None:
        if member.greeting is None and opening is not None:
            await member.greet_at_last(opening, is_ready)
            self._announce(member)
        hand_on = self._hand_on(member)
        try:
            async for item in await member.talk.listen({}):
                hand_on(item)
        except EnvelopeError as error:
            log.warning("%s is not heard any more: %s", member.name, error)

    async def _await(self, member: Member, attempt: int) -> None:
        """Wait until a member that was lost answers again."""
        while True:
            await asyncio.sleep(pause_before(attempt))
            attempt += 1
            try:
                await member.answer_to("ping", None)
            except EnvelopeError as error:
                log.info("%s is still absent: %s", member.name, error)
            else:
                self._announce(member)
                return

    def _announce(self, member: Member) -> None:
        log.info("%s is there now", member.name)
        for method, notification in _CHANGES.items():
            if member.can(merging.NEEDED[method]):
                self.inbox.put(frame_of({"jsonrpc": "2.0", "method": notification}))

    def _hand_on(self, member: Member) -> Callable[[Item], None]:
        change = self.changed(member)

        def hand_on(item: Item) -> None:
            if item.frame is not None:
                self.inbox.put(change(item.frame))

        return hand_on

    def _unheard(self, frame: Frame) -> None:
        """Nobody reads: a question is answered, so that its server does not wait for ever."""
        if frame.shape != "request":
            return
        error = {"code": -32603, "message": "the client does not listen"}
        answer = frame_of({"jsonrpc": "2.0", "id": frame.id, "error": error})
        found = self.questions.to_server(answer)
        if found is not None:
            self._do(f"answer/{frame.id}", self._members[found[0]].tell(found[1]))
