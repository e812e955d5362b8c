"""What several upstreams say, as one answer. Nothing here is I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mcp_envelope import __version__
from mcp_envelope.core.document import Document, build
from mcp_envelope.core.door import LEGACY, STATELESS

#: Our key of ``_meta`` that names upstreams which did not answer.
ABSENT: Final = "dev.mcp-envelope/absent"
_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
#: Which member of the result a list is in.
LISTS: Final = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "tasks/list": "tasks",
}
#: Which capability a server must have announced to be asked for a list.
NEEDED: Final = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resources",
    "tasks/list": "tasks",
}


def initialized(answers: Mapping[str, Mapping[str, Any]], absent: Sequence[str]) -> dict[str, Any]:
    """The result of initialize: the oldest version agreed on, and what any server can do."""
    versions = [each.get("protocolVersion") for each in answers.values()]
    result = {
        "protocolVersion": min((v for v in versions if isinstance(v, str) and v), default=LEGACY),
        "capabilities": _capabilities(answers, absent),
        "serverInfo": {"name": "mcp-envelope", "version": __version__},
        **_instructions(answers),
    }
    return _with_meta(result, {ABSENT: list(absent)} if absent else {})


def discovered(answers: Mapping[str, Mapping[str, Any]], absent: Sequence[str]) -> dict[str, Any]:
    """The result of server/discover, likewise."""
    shared = set.intersection(*map(_versions, answers.values())) or {STATELESS}
    result = {
        "resultType": "complete",
        "supportedVersions": sorted(shared, reverse=True),
        "capabilities": _capabilities(answers, absent),
        **_instructions(answers),
        **caching(list(answers.values())),
    }
    info = {_SERVER_INFO: {"name": "mcp-envelope", "version": __version__}}
    return _with_meta(result, info | ({ABSENT: list(absent)} if absent else {}))


def listed(
    method: str,
    entries: Sequence[Document],
    pages: Sequence[Mapping[str, Any]],
    absent: Sequence[str],
    *,
    stateless: bool,
) -> Document:
    """The result of a list, all pages of all servers in one; each entry keeps its bytes."""
    result: dict[str, Any] = {LISTS[method]: list(entries)}
    meta: dict[str, Any] = {ABSENT: list(absent)} if absent else {}
    if stateless:
        result |= {"resultType": "complete", **caching(pages)}
        meta[_SERVER_INFO] = {"name": "mcp-envelope", "version": __version__}
    return build(_with_meta(result, meta))


def _versions(answer: Mapping[str, Any]) -> set[str]:
    given = answer.get("supportedVersions")
    found = {each for each in given if isinstance(each, str)} if isinstance(given, list) else None
    return found or {STATELESS}


def _capabilities(answers: Mapping[str, Mapping[str, Any]], absent: Sequence[str]) -> Any:
    """What any of the servers can do. Of one that is absent nobody knows; it may bring tools."""
    merged: dict[str, Any] = {}
    for each in answers.values():
        if isinstance(given := each.get("capabilities"), dict):
            _merge(merged, given)
    if absent:
        _merge(merged, {"tools": {}})
        for name in ("tools", "prompts", "resources"):
            if isinstance(found := merged.get(name), dict):
                found["listChanged"] = True
    return merged


def caching(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How long an answer may be kept that was made of these: the shortest, the most private."""
    times = [each["ttlMs"] for each in results if isinstance(each.get("ttlMs"), (int, float))]
    private = any(each.get("cacheScope") != "public" for each in results) or not results
    return {
        "ttlMs": min(times) if times and len(times) == len(results) else 0,
        "cacheScope": "private" if private else "public",
    }


def _merge(into: dict[str, Any], given: Mapping[str, Any]) -> None:
    for name, value in given.items():
        known = into.get(name)
        if isinstance(known, dict) and isinstance(value, dict):
            _merge(known, value)
        elif isinstance(value, dict):
            into[name] = {}
            _merge(into[name], value)
        elif isinstance(known, bool) and isinstance(value, bool):
            into[name] = known or value
        elif name not in into:
            into[name] = value


def _instructions(answers: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    parts = [
        f"# {server}\n{text}"
        for server, each in answers.items()
        if isinstance(text := each.get("instructions"), str) and text
    ]
    return {"instructions": "\n\n".join(parts)} if parts else {}


def _with_meta(result: dict[str, Any], meta: Mapping[str, Any]) -> dict[str, Any]:
    return result | {"_meta": meta} if meta else result
