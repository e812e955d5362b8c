"""Capabilities: patterns over kinds that say what a peer may send.

The patterns are compiled once into an index, so that a decision looks at the few patterns that
could match and not at all of them: METHODs in a dictionary, whole CONTEXTs in another, CONTEXTs
with a ``*`` as :mod:`mcp_envelope.core.globs`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mcp_envelope.core.errors import ConfigError, UsageError
from mcp_envelope.core.globs import Globs
from mcp_envelope.core.kind import MCP_TYPES, Kind, context_flaw, method_flaw, shown

_HEADS = {f"mcp/{name}": (name,) for name in MCP_TYPES} | {"mcp/*": MCP_TYPES, "chat": ("chat",)}
_ANY_METHOD = ("*",)

# What takes a URI out of the place that a pattern's literal text names.
_ESCAPES = ("%2e", "%2f", "%5c")
_DOT_SEGMENTS = frozenset({".", ".."})


class Pattern(NamedTuple):
    """One capability, read: its TYPEs, METHOD's segments, CONTEXT (``None``: whatever)."""

    text: str
    types: tuple[str, ...]
    method: tuple[str, ...]
    context: str | None

    @classmethod
    def parse(cls, text: str) -> Pattern:
        """Read a pattern; :class:`ConfigError` for everything outside the grammar."""
        if not isinstance(text, str):
            raise _refused(repr(text), "a capability is a text", "quote it")
        if text and not text.strip("*"):
            hint = "for all MCP messages write 'mcp/*'; 'chat' is granted apart"
            raise _refused(shown(text), "a bare '*' is no pattern", hint)
        if "**" in text:
            hint = (
                f"write {shown(_with_single_stars(text))}; at its end one '*' crosses '/' already"
            )
            raise _refused(shown(text), "'**' has no meaning", hint)
        head, *rest = text.split(":", 2)
        types = _HEADS.get(head)
        if types is None:
            raise _refused(shown(text), *_head_rule(head))
        if rest and head == "chat":
            raise _refused(shown(text), "'chat' matches exactly, nothing follows it", "write chat")
        if rest and head == "mcp/*":
            listed = ", ".join(shown(":".join((f"mcp/{name}", *rest))) for name in MCP_TYPES)
            hint = f"name the TYPE: {listed}"
            raise _refused(shown(text), "nothing may stand behind 'mcp/*'", hint)
        method = _method_pattern(text, rest[0]) if rest else _ANY_METHOD
        context = rest[1] if len(rest) == 2 else None
        if context is not None:
            flaw = context_flaw(context)
            if flaw is not None:
                raise _refused(shown(text), flaw.why, flaw.hint)
        return cls(text, types, method, None if context == "*" else context)

    def warnings(self) -> Iterable[str]:
        """What is allowed and yet rarely meant."""
        if self.context is None:
            return
        if "*" in self.method:
            yield (
                f"{shown(self.text)}: a CONTEXT under a wildcard METHOD means a tool's name for "
                "one method and a URI for another; name the METHOD"
            )
        elif not Kind("request", "/".join(self.method)).takes_context:
            yield (
                f"{shown(self.text)}: {'/'.join(self.method)} has no CONTEXT, so this grants only "
                "kinds that strict kind checking refuses; leave the CONTEXT out"
            )
        narrows_uris = self.method[0] == "resources" and "*" in self.context
        if narrows_uris and _climbs(self.context.replace("*", "x")):
            yield (
                f"{shown(self.text)}: matches nothing, since a wildcard never grants a URI with "
                "dot segments, backslashes, %2e, %2f or %5c; write the plain path"
            )

    def covers(self, segments: Sequence[str]) -> bool:
        """Whether a METHOD of these segments matches: ``*`` is one, as the last also more."""
        beyond = len(segments) - len(self.method)
        if beyond < 0 or (beyond > 0 and self.method[-1] != "*"):
            return False
        return all(mine in ("*", given) for mine, given in zip(self.method, segments, strict=False))


class Capabilities:
    """What a peer may send: a set of patterns, compiled once and immutable.

    ``mcp/request:tools/call:read_*`` and the like; the grammar stands in docs/kinds.md. A bad
    pattern raises :class:`ConfigError` with the pattern, the rule it breaks and a suggestion.
    Which of several fitting patterns :meth:`granting` names does not depend on their order.
    """

    __slots__ = ("_chat", "_heads", "_patterns", "_types", "_warnings")

    def __init__(self, patterns: Iterable[str]) -> None:
        if isinstance(patterns, str):
            raise UsageError(
                f"capabilities are a list of patterns, not the text {shown(patterns)}",
                hint=f"write [{shown(patterns)}]",
            )
        read = [Pattern.parse(text) for text in patterns]
        self._patterns = tuple(pattern.text for pattern in read)
        self._warnings = tuple(line for pattern in read for line in pattern.warnings())
        self._chat = "chat" if "chat" in self._patterns else None
        self._types = {
            name: _OfType(sorted({pattern for pattern in read if name in pattern.types}))
            for name in MCP_TYPES
        }
        self._heads = {f"mcp/{name}": of_type for name, of_type in self._types.items()}

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns as given."""
        return self._patterns

    @property
    def warnings(self) -> tuple[str, ...]:
        """What an operator should be told on loading; each line names its pattern."""
        return self._warnings

    def allows(self, kind: Kind | str) -> bool:
        """Whether a message of this kind may be sent. Malformed text may not; never raises."""
        return self.granting(kind) is not None

    def granting(self, kind: Kind | str) -> str | None:
        """The pattern that allows ``kind``, for the record; ``None`` when nothing does."""
        if isinstance(kind, Kind):
            if kind.method is None:
                return self._chat if kind.type == "chat" else None
            return self._types[kind.type].find(kind.method, kind.context)
        # A text is split here and not by Kind.parse: most kinds are refused or granted without
        # anything else of a Kind, and what is well formed needs to be known of granted ones only.
        try:
            head, _, rest = kind.partition(":")
        except (AttributeError, TypeError):  # no text at all
            return None
        of_type = self._heads.get(head)
        if of_type is None:
            return self._chat if kind == "chat" else None
        method, colon, context = rest.partition(":")
        if not colon:
            return of_type.find(method, None)
        found = of_type.find(method, context)
        return found if found is None or context_flaw(context) is None else None

    def __repr__(self) -> str:
        return f"Capabilities({list(self._patterns)!r})"


class _OfType:
    """The patterns of one TYPE, by METHOD."""

    __slots__ = ("_literal", "_wild")

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        named = {each.method for each in patterns if "*" not in each.method}
        self._literal = {
            "/".join(method): _Contexts([each for each in patterns if each.covers(method)])
            for method in named
        }
        wild: dict[tuple[str, ...], list[Pattern]] = defaultdict(list)
        for each in patterns:
            if "*" in each.method:
                wild[each.method].append(each)
        self._wild = tuple((group[0], _Contexts(group)) for group in wild.values())

    def find(self, method: str, context: str | None) -> str | None:
        contexts = self._literal.get(method)
        if contexts is not None:
            return contexts.find(method, context)
        if self._wild and method_flaw(method) is None:
            segments = method.split("/")
            for pattern, contexts in self._wild:
                if pattern.covers(segments):
                    found = contexts.find(method, context)
                    if found is not None:
                        return found
        return None


class _Contexts:
    """What the patterns for one METHOD say of the CONTEXT."""

    __slots__ = ("_anything", "_exact", "_globs")

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self._anything = next((each.text for each in patterns if each.context is None), None)
        narrowed = {each.context: each.text for each in patterns if each.context is not None}
        self._exact = {context: text for context, text in narrowed.items() if "*" not in context}
        self._globs = Globs({glob: text for glob, text in narrowed.items() if "*" in glob})

    def find(self, method: str, context: str | None) -> str | None:
        if self._anything is not None:
            return self._anything
        if context is None:
            return None
        found = self._exact.get(context)
        if found is not None:
            return found
        found = self._globs.find(context)
        if found is not None and method.startswith("resources/") and _climbs(context):
            return None
        return found


def _climbs(uri: str) -> bool:
    """Whether ``uri`` may name something elsewhere than its text says.

    The contract's list, and where that is silent the same idea: a dot segment counts at either end
    of the URI and before ``?``, ``#`` and ``;`` too.
    """
    if "\\" in uri:
        return True
    if "%" in uri:
        folded = uri.lower()
        if any(escape in folded for escape in _ESCAPES):
            return True
    if not ("/." in uri or uri[:1] == "." or "?." in uri or "#." in uri or ";." in uri):
        return False  # nearly every URI, without copying any of it
    path = uri.replace("?", "/").replace("#", "/").replace(";", "/")
    return not _DOT_SEGMENTS.isdisjoint(path.split("/"))


def _method_pattern(text: str, method: str) -> tuple[str, ...]:
    flaw = method_flaw(method)
    if flaw is not None:
        raise _refused(shown(text), flaw.why, flaw.hint)
    segments = tuple(method.split("/"))
    if any("*" in segment and segment != "*" for segment in segments):
        whole = "/".join("*" if "*" in segment else segment for segment in segments)
        raise _refused(
            shown(text),
            f"in METHOD a '*' is a whole segment, not a part of one as in {shown(method)}",
            f"write {shown(whole)} for METHOD, or name each method in full",
        )
    return segments


def _head_rule(head: str) -> tuple[str, str]:
    """The rule that ``head`` breaks as a pattern's TYPE, and a suggestion."""
    if not head:
        return "TYPE is empty", "begin with 'mcp/request:', or write 'mcp/*' or 'chat'"
    if head.strip() != head:
        return "it begins or ends with white space", "take the white space away"
    if head.partition("/")[0] in ("system", "presence"):
        return "nothing grants system kinds, they are the gateway's alone", "leave it out"
    if head.lower() in _HEADS:
        return "patterns are case-sensitive", f"write {shown(head.lower())}"
    if "*" in head:
        stem = head.partition("*")[0]
        meant = [f"{known}:*" for known in _HEADS if stem > "mcp/" and known.startswith(stem)]
        suggestion = shown(meant[0]) if len(meant) == 1 else "'mcp/*'"
        return "in TYPE a '*' stands only as 'mcp/*'", f"write {suggestion}"
    known = ", ".join(_HEADS)
    if f"mcp/{head}" in _HEADS:
        return f"{shown(head)} is no TYPE", f"write {shown(f'mcp/{head}')}"
    return f"{shown(head)} is no TYPE", f"begin with one of {known}"


def _with_single_stars(text: str) -> str:
    while "**" in text:
        text = text.replace("**", "*")
    return text


def _refused(quoted: str, rule: str, hint: str) -> ConfigError:
    return ConfigError(f"capability {quoted}: {rule}", hint=hint)
