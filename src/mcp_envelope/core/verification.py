"""Verifies a ledger as it lies there, piece after piece and in constant memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from .calls import Calls
from .doubt import Doubt
from .entry import GENESIS
from .errors import EnvelopeError
from .loose import Ends
from .merkle import Frontier, leaf_hash
from .notes import Note, VerifierKey
from .outside import Outside
from .pieces import Entry, read_entry
from .seal import Removed, origin_of, read_sealed
from .verdict import MOST_LISTED, Damage, Signatures, TornTail, Verdict
from .vouching import Judged, Vouching
from .wording import (
    of_behind,
    of_cut_off,
    of_dangling,
    of_earlier,
    of_removed,
    of_rotation,
    of_torn,
    of_unadmitted,
    of_unchecked,
    of_unfinished,
    of_useless,
)


class Verifier:
    """Takes what a ledger consists of, and comes to a verdict.

    ``trusted`` are the keys that have to vouch for it; with none signatures are checked by the
    keys that the lines themselves name, for which nobody vouches. ``known`` are checkpoints that
    were kept outside, ``removed`` what the newest checkpoint line says of lines that were taken
    out, ``sizes`` those for which the verdict is to tell the roots. A checkpoint of another
    ledger is a ``fork`` of this one, unless it ``is_one_of_several``.

    EnvelopeError if one of ``known`` is no checkpoint.
    """

    def __init__(
        self,
        trusted: Iterable[VerifierKey] = (),
        known: Sequence[Note] = (),
        removed: Removed | None = None,
        sizes: Iterable[int] = (),
        *,
        is_one_of_several: bool = False,
    ) -> None:
        self.damage: Damage | None = None
        self.vouching: Final = Vouching(trusted)
        self.outside: Final = Outside(known, self.vouching, is_shared=is_one_of_several)
        self.calls: Final = Calls()
        self.removed: Final = removed
        self.first: Final = removed.count if removed else 0
        self.origin: str | None = None
        self.torn: list[TornTail] = []
        self.torn_count = 0
        self.absent_count = 0
        self._tree = Frontier(self.first, removed.nodes if removed else ())
        self._roots: dict[int, bytes] = {}
        self._sizes = frozenset(sizes)
        self._watched = self._sizes | self.outside.sizes
        self._position = 0
        # What has to come: this number, and this digest of the line before.
        self._next = self.first
        self._prev = removed.last.encode() if removed else GENESIS.encode()
        # The last line, which may turn out never to have been finished, and what belongs to it.
        self._pending: Entry | None = None
        self._judged: Judged | None = None
        self._tail: TornTail | None = None
        self._ends = Ends()
        self._doubt: Doubt | None = None
        self._removed_said: int | None = None
        self.damage = self._at_size()

    @property
    def next(self) -> int:
        """The number of the line to come, so far."""
        return self._next

    def feed(self, piece: bytes) -> bool:
        """Take the next piece, which ends in a newline; whether more are of interest.

        Only the last one may lack its newline. What is no line may also come in several pieces,
        each longer than any line.
        """
        if self.damage is not None:
            return False
        self._position += 1
        entry = None if self._ends.is_open else read_entry(piece)
        if entry is None:
            self._ends.add(piece)
        elif self._doubt is not None:
            self.damage = self._doubt.hear(entry)
        else:
            self.damage = self._take(entry)
        return self.damage is None

    def finish(self) -> Verdict:
        """The verdict. Nothing may be fed any more."""
        if self.damage is None:
            self.damage = self._end()
        holds = self.damage is None
        dangling, count = self.calls.dangling() if holds else ((), 0)
        vouching = self.vouching
        state: Signatures = "checked" if vouching.is_asked else "unchecked"
        return Verdict(
            first=self.first,
            next=self._tree.size,
            root=self._tree.root(),
            roots=self._roots,
            origin=self.origin,
            checkpoints=vouching.checkpoints,
            vouched=vouching.vouched,
            signatures=state if vouching.checkpoints else "none",
            keys=tuple(vouching.seen),
            dangling=dangling,
            dangling_count=count,
            torn=tuple(self.torn),
            torn_count=self.torn_count,
            remarks=self._remarks(count) if holds else (),
            notes=self._notes() if holds else (),
            damage=self.damage,
        )

    def corrupt(self, reason: str) -> Verdict:
        """The verdict where the ledger cannot be read on: damage, unless there is some already."""
        if self.damage is None:
            message = f"nothing can be read from line {self._next} on: {reason}"
            self.damage = Damage("corrupt", self._next, message)
        return self.finish()

    def _take(self, entry: Entry) -> Damage | None:
        is_plain = not entry.value["warnings"] and not self._ends.size
        tail = None if is_plain else self._tail_before(entry)
        if isinstance(tail, Damage):
            return tail
        if entry.seq != self._next or entry.prev != self._prev:
            self._doubt = Doubt(entry, self._next, self._prev, self.first, self._position)
            return self._doubt.at_once()
        damage = self._commit()
        if damage is not None:
            return damage
        judged = self._check(entry) if entry.event == b"checkpoint" else None
        if isinstance(judged, Damage):
            return judged
        self._pending, self._judged, self._tail = entry, judged, tail
        self._ends.go_on(entry.text)
        self._next += 1
        self._prev = entry.digest
        return None

    def _tail_before(self, entry: Entry) -> TornTail | Damage | None:
        """What a line says of bytes before it that are no line, if that is true."""
        claim, ends, pending = entry.claim, self._ends, self._pending
        if claim is None:
            return self._unreadable(entry.seq) if ends.size else None
        which = ends.explained(claim)
        if which == "whole" and pending is not None:
            self._pending, self._judged, self._tail = None, None, None
            self._next, self._prev = pending.seq, pending.prev
        if which is not None:
            return TornTail(entry.seq, claim[0])
        takes_place = pending is not None and (entry.seq, entry.prev) == (pending.seq, pending.prev)
        if entry.seq == self._next and not ends.size:
            return TornTail(entry.seq, claim[0], is_there=False)
        if entry.seq == self._next or takes_place:
            message = (
                f"line {entry.seq} was altered, or what lies before it: it says that {claim[0]}"
                " bytes before it are no line, and they are not those"
            )
            hint = "what a broken write left is kept as it was, and never changes"
            return Damage("altered", entry.seq, message, hint, self._position, entry.seq)
        return self._unreadable(entry.seq) if ends.size else None

    def _unreadable(self, found: int | None) -> Damage:
        seq = self._next
        message = (
            f"where line {seq} belongs lie {self._ends.size} bytes that are no line of a ledger"
        )
        hint = "the line was destroyed, or something else was written there"
        if self._ends.has_crlf:
            hint = "its line ends were changed to CRLF: verify the bytes as the gateway wrote them"
        elif seq == self.first and found is None:
            hint = "this may be no ledger at all, or one of a newer version"
        elif found is None:
            hint += "; if the gateway was cut off, its next start tells of such bytes"
        return Damage("unreadable", seq, message, hint, self._position, found)

    def _check(self, entry: Entry) -> Judged | Damage:
        """Check a checkpoint line, before which all lines are committed."""
        seq = entry.seq
        place = (self._position, seq)
        since = max(self.vouching.last, self.first)
        doubtful = f"line {since}" if since == seq - 1 else f"one of lines {since} to {seq - 1}"
        doubtful += " may have been altered too: no other checkpoint covers all of them"
        try:
            sealed = read_sealed(entry.text, entry.value["warnings"])
        except EnvelopeError as error:
            message = f"line {seq}, a checkpoint line, was altered: {error.message}"
            return Damage("altered", seq, message, doubtful, *place)
        checkpoint = sealed.checkpoint
        is_ours = checkpoint.origin == self.origin or (self.origin is None and self.first > 0)
        if checkpoint.size != seq or not is_ours:
            message = f"the checkpoint in line {seq} is that of other lines"
            hint = f"it covers {checkpoint.size} lines of {checkpoint.origin}"
            return Damage("root", seq, message, hint, *place)
        if checkpoint.root != self._tree.root():
            message = f"the lines before line {seq} are not those that the checkpoint in it covers"
            hint = f"one of lines {since} to {seq - 1} was altered, and those behind it adapted"
            return Damage("root", seq, message, hint, *place)
        try:
            return self.vouching.judge(sealed)
        except EnvelopeError as error:
            message = f"line {seq}, a checkpoint line, is not rightly signed: {error.message}"
            return Damage("signature", seq, message, doubtful, *place)

    def _commit(self) -> Damage | None:
        """Take the last line for good."""
        entry = self._pending
        if entry is None:
            return None
        seq = entry.seq
        if seq in self._watched:
            text = self._judged.sealed.note.text if self._judged else None
            damage = self._of_stranger(self.outside.of_line(seq, text))
            if damage is not None:
                return damage
        self._tree.add(leaf_hash(entry.text))
        self.calls.follow(entry)
        damage = self._commit_rest(entry) if self._judged or self._tail or seq == 0 else None
        if damage is None and seq + 1 in self._watched:
            damage = self._at_size()
        return damage

    def _commit_rest(self, entry: Entry) -> Damage | None:
        if self._tail is not None:
            self._list_torn(self._tail)
        origin = self.origin
        if entry.seq == 0:
            self.origin = origin_of(self._prev.decode())
        if self._judged is not None:
            self.vouching.take(entry.seq, self._judged)
            if self.removed is not None and str(self.removed) in entry.value["warnings"]:
                self._removed_said = entry.seq
            if origin is None:
                self.origin = self._judged.sealed.checkpoint.origin
        if self.origin == origin or self.origin is None:
            return None
        return self.outside.of_origin(self.origin)

    def _at_size(self) -> Damage | None:
        size, root = self._tree.size, self._tree.root()
        if size in self._sizes:
            self._roots[size] = root
        return self._of_stranger(self.outside.of_root(size, root))

    def _end(self) -> Damage | None:
        if self._doubt is not None:
            return self._doubt.end()
        size = self._ends.size
        if size and not self._ends.is_unfinished:
            return self._unreadable(None)
        damage = self._commit() or self._strange() or self.outside.of_end(self._next)
        damage = damage or self.outside.untrusted()
        if damage is None and size:
            self._list_torn(TornTail(self._next, size, is_mended=False))
        return damage or self._unsaid()

    def _unsaid(self) -> Damage | None:
        """What is wrong where nobody says what somebody has to say."""
        vouched, is_asked = self.vouching.vouched, self.vouching.is_asked
        if self.removed is not None:
            said = self._removed_said
            if said is None or (is_asked and said >= vouched):
                message = f"lines 0 to {self.first - 1} are missing"
                return Damage("missing", 0, message, "no checkpoint line vouches for their removal")
        if is_asked and not vouched:
            message = "no checkpoint is signed by a key that you trust: there is none at all"
            hint = "a gateway writes the first after so many lines, or at its end"
            if self._next == self.first:
                hint = "there is not even a line: everything may have been taken away"
            return Damage("unsigned", self.first, message, hint)
        return None

    def _list_torn(self, tail: TornTail) -> None:
        self.torn_count += 1
        self.absent_count += not tail.is_there
        if len(self.torn) < MOST_LISTED:
            self.torn.append(tail)

    def _of_stranger(self, damage: Damage | None) -> Damage | None:
        # Where a copy was made with another key, its first checkpoint is what to look at.
        stranger = self.vouching.stranger
        if damage is None or damage.kind != "fork" or stranger is None:
            return damage
        if damage.seq < stranger:
            return damage
        return self._strange() or damage

    def _strange(self) -> Damage | None:
        seq = self.vouching.stranger
        if seq is None:
            return None
        hint = "somebody else wrote from there on, or the key was changed without the old one"
        if self.vouching.vouched:
            message = (
                f"line {seq}, a checkpoint line, is signed by a key that no earlier one hands on"
                f" to; the trusted key vouches for the lines before line {self.vouching.vouched}"
            )
            return Damage("signature", seq, message, hint)
        message = f"no checkpoint is signed by a key that you trust; line {seq} is the first one"
        return Damage("unsigned", seq, message, "compare the keys: it may be the wrong one")

    def _remarks(self, dangling: int) -> tuple[str, ...]:
        unadmitted = 0 if self.removed else self.calls.unadmitted
        size = self._ends.size
        found = (
            of_dangling(dangling),
            of_unadmitted(unadmitted, self.calls.first_unadmitted),
            of_torn(self.torn_count - bool(size), self.absent_count),
            of_unfinished(size, self._next) if size else None,
            of_behind(self._next, self.vouching.checkpoints, self.vouching.last),
        )
        return tuple(one for one in found if one)

    def _notes(self) -> tuple[str, ...]:
        size, vouching = self._next, self.vouching
        found = (
            "the ledger has no lines" if size == self.first else None,
            of_removed(self.removed, self._removed_said),
            of_unchecked(vouching.is_asked, vouching.checkpoints),
            *(of_rotation(*one) for one in vouching.rotations),
            of_cut_off(self.calls.cut_off),
            of_earlier(self.calls.earlier, self.calls.first_earlier),
            *(of_useless(one, self.first) for one in self.outside.before(self.first)),
        )
        return tuple(one for one in found if one)
