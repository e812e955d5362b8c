"""Where ledgers are kept. Adding a store is a file in this package and a line in :data:`TABLE`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from mcp_envelope.core.errors import ConfigError
from mcp_envelope.core.ports import Ledger, LedgerError, Source, Store, Writing
from mcp_envelope.core.registry import Registry

from .places import default_path
from .recognition import scheme_of

__all__ = ["STORES", "TABLE", "default_path", "open_ledger", "read_ledger"]

#: By the scheme of their URLs.
TABLE: Final = {
    "jsonl": "mcp_envelope.stores.jsonl:JsonLinesStore",
    "memory": "mcp_envelope.stores.memory:MemoryStore",
    "sqlite": "mcp_envelope.stores.sqlite:SqliteStore",
}

STORES: Final[Registry[Store]] = Registry("kind of ledger", TABLE)

_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*", re.IGNORECASE)
_LATER: Final = frozenset({"postgresql", "postgres"})
_MOST_DEFAULTS: Final = 1_000


def open_ledger(
    url: str | None, *, name: str = "gateway", writing: Writing | None = None
) -> Ledger:
    """Open the ledger of a URL; for None the default one of the upstream called ``name``.

    Where that file is taken the next free one is used, ``NAME-2``, ``NAME-3`` and so on.
    ConfigError for a URL that makes no sense, LedgerError for a ledger that cannot be opened.
    """
    writing = writing or Writing()
    if url is None:
        return _open_default(name, writing)
    store, place = _store_of(url)
    return store.open(place, writing)


def read_ledger(url: str) -> Source:
    """The ledger of a URL, or that in an existing file, to be read; it is never made or changed.

    The same errors.
    """
    scheme, colon, _ = url.partition(":")
    if not (colon and scheme.lower() in {*STORES, *_LATER}) and "\0" not in url:
        path = Path(url).absolute()
        if path.exists():
            return STORES[scheme_of(path)].read(str(path))
        if "://" not in url:
            hint = f"name a file that is there, or a ledger: {_known()}"
            raise LedgerError(f"{url}: there is no such file", hint=hint)
    store, place = _store_of(url)
    return store.read(place)


def _store_of(url: str) -> tuple[Store, str]:
    # A URL may hold a password, so nothing of it is repeated but its scheme.
    scheme, colon, place = url.partition(":")
    hint = f"write sqlite:PATH for a file; known: {_known()}"
    if not colon or not _SCHEME.fullmatch(scheme):
        raise ConfigError("the ledger's URL does not begin with a scheme", hint=hint)
    scheme = scheme.lower()
    if scheme in _LATER:
        hint = f"use sqlite:PATH until then; known: {_known()}"
        raise ConfigError(f"this version cannot keep a ledger in {scheme}: yet", hint=hint)
    if scheme not in STORES:
        raise ConfigError(f"no kind of ledger is called {scheme}:", hint=hint)
    return STORES[scheme], place


def _known() -> str:
    return ", ".join(f"{one}:" for one in sorted(STORES))


def _open_default(name: str, writing: Writing) -> Ledger:
    store = STORES["sqlite"]
    for number in range(1, _MOST_DEFAULTS):
        try:
            return store.open(str(default_path(name, number)), writing)
        except LedgerError as error:
            if not error.taken:
                raise
    raise LedgerError(
        f"{_MOST_DEFAULTS:,} gateways hold the default ledgers of {name!r}",
        hint="name a ledger with --ledger sqlite:PATH",
        taken=True,
    )
