"""What the ledger is told of a call, line by line, as it goes along."""

from __future__ import annotations

from typing import Any, Final

from mcp_envelope.core import codes
from mcp_envelope.core.entry import ABSENT, Body, Event, Facts, Receipt, body_of_value, output_body
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, FrameError

from .call import TOOL_CALL, Call, Stages

#: Our key under ``_meta``.
LABEL: Final = "dev.mcp-envelope/record"
DIALECT: Final = "mcp"
#: Whose errors stop a call before it is one: such refusals are recorded whatever was asked for.
_REFUSING: Final = frozenset({"client", "policy"})


class Record:
    """The lines of one call: ``admitted`` before the tool knows of it, ``settled`` at its end.

    Of what is not recorded as a rule (lists, pings) only refusals are.
    """

    def __init__(self, call: Call, stages: Stages) -> None:
        self._call = call
        self._stages = stages
        self.admitted = False
        self.settled = False
        self.duration_ms = 0.0
        self.output: Body = ABSENT

    async def admit(self) -> None:
        """Let the record know of the call before the tool does. RECORD_UNAVAILABLE otherwise."""
        if not self._call.is_recorded:
            return
        self.admitted = True  # before: where this is cancelled, the line is written all the same
        try:
            await self._stages.ledger.append(self._facts("admitted"))
        except Exception:
            self.admitted = False
            raise

    async def settle(
        self, outcome: str, error: EnvelopeError | None = None, answer: Frame | None = None
    ) -> Receipt | None:
        """Say how it ended: ``settled``, or ``refused`` where it never was admitted.

        ``answer`` is the upstream's, if there is one. Only the first call of this counts.
        """
        if self.settled or not (self.admitted or self._is_refusal(error)):
            return None
        self.settled = True
        if answer is not None and "result" in answer.value:
            self.output = output_body(answer.value["result"], LABEL)
        fault = _fault_of(error, answer)
        self.duration_ms = round((self._stages.tick() - self._call.began) * 1000, 3)
        facts = self._facts(
            "settled" if self.admitted else "refused",
            outcome=outcome,
            error=fault,
            duration_ms=self.duration_ms,
        )
        return await self._stages.ledger.append(facts)

    def _is_refusal(self, error: EnvelopeError | None) -> bool:
        if error is None or self._call.dispatched:
            return False
        row = codes.TABLE.get(error.code)
        return self._call.is_recorded or row is None or row.origin in _REFUSING

    def _facts(self, event: Event, **more: Any) -> Facts:
        call = self._call
        frame, tool, kind = call.frame, call.tool, call.kind
        if call.input is None:
            has_some = call.is_recorded and "arguments" in frame.params
            call.input = body_of_value(frame.params["arguments"]) if has_some else ABSENT
        return Facts(
            event=event,
            time=self._stages.now(),
            instance=self._stages.instance,
            kind=str(kind) if kind is not None else None,
            tool=kind.context if kind is not None and frame.method == TOOL_CALL else None,
            definition=tool.digest if tool is not None else None,
            peer=call.peer,
            grant=call.grant,
            request_id=call.request_id,
            client_id=frame.id,
            run_id=call.run_id,
            trace_id=call.trace_id,
            correlation_id=call.correlation_id,
            door=call.door,
            dialect=DIALECT,
            input=call.input,
            output=self.output,
            warnings=tuple(call.warnings),
            **more,
        )


def malformed_facts(
    error: FrameError, *, door: str, peer: str, request_id: str, time: str, instance: str
) -> Facts:
    """The line for bytes of which no request could be read."""
    return Facts(
        event="malformed",
        time=time,
        instance=instance,
        peer=peer,
        request_id=request_id,
        client_id=error.id,
        door=door,
        dialect=DIALECT,
        outcome=error.code,
        error={"code": error.code, "message": message_of(error)},
    )


def refused_facts(
    frame: Frame | None,
    error: EnvelopeError,
    *,
    door: str,
    peer: str,
    request_id: str,
    time: str,
    instance: str,
) -> Facts:
    """The line for a message that belongs to no conversation, and so went nowhere."""
    return Facts(
        event="refused",
        time=time,
        instance=instance,
        peer=peer,
        request_id=request_id,
        client_id=frame.id if frame is not None else None,
        door=door,
        dialect=DIALECT,
        outcome=error.code,
        error={"code": error.code, "message": message_of(error)},
    )


def message_of(error: EnvelopeError) -> str:
    """What may be written down of an error: the table's text, and the place."""
    row = codes.TABLE.get(error.code)
    text = row.message if row is not None else error.code
    if error.problems:
        text = f"{text}: {error.problems[0].rule}"
    elif row is None or row.origin not in ("client", "policy"):
        text = f"{text}: {error.message}"
    if error.line is not None:
        return f"{text} at line {error.line}, column {error.column}"
    return f"{text} at {error.pointer}" if error.pointer else text


def _fault_of(error: EnvelopeError | None, answer: Frame | None) -> dict[str, Any] | None:
    """What the ledger says went wrong: our own error, or the upstream's.

    Of our own only the place is told: what stood there may be a secret.
    """
    if error is not None:
        return {"code": error.code, "message": message_of(error)}
    said = answer.value.get("error") if answer is not None else None
    if not isinstance(said, dict):
        return None
    # Its own words often repeat what was sent, secrets included; they went to the client alone.
    return {"code": "EXECUTION_FAILED", "message": f"JSON-RPC error {_number(said.get('code'))}"}


def _number(code: object) -> str:
    return str(code)[:20] if isinstance(code, (int, float)) else "without a number"
