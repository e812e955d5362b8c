"""References between schemas: joining them with a base (RFC 3986, 5.2) and reading fragments.

The core may not import ``urllib``, and needs only this little of it.
"""

from __future__ import annotations

import re
from typing import Any, Final

from .pointer import is_index, steps_of

_PARTS: Final = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(\?[^#]*)?")
_ESCAPED: Final = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_BARE: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/~$-._")
# Where a schema has no base of its own, relative references still need something to stand on.
NO_BASE: Final = "json-schema:///"


def is_absolute(uri: str) -> bool:
    """Whether a URI names a scheme."""
    found = _PARTS.match(uri)
    return found is not None and found[1] is not None


def split(reference: str) -> tuple[str, str]:
    """A reference without its fragment, and the fragment with its escapes undone."""
    uri, _, fragment = reference.partition("#")
    return uri, _ESCAPED.sub(_unescape, fragment)


def join(base: str, reference: str) -> str:
    """The URI that a reference (without fragment) means at a base."""
    found, standing = _PARTS.match(reference), _PARTS.match(base)
    if not reference or found is None or standing is None:
        return base
    if found[1] is not None:
        return reference
    host, path, query = found[2], found[3], found[4]
    if host is None:
        host = standing[2]
        if not path:
            path, query = standing[3], query or standing[4]
        elif not path.startswith("/"):
            path = standing[3][: standing[3].rfind("/") + 1] + path
            path = f"/{path}" if host is not None and not path.startswith("/") else path
    authority = f"//{host}" if host is not None else ""
    return f"{standing[1] or ''}:{authority}{_without_dots(path)}{query or ''}"


def encode_pointer(pointer: str) -> str:
    """A JSON pointer as a URI fragment, without the ``#``."""
    if _BARE.issuperset(pointer):
        return pointer
    return "".join(c if c in _BARE else "".join(f"%{b:02X}" for b in c.encode()) for c in pointer)


def lookup(tree: Any, pointer: str) -> list[Any] | None:
    """The values that a pointer passes, from the tree itself to what it names; or None."""
    passed = [tree]
    for step in steps_of(pointer):
        here = passed[-1]
        if isinstance(here, dict) and step in here:
            passed.append(here[step])
        elif isinstance(here, list) and is_index(step) and int(step) < len(here):
            passed.append(here[int(step)])
        else:
            return None
    return passed


def _unescape(found: re.Match[str]) -> str:
    return bytes.fromhex(found[0].replace("%", "")).decode("utf-8", "replace")


def _without_dots(path: str) -> str:
    if "/." not in path and not path.startswith("."):
        return path
    kept: list[str] = []
    steps = path.split("/")
    for position, step in enumerate(steps):
        if step == ".." and len(kept) > 1:
            kept.pop()
        if step not in (".", ".."):
            kept.append(step)
        elif position == len(steps) - 1:
            kept.append("")
    return "/".join(kept)
