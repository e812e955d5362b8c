"""What ``ledger verify`` says: verdicts in words and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

from mcp_envelope.core.notes import Checkpoint, VerifierKey, base64_of
from mcp_envelope.core.verdict import Damage, Verdict

_SHOWN: Final = 20
_WIDE: Final = 11
#: What a kind of damage means, and what to do about it.
_MEANING: Final = {
    "unreadable": "bytes lie in the ledger that are no line, and no later line explains them",
    "altered": "a line is not what it was when it was written",
    "missing": "lines that were there are left out",
    "reordered": "a line stands later than it was written",
    "duplicate": "a line, or its number, stands in the ledger twice",
    "inserted": "a line stands there that the lines around it do not know of",
    "root": "lines were rewritten together with all that follow, but not as they were signed",
    "signature": "who signed there is not who you trust, or the signature was made up",
    "unsigned": "nobody whom you trust vouches for any of it",
    "truncated": "lines that there once were are gone from the end, or this is an old copy",
    "fork": "this is another history than the one whose checkpoint was kept",
    "corrupt": "the database itself is damaged: by its disk, or by somebody",
}
_KEEP: Final = "keep the file as it is, and compare it with a copy or an export from before"
_TO_DO: Final = {
    "signature": "ask for the keys anew, by a way that you trust (mcp-envelope keys show --all)",
    "unsigned": "see that it is the right key: mcp-envelope keys show, on the gateway's machine",
    "corrupt": f"{_KEEP}; what can still be read: mcp-envelope ledger export",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that does not hold between ledgers, or of a checkpoint of none of them."""

    kind: str
    message: str
    ledgers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """The verdict on a ledger, and the keys that it hands on to."""

    ledger: str
    verdict: Verdict
    handed_on: tuple[VerifierKey, ...] = ()


def of_nobody(said: Checkpoint) -> Finding:
    """A checkpoint that is of none of the ledgers."""
    return Finding(
        "fork",
        f"the checkpoint of {said.size:,} lines that you kept is of none of these ledgers: it is "
        f"of {said.origin}; if that is one of them, it was replaced from its first line on",
    )


def differences(found: Sequence[Found]) -> list[Finding]:
    """What does not hold between ledgers that are copies of one: the shorter begins the longer."""
    findings = []
    for one, other in combinations([each for each in found if each.verdict.holds], 2):
        if one.verdict.origin is None or one.verdict.origin != other.verdict.origin:
            continue
        short, long = sorted((one, other), key=lambda each: each.verdict.next)
        root = (
            long.verdict.root
            if long.verdict.next == short.verdict.next
            else long.verdict.roots.get(short.verdict.next)
        )
        if root is not None and root != short.verdict.root:
            findings.append(
                Finding(
                    "fork",
                    f"{short.ledger} and {long.ledger} are the same ledger with two histories: "
                    f"they differ within the first {short.verdict.next:,} lines",
                    (short.ledger, long.ledger),
                )
            )
    return findings


@dataclass(frozen=True, slots=True)
class Report:
    """All verdicts together."""

    found: Sequence[Found]
    findings: Sequence[Finding]
    is_strict: bool
    has_keys: bool

    @property
    def holds(self) -> bool:
        """Whether everything does."""
        return not self.findings and all(self._holds(each.verdict) for each in self.found)

    def _holds(self, verdict: Verdict) -> bool:
        return verdict.holds_strictly if self.is_strict else verdict.holds

    def lines(self) -> Iterator[str]:
        """The report in words."""
        for each in self.found:
            yield from self._of(each)
        for finding in self.findings:
            yield f"does not hold: {finding.message}"
        if len(self.found) > 1:
            count = sum(self._holds(each.verdict) for each in self.found)
            yield f"{count} of {len(self.found)} ledgers hold" + (
                "" if self.holds or not self.findings else ", but not together"
            )

    def _of(self, found: Found) -> Iterator[str]:
        verdict = found.verdict
        if verdict.damage is not None:
            yield f"does not hold: {found.ledger}"
            yield from _damaged(verdict, verdict.damage, found.ledger)
            return
        strictly = self._holds(verdict)
        yield f"holds: {found.ledger}" if strictly else f"does not hold strictly: {found.ledger}"
        yield _row("lines", _lines(verdict))
        yield _row("checkpoints", _checkpoints(verdict))
        yield _row("signatures", self._signatures(verdict))
        for remark in verdict.remarks:
            yield _row("look at", remark)
        yield from _dangling(verdict)
        yield from _torn(verdict)
        for note in verdict.notes:
            yield _row("note", note)

    def _signatures(self, verdict: Verdict) -> str:
        if not verdict.checkpoints:
            return "none"
        if not self.has_keys:
            return (
                "unchecked: no trusted key given (--key, with what mcp-envelope keys show prints)"
            )
        names = ", ".join(f"{key.name} (id {key.id.hex()})" for key in verdict.keys)
        return f"checked: lines 0 to {verdict.vouched - 1:,} are vouched for by {names}"

    def as_json(self) -> dict[str, Any]:
        """The report for programs."""
        return {
            "holds": self.holds,
            "strict": self.is_strict,
            "ledgers": [_as_json(each) for each in self.found],
            "findings": [
                {"kind": one.kind, "message": one.message, "ledgers": list(one.ledgers)}
                for one in self.findings
            ],
        }


def _damaged(verdict: Verdict, damage: Damage, ledger: str) -> Iterator[str]:
    yield _row("line", f"{damage.seq:,}{_where(damage, ledger)}")
    yield _row(damage.kind, damage.message)
    yield _row("means", _MEANING[damage.kind])
    if damage.hint:
        yield _row("hint", damage.hint)
    if ledger == "-" and damage.kind == "missing" and damage.seq == 0:
        yield _row(
            "do",
            "if lines were removed from this ledger, give it as a file: it has to be read twice",
        )
    yield _row("do", _TO_DO.get(damage.kind, _KEEP))
    yield _row("before it", f"{_lines(verdict)}, nothing wrong with them")


def _where(damage: Damage, ledger: str) -> str:
    if damage.position is None or ledger.startswith("sqlite:"):
        return ""
    return f" (seen in line {damage.position:,} of the file, which counts from 1)"


def _lines(verdict: Verdict) -> str:
    if not verdict.lines:
        return "none"
    return f"{verdict.lines:,} ({verdict.first:,} to {verdict.next - 1:,})"


def _checkpoints(verdict: Verdict) -> str:
    if not verdict.checkpoints:
        return "none"
    behind = _behind(verdict)
    said = "nothing stands behind the last" if not behind else f"{behind:,} behind the last"
    return f"{verdict.checkpoints:,}; {said}" + (" one" if behind == 0 else "")


def _behind(verdict: Verdict) -> int:
    return verdict.next - max(verdict.vouched, verdict.first)


def _dangling(verdict: Verdict) -> Iterator[str]:
    for call in verdict.dangling[:_SHOWN]:
        what = call.tool if call.tool is not None else call.kind
        said = (f"{call.seq:,}", call.time or "-", what or "-", call.request_id or "-")
        yield _row("", "  ".join(said))
    if verdict.dangling_count > _SHOWN:
        yield _row("", f"and {verdict.dangling_count - _SHOWN:,} more (--json lists 1,000)")


def _torn(verdict: Verdict) -> Iterator[str]:
    for tail in verdict.torn[:_SHOWN]:
        how = "told of by" if tail.is_mended else "instead of"
        yield _row("", f"{tail.size:,} bytes, {how} line {tail.seq:,}")
    if verdict.torn_count > _SHOWN:
        yield _row("", f"and {verdict.torn_count - _SHOWN:,} more (--json lists 1,000)")


def _row(name: str, text: str) -> str:
    return f"  {name:{_WIDE}}  {text}"


def _as_json(found: Found) -> dict[str, Any]:
    verdict, damage = found.verdict, found.verdict.damage
    return {
        "ledger": found.ledger,
        "holds": verdict.holds,
        "holds_strictly": verdict.holds_strictly,
        "origin": verdict.origin,
        "first": verdict.first,
        "next": verdict.next,
        "lines": verdict.lines,
        "root": base64_of(verdict.root),
        "checkpoints": verdict.checkpoints,
        "signatures": verdict.signatures,
        "keys": [str(key) for key in verdict.keys],
        "vouched": verdict.vouched,
        "behind": _behind(verdict),
        "dangling_count": verdict.dangling_count,
        "dangling": [
            {
                "seq": call.seq,
                "time": call.time,
                "tool": call.tool,
                "kind": call.kind,
                "request_id": call.request_id,
            }
            for call in verdict.dangling
        ],
        "torn_count": verdict.torn_count,
        "torn": [
            {"seq": tail.seq, "bytes": tail.size, "mended": tail.is_mended} for tail in verdict.torn
        ],
        "remarks": list(verdict.remarks),
        "notes": list(verdict.notes),
        "damage": None
        if damage is None
        else {
            "kind": damage.kind,
            "seq": damage.seq,
            "message": damage.message,
            "means": _MEANING[damage.kind],
            "hint": damage.hint,
            "position": damage.position,
            "found": damage.found,
        },
    }
