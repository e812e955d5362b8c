#!/usr/bin/env python3
"""Verifies a ledger of mcp-envelope: whether lines were altered, left out, moved or added.

One file to be read from top to bottom. It needs Python 3.9 and, for signatures, `cryptography`.
docs/ledger.md has the format, which follows RFC 6962 (section 2.1: Merkle trees) and C2SP's
signed-note, tlog-checkpoint and tlog-proof. Exit code: 0 holds, 1 does not, 2 usage, 3 unknown.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from base64 import b64decode
from collections import namedtuple
from functools import partial, reduce
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Iterator  # noqa: UP035 - Python 3.9

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey as PublicKey
except ImportError:
    PublicKey = None  # type: ignore[assignment,misc]

ORIGIN = "mcp-envelope/ledger/"
UNTRUSTED = "no trusted key signed this checkpoint, or a later one"
EVENTS = "admitted|settled|refused|malformed|started|stopped|checkpoint"
JSON = json.JSONDecoder(parse_int=float, parse_constant=int)  # int: no number is called NaN
FIELDS = """v event seq prev time instance kind tool definition peer grant request_id client_id run_id
    trace_id correlation_id door dialect outcome error duration_ms input output warnings""".split()
DIGEST = "sha256:([0-9a-f]{64})"
NUMBER = "(0|[1-9][0-9]{0,18})"
HASH = "[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]="  # base64 in the one right spelling, 32 bytes; any:
BASE64 = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=|[A-Za-z0-9+/][AQgw]==)?"
HEAD = re.compile(
    rf'{{"v":1,"event":"({EVENTS})","seq":{NUMBER},"prev":"([0-9a-f]{{64}})"'.encode()
)
TORN = re.compile(f"torn tail: the {NUMBER} bytes before this line are no line, {DIGEST}")
REMOVED = re.compile(f"removed: lines 0 to {NUMBER}, the last {DIGEST}, tree((?: {HASH})+)")
KEY = re.compile(r"([^\s+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]{44})")
TEXT = rf"((.+)\n{NUMBER}\n({HASH})\n(?:line {DIGEST}\n)?(?:.+\n)*)"
SIGNATURE = re.compile(rf"— ([^\s+]+) ({BASE64})\n")
NOTE = re.compile(rf"{TEXT}\n((?:— [^\s+]+ {BASE64}\n)+)")
PROOF = re.compile(f"c2sp.org/tlog-proof@v1\n(?:extra .*\n)?index {NUMBER}((?:\n{HASH})*)")
Line = namedtuple("Line", "seq prev event text call warnings torn")  # text: its exact bytes
Key = namedtuple("Key", "name id public")
Note = namedtuple("Note", "text origin size root line signatures")  # these: name, id of key, value


class DamageError(Exception):
    """What does not hold: its kind, the number of the line, and why."""


def demand(holds: object, kind: str, seq: int, why: str) -> None:
    """Go on only if something holds."""
    if not holds:
        raise DamageError(kind, seq, why)


def line_of(piece: bytes) -> Line | None:
    """Read a piece of the file: a line ends in a newline and is a JSON object with every field."""
    head = HEAD.match(piece)
    try:
        said = JSON.decode(piece.decode()) if head and piece.endswith(b"}\n") else {}
        call, texts = [str(said[name]) for name in FIELDS][11], said["warnings"]
    except (ValueError, KeyError, RecursionError):
        return None
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        return None
    torn = TORN.fullmatch(texts[0]) if texts else None
    event, seq, prev = (part.decode() for part in head.groups())
    return Line(int(seq), prev, event, piece[:-1], call, texts, torn and torn.groups())


def lines_of(file: BinaryIO) -> Iterator[tuple[Any, Any]]:
    """Each line, with the bytes before it that are no line; at the end None, with those there."""
    loose, is_start = bytearray(), True
    for piece in iter(partial(file.readline, 65_536), b""):  # no line is longer
        line = line_of(piece) if is_start else None
        is_start = piece.endswith(b"\n")
        if line:
            yield line, loose
            loose = bytearray()
        else:
            loose[1 << 26 :] = piece  # so much is kept, and no torn tail is as long
    yield None, loose


def node(left: bytes, right: bytes) -> bytes:
    """The hash of a node above two others (RFC 6962, 2.1)."""
    return sha256(b"\x01" + left + right).digest()


def grow(nodes: list[bytes], size: int, text: bytes) -> None:
    """Add a line to a tree, which is kept as its largest complete subtrees (RFC 6962, 2.1)."""
    found = sha256(b"\x00" + text).digest()
    while size & 1:  # two subtrees of one size become one of twice that size
        found, size = node(nodes.pop(), found), size >> 1
    nodes.append(found)


def root_of(nodes: list[bytes]) -> bytes:
    """The root of a tree, which changes with any byte of any line (RFC 6962, 2.1)."""
    up = nodes[::-1]
    return reduce(lambda right, left: node(left, right), up) if up else sha256().digest()


def root_by(proof: list[bytes], leaf: bytes, index: int, size: int) -> bytes:
    """The root to which a proof leads from a leaf, as PATH is defined in RFC 6962, 2.1.1."""
    if size <= 1 or not proof:
        return leaf if size == 1 and not proof else b""
    half = 1 << (size - 1).bit_length() - 1
    if index < half:
        return node(root_by(proof[:-1], leaf, index, half), proof[-1])
    return node(proof[-1], root_by(proof[:-1], leaf, index - half, size - half))


def key_of(vkey: str) -> Key | None:
    """Read a public key, NAME+ID+KEY; the id is made of name and key (C2SP signed-note)."""
    found = KEY.fullmatch(vkey)
    data = b64decode(found[3]) if found else b""
    if not found or sha256(found[1].encode() + b"\n" + data).hexdigest()[:8] != found[2]:
        return None
    return Key(found[1], bytes.fromhex(found[2]), data[1:]) if data[0] == 1 else None


def note_of(whole: str) -> Note | None:
    """Read a signed checkpoint: origin, size, root (C2SP signed-note and tlog-checkpoint)."""
    found = NOTE.fullmatch(whole)
    if not found or re.search("[\x00-\x09\x0b-\x1f]", whole):
        return None
    signed = [(name, b64decode(text)) for name, text in SIGNATURE.findall(found[6])]
    signatures = [(name, data[:4], data[4:]) for name, data in signed]
    return Note(found[1], found[2], int(found[3]), b64decode(found[4]), found[5], signatures)


def is_signed(note: Note, keys: list[Key]) -> bool | None:
    """Whether any of the keys signed it; None if it does not even say so (C2SP signed-note)."""
    found = [(key, one[2]) for one in note.signatures for key in keys if key[:2] == one[:2]]
    try:
        for key, value in found if PublicKey else ():
            PublicKey.from_public_bytes(key.public).verify(value, note.text.encode())
    except InvalidSignature:
        return False
    return True if found else None


def sealed_in(line: Line) -> tuple[Note, list[Key]] | None:
    """The note in a checkpoint line, and the keys named there; None if a byte was changed."""
    whole = line.warnings[-1] if line.warnings else ""
    note = note_of(whole)
    keys = [key_of(text[5:]) for text in line.warnings[:-1] if text.startswith("key: ")]
    before = line.text[: line.text.rfind(b'"' + ORIGIN.encode())]
    is_own = line.text == before + b'"' + whole.encode().replace(b"\n", b"\\n") + b'"]}'
    is_right = is_own and note and note.line == sha256(before + b'""]}').hexdigest()
    return (note, keys) if is_right and None not in keys else None


class Reading:
    """The lines read so far. `last` is not in the tree yet: what follows may say it was torn."""

    def __init__(self, keys: list[Key], known: list[Note]) -> None:
        self.trusted, self.has_keys = list(keys), bool(keys and PublicKey)
        self.known = sorted(known, key=lambda note: note.size)
        self.nodes, self.size, self.digest, self.origin, self.first = [], 0, "0" * 64, "", 0
        self.last, self.behind, self.by, self.sealed, self.doubt = None, b"", None, -1, -1
        self.roots, self.texts, self.open = {0: root_of([])}, {}, {}
        self.checkpoints = self.torn = self.strays = 0

    def read(self, file: BinaryIO) -> None:
        """Take in line after line; DamageError at the first thing that does not hold."""
        lines = lines_of(file)
        for line, loose in lines:
            if line and line.seq and not self.size and not self.last:
                self.begin(line.seq, file)
            self.mend(line, loose)
            if line and line[:2] != (self.size + bool(self.last), self.digest):
                self.misplaced(line, (later for later, _ in lines if later))
            self.commit(self.last)
            if line and line.event == "checkpoint":
                self.check(line)
            self.last, self.behind = line, bytes(loose)
            self.digest = sha256(line.text).hexdigest() if line else ""
        self.compare(is_end=True)

    def begin(self, first: int, file: BinaryIO) -> None:
        """If lines before this one were removed the newest remark on that says what is kept."""
        place = file.tell()
        file.seek(0)
        for line, _ in lines_of(file):
            for text in line.warnings if line and line.event == "checkpoint" else ():
                found = REMOVED.fullmatch(text)
                if found and int(found[1]) + 1 == first:
                    self.first, self.size, self.digest = first, first, found[2]
                    self.nodes = [b64decode(one) for one in found[3].split()]
                    self.roots[first] = root_of(self.nodes)
        file.seek(place)

    def mend(self, line: Line | None, loose: bytearray) -> None:
        """Bytes that are no line are a torn tail if the next line says how many, and which."""
        before = self.behind + self.last.text + b"\n" if self.last else b""
        torn, due = line and line.torn, self.size + bool(self.last)
        said = [(str(len(one)), sha256(one).hexdigest()) for one in (loose, before + loose) if torn]
        if torn and torn not in said:
            is_its = (loose and line.seq == due) or (self.last and line[:2] == self.last[:2])
            demand(not is_its, "altered", line.seq, "it says of the bytes before it what is not so")
        elif torn and torn != said[0]:  # the last line was not finished either
            self.last, self.digest, loose[:0] = None, self.last.prev, before
        is_fine = not loose or torn in said or (not line and b"\n" not in loose)
        demand(is_fine, "unreadable", due, "these bytes are no line")
        self.torn += bool(loose and not line)

    def misplaced(self, line: Line, rest: Iterator[Line]) -> None:
        """What it means that a line does not follow the one before."""
        due, seq, prev = self.size + bool(self.last), line.seq, self.digest
        demand(seq == due or line.prev != prev, "altered", due, f"it says that it is line {seq}")
        demand(seq >= due, "duplicate", seq, f"it stands where line {due} belongs")
        is_later = seq > due and any(later.seq == due for later in rest)
        demand(not is_later, "reordered", due, f"it stands behind line {seq}")
        demand(seq == due, "missing", due, f"line {seq} stands in its place")
        later = next(rest, None)
        if later and later.torn and later[:2] == line[:2]:  # not finished, and so written again
            line, later = later, next(rest, None)
        is_extra = later and later[:2] == (due, prev)
        demand(not is_extra, "inserted", due, "no other line knows of it")
        is_right = not later or later[:2] == (due + 1, sha256(line.text).hexdigest())
        if line.event == "checkpoint":
            is_right = sealed_in(line) and is_signed(*sealed_in(line))
        is_before = is_right and due > self.first
        demand(not is_before, "altered", due - 1, f"it is not the line that line {due} follows")
        demand(False, "altered", due, "it does not follow the line before")

    def check(self, line: Line) -> None:
        """A checkpoint line is as it was signed, for the lines before it, by a trusted key."""
        note, named = sealed_in(line) or (None, [])
        demand(note, "altered", line.seq, "its checkpoint was not made for this line")
        self.origin = self.origin or note.origin  # that line 0 gives, unless it was removed
        here = (self.origin, self.size, root_of(self.nodes))
        demand(
            here == note[1:4], "root", line.seq, "its checkpoint is not that of the lines before"
        )
        is_by = is_signed(note, self.trusted)
        is_good = is_by is not False and is_signed(note, named) is not False
        is_named = [one[:2] for one in note.signatures] == [key[:2] for key in named]
        is_good = is_good and (is_named or self.has_keys)
        demand(is_good, "signature", line.seq, "a signature of its checkpoint is wrong")
        is_vouched = is_by or not self.has_keys
        self.by = [key for key in named if is_signed(note, [key])] if is_vouched else None

    def commit(self, line: Line | None) -> None:
        """Take the last line into the tree, and what it says of calls and keys into account."""
        if line is None:
            return
        seq, is_checkpoint = line.seq, line.event == "checkpoint"
        grow(self.nodes, self.size, line.text)
        self.size, self.torn = self.size + 1, self.torn + bool(line.torn)
        for known in self.known:
            if known.size == seq:
                self.texts[seq] = sealed_in(line)[0].text if is_checkpoint else None
            if known.size == self.size:
                self.roots[self.size] = root_of(self.nodes)
        self.checkpoints += is_checkpoint
        if seq == 0:
            self.origin = ORIGIN + sha256(line.text).hexdigest()[:32]
        if is_checkpoint and self.by is None:
            self.doubt = seq if self.doubt < 0 else self.doubt
        elif is_checkpoint:
            self.sealed, self.doubt = seq, -1
            self.trusted += self.by if self.has_keys else []
        elif line.event == "admitted":
            self.open[(line.call, seq) if line.call in self.open else line.call] = seq
        elif line.event == "settled":
            self.strays += self.open.pop(line.call, None) is None

        self.compare(is_end=False)

    def compare(self, is_end: bool) -> None:
        """A checkpoint that was kept elsewhere is of these lines, and they are all there."""
        kind = "signature" if self.sealed >= 0 else "unsigned"
        demand(not is_end or self.doubt < 0, kind, self.doubt, UNTRUSTED)
        for known in self.known:
            size, is_other = known.size, self.origin not in ("", known.origin)
            is_fork = is_other or self.roots.get(size, known.root) != known.root
            is_fork = is_fork or (known.line and self.texts.get(size, known.text) != known.text)
            at = 0 if is_other else size
            demand(not (is_fork and 0 <= self.doubt < at), kind, self.doubt, UNTRUSTED)
            is_by = not self.has_keys or not (is_fork or is_end) or is_signed(known, self.trusted)
            demand(is_by, "signature", size, "no trusted key signed the known checkpoint")
            demand(not is_fork, "fork", at, f"the known checkpoint of {size} lines is of others")
            is_short = is_end and size >= self.size + (not known.line)
            demand(not is_short, "truncated", self.size, f"a known checkpoint is of {size} lines")
        is_vouched = self.sealed >= 0 or not self.has_keys or self.size == 0 or not is_end
        demand(is_vouched, "unsigned", self.first, "no trusted key signed any checkpoint")


def prove(proof: str, line: bytes, keys: list[Key]) -> None:
    """A proof leads from a line to the root of the checkpoint in the proof (C2SP tlog-proof)."""
    head, _, whole = proof.partition("\n\n")
    found, note = PROOF.fullmatch(head), note_of(whole)
    demand(found and note, "unreadable", 0, "this is no proof")
    hashes, index = [b64decode(one) for one in found[2].split()], int(found[1])
    root = root_by(hashes, sha256(b"\x00" + line).digest(), index, note.size)
    demand(root == note.root, "root", index, "the proof does not lead from this line to the root")
    is_by = not (keys and PublicKey) or is_signed(note, keys)
    demand(is_by, "signature", index, "no trusted key signed the checkpoint of the proof")


def main() -> int:
    """Do what the command line says, and print the verdict."""
    usage = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    usage.add_argument("file", nargs="?", metavar="FILE", help="a ledger in JSON Lines")
    usage.add_argument("--key", action="append", default=[], help="a public key, or its file")
    usage.add_argument("--checkpoint", action="append", default=[], help="one kept elsewhere")
    usage.add_argument("--proof", metavar="FILE", help="instead: a proof for one line")
    usage.add_argument("--line", metavar="FILE", help="the exact line to that proof")
    usage.add_argument("--strict", action="store_true", help="open calls and torn tails fail")
    usage.add_argument("--json", action="store_true", help="print JSON")
    given = usage.parse_args()
    if bool(given.file) == bool(given.proof and given.line):
        usage.error("name a FILE, or --proof and --line")
    said: dict[str, Any] = {"verdict": "holds"}
    try:
        texts = [Path(one).read_text() if Path(one).is_file() else one for one in given.key]
        keys = [key_of(one) for text in texts for one in text.split()]
        known = [note_of(Path(one).read_text()) for one in given.checkpoint]
        if None in keys or None in known:
            usage.error("this is no public key (NAME+ID+KEY), or no checkpoint")
    except (OSError, ValueError) as error:
        usage.error(str(error))
    reading = Reading(keys, known)
    try:
        if given.file:
            with Path(given.file).open("rb") as file:
                reading.read(file)
        else:
            prove(Path(given.proof).read_text(), Path(given.line).read_bytes(), keys)
    except DamageError as damage:
        said = {"verdict": "does not hold"}
        said["kind"], said["seq"], said["why"] = damage.args
    except OSError as error:
        print(f"{error}", file=sys.stderr)
        return 3
    remarks = len(reading.open) + reading.torn + reading.strays
    said["lines"] = reading.size
    said["checkpoints"] = reading.checkpoints
    said["torn"] = reading.torn
    said["dangling"] = len(reading.open)
    said["calls"] = dict(list(reading.open.items())[:1000])
    said["strays"] = reading.strays
    print(json.dumps(said))
    return 1


if __name__ == "__main__":
    sys.exit(main())
