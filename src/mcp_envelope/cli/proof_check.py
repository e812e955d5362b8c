"""``ledger prove --check``: whether a proof is right, and by whom its checkpoint is signed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mcp_envelope as me
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.notes import VerifierKey
from mcp_envelope.core.proofs import Inclusion
from mcp_envelope.core.signing import is_signed_by

from .console import DOES_NOT_HOLD, FINE, Console
from .records import keys_in

if TYPE_CHECKING:
    import argparse


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Check a proof and return the exit code."""
    if arguments.ledger is not None or arguments.line is None:
        hint = "mcp-envelope ledger prove --check PROOF --line FILE --key K"
        raise me.UsageError("--check needs --line, and no ledger", hint=hint)
    trusted = keys_in(arguments.key, console)
    line = console.read(arguments.line).removesuffix(b"\n").removesuffix(b"\r")
    proof = _read_proof(console.read(arguments.check), arguments.check)
    why = ""
    if not proof.is_of(line):
        why = f"this line is not number {proof.index:,} of that ledger"
    signed, trouble = _signed(proof, trusted)
    why = why or trouble
    said = proof.checkpoint
    if console.json:
        console.result(
            {
                "holds": not why,
                "why": why or None,
                "seq": proof.index,
                "origin": said.origin,
                "size": said.size,
                "signed_by": [str(key) for key in signed],
                "checked": bool(trusted),
            }
        )
    elif why:
        console.say(f"does not hold: {why}")
    else:
        console.say(f"holds: this line is number {proof.index:,} of {said.origin}")
        for key in signed:
            console.say(f"  signed by {key.name}, over {said.size:,} lines")
        if not trusted:
            console.say("  signatures unchecked: no trusted key given (--key)")
    return DOES_NOT_HOLD if why else FINE


def _read_proof(data: bytes, name: str) -> Inclusion:
    try:
        return Inclusion.parse(data)
    except EnvelopeError as error:
        raise me.UsageError(f"--check {name}: {error.message}", hint=error.hint) from None


def _signed(proof: Inclusion, trusted: tuple[VerifierKey, ...]) -> tuple[list[VerifierKey], str]:
    """The trusted keys that signed, and what is wrong with that, if anything is."""
    try:
        found = [key for key in trusted if is_signed_by(proof.note, key)]
    except EnvelopeError as error:
        return [], error.message
    if trusted and not found:
        return [], "its checkpoint is signed by none of the keys that you trust"
    return found, ""
