"""The way of a call: one function, straight through, the same for every door."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import orjson

from mcp_envelope.core import spans
from mcp_envelope.core.document import dump
from mcp_envelope.core.door import Answer
from mcp_envelope.core.entry import Facts, Receipt
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, id_key
from mcp_envelope.core.link import Reply

from .answers import failure, status_of
from .call import Answered, Call, Stages
from .record import Record

#: How long to wait before a call is sent again of which nothing had reached the upstream. A child
#: that failed twice is started again after 0.25 s at the earliest, and after 0.5 s the next time.
_PAUSES: Final = (0.05, 0.3, 0.8)


async def exchange(call: Call, stages: Stages) -> None:
    """Take a request all the way to the upstream and its answer all the way back.

    The ledger knows of it before the upstream does (``admitted``) and of its end before the
    client does (``settled``); whatever stops it takes the same road back.
    """
    record = Record(call, stages)
    try:
        call.grant = stages.authorize(call)
        await stages.find(call)
        await stages.check_input(call)
        answered = await _within_limits(call, record, stages)
        stages.learn(call, answered)
        frame = answered.item.frame if answered.item is not None else None
        if frame is not None:
            await stages.check_output(call, frame)
        receipt = await _settle(record, answered, frame)
        answer = _answer(call, answered, frame, record, receipt, stages)
    except EnvelopeError as error:
        answer = await _refused(call, record, error, stages)
    except asyncio.CancelledError:
        answer = await _interrupted(call, record, stages)
    except Exception as error:  # noqa: BLE001 - the one catch-all: a call always ends in the record
        stages.report(call, error)
        why = EnvelopeError("something went wrong inside the gateway", code="INTERNAL_ERROR")
        answer = await _refused(call, record, why, stages)
    await call.outlet.answer(answer)


async def _within_limits(call: Call, record: Record, stages: Stages) -> Answered:
    room = stages.room(call)
    if room is None:
        return await _in_time(call, record, stages)
    async with room:
        return await _in_time(call, record, stages)


async def _in_time(call: Call, record: Record, stages: Stages) -> Answered:
    await record.admit()
    seconds = stages.timeout(call)
    if not seconds:
        return await _dispatch(call, stages)
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await _dispatch(call, stages)
    except TimeoutError:
        if not limit.expired():
            raise
        raise EnvelopeError(
            f"there was no answer within {seconds:g} s",
            code="TIMEOUT",
            hint="the tool may have acted all the same: look before you call it again",
        ) from None


async def _dispatch(call: Call, stages: Stages) -> Answered:
    """Send the request; again, after a pause, if it is certain that nothing had reached it."""
    left = stages.retries(call)
    cause: EnvelopeError | None = None
    for attempt in range(left + 1):
        call.dispatched = True
        try:
            return await _deliver(call, stages)
        except EnvelopeError as error:
            if error.code != "UPSTREAM_UNAVAILABLE" or error.was_answered:
                raise
            call.dispatched = False
            cause = cause or error  # what failed first says why; what follows, that it is down
            wait = getattr(error, "retry_after", None) or 0.0
            pause = max(_PAUSES[min(attempt, len(_PAUSES) - 1)], wait)
            if attempt == left or pause > _PAUSES[-1]:
                raise cause from None
        await asyncio.sleep(pause)
    raise AssertionError("the last attempt returns or raises")


async def _deliver(call: Call, stages: Stages) -> Answered:
    """Send the request, hand on what comes before its answer, and return that."""
    reply = await call.link.send(call.sent, call.head)
    is_answered = False
    try:
        await call.outlet.begin(reply)
        async for item in reply:
            if item.frame is not None and item.frame.shape == "response":
                _check_id(item.frame, call)
                is_answered = True
                return Answered(reply.status, reply.headers, item)
            await call.outlet.item(stages.passing(item))
        if call.ended is not None:  # so the reply of a withdrawn request ends
            raise EnvelopeError("the client wanted no answer any more", code=call.ended)
        is_answered = not reply.streams
        if is_answered:
            return _bodily(reply, call)
        if await call.outlet.suspend():
            item = await stages.resumed(call)
            is_answered = True
            return Answered(reply.status, reply.headers, item)
    finally:
        if not is_answered:
            await reply.close()
    raise EnvelopeError(
        "the upstream closed the stream before it had answered",
        code="OUTCOME_UNKNOWN",
        hint="the tool may have acted all the same: look before you call it again",
    )


def _check_id(frame: Frame, call: Call) -> None:
    """Refuse an answer to something else; errors may be without an id that could not be read."""
    given, wanted = frame.id, call.sent.id
    if given is not None and wanted is not None and id_key(given) != id_key(wanted):
        raise EnvelopeError(
            "the upstream answered under another id than it was asked with",
            code="OUTCOME_UNKNOWN",
            hint="it is broken: see which server this is",
        )


def _bodily(reply: Reply, call: Call) -> Answered:
    """What is no JSON-RPC message: a refusal is passed on, by which clients know a server's era.

    Not so a server error: older clients would give up the whole session for one call.
    """
    if 400 <= reply.status < 500 and call.door == "http":
        return Answered(reply.status, reply.headers, None, reply.body)
    kind = reply.headers.get("content-type", "nothing").partition(";")[0]
    raise EnvelopeError(
        f"the upstream answered with HTTP {reply.status} and {kind[:60]}, not with a message",
        code="OUTCOME_UNKNOWN",
        hint="its own log may say why, and whether the tool has acted",
    )


async def _settle(record: Record, answered: Answered, frame: Frame | None) -> Receipt | None:
    outcome = "ok"
    if frame is None:
        outcome = "EXECUTION_FAILED" if answered.status >= 300 else "ok"
    elif "error" in frame.value or _is_error(frame):
        outcome = "EXECUTION_FAILED"
    return await _written(record, outcome, None, frame)


async def _written(
    record: Record, outcome: str, error: EnvelopeError | None, frame: Frame | None
) -> Receipt | None:
    """Write the last line. If that fails the tool may have acted, and nobody can prove it."""
    was_admitted = record.admitted
    try:
        return await record.settle(outcome, error, frame)
    except EnvelopeError as failed:
        if not was_admitted:
            raise
        unknown = EnvelopeError(
            f"the call was made, and its end could not be recorded: {failed.message}",
            code="OUTCOME_UNKNOWN",
            hint="the tool may have acted: look before you call it again",
        )
        raise unknown from failed


def _answer(
    call: Call,
    answered: Answered,
    frame: Frame | None,
    record: Record,
    receipt: Receipt | None,
    stages: Stages,
) -> Answer:
    item = answered.item
    if frame is None or item is None:
        return Answer(body=answered.body, status=answered.status, headers=answered.headers)
    named = stages.rename(call, frame)
    raw = named.raw
    said = record.facts
    facts = _label_facts(call, said, receipt) if receipt is not None and said is not None else None
    label = stages.label(call, frame, facts)
    if label is not None:
        raw = spans.put(raw, label[0], _text_of(label[1]), named.value)
    status = answered.status if answered.headers else status_of(frame, call.revision)
    status = 200 if status >= 500 else status
    return Answer(raw=raw, status=status, headers=answered.headers, event=item.event)


def _text_of(label: Mapping[str, Any]) -> bytes:
    """A label as JSON. It holds texts and what was read strictly: `dump` need not look again."""
    try:
        return orjson.dumps(label)
    except TypeError:  # an integer beyond 64 bits, say, in the label of a gateway behind
        return dump(label)


def _label_facts(call: Call, facts: Facts, receipt: Receipt) -> dict[str, Any]:
    """What a label says: the same as the line, and where that is."""
    return {
        "kind": facts.kind,
        "request_id": call.request_id,
        "run_id": call.run_id,
        "seq": receipt.seq,
        "digest": f"sha256:{receipt.digest}",
        "input": facts.input.as_json(),
        "output": facts.output.as_json(),
        "duration_ms": facts.duration_ms,
        "warnings": list(facts.warnings),
    }


async def _refused(call: Call, record: Record, error: EnvelopeError, stages: Stages) -> Answer:
    try:
        await _written(record, error.code, error, None)
    except EnvelopeError as unwritten:
        if record.admitted:
            error = unwritten
        else:
            stages.report(call, unwritten)  # refused all the same, and nothing was done
    return failure(error, id=call.frame.id, revision=call.revision, request_id=call.request_id)


async def _interrupted(call: Call, record: Record, stages: Stages) -> Answer:
    """The task was cancelled: by the client (``call.ended`` says so), or because we stop."""
    code = call.ended or ("OUTCOME_UNKNOWN" if call.dispatched else "UPSTREAM_UNAVAILABLE")
    why = "the client wanted no answer any more" if call.ended else "the gateway was stopped"
    error = EnvelopeError(why, code=code)
    answer = await asyncio.shield(_refused(call, record, error, stages))
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
    return answer


def _is_error(frame: Frame) -> bool:
    result = frame.value.get("result")
    return isinstance(result, dict) and result.get("isError") is True
