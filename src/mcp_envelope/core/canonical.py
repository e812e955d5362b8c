"""Canonical forms and digests: the bytes that stand for a JSON value, however it was written.

``rfc8785`` is the JSON Canonicalization Scheme, exactly, on its own domain (I-JSON). Outside
it, as for an integer that a double cannot hold, there is no canonical form and so no digest:
:class:`OutOfDomainError` says why and where. ``prov-6.2`` is the rule that the sample code of
the provenance specification, section 6.2, follows; it serves to verify old digests only.
"""

from __future__ import annotations

import importlib
import json
import re
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Final

import orjson

from .document import Document, dump
from .errors import EnvelopeError, Problem, UsageError
from .numbers import KNOWN, LARGE_SIGN, respelled
from .plain import check_printed, load_plain, walk
from .pointer import pointer_of

__all__ = ["ALGORITHMS", "FORMS", "Digest", "OutOfDomainError", "canonical", "digest"]

MAX_INTEGER: Final = 2**53 - 1

#: The digest algorithms and where they are found; none is imported before it is asked for.
ALGORITHMS: Final = {
    "sha256": "hashlib:sha256",
    "sha512": "hashlib:sha512",
    "blake3": "blake3:blake3",
}
FORMS: Final = ("rfc8785", "prov-6.2")

_write: Final = orjson.dumps
_TORN = re.compile("[\ud800-\udfff]")
_SORTED: Final = orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER
_PLAIN: Final = (
    _SORTED
    | orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)


class OutOfDomainError(EnvelopeError):
    """The value has no canonical form; ``reason`` says why, ``pointer`` which part of it."""

    def __init__(self, pointer: str, reason: str) -> None:
        message = f"no canonical form: {reason}"
        super().__init__(
            message,
            pointer=pointer,
            problems=[Problem(pointer, "canonical/out-of-domain", message)],
        )
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Digest:
    """A digest (``value`` in lowercase hex) and the canonical bytes that it was taken over."""

    alg: str
    value: str
    canonical_form: bytes = field(repr=False, compare=False)

    def as_dict(self) -> dict[str, str]:
        """The digest object as the provenance schemas have it."""
        return {"alg": self.alg, "value": self.value}


def canonical(value: object, form: str = "rfc8785") -> bytes:
    """The canonical bytes of a document, or of a plain value that may hold documents.

    The domain of RFC 8785 ends where readers begin to differ: integer literals must lie within
    ±(2^53-1). Doubles are inside whatever their size; but mind that one from there to 1e21
    is printed as an integer, so that its canonical text, read again, is outside.

    Raises OutOfDomainError for JSON that has no canonical form, and the EnvelopeError of
    :func:`dump` for what is not JSON at all.
    """
    if form != "rfc8785":
        return _other_form(value, form)
    if type(value) is Document:
        value = value._value  # noqa: SLF001  (the property takes 20 ns longer)
        try:
            text = _write(value, None, _SORTED)
        except TypeError:
            _refuse(value, integers=True)
            raise
    else:
        text = _plain_text(value)
    # orjson sorts by code points, RFC 8785 (section 3.2.3) by UTF-16 code units. These differ
    # only between the characters from U+E000 to U+FFFF and those beyond.
    if not text.isascii() and _holds_both_sides(text):
        text = _in_utf16_order(text)
    # Numbers to be respelled are rare, so whether there may be any is looked for first, with what
    # is fastest: `in` for one byte, rfind for a few.
    if (
        (0x2E in text and text.rfind(b".0") >= 0)
        or (0x2D in text and 0x36 in text and text.rfind(b"e-6") >= 0)
        or LARGE_SIGN in text
        or not KNOWN
    ):
        return respelled(text)
    return text


def digest(value: object, alg: str = "sha256", form: str = "rfc8785") -> Digest:
    """The digest of the canonical bytes of a document or plain value."""
    home = ALGORITHMS.get(alg)
    if home is None:
        raise UsageError(f"no digest {alg!r}", hint=f"known: {', '.join(ALGORITHMS)}")
    text = canonical(value, form)
    module, _, name = home.partition(":")
    algorithm: Any = getattr(importlib.import_module(module), name)
    return Digest(alg, algorithm(text).hexdigest(), text)


def _other_form(value: object, form: str) -> bytes:
    if form not in FORMS:
        raise UsageError(f"no canonical form {form!r}", hint=f"known: {', '.join(FORMS)}")
    try:
        text = dump(value)
    except EnvelopeError:
        _refuse(value, integers=False)
        raise
    read = json.loads(text)
    written = json.dumps(read, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return written.encode()


def _plain_text(value: object) -> bytes:
    try:
        text = orjson.dumps(value, _value_of, _PLAIN)
        check_printed(value, text, _value_of)
    except (TypeError, EnvelopeError):
        _refuse(value, integers=True)
        # What dump can spell all the same, as it does subclasses of str, int and so on.
        return orjson.dumps(load_plain(dump(value)), None, _SORTED)
    return text


def _value_of(part: object) -> object:
    if type(part) is Document:
        return part.value
    raise TypeError(type(part).__name__)


def _holds_both_sides(text: bytes) -> bool:
    # By the first bytes of their UTF-8.
    return (0xEE in text or 0xEF in text) and any(first in text for first in range(0xF0, 0xF5))


def _in_utf16_order(text: bytes) -> bytes:
    root = [orjson.loads(text)]
    pending: list[Any] = [root]
    while pending:
        container = pending.pop()
        for place in container if type(container) is dict else range(len(container)):
            part = container[place]
            if type(part) is dict:
                container[place] = part = {name: part[name] for name in sorted(part, key=_utf16)}
            if type(part) is dict or type(part) is list:
                pending.append(part)
    return orjson.dumps(root[0])


def _utf16(name: str) -> bytes:
    return name.encode("utf-16-be")


def _refuse(value: object, *, integers: bool, above: str = "") -> None:
    """Raise OutOfDomainError for the first part of a value that has no canonical form."""
    for path, part in walk(value):
        reason = ""
        if isinstance(part, Document):
            _refuse(part.value, integers=integers, above=above + pointer_of(path))
        elif isinstance(part, int) and integers and not -MAX_INTEGER <= part <= MAX_INTEGER:
            reason = "an integer is beyond ±(2^53-1)"
        elif isinstance(part, float) and not isfinite(part):
            reason = "a number is not finite"
        elif isinstance(part, str) and _TORN.search(part):
            reason = "a string holds half of a surrogate pair"
        elif isinstance(part, dict) and any(_TORN.search(name) for name in _names(part)):
            reason = "a key holds half of a surrogate pair"
        if reason:
            raise OutOfDomainError(above + pointer_of(path), reason) from None


def _names(value: dict[object, object]) -> list[str]:
    return [name for name in value if isinstance(name, str)]
