"""The search index of a ledger, brought up to date before a verb uses it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from mcp_envelope.core.ports import Source
from mcp_envelope.stores.index import Index

from .console import Console
from .outputs import Progress


@contextlib.contextmanager
def indexed(source: Source, console: Console) -> Iterator[Index]:
    """An index that knows every line that there is now."""
    index = Index(source)
    try:
        if index.is_temporary:
            console.note(
                "the index cannot be kept beside the ledger, so one is made for this search "
                f"alone: {index.reason}"
            )
        with Progress("indexing", source.size) as progress:
            index.follow(lambda place, _: progress.at(place, index.lines))
        if index.damaged:
            count = index.damaged
            said = "1 line is" if count == 1 else f"{count:,} lines are"
            console.note(
                f"{said} damaged and cannot be found; mcp-envelope ledger verify says more"
            )
        yield index
    finally:
        index.close()
