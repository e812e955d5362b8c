"""Which of several upstreams a request is for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from mcp_envelope.core import spans
from mcp_envelope.core.document import Document, dump, parse
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame

from . import names
from .gathering import gather, own_params
from .members import Member
from .merging import LISTS

_NAMED: Final = {"tools/call": "tools", "prompts/get": "prompts"}
_BY_URI: Final = ("resources/read", "resources/subscribe", "resources/unsubscribe")
_MOST: Final = 100_000

StandBy = Callable[[Member], Awaitable[object]]
Members = Mapping[str, Member]


class Routing:
    """Where tools, prompts, resources and tasks are, as far as lists and results have told.

    With ``namespace`` the names of tools and prompts say where they are; without, the first
    server that lists a name has it.
    """

    def __init__(self, *, namespace: bool) -> None:
        self._namespace = namespace
        self._known: dict[tuple[str, str], str] = {}

    async def find(self, frame: Frame, members: Members, stand_by: StandBy) -> tuple[Member, Frame]:
        """The member that a request is for, and the request as it is to get it.

        EnvelopeError: TOOL_NOT_FOUND, or METHOD_NOT_FOUND for what is for none of them.
        """
        method, params = frame.method, frame.params
        if method in _NAMED:
            return await self._by_name(frame, members, stand_by)
        if method in _BY_URI:
            uri = params.get("uri")
            member = await self._by_uri(frame, uri, members, stand_by)
            return member, frame
        if method == "completion/complete":
            return await self._by_reference(frame, members, stand_by)
        if method.startswith("tasks/"):
            task = params.get("taskId")
            found = self._known.get(("task", task)) if isinstance(task, str) else None
            if found is not None:
                return members[found], frame
            raise EnvelopeError("no such task", code="TOOL_NOT_FOUND", pointer="/params/taskId")
        raise EnvelopeError(
            f"no upstream is known to serve {method[:100]!r}", code="METHOD_NOT_FOUND"
        )

    def entries(self, method: str, member: Member, page: Document) -> list[Document]:
        """The entries of a page of a list, under the names that clients are to see."""
        what = {"tools/list": "tools", "prompts/list": "prompts"}.get(method)
        member_of = LISTS[method]
        found = page.at(f"/{member_of}")
        entries = found.elements() if found is not None else []
        if what is not None:
            return [self._renamed(what, member, entry) for entry in entries]
        key = {"resources": "uri", "resourceTemplates": "uriTemplate", "tasks": "taskId"}[member_of]
        kind = {"uri": "uri", "uriTemplate": "template", "taskId": "task"}[key]
        for entry in entries:
            self._note(kind, entry.value.get(key) if entry.is_object else None, member)
        return entries

    def note_task(self, member: Member, result: Any) -> None:
        """Remember whose task a result speaks of."""
        task = result.get("task") if isinstance(result, dict) else None
        if isinstance(task, dict):
            self._note("task", task.get("taskId"), member)
        elif isinstance(result, dict) and result.get("resultType") == "task":
            self._note("task", result.get("taskId"), member)

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
        server = self._known.get((what, name))
        if server is None:
            await self._look(f"{what}/list", members, frame, stand_by)
            server = self._known.get((what, name))
        if server is None:
            raise _unknown(what, name, f"{what}/list names those that there are")
        return members[server], name

    def _renamed(self, what: str, member: Member, entry: Document) -> Document:
        name = entry.value.get("name") if entry.is_object else None
        if not isinstance(name, str):
            return entry
        self._note(what, name, member)
        if not self._namespace:
            return entry
        text = spans.put(entry.raw, ("name",), dump(names.shown(member.name, name)))
        return parse(text, size=len(text))

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
        found = self._of_uri(uri)
        if found is None:
            for method in ("resources/list", "resources/templates/list"):
                await self._look(method, members, frame, stand_by)
            found = self._of_uri(uri)
        if found is None:
            raise EnvelopeError(
                "no upstream lists this resource, or a template that it fits",
                code="TOOL_NOT_FOUND",
                pointer="/params/uri",
                hint="resources/list and resources/templates/list name those that there are",
            )
        return members[found]

    def _of_uri(self, uri: str) -> str | None:
        exact = self._known.get(("uri", uri)) or self._known.get(("template", uri))
        if exact is not None:
            return exact
        fitting = [
            (len(_fixed(template)), server)
            for (kind, template), server in self._known.items()
            if kind == "template" and uri.startswith(_fixed(template)) and "{" in template
        ]
        return max(fitting)[1] if fitting else None

    async def _look(self, method: str, members: Members, frame: Frame, stand_by: StandBy) -> None:
        """Ask all members for a list, to learn where things are."""
        params = own_params(frame)

        async def ask(member: Member) -> list[Document]:
            await stand_by(member)
            return [page async for page in member.pages(method, params)]

        found, _ = await gather(members.values(), ask)
        for name, pages in found.items():
            for page in pages:
                self.entries(method, members[name], page)

    def _note(self, kind: str, name: object, member: Member) -> None:
        if isinstance(name, str) and len(self._known) < _MOST:
            self._known.setdefault((kind, name), member.name)


def _fixed(template: str) -> str:
    """The beginning of a URI template, up to its first variable."""
    return template.partition("{")[0]


def _unknown(what: str, name: str, hint: str) -> EnvelopeError:
    return EnvelopeError(
        f"there is no {what[:-1]} {name[:100]!r}",
        code="TOOL_NOT_FOUND",
        pointer="/params/name",
        hint=hint,
    )
