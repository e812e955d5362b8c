"""What the ledger is told of a call, line by line, as it goes along."""

from __future__ import annotations

from typing import Any, Final

from mcp_envelope.core import codes
from mcp_envelope.core.bodies import NOTHING, USUAL, Noted, noted
from mcp_envelope.core.entry import Event, Facts, Receipt, unlabelled
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.frame import Frame, FrameError, Id
from mcp_envelope.core.pointer import is_pointer, steps_of
from mcp_envelope.core.redaction import Redactor, Side

from .call import TOOL_CALL, Call, Stages

#: Our key under ``_meta``.
LABEL: Final = "dev.mcp-envelope/record"
DIALECT: Final = "mcp"
#: Whose errors stop a call before it is one: such refusals are recorded whatever was asked for.
_REFUSING: Final = frozenset({"client", "policy"})
#: Where in messages stands what is redacted by place.
_ROOTS: Final[dict[tuple[str, ...], Side]] = {
    ("params", "arguments"): "input",
    ("result",): "output",
}


class Record:
    """The lines of one call: ``admitted`` before the tool knows of it, ``settled`` at its end.

    Of what is not recorded as a rule (lists, pings) only refusals are.
    """

    def __init__(self, call: Call, stages: Stages) -> None:
        self._call = call
        self._stages = stages
        self._input: Noted | None = None
        self._output = NOTHING
        self.admitted = False
        self.settled = False
        self.facts: Facts | None = None

    async def admit(self) -> None:
        """Let the record know of the call before the tool does. RECORD_UNAVAILABLE otherwise."""
        if not self._call.is_recorded:
            return
        facts = self._facts("admitted")
        self.admitted = True  # before: where this is cancelled, the line is written all the same
        keeps = self._call.keeping.bodies == "all"
        try:
            await self._stages.ledger.append(facts, _forms(self._input) if keeps else ())
        except Exception:
            self.admitted = False
            raise

    async def settle(
        self, outcome: str, error: EnvelopeError | None = None, answer: Frame | None = None
    ) -> Receipt | None:
        """Say how it ended: ``settled``, or ``refused`` where it never was admitted.

        ``answer`` is the upstream's, if there is one. Only the first call of this counts. What
        was said stays in ``facts``.
        """
        if self.settled or not (self.admitted or self._is_refusal(error)):
            return None
        call, keeping = self._call, self._call.keeping
        if answer is not None and "result" in answer.value:
            result = unlabelled(answer.value["result"], LABEL)
            told = self._input.secrets if self._input is not None else ()
            self._output = noted(result, "output", keeping, told)
            for text in self._output.warnings:
                call.warn(text)
        fault = _fault_of(error, answer, keeping.redactor)
        self.facts = self._facts(
            "settled" if self.admitted else "refused",
            outcome=outcome,
            error=fault,
            duration_ms=self._stages.lasted(call.began),
        )
        self.settled = True
        return await self._stages.ledger.append(self.facts, self._kept(outcome))

    def _kept(self, outcome: str) -> tuple[bytes, ...]:
        """The bodies to be kept with the last line; the first line has that of the input."""
        which = self._call.keeping.bodies
        if which == "all" and self.admitted:
            return _forms(self._output)
        return _forms(self._input, self._output) if which == "all" or outcome != "ok" else ()

    def _is_refusal(self, error: EnvelopeError | None) -> bool:
        if error is None or self._call.dispatched:
            return False
        row = codes.TABLE.get(error.code)
        return self._call.is_recorded or row is None or row.origin in _REFUSING

    def _facts(self, event: Event, **more: Any) -> Facts:
        call = self._call
        frame, tool, kind = call.frame, call.tool, call.kind
        name = kind.context if kind is not None and frame.method == TOOL_CALL else None
        line = call.keeping.redactor.line
        if self._input is None:
            self._input = NOTHING
            if call.is_recorded and "arguments" in frame.params:
                self._input = noted(frame.params["arguments"], "input", call.keeping)
            for text in self._input.warnings:
                call.warn(text)
        return Facts(
            event=event,
            time=self._stages.now(),
            instance=self._stages.instance,
            kind=line(str(kind)) if kind is not None else None,
            tool=line(name) if name is not None else None,
            definition=tool.digest if tool is not None else None,
            peer=call.peer,
            grant=call.grant,
            request_id=call.request_id,
            client_id=line(frame.id) if isinstance(frame.id, str) else frame.id,
            run_id=call.run_id,
            trace_id=line(call.trace_id) if call.trace_id else call.trace_id,
            correlation_id=line(call.correlation_id) if call.correlation_id else None,
            door=call.door,
            dialect=DIALECT,
            input=self._input.body,
            output=self._output.body,
            warnings=tuple(map(call.keeping.remark, call.warnings)) if call.warnings else (),
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
        client_id=_shown_id(error.id),
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
        client_id=_shown_id(frame.id) if frame is not None else None,
        door=door,
        dialect=DIALECT,
        outcome=error.code,
        error={"code": error.code, "message": message_of(error)},
    )


def message_of(error: EnvelopeError, redactor: Redactor = USUAL) -> str:
    """What may be written down of an error: the table's text, and the place."""
    row = codes.TABLE.get(error.code)
    text = row.message if row is not None else error.code
    if error.problems:
        text = f"{text}: {error.problems[0].rule}"
    elif row is None or row.origin not in ("client", "policy"):
        text = f"{text}: {error.message}"
    text = redactor.line(text)
    if error.line is not None:
        return f"{text} at line {error.line}, column {error.column}"
    return f"{text} at {shown_place(error.pointer, redactor)}" if error.pointer else text


def shown_place(pointer: str, redactor: Redactor) -> str:
    """A pointer into a message as it may be written down: names of members may be secrets."""
    if not is_pointer(pointer):
        return redactor.line(pointer)
    steps = steps_of(pointer)
    for root, side in _ROOTS.items():
        if tuple(steps[: len(root)]) == root:
            return "/" + "/".join(root) + redactor.place(side, steps[len(root) :])
    return redactor.line(pointer)


def _forms(*parts: Noted | None) -> tuple[bytes, ...]:
    return tuple(part.form for part in parts if part is not None and part.form is not None)


def _shown_id(id: Id | None) -> Id | None:
    return USUAL.line(id) if isinstance(id, str) else id


def _fault_of(
    error: EnvelopeError | None, answer: Frame | None, redactor: Redactor
) -> dict[str, Any] | None:
    """What the ledger says went wrong: our own error, or the upstream's.

    Of our own only the place is told: what stood there may be a secret.
    """
    if error is not None:
        return {"code": error.code, "message": message_of(error, redactor)}
    said = answer.value.get("error") if answer is not None else None
    if not isinstance(said, dict):
        return None
    # Its own words often repeat what was sent, secrets included; they went to the client alone.
    return {"code": "EXECUTION_FAILED", "message": f"JSON-RPC error {_number(said.get('code'))}"}


def _number(code: object) -> str:
    return str(code)[:20] if isinstance(code, (int, float)) else "without a number"
