"""Which of several upstreams a request is for."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from mcp_envelope.core import spans
from mcp_envelope.core.document import Document, dump, parse
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame

from . import names
from .gathering import gather, listing, own_params
from .ground import log
from .members import Member
from .merging import LISTS
from .templates import best_template

_NAMED: Final = {"tools/call": "tools", "prompts/get": "prompts"}
_BY_URI: Final = ("resources/read", "resources/subscribe", "resources/unsubscribe")
_KEYS: Final = {
    "tools": "name",
    "prompts": "name",
    "resources": "uri",
    "resourceTemplates": "uriTemplate",
    "tasks": "taskId",
}
_MOST: Final = 100_000

StandBy = Callable[[Member], Awaitable[object]]
Members = Mapping[str, Member]
Pages = Mapping[str, Sequence[Document]]


class Routing:
    """Where tools, prompts, resources and tasks are, as far as lists and results have told.

    With ``namespace`` the names of tools and prompts say where they are. Without, a name that
    two servers list belongs to neither: which of them was meant nobody can say. A URI that two
    servers list is read from the one that the settings name first.
    """

    def __init__(self, *, namespace: bool) -> None:
        self._namespace = namespace
        self._listed: dict[tuple[str, str], dict[str, None]] = {}
        self._tasks = _Recent()
        self._links = _Recent()
        self._clashes: set[tuple[str, str]] = set()

    async def find(self, frame: Frame, members: Members, stand_by: StandBy) -> tuple[Member, Frame]:
        """The member that a request is for, and the request as it is to get it.

        EnvelopeError: TOOL_NOT_FOUND, or METHOD_NOT_FOUND for what is for none of them.
        """
        method, params = frame.method, frame.params
        if method in _NAMED:
            return await self._by_name(frame, members, stand_by)
        if method in _BY_URI:
            return await self._by_uri(frame, params.get("uri"), members, stand_by), frame
        if method == "completion/complete":
            return await self._by_reference(frame, members, stand_by)
        if method.startswith("tasks/"):
            return await self._by_task(frame, members, stand_by), frame
        raise EnvelopeError(
            f"no upstream is known to serve {method[:100]!r}", code="METHOD_NOT_FOUND"
        )

    def merged(self, method: str, found: Pages) -> list[Document]:
        """The entries of a list, under the names that clients are to see; learns where they are.

        ``found`` has all pages of each server that answered.
        """
        what = LISTS[method]
        entries = {server: self._learn(what, server, pages) for server, pages in found.items()}
        if what not in ("tools", "prompts"):
            return [entry for its in entries.values() for entry in its]
        if self._namespace:
            return [_renamed(server, entry) for server, its in entries.items() for entry in its]
        return [
            entry
            for its in entries.values()
            for entry in its
            if not self._is_contested(what, _key(entry, "name"))
        ]

    def note_result(self, member: Member, result: Any) -> None:
        """Remember whose task a result speaks of, and whose resources it points at."""
        if not isinstance(result, dict):
            return
        task = result.get("task")
        if isinstance(task, dict):
            self._tasks.note(task.get("taskId"), member.name)
        elif result.get("resultType") == "task":
            self._tasks.note(result.get("taskId"), member.name)
        content = result.get("content")
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") in ("resource_link", "resource"):
                inner = block.get("resource")
                place = inner if isinstance(inner, dict) else block
                self._links.note(place.get("uri"), member.name)

    def _learn(self, what: str, server: str, pages: Sequence[Document]) -> list[Document]:
        found = [
            entry
            for page in pages
            if (part := page.at(f"/{what}")) is not None
            for entry in part.elements()
        ]
        keys = [key for entry in found if (key := _key(entry, _KEYS[what])) is not None]
        if what == "tasks":
            for key in keys:
                self._tasks.note(key, server)
        else:
            self._listed[what, server] = dict.fromkeys(keys[:_MOST])
        return found

    # -- by name ---------------------------------------------------------------------------------

    async def _by_name(
        self, frame: Frame, members: Members, stand_by: StandBy
    ) -> tuple[Member, Frame]:
        name = frame.params.get("name")
        if not isinstance(name, str):
            return next(iter(members.values())), frame
        member, own = await self._owner(_NAMED[frame.method], name, members, frame, stand_by)
        return member, frame if own == name else frame.put(("params", "name"), own)

    async def _owner(
        self, what: str, name: str, members: Members, frame: Frame, stand_by: StandBy
    ) -> tuple[Member, str]:
        if self._namespace:
            found = names.split(name, members)
            if found is not None:
                return members[found[0]], found[1]
            known = ", ".join(names.shown(each, "…") for each in members)
            raise _unknown(what, name, f"names begin with the server: {known}")
        owners = self._owners(what, name)
        if not owners:
            await self._look(f"{what}/list", members, frame, stand_by)
            owners = self._owners(what, name)
        if len(owners) > 1:
            self._is_contested(what, name)
            both = " and ".join(owners[:2])
            raise _unknown(what, name, f"{both} both have one; set namespace = true", "no single")
        if not owners:
            raise _unknown(what, name, f"{what}/list names those that there are")
        return members[owners[0]], name

    def _owners(self, what: str, name: str) -> list[str]:
        return sorted(
            server for (kind, server), its in self._listed.items() if kind == what and name in its
        )

    def _is_contested(self, what: str, name: str | None) -> bool:
        """Whether two servers list a name, which is said in the log once."""
        owners = self._owners(what, name) if name is not None else []
        if name is None or len(owners) < 2:
            return False
        if (what, name) not in self._clashes:
            if len(self._clashes) < _MOST:
                self._clashes.add((what, name))
            log.error(
                "%s and %s both have a %s called %.100r: it is left out; set namespace = true",
                *owners[:2],
                what[:-1],
                name,
            )
        return True

    async def _by_reference(
        self, frame: Frame, members: Members, stand_by: StandBy
    ) -> tuple[Member, Frame]:
        reference = frame.params.get("ref")
        found = reference if isinstance(reference, dict) else {}
        name, uri = found.get("name"), found.get("uri")
        if isinstance(name, str):
            member, own = await self._owner("prompts", name, members, frame, stand_by)
            return member, frame if own == name else frame.put(("params", "ref", "name"), own)
        return await self._by_uri(frame, uri, members, stand_by), frame

    # -- by URI ----------------------------------------------------------------------------------

    async def _by_uri(
        self, frame: Frame, uri: object, members: Members, stand_by: StandBy
    ) -> Member:
        if not isinstance(uri, str):
            return next(iter(members.values()))
        found = self._of_uri(uri, members)
        if found is None:
            able = await asyncio.gather(
                self._look("resources/list", members, frame, stand_by),
                self._look("resources/templates/list", members, frame, stand_by),
            )
            found = self._of_uri(uri, members)
            found = found or self._only(able[0])
        if found is None:
            raise EnvelopeError(
                "no upstream lists this resource, or a template that it fits",
                code="TOOL_NOT_FOUND",
                pointer="/params/uri",
                hint="resources/list and resources/templates/list name those that there are",
            )
        return members[found]

    def _of_uri(self, uri: str, members: Members) -> str | None:
        for what in ("resources", "resourceTemplates"):
            for server in members:
                if uri in self._listed.get((what, server), ()):
                    return server
        linked = self._links.get(uri)
        if linked is not None:
            return linked
        return best_template(
            uri,
            (
                (template, server)
                for server in members
                for template in self._listed.get(("resourceTemplates", server), ())
            ),
        )

    def _only(self, able: Sequence[str]) -> str | None:
        """The only server with resources, if there is one: not all that can be read is listed."""
        kinds = ("resources", "resourceTemplates")
        filled = [each for each in able if any(self._listed.get((kind, each)) for kind in kinds)]
        left = filled or able
        return left[0] if len(left) == 1 else None

    async def _look(
        self, method: str, members: Members, frame: Frame, stand_by: StandBy
    ) -> list[str]:
        """Ask all members for a list, to learn where things are; who has such a list."""
        found, _ = await listing(method, frame, members.values(), stand_by)
        for server, pages in found.items():
            self._learn(LISTS[method], server, pages or ())
        return [server for server, pages in found.items() if pages is not None]

    # -- by task ---------------------------------------------------------------------------------

    async def _by_task(self, frame: Frame, members: Members, stand_by: StandBy) -> Member:
        """Whose task it is. Where that is not known (any more), all are asked for it."""
        task = frame.params.get("taskId")
        known = self._tasks.get(task) if isinstance(task, str) else None
        if known is None and isinstance(task, str):
            params = Document.of({"taskId": task, **own_params(frame)})

            async def ask(member: Member) -> bool:
                await stand_by(member)
                if member.greeting is not None and not member.can("tasks"):
                    return False
                return "result" in (await member.answer_to("tasks/get", params)).value

            found, _ = await gather(members.values(), ask)
            known = next((server for server, has in found.items() if has), None)
            if known is not None:
                self._tasks.note(task, known)
        if known is None:
            raise EnvelopeError(
                "no server has this task",
                code="TOOL_NOT_FOUND",
                pointer="/params/taskId",
                hint="its time may be over, or its server was started anew",
            )
        return members[known]


class _Recent:
    """Which server something belongs to, by its name; the oldest are forgotten."""

    def __init__(self) -> None:
        self._servers: OrderedDict[str, str] = OrderedDict()

    def note(self, name: object, server: str) -> None:
        """Remember one; what is said last counts."""
        if isinstance(name, str):
            self._servers[name] = server
            self._servers.move_to_end(name)
            if len(self._servers) > _MOST:
                self._servers.popitem(last=False)

    def get(self, name: str) -> str | None:
        """The server, None where it is not known."""
        return self._servers.get(name)


def _key(entry: Document, key: str) -> str | None:
    found = entry.value.get(key) if entry.is_object else None
    return found if isinstance(found, str) else None


def _renamed(server: str, entry: Document) -> Document:
    name = _key(entry, "name")
    if name is None:
        return entry
    text = spans.put(entry.raw, ("name",), dump(names.shown(server, name)))
    return parse(text, size=len(text))


def _unknown(what: str, name: str, hint: str, number: str = "no") -> EnvelopeError:
    return EnvelopeError(
        f"there is {number} {what[:-1]} {name[:100]!r}",
        code="TOOL_NOT_FOUND",
        pointer="/params/name",
        hint=hint,
    )
