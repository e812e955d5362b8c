"""Kinds: one line of text that says what a message on a topic is about.

``mcp/request:tools/call:read_file`` is a TYPE, a METHOD and a CONTEXT; ``chat`` and the gateway's
own ``system/…`` kinds are a TYPE alone (contracts/mcpx.md, Kind). A kind is read from text, or
computed from the MCP message it stands for, or held against such a message.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self
from unicodedata import category

from mcp_envelope.core.errors import EnvelopeError, Problem, UsageError

MCP_TYPES = ("request", "response", "proposal")
"""The types whose kinds carry a METHOD; written ``mcp/request`` and so on."""

SYSTEM_TYPES = ("system/welcome", "system/presence", "system/error")
"""The gateway's own kinds; nobody can be granted one."""

_TYPE_OF_HEAD = {f"mcp/{name}": name for name in MCP_TYPES} | {
    name: name for name in ("chat", *SYSTEM_TYPES)
}
_TYPES = frozenset(_TYPE_OF_HEAD.values())

# The METHOD/CONTEXT table: which member of `params` names what the message is about.
_CONTEXT_FIELD = {
    "tools/call": "name",
    "resources/read": "uri",
    "resources/subscribe": "uri",
    "resources/unsubscribe": "uri",
    "prompts/get": "name",
    "completion/complete": "ref",
}
_REF_FIELD = {"ref/prompt": "name", "ref/resource": "uri"}

# Control, format and lone surrogate characters; the line and paragraph separators break lines too.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})

_SHOWN = 80


class Flaw(NamedTuple):
    """Why a text cannot stand in a kind: a stable rule name, the reason, and what to do."""

    rule: str
    why: str
    hint: str


def shown(text: str) -> str:
    """``text`` quoted for a message: escaped where it cannot be seen, cut where it is long."""
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")


def method_flaw(method: str) -> Flaw | None:
    """What keeps ``method`` from being a METHOD: segments of visible ASCII joined by ``/``."""
    if method in _CONTEXT_FIELD:
        return None
    if not method:
        return Flaw("kind/empty-part", "METHOD is empty", "name one, as in mcp/request:tools/call")
    if ":" in method:
        return Flaw(
            "kind/colon-in-method",
            f"METHOD {shown(method)} holds a ':'",
            "a ':' ends METHOD; only a CONTEXT may hold colons",
        )
    if not method.isascii():
        return Flaw(
            "kind/non-ascii-method",
            f"METHOD {shown(method)} is not ASCII",
            "MCP's method names are ASCII; look for a look-alike letter",
        )
    if not method.isprintable():
        return _unseen("METHOD", method)
    segments = method.split("/")
    if "" in segments:
        return Flaw(
            "kind/empty-segment",
            f"METHOD {shown(method)} has an empty segment",
            "write one '/' between segments and none at the ends",
        )
    if any(segment[0] == " " or segment[-1] == " " for segment in segments):
        return _white_space("METHOD", method)
    return None


def context_flaw(context: str) -> Flaw | None:
    """What keeps ``context`` from being a CONTEXT: empty, unseen characters, space at an end."""
    if not context:
        return Flaw(
            "kind/empty-part", "CONTEXT is empty", "leave out the last ':' too, or name something"
        )
    if context.isprintable():
        # In a printable text the only white space is U+0020.
        if context[0] != " " != context[-1]:
            return None
        return _white_space("CONTEXT", context)
    if any(category(char) in _UNSEEN for char in set(context)):
        return _unseen("CONTEXT", context)
    return None if context.strip() == context else _white_space("CONTEXT", context)


def _unseen(part: str, text: str) -> Flaw:
    char = next(char for char in text if category(char) in _UNSEEN)
    return Flaw(
        "kind/unseen-character",
        f"{part} {shown(text)} holds the control or format character U+{ord(char):04X}",
        "take the character out; what a kind names must be visible",
    )


def _white_space(part: str, text: str) -> Flaw:
    return Flaw(
        "kind/white-space",
        f"{part} {shown(text)} begins or ends with white space",
        "take the white space away",
    )


def _head_flaw(head: str) -> Flaw:
    """Why ``head``, what stands before the first colon, is no TYPE."""
    known = ", ".join(_TYPE_OF_HEAD)
    if not head:
        return Flaw("kind/empty-part", "TYPE is empty", f"begin with one of {known}")
    if head.strip() != head:
        return _white_space("TYPE", head)
    hint = f"TYPE is one of {known}"
    if head.lower() in _TYPE_OF_HEAD:
        hint = f"write {head.lower()}: kinds are case-sensitive"
    elif f"mcp/{head}" in _TYPE_OF_HEAD:
        hint = f"write mcp/{head}"
    return Flaw("kind/unknown-type", f"{shown(head)} is no TYPE", hint)


def _refusal(flaw: Flaw, pointer: str = "", *, of: str | None = None) -> EnvelopeError:
    message = flaw.why if of is None else f"{shown(of)} is no kind: {flaw.why}"
    problem = Problem(pointer, flaw.rule, message, flaw.hint)
    return EnvelopeError(message, problems=(problem,), pointer=pointer or None, hint=flaw.hint)


@dataclass(frozen=True, slots=True)
class Kind:
    """What a message is about. Always well formed: a bad part raises :class:`EnvelopeError`.

    ``type`` is ``request``, ``response``, ``proposal``, ``chat`` or ``system/welcome``,
    ``system/presence``, ``system/error``. The first three have a ``method`` and may have a
    ``context``; the others have neither. ``str(kind)`` is the text as it stands on the wire.
    """

    type: str
    method: str | None = None
    context: str | None = None

    def __post_init__(self) -> None:
        flaw = self._flaw()
        if flaw is not None:
            raise _refusal(flaw, of=str(self))

    @classmethod
    def parse(cls, text: str) -> Kind:
        """Read a kind, splitting it at its first two colons; :class:`EnvelopeError` if it is none.

        The error's one problem has a rule named ``kind/…``.
        """
        if not isinstance(text, str):
            raise UsageError(f"a kind is a string, not {type(text).__name__}")
        head, colon, rest = text.partition(":")
        name = _TYPE_OF_HEAD.get(head)
        if name is None:
            raise _refusal(_head_flaw(head), of=text)
        if not colon:
            return cls(name)
        method, colon, context = rest.partition(":")
        return cls(name, method, context if colon else None)

    @classmethod
    def of_payload(
        cls, payload: Mapping[str, Any], *, type: str = "request", request: Kind | None = None
    ) -> Self:
        """Compute the long kind of a plain MCP message, or of a proposal's ``{method, params}``.

        A response takes its kind from ``request``, the kind of the request that it answers; its
        payload does not say. Raises :class:`EnvelopeError`, with a pointer into ``payload``, where
        a method, name or URI is missing or cannot stand in a kind.
        """
        if type == "response":
            if request is None or request.type != "request":
                raise UsageError(
                    "a response takes its kind from the request it answers",
                    hint="pass request=, the kind of that request",
                )
            return cls("response", request.method, request.context)
        if type not in MCP_TYPES:
            raise UsageError(
                f"no kind of type {shown(type)} is computed from a payload",
                hint="type is request, response or proposal; else name the kind with Kind.parse",
            )
        method = _text_at(payload, "method", "/method")
        flaw = method_flaw(method)
        if flaw is not None:
            raise _refusal(flaw, "/method")
        return cls(type, method, _context_named(method, payload))

    @property
    def takes_context(self) -> bool:
        """Whether the METHOD/CONTEXT table has a CONTEXT for this method."""
        return self.method in _CONTEXT_FIELD

    @property
    def is_short(self) -> bool:
        """Whether this is the short form: a CONTEXT belongs to the method and none is given."""
        return self.context is None and self.takes_context

    def mismatch(self, payload: object, *, request: Kind | None = None) -> str | None:
        """Why strict kind checking refuses this kind for ``payload``; ``None`` if it does not.

        METHOD must be the payload's method and CONTEXT what the payload names; a short form
        leaves the CONTEXT open. A plain response says neither, so it is held against ``request``,
        the kind of the request that it answers, where that is known. Never raises.
        """
        if self.method is None:
            return None
        if not isinstance(payload, Mapping):
            return "the payload is no object"
        if self.context is not None and not self.takes_context:
            return f"{self.method} has no CONTEXT, but the kind gives {shown(self.context)}"
        answers = "result" in payload or "error" in payload
        if self.type == "response":
            if not answers:
                return "the kind is a response's, but the payload has neither result nor error"
            strange = self._strange_to(request)
            if strange is not None or "method" not in payload:
                return strange
        elif answers:
            return f"the kind is a {self.type}'s, but the payload has a result or an error"
        return self._unlike(self.method, payload)

    def _strange_to(self, request: Kind | None) -> str | None:
        """Why a response of this kind does not answer a request of kind ``request``."""
        if request is None:
            return None
        if request.type != "request":
            return f"the kind is a response's, but {shown(str(request))} is no request"
        if request.method != self.method:
            return f"METHOD is {self.method}, but the request's is {request.method}"
        if None not in (self.context, request.context) and self.context != request.context:
            return (
                f"CONTEXT is {shown(self.context or '')}, "
                f"but the request's is {shown(request.context or '')}"
            )
        return None

    def _unlike(self, method: str, payload: Mapping[str, Any]) -> str | None:
        """Where ``method``, ours, and CONTEXT differ from what ``payload`` itself names."""
        given = payload.get("method")
        if given != method:
            found = shown(given) if isinstance(given, str) else "absent or no text"
            return f"METHOD is {method}, but payload.method is {found}"
        if self.context is None:
            return None
        if self.type == "response" and "params" not in payload:
            return None
        try:
            named = _context_named(method, payload)
        except EnvelopeError as error:
            return f"CONTEXT cannot be checked: {error.message}"
        if named != self.context:
            return f"CONTEXT is {shown(self.context)}, but the payload names {shown(named or '')}"
        return None

    def _flaw(self) -> Flaw | None:
        if self.type in MCP_TYPES:
            if self.method is None:
                return Flaw(
                    "kind/no-method",
                    f"mcp/{self.type} needs a METHOD",
                    f"write mcp/{self.type}:METHOD, as in mcp/{self.type}:tools/list",
                )
            flaw = method_flaw(self.method)
            if flaw is None and self.context is not None:
                return context_flaw(self.context)
            return flaw
        if self.type not in _TYPES:
            return _head_flaw(self.type)
        if self.method is not None or self.context is not None:
            return Flaw(
                "kind/stands-alone",
                f"{self.type} has neither METHOD nor CONTEXT",
                f"write {self.type} with nothing behind it",
            )
        return None

    def __str__(self) -> str:
        text = f"mcp/{self.type}" if self.type in MCP_TYPES else self.type
        if self.method is not None:
            text = f"{text}:{self.method}"
        return text if self.context is None else f"{text}:{self.context}"


def _context_named(method: str, payload: Mapping[str, Any]) -> str | None:
    """The CONTEXT that ``payload`` names, by the METHOD/CONTEXT table."""
    field = _CONTEXT_FIELD.get(method)
    if field is None:
        return None
    params = _object_at(payload, "params", "/params")
    if field != "ref":
        return _name_at(params, field, f"/params/{field}")
    ref = _object_at(params, "ref", "/params/ref")
    ref_type = _name_at(ref, "type", "/params/ref/type")
    if ":" in ref_type:
        why = f"/params/ref/type {shown(ref_type)} holds a ':', which would make two kinds alike"
        raise _refusal(
            Flaw("kind/payload", why, "use ref/prompt or ref/resource"), "/params/ref/type"
        )
    known = _REF_FIELD.get(ref_type)
    fields = [known] if known else [name for name in ("name", "uri") if name in ref]
    if len(fields) != 1:
        found = "both name and uri" if fields else "neither name nor uri"
        why = f"a ref of type {shown(ref_type)} has {found}"
        raise _refusal(Flaw("kind/payload", why, "give exactly one of them"), "/params/ref")
    return f"{ref_type}:{_name_at(ref, fields[0], f'/params/ref/{fields[0]}')}"


def _name_at(holder: Mapping[str, Any], key: str, pointer: str) -> str:
    """The name or URI at ``key``, refused where it could not stand in a kind."""
    name = _text_at(holder, key, pointer)
    flaw = context_flaw(name)
    if flaw is None:
        return name
    why = flaw.why.replace("CONTEXT", pointer, 1)
    hint = "give a name" if not name else flaw.hint
    raise _refusal(Flaw(flaw.rule, f"{why} and cannot stand in a kind", hint), pointer)


def _text_at(holder: Mapping[str, Any], key: str, pointer: str) -> str:
    value = holder.get(key)
    if isinstance(value, str):
        return value
    raise _refusal(_absent(key in holder, pointer, "text"), pointer)


def _object_at(holder: Mapping[str, Any], key: str, pointer: str) -> Mapping[str, Any]:
    value = holder.get(key)
    if isinstance(value, Mapping):
        return value
    raise _refusal(_absent(key in holder, pointer, "object"), pointer)


def _absent(present: bool, pointer: str, wanted: str) -> Flaw:
    why = f"{pointer} is no {wanted}" if present else f"{pointer} is missing"
    return Flaw("kind/payload", why, f"the kind is computed from it; give {pointer} as {wanted}")
