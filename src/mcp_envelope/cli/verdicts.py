"""What ``ledger verify`` says: verdicts in words and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcp_envelope.core.notes import VerifierKey, base64_of
from mcp_envelope.core.seal import Removed
from mcp_envelope.core.together import Finding
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
    "fork": "what was signed is another history than this one",
    "corrupt": "the database itself is damaged: by its disk, or by somebody",
}
_KEEP: Final = "keep the file as it is, and compare it with a copy or an export from before"
_TO_DO: Final = {
    "signature": "ask for the keys anew, by a way that you trust (mcp-envelope keys show --all)",
    "unsigned": "see that it is the right key: mcp-envelope keys show, on the gateway's machine",
    "corrupt": f"{_KEEP}; what can still be read: mcp-envelope ledger export",
}


@dataclass(frozen=True, slots=True)
class Found:
    """The verdict on a ledger, by its name and its URL.

    ``trusted`` are the keys that vouch for it: those that were given, or that the ledgers hand
    on to, ``handed_on`` this one.
    """

    name: str
    url: str
    removed: Removed | None
    verdict: Verdict
    trusted: tuple[VerifierKey, ...] = ()
    handed_on: tuple[VerifierKey, ...] = ()

    @property
    def vouching(self) -> list[VerifierKey]:
        """Those keys that its checkpoints name and that are trusted."""
        return [key for key in self.verdict.keys if key in (*self.trusted, *self.handed_on)]


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
        ledgers = (self._holds(each.verdict) for each in self.found)
        return all(ledgers) and all(finding.holds for finding in self.findings)

    def _holds(self, verdict: Verdict) -> bool:
        return verdict.holds_strictly if self.is_strict else verdict.holds

    def lines(self) -> Iterator[str]:
        """The report in words."""
        for each in self.found:
            yield from self._of(each)
        for finding in self.findings:
            yield f"{'note' if finding.holds else 'does not hold'}: {finding.message}"
        if len(self.found) > 1:
            count = sum(self._holds(each.verdict) for each in self.found)
            is_apart = not all(finding.holds for finding in self.findings)
            together = ", but not together" if is_apart else ""
            yield f"{count} of {len(self.found)} ledgers hold{together}"

    def _of(self, found: Found) -> Iterator[str]:
        verdict = found.verdict
        if verdict.damage is not None:
            yield f"does not hold: {found.name}"
            yield from _damaged(verdict, verdict.damage, found.url)
            return
        strictly = self._holds(verdict)
        yield f"holds: {found.name}" if strictly else f"does not hold strictly: {found.name}"
        yield _row("lines", _lines(verdict))
        yield _row("checkpoints", _checkpoints(verdict))
        yield _row("signatures", self._signatures(found))
        for remark in verdict.remarks:
            yield _row("look at", remark)
        yield from _dangling(verdict)
        yield from _torn(verdict)
        for note in verdict.notes:
            yield _row("note", note)

    def _signatures(self, found: Found) -> str:
        verdict = found.verdict
        if not verdict.checkpoints:
            return "none"
        if not self.has_keys:
            names = _names(verdict.keys)
            return f"unchecked: no trusted key given (--key K); the ledger names {names}"
        names = _names(found.vouching)
        return f"checked: lines 0 to {verdict.vouched - 1:,} are vouched for by {names}"

    def as_json(self) -> dict[str, Any]:
        """The report for programs."""
        urls = {each.name: each.url for each in self.found}
        return {
            "holds": self.holds,
            "strict": self.is_strict,
            "ledgers": [_as_json(each) for each in self.found],
            "findings": [
                {
                    "kind": one.kind,
                    "holds": one.holds,
                    "seq": one.seq,
                    "message": one.message,
                    "ledgers": [urls[name] for name in one.names],
                }
                for one in self.findings
            ],
        }


def _damaged(verdict: Verdict, damage: Damage, url: str) -> Iterator[str]:
    yield _row("line", f"{damage.seq:,}{_where(damage, url)}")
    yield _row(damage.kind, damage.message)
    yield _row("means", _MEANING[damage.kind])
    if damage.hint:
        yield _row("hint", damage.hint)
    if url == "-" and damage.kind == "missing" and damage.seq == 0:
        yield _row(
            "do",
            "if lines were removed from this ledger, give it as a file: it has to be read twice",
        )
    yield _row("do", _TO_DO.get(damage.kind, _KEEP))
    if verdict.lines:
        yield _row("before it", f"{_lines(verdict)}, nothing wrong with them")


def _where(damage: Damage, url: str) -> str:
    if damage.position is None or url.startswith("sqlite:"):
        return ""
    return f" (seen in line {damage.position:,} of the file, which counts from 1)"


def _names(keys: Sequence[VerifierKey]) -> str:
    return ", ".join(f"{key.name} (id {key.id.hex()})" for key in keys)


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
        "ledger": found.url,
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
        "vouching": [str(key) for key in found.vouching],
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
