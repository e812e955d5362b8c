"""Whether what was carried along may be believed.

Whoever writes an envelope can write into its open place, so what stands there may complete the
envelope or say it more exactly, and never anything else than the envelope does. Two questions
decide, and both are put to the dialect itself. On reading: does the message, written again, give
this very envelope? On writing: is the result read back as saying what the message says?
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mcp_envelope.core.errors import ConversionError
from mcp_envelope.core.message import Message
from mcp_envelope.core.plain import same_value
from mcp_envelope.core.pointer import is_index, steps_of

from .carriage import without_ours
from .reader import Reader
from .writer import Writer


def as_foreign(message: Message) -> Message:
    """The message as if it came from elsewhere, without what was made up on the way."""
    origin = replace(message.origin, dialect="") if message.origin is not None else None
    extras = {key: value for key, value in message.extras.items() if key not in message.filled}
    return replace(message, origin=origin, extras=extras)


def bears_out(reader: Reader, writer: Writer) -> bool:
    """Whether the envelope that was read is what the writer makes of the message again.

    What an earlier conversion claims to have made up must be what the writer makes up too; of
    ids, times and names, which options may give, the value is free.
    """
    try:
        written = writer.finish()
    except ConversionError:
        return False
    if not reader.claims <= set(written.filled):
        return False
    ours = without_ours(written.document.value, reader.place)
    theirs = without_ours(reader.document.value, reader.place)
    for pointer in reader.claims & writer.free:
        ours, theirs = _without(ours, steps_of(pointer)), _without(theirs, steps_of(pointer))
    return same_value(ours, theirs)


def disagreements(message: Message, back: Message) -> dict[str, object]:
    """What the message says otherwise, as it was read back.

    That one of the two has no word for the method is no contradiction.
    """
    if type(message) is not type(back):
        return {"type": type(back)}
    return {
        name: found
        for name in back.field_names()
        if (found := getattr(back, name) or None) != said(message, name)
        and not (name == "method" and (found is None or message.method is None))
    }


def said(message: Message, field: str) -> Any:
    """What a message says of a field; None where that was only made up."""
    if field in message.filled:
        return None
    return getattr(message, field) or None


def _without(value: Any, steps: list[str]) -> Any:
    """A plain value without the member or element that the steps lead to."""
    first, *rest = steps
    if isinstance(value, dict) and first in value:
        kept = {name: part for name, part in value.items() if name != first}
        return {**kept, first: _without(value[first], rest)} if rest else kept
    if isinstance(value, list) and is_index(first) and int(first) < len(value):
        place = int(first)
        inner = [_without(value[place], rest)] if rest else []
        return [*value[:place], *inner, *value[place + 1 :]]
    return value


def own_extras(message: Message, namespaces: set[str]) -> set[str]:
    """The keys of the extras that belong to these namespaces."""
    return {key for key in message.extras if key.partition("#")[0] in namespaces}
