"""The tools of an upstream as far as they are known, with what their schemas check."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, Final

from mcp_envelope.core.canonical import OutOfDomainError, digest
from mcp_envelope.core.document import Document
from mcp_envelope.core.errors import ConfigError, EnvelopeError
from mcp_envelope.core.schema import SchemaCheck, compile_schema, fingerprint

#: Gives the page of tools/list at a cursor (None: the first): its result.
Fetch = Callable[[str | None], Awaitable[Document]]

_KEPT_CHECKS: Final = 2_000
_MOST_PAGES: Final = 200
#: Knowledge younger than this is not asked for again for a mere warning, nor if asking failed.
_FRESH: Final = 1.0
#: Knowledge older than this is asked for again: not every change is announced.
_STALE: Final = 60.0


class Checks:
    """Compiled schemas by fingerprint, shared by all tools with an equal one."""

    def __init__(self, most: int = _KEPT_CHECKS) -> None:
        self._most = most
        self._kept: OrderedDict[str, SchemaCheck | str] = OrderedDict()

    def of(self, schema: object, name: str, code: str) -> SchemaCheck | str:
        """The check, or why the schema cannot be used."""
        try:
            mark = f"{code}:{fingerprint(schema)}"
        except EnvelopeError as error:
            return error.message
        found = self._kept.get(mark)
        if found is None:
            try:
                found = compile_schema(schema, name=name, code=code)
            except ConfigError as error:
                found = str(error)
            if len(self._kept) >= self._most:
                self._kept.popitem(last=False)
            self._kept[mark] = found
        else:
            self._kept.move_to_end(mark)
        return found


class Tool:
    """One tool, by the definition that its server gives. Schemas are compiled on first use."""

    __slots__ = ("_checks", "_digest", "_headers", "_input", "_output", "definition", "name")

    def __init__(self, name: str, definition: Document, checks: Checks) -> None:
        self.name = name
        self.definition = definition
        self._checks = checks
        self._headers = b'"x-mcp-header"' in definition.raw
        self._digest: str | None = None
        self._input: SchemaCheck | str | None = None
        self._output: SchemaCheck | str | None = None

    @property
    def digest(self) -> str | None:
        """``sha256:<hex>`` of the whole definition; None where it has no canonical form."""
        if self._digest is None:
            try:
                self._digest = f"sha256:{digest(self.definition).value}"
            except OutOfDomainError:
                self._digest = ""
        return self._digest or None

    @property
    def input_schema(self) -> Any:
        """The plain input schema, None if there is none."""
        return self.definition.value.get("inputSchema")

    @property
    def names_headers(self) -> bool:
        """Whether arguments of its are to be repeated in HTTP headers."""
        return self._headers

    @property
    def has_output(self) -> bool:
        """Whether it promises what it returns."""
        return self.definition.value.get("outputSchema") is not None

    def input_check(self) -> SchemaCheck | str | None:
        """The check of its arguments, why there can be none, or None: it does not say."""
        if self._input is None:
            self._input = self._check("inputSchema", "INVALID_TOOL_INPUT")
        return self._input

    def output_check(self) -> SchemaCheck | str | None:
        """The check of its structured result, likewise."""
        if self._output is None:
            self._output = self._check("outputSchema", "INVALID_TOOL_OUTPUT")
        return self._output

    def _check(self, member: str, code: str) -> SchemaCheck | str | None:
        schema = self.definition.value.get(member)
        return (
            self._checks.of(schema, f"{self.name}.{member}", code) if schema is not None else None
        )


class Catalog:
    """What is known of one upstream's tools, learnt from lists that pass by or asked for.

    ``tick`` is a clock in seconds.
    """

    def __init__(self, checks: Checks, tick: Callable[[], float]) -> None:
        self._checks = checks
        self._tick = tick
        self._tools: dict[str, Tool] = {}
        self._asked: float | None = None
        self._changed = False
        self._lock = asyncio.Lock()
        self.is_complete = False

    def learn(self, result: Document, *, whole: bool = False) -> None:
        """Take in a page of tools/list that passed by; ``whole`` if it is the only one."""
        if whole:
            self._replace([result])
            self._asked, self._changed, self.is_complete = self._tick(), False, True
        else:
            self._add(result)

    def _add(self, page: Document) -> None:
        tools = page.at("/tools")
        if tools is None:
            return
        for each in tools.elements():
            name = each.value.get("name") if each.is_object else None
            if isinstance(name, str):
                known = self._tools.get(name)
                if known is None or known.definition != each:
                    self._tools[name] = Tool(name, each, self._checks)

    def changed(self) -> None:
        """The server has said that its list is another one now."""
        self._changed = True

    def known(self, name: str) -> Tool | None:
        """The tool, if it is known and there is no reason to ask again."""
        if self._changed or self._asked is None or self._tick() - self._asked > _STALE:
            return None
        return self._tools.get(name)

    async def find(
        self, name: str, fetch: Fetch, *, anew: bool = False, since: float | None = None
    ) -> Tool | None:
        """The tool of that name; asks for the list where it is not known, or is to be anew.

        What then counts was asked for at ``since`` at the earliest, by the catalog's clock; a
        moment ago if that is None. The lists of calls that wait for one are the same.
        None if there is no such tool; ``is_complete`` tells whether the list could be had.
        """
        found = None if anew else self.known(name)
        if found is not None:
            return found
        async with self._lock:
            if since is None or not self.is_complete:
                since = self._tick() - _FRESH
            if self._changed or self._asked is None or self._asked < since:
                await self._ask(fetch)
        return self._tools.get(name)

    async def _ask(self, fetch: Fetch) -> None:
        self._changed = False
        began = self._tick()
        pages: list[Document] = []
        cursors: set[str] = set()
        cursor: str | None = None
        self.is_complete = False
        try:
            while len(pages) < _MOST_PAGES:
                page = await fetch(cursor)
                pages.append(page)
                cursor = page.value.get("nextCursor") if page.is_object else None
                if not isinstance(cursor, str) or cursor in cursors:
                    self.is_complete = cursor is None
                    break
                cursors.add(cursor)
        except EnvelopeError:
            return
        finally:
            self._asked = began
        self._replace(pages)

    def _replace(self, pages: list[Document]) -> None:
        before, self._tools = self._tools, {}
        for page in pages:
            self._add(page)
        for name, tool in before.items():
            if name in self._tools and self._tools[name].definition == tool.definition:
                self._tools[name] = tool
