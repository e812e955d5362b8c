"""What the ledger says and keeps of an input or output, after redaction."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, Literal, NamedTuple

from .canonical import OutOfDomainError, canonical
from .entry import ABSENT, Body
from .redaction import Redacted, Redactor, Side

#: Of which calls bodies are kept.
Kept = Literal["none", "errors", "all"]

#: What is redacted where nobody said anything.
USUAL: Final = Redactor()
#: How every remark about redaction begins.
_REMARK: Final = "redacted: "
_LARGEST: Final = 1024 * 1024
_OUT_OF_DOMAIN: Final = Body(state="out_of_domain")
_NOT_RECORDED: Final = Body(state="not_recorded")
_REDACTED: Final = Body(state="redacted")


@dataclass(frozen=True, slots=True)
class Keeping:
    """What may be said and kept of a tool's calls.

    Without ``digests`` neither digest nor body is. ``bodies`` says of which calls these are
    kept, up to ``largest`` bytes each.
    """

    redactor: Redactor = USUAL
    digests: bool = True
    bodies: Kept = "none"
    largest: int = _LARGEST

    def remark(self, text: str) -> str:
        """A warning as it may be written down; what is said of redaction is so already."""
        return text if text.startswith(_REMARK) else self.redactor.line(text)


class Noted(NamedTuple):
    """What a line says of a value (``body``, ``warnings``), and what may be kept of it.

    ``form`` is the canonical form after redaction; None if nothing is to be kept. ``secrets``
    are texts that were taken out.
    """

    body: Body
    form: bytes | None = None
    warnings: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()


#: What is said of a value that is not there.
NOTHING: Final = Noted(ABSENT)


def noted(value: Any, side: Side, keeping: Keeping, told: tuple[str, ...] = ()) -> Noted:
    """What is said and kept of a plain value; ``told`` are secrets that may be said again in it."""
    if not keeping.digests:
        return Noted(_NOT_RECORDED)
    keeps = keeping.bodies != "none"
    try:
        form = canonical(value)
    except OutOfDomainError:
        why = (f"{side} not kept: it has no canonical form",) if keeps else ()
        return Noted(_OUT_OF_DOMAIN, None, why)
    found = keeping.redactor.redacted(value, side, form, told)
    warnings: tuple[str, ...]
    secrets: tuple[str, ...]
    if found is None:
        body, warnings, secrets = Body(sha256(form).hexdigest(), len(form)), (), ()
    else:
        form = canonical(found.value)
        body, warnings, secrets = _REDACTED, (_remark(side, found, form),), found.secrets
    if not keeps:
        return Noted(body, None, warnings, secrets)
    if len(form) > keeping.largest:
        warnings = (*warnings, f"{side} not kept: it has {len(form):,} bytes")
        return Noted(body, None, warnings, secrets)
    return Noted(body, form, warnings, secrets)


def _remark(side: Side, found: Redacted, form: bytes) -> str:
    rest = f"the rest sha256:{sha256(form).hexdigest()}, {len(form)} bytes"
    return f"{_REMARK}{side} at {found}; {rest}"
