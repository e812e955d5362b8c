"""Bytes of which no message could be read: recorded, and answered."""

from __future__ import annotations

from mcp_envelope.core.door import LEGACY, Answer
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, FrameError
from mcp_envelope.pipeline.answers import failure
from mcp_envelope.pipeline.call import RECORDED
from mcp_envelope.pipeline.record import malformed_facts

from .ground import Ground, log


def call_without_id(frame: Frame) -> FrameError | None:
    """What is wrong with a notification that would call a tool past all checks and the record."""
    if frame.shape != "notification" or frame.method not in RECORDED:
        return None
    why = f"{frame.method} is a request, and has no id"
    return FrameError(EnvelopeError(why, pointer="/id", hint="give it an id of its own"))


async def record_malformed(
    error: FrameError, ground: Ground, *, door: str, peer: str, revision: str = LEGACY
) -> Answer:
    """Record bytes that are no message, and say what is wrong with them."""
    request_id = ground.new_id()
    facts = malformed_facts(
        error,
        door=door,
        peer=peer,
        request_id=request_id,
        time=ground.now(),
        instance=ground.instance,
    )
    try:
        await ground.ledger.append(facts)
    except EnvelopeError as unwritten:
        log.error("a malformed message could not be recorded: %s", unwritten)
    return failure(error, id=error.id, revision=revision, request_id=request_id)
