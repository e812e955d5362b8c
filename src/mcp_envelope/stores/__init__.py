"""Where ledgers are kept. Adding a store is a file in this package and a line in :data:`TABLE`."""

from __future__ import annotations

import re
from typing import Final

from mcp_envelope.core.errors import ConfigError
from mcp_envelope.core.ports import Ledger, LedgerError, Store
from mcp_envelope.core.registry import Registry

from .places import default_path

__all__ = ["STORES", "TABLE", "default_path", "open_ledger"]

#: By the scheme of their URLs.
TABLE: Final = {
    "jsonl": "mcp_envelope.stores.jsonl:JsonLinesStore",
    "memory": "mcp_envelope.stores.memory:MemoryStore",
}

STORES: Final[Registry[Store]] = Registry("kind of ledger", TABLE)

_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*", re.IGNORECASE)
_LATER: Final = frozenset({"sqlite", "postgresql", "postgres"})
_MOST_DEFAULTS: Final = 1_000


def open_ledger(url: str | None, *, name: str = "gateway") -> Ledger:
    """Open the ledger of a URL; for None the default one of the upstream called ``name``.

    Where that file is taken the next free one is used, ``NAME-2``, ``NAME-3`` and so on.
    ConfigError for a URL that makes no sense, LedgerError for a ledger that cannot be opened.
    """
    if url is None:
        return _open_default(name)
    # A URL may hold a password, so nothing of it is repeated but its scheme.
    scheme, colon, place = url.partition(":")
    known = ", ".join(f"{one}:" for one in sorted(STORES))
    if not colon or not _SCHEME.fullmatch(scheme):
        hint = f"write jsonl:PATH for a file; known: {known}"
        raise ConfigError("the ledger's URL does not begin with a scheme", hint=hint)
    scheme = scheme.lower()
    if scheme in _LATER:
        hint = f"use jsonl:PATH until then; known: {known}"
        raise ConfigError(f"this version cannot keep a ledger in {scheme}: yet", hint=hint)
    if scheme not in STORES:
        hint = f"write jsonl:PATH for a file; known: {known}"
        raise ConfigError(f"no kind of ledger is called {scheme}:", hint=hint)
    return STORES[scheme].open(place)


def _open_default(name: str) -> Ledger:
    store = STORES["jsonl"]
    for number in range(1, _MOST_DEFAULTS):
        try:
            return store.open(str(default_path(name, number)))
        except LedgerError as error:
            if not error.taken:
                raise
    raise LedgerError(
        f"{_MOST_DEFAULTS:,} gateways hold the default ledgers of {name!r}",
        hint="name a ledger with --ledger jsonl:PATH",
        taken=True,
    )
