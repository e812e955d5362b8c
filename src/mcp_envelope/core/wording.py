"""What a verdict says of a ledger that holds, in sentences."""

from __future__ import annotations

from .notes import VerifierKey
from .seal import Removed


def of_dangling(count: int) -> str | None:
    """Calls whose outcome nobody knows."""
    if not count:
        return None
    calls = "1 call was" if count == 1 else f"{count} calls were"
    return f"{calls} admitted and never settled: the outcome is unknown"


def of_unadmitted(count: int, first: int) -> str | None:
    """Ends of calls that never began."""
    if not count:
        return None
    lines = f"line {first} settles a call" if count == 1 else f"{count} lines settle calls"
    where = "" if count == 1 else f", line {first} first"
    return f"{lines} that no line admitted{where}"


def of_torn(count: int, absent: int) -> str | None:
    """Lines that were never finished."""
    if not count:
        return None
    tails = "1 torn tail was" if count == 1 else f"{count} torn tails were"
    gone = f"; the bytes of {absent} are not here, as in an export" if absent else ""
    return f"{tails} left by writes that broke off, and mended by the lines behind{gone}"


def of_unfinished(size: int, seq: int) -> str:
    """The same at the end."""
    return f"the ledger ends in {size} bytes of a line {seq} that was never finished"


def of_removed(removed: Removed | None, said: int | None) -> str | None:
    """A beginning that was taken out."""
    if removed is None:
        return None
    return f"lines 0 to {removed.count - 1} were removed; line {said} vouches for it"


def of_behind(size: int, checkpoints: int, last: int) -> str | None:
    """Lines that no checkpoint covers."""
    if not checkpoints:
        return (
            "there is no checkpoint: whoever can write to the ledger could rewrite it"
            if size
            else None
        )
    behind = size - last - 1
    if not behind:
        return None
    lines = f"line {last + 1} stands" if behind == 1 else f"{behind} lines stand"
    return f"{lines} behind the last checkpoint, which is line {last}, and could be rewritten"


def of_unchecked(is_asked: bool, checkpoints: int) -> str | None:
    """Signatures by keys that may be anybody's."""
    if is_asked or not checkpoints:
        return None
    return (
        "signatures are checked by the keys that the ledger names itself: nobody vouches for these"
    )


def of_rotation(seq: int, key: VerifierKey) -> str:
    """A new key."""
    return f"from line {seq} on {key} is trusted as well: the key before it handed on to it"


def of_cut_off(count: int) -> str | None:
    """Runs without an end."""
    if not count:
        return None
    return (
        f"{'1 run' if count == 1 else f'{count} runs'} of the gateway ended without being stopped"
    )


def of_earlier(count: int, first: int) -> str | None:
    """A clock that was put back."""
    if not count:
        return None
    return f"the time goes back {'once' if count == 1 else f'{count} times'}, first in line {first}"


def of_useless(size: int, first: int) -> str:
    """A kept checkpoint of lines that are gone."""
    return f"the checkpoint of {size} lines says nothing here: lines before {first} were removed"
