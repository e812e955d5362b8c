"""mcp-envelope: five envelope formats for MCP tool calls, one model, exact checks.

Importing this package loads next to nothing: each name is fetched when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .core.canonical import Digest as Digest
    from .core.canonical import OutOfDomainError as OutOfDomainError
    from .core.canonical import canonical as canonical
    from .core.canonical import digest as digest
    from .core.capability import Capabilities as Capabilities
    from .core.codes import CanonicalError as CanonicalError
    from .core.document import Document as Document
    from .core.document import Limits as Limits
    from .core.document import dump as dump
    from .core.document import parse as parse
    from .core.errors import ConfigError as ConfigError
    from .core.errors import ConversionError as ConversionError
    from .core.errors import EnvelopeError as EnvelopeError
    from .core.errors import Problem as Problem
    from .core.errors import UsageError as UsageError
    from .core.kind import Kind as Kind
    from .core.message import Event as Event
    from .core.message import Failure as Failure
    from .core.message import Fault as Fault
    from .core.message import Message as Message
    from .core.message import Peer as Peer
    from .core.message import Request as Request
    from .core.message import Success as Success
    from .dialects.convert import Converted as Converted
    from .dialects.convert import convert as convert
    from .dialects.convert import decode as decode
    from .dialects.convert import encode as encode
    from .dialects.convert import validate as validate
    from .dialects.wrap import wrap as wrap
    from .gateway.schemas import SchemaRegistry as SchemaRegistry

__version__: Final = "0.1.0"

_HOMES: Final = {
    "Capabilities": "core.capability",
    "CanonicalError": "core.codes",
    "ConfigError": "core.errors",
    "ConversionError": "core.errors",
    "Converted": "dialects.convert",
    "Digest": "core.canonical",
    "Document": "core.document",
    "EnvelopeError": "core.errors",
    "Event": "core.message",
    "Failure": "core.message",
    "Fault": "core.message",
    "Kind": "core.kind",
    "Limits": "core.document",
    "Message": "core.message",
    "OutOfDomainError": "core.canonical",
    "Peer": "core.message",
    "Problem": "core.errors",
    "Request": "core.message",
    "SchemaRegistry": "gateway.schemas",
    "Success": "core.message",
    "UsageError": "core.errors",
    "canonical": "core.canonical",
    "convert": "dialects.convert",
    "decode": "dialects.convert",
    "digest": "core.canonical",
    "dump": "core.document",
    "encode": "dialects.convert",
    "parse": "core.document",
    "validate": "dialects.convert",
    "wrap": "dialects.wrap",
}

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604  (the keys are strings)


if not TYPE_CHECKING:  # a type checker shall know the names above and no others

    def __getattr__(name: str) -> Any:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(importlib.import_module(f"{__name__}.{home}"), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
