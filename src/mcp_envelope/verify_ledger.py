"""Verifies a ledger of mcp-envelope: whether lines were altered, left out, moved or added.

One file, to be read from top to bottom. It needs Python 3.9 and, for signatures, `cryptography`.
The format is that of docs/ledger.md, after RFC 6962 (section 2.1: Merkle trees) and C2SP's
signed-note, tlog-checkpoint and tlog-proof. It ends with 0: holds, 1: does not, 2: usage.
"""

from __future__ import annotations

import argparse
import json
import re
from base64 import b64decode
from collections import namedtuple
from functools import partial, reduce
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Iterable, Iterator  # noqa: UP035 - Python 3.9

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey as PublicKey
except ImportError:
    PublicKey = None

ORIGIN = "mcp-envelope/ledger/"
UNCHECKED = ("there is no `cryptography` here", "nobody vouches for a key; give --key")
EVENTS = "admitted|settled|refused|malformed|started|stopped|checkpoint"
FIELDS = """v event seq prev time instance kind tool definition peer grant request_id client_id
    run_id trace_id correlation_id door dialect outcome error duration_ms input output warnings"""
DIGEST = "sha256:([0-9a-f]{64})"
NUMBER = "(0|[1-9][0-9]{0,18})"
HASH = "[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]="  # base64 in the one right spelling, 32 bytes; any:
BASE64 = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=|[A-Za-z0-9+/][AQgw]==)?"
HEAD = rf'{{"v":1,"event":"({EVENTS})","seq":{NUMBER},"prev":"([0-9a-f]{{64}})"'.encode()
TORN = re.compile(f"torn tail: the {NUMBER} bytes before this line are no line, {DIGEST}")
REMOVED = re.compile(f"removed: lines 0 to {NUMBER}, the last {DIGEST}, tree((?: {HASH})+)")
KEY = re.compile(r"([^\s+]+)\+([0-9a-f]{8})\+(A[Q-Za-f][A-Za-z0-9+/]{42})")  # AQ to Af: Ed25519
TEXT = rf"((.+)\n{NUMBER}\n({HASH})\n(?:line {DIGEST}\n)?(?:.+\n)*)"
SIGNATURE = re.compile(rf"— ([^\s+]+) ({BASE64})\n")
NOTE = re.compile(rf"{TEXT}\n((?:— [^\s+]+ {BASE64}\n){{1,16}})")
PROOF = re.compile(f"c2sp.org/tlog-proof@v1\n(?:extra .*\n)?index {NUMBER}((?:\n{HASH})*)")
DamageError = type("DamageError", (ValueError,), {})
Line = namedtuple("Line", "seq prev event text call warnings torn")  # text: its exact bytes
Key = namedtuple("Key", "name id public")
Note = namedtuple("Note", "text origin size root line signatures")  # these: name, id of key, value

def demand(holds: object, kind: str, seq: int) -> None:
    """Go on only if something holds; docs/auditing.md says what each kind of damage means."""
    if not holds:
        raise DamageError(kind, seq)

def object_of(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object: no name stands in it twice, else readers would not agree on what it says."""
    demand(len(dict(members)) == len(members), "unreadable", 0)
    return dict(members)

def line_of(piece: bytes) -> Line | None:
    """Read a piece of the file: a line ends in a newline and is a JSON object with every field."""
    head = re.match(HEAD, piece)
    try:
        whole = piece.decode() if head and piece.endswith(b"}\n") else "{}"
        said = json.loads(whole, object_pairs_hook=object_of, parse_int=float, parse_constant=int)
        json.dumps(said, ensure_ascii=False).encode()  # half of a surrogate pair is no UTF-8
        call, *_, texts = [said[name] for name in FIELDS.split()][11:]
        first = "".join(texts + []) and texts[0]  # noqa: RUF005 - a list of texts, or TypeError
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    torn = TORN.fullmatch(first)
    event, seq, prev = (part.decode() for part in head.groups())
    return Line(int(seq), prev, event, piece[:-1], str(call), texts, torn and torn.groups())

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
def root_of(nodes: list[bytes]) -> bytes:
    """The root of a tree that is kept as its largest complete subtrees (RFC 6962, 2.1)."""
    return reduce(lambda up, left: node(left, up), nodes[::-1]) if nodes else sha256().digest()
def root_by(proof: list[bytes], leaf: bytes, index: int, size: int) -> bytes:
    """The root to which a proof leads from a leaf, as PATH is defined in RFC 6962, 2.1.1."""
    if size <= 1 or not proof:
        return leaf if size == 1 and not proof else b""
    half, rest = 1 << (size - 1).bit_length() - 1, proof[:-1]
    if index < half:
        return node(root_by(rest, leaf, index, half), proof[-1])
    return node(proof[-1], root_by(rest, leaf, index - half, size - half))

def key_of(vkey: str) -> Key | None:
    """Read a public key, NAME+ID+KEY; the id is made of name and key (C2SP signed-note)."""
    found = KEY.fullmatch(vkey)
    data = b64decode(found[3]) if found else b""
    is_right = found and sha256(f"{found[1]}\n".encode() + data).hexdigest()[:8] == found[2]
    return Key(found[1], bytes.fromhex(found[2]), data[1:]) if is_right else None

def note_of(whole: str) -> Note | None:
    """Read a signed checkpoint: origin, size, root (C2SP signed-note and tlog-checkpoint)."""
    found = NOTE.fullmatch(whole)
    if not found or re.search("[\x00-\x09\x0b-\x1f]", whole):
        return None
    signed = [(n, b64decode(t)[:4], b64decode(t)[4:]) for n, t in SIGNATURE.findall(found[6])]
    return Note(found[1], found[2], int(found[3]), b64decode(found[4]), found[5], signed)

def is_signed(note: Note, keys: Iterable[Key]) -> bool | None:
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
        self.trusted, self.has_keys = {*keys}, bool(keys and PublicKey)
        self.known = sorted(known, key=lambda note: note.size)
        self.nodes, self.size, self.digest, self.origin, self.first = [], 0, "0" * 64, "", 0
        self.last, self.behind, self.by, self.sealed, self.doubt = None, b"", None, -1, -1
        self.checkpoints, self.torn, self.strays, self.open = 0, 0, 0, {}
    def read(self, file: BinaryIO) -> None:
        """Take in line after line; DamageError at the first thing that does not hold."""
        lines = lines_of(file)
        for line, loose in lines:
            if line and line.seq and not self.size and not self.last:
                self.begin(line.seq, file)
            self.mend(line, loose)
            if line and line[:2] != (self.size + bool(self.last), self.digest):
                self.misplaced(line, (later for later, _ in lines if later))
            if self.last:
                self.commit(self.last)
            if line and line.event == "checkpoint":
                self.check(line)
            self.last, self.behind = line, bytes(loose)
            self.digest = sha256(line.text).hexdigest() if line else ""
        self.compare(is_end=True)
    def begin(self, first: int, file: BinaryIO) -> None:
        """If lines before this one were removed the newest remark on that says what is kept."""
        place, _ = file.tell(), file.seek(0)
        for line, _ in lines_of(file):
            for text in line.warnings if line and line.event == "checkpoint" else ():
                found = REMOVED.fullmatch(text)
                count, nodes = int(found[1]) + 1 if found else 0, found[3].split() if found else ()
                if 0 < count <= first and len(nodes) == bin(count).count("1"):  # noqa: FURB161
                    self.first = self.size = count
                    self.digest, self.nodes = found[2], [b64decode(one) for one in nodes]
        file.seek(place)
    def mend(self, line: Line | None, loose: bytearray) -> None:
        """Bytes that are no line are a torn tail if the next line says how many, and which."""
        before = self.behind + self.last.text + b"\n" if self.last else b""
        torn, due = line and line.torn, self.size + bool(self.last)
        said = [(str(len(one)), sha256(one).hexdigest()) for one in (loose, before + loose) if torn]
        if torn and torn not in said:
            is_again = self.last and line[:2] == self.last[:2]
            demand(not is_again and (line.seq != due or not loose), "altered", line.seq)
        elif torn and torn != said[0]:  # the last line was not finished either
            self.last, self.digest, loose[:0] = None, self.last.prev, before
        demand(not loose or torn in said or not (line or b"\n" in loose), "unreadable", due)
        self.torn += bool(loose and not line)
    def misplaced(self, line: Line, rest: Iterator[Line]) -> None:
        """What it means that a line does not follow the one before."""
        due, seq, prev = self.size + bool(self.last), line.seq, self.digest
        demand(seq == due or line.prev != prev, "altered", due)
        demand(seq >= due, "duplicate", seq)
        demand(seq == due or not any(later.seq == due for later in rest), "reordered", due)
        demand(seq == due, "missing", due)
        later = next(rest, None)
        while later and later.torn and later[:2] == line[:2]:  # not finished, so written again
            line, later = later, next(rest, None)
        demand(not later or later[:2] != (due, prev), "inserted", due)
        is_right = not later or later[:2] == (due + 1, sha256(line.text).hexdigest())
        if line.event == "checkpoint":
            is_right = sealed_in(line) and is_signed(*sealed_in(line))
        demand(False, "altered", due - 1 if is_right and due > self.first else due)
    def check(self, line: Line) -> None:
        """A checkpoint line is as it was signed, for the lines before it, by a trusted key."""
        note, named = sealed_in(line) or (None, [])
        demand(note, "altered", line.seq)
        self.origin = self.origin or (note.origin if self.first else "")  # line 0 has no other
        demand(note[1:4] == (self.origin, self.size, root_of(self.nodes)), "root", line.seq)
        is_as_named = [one[:2] for one in note.signatures] == [key[:2] for key in named]
        demand(is_as_named and is_signed(note, named), "signature", line.seq)
        self.by = named if not self.has_keys or is_signed(note, self.trusted) else None
    def commit(self, line: Line) -> None:
        """Take the last line into the tree, and what it says of calls and keys into account."""
        sealed = sealed_in(line) if line.event == "checkpoint" else None
        found, rest = sha256(b"\x00" + line.text).digest(), self.size  # a leaf of the tree
        while rest & 1:  # two subtrees of one size become one of twice that size
            found, rest = node(self.nodes.pop(), found), rest >> 1
        self.nodes.append(found)
        self.size, self.torn = self.size + 1, self.torn + bool(line.torn)
        if line.seq == 0:
            self.origin = ORIGIN + sha256(line.text).hexdigest()[:32]
        if sealed and self.by is None:
            self.doubt = line.seq if self.doubt < 0 else self.doubt
        elif sealed:
            self.sealed, self.doubt, self.trusted = line.seq, -1, {*self.trusted, *self.by[:1]}
        elif line.event == "admitted":
            self.open[(line.call, line.seq) if line.call in self.open else line.call] = line.seq
        elif line.event == "settled":
            self.strays += self.open.pop(line.call, None) is None and not self.first
        self.checkpoints += bool(sealed)
        self.compare(sealed and sealed[0].text)
    def compare(self, text: str | None = None, is_end: bool = False) -> None:
        """Checkpoints that were kept elsewhere are of these lines; at the end, none is missing."""
        kind = "unsigned" if self.has_keys and self.sealed < 0 else "signature"
        demand(not is_end or self.doubt < 0, kind, self.doubt)
        for known in self.known:
            size, is_other = known.size, self.origin not in ("", known.origin)
            is_fork = is_other or (size == self.size and known.root != root_of(self.nodes))
            is_sealed = size + 1 != self.size or is_end or not known.line or text == known.text
            is_fork, at = is_fork or not is_sealed, 0 if is_other else size
            is_by = not self.has_keys or not (is_fork or is_end) or is_signed(known, self.trusted)
            demand(is_by, "signature", size)
            demand(not is_fork or not 0 <= self.doubt < at, kind, self.doubt)
            demand(not is_fork, "fork", at)
            demand(not is_end or size < self.size + (not known.line), "truncated", self.size)
        demand(self.sealed >= 0 or not (is_end and self.has_keys), kind, self.first)

def prove(proof: str, text: bytes, keys: list[Key]) -> None:
    """A proof leads from a line to the root of the checkpoint in the proof (C2SP tlog-proof)."""
    head, _, whole = proof.partition("\n\n")
    found, note, line = PROOF.fullmatch(head), note_of(whole), line_of(text.rstrip(b"\n") + b"\n")
    demand(found and note and line, "unreadable", 0)
    hashes, index = [b64decode(one) for one in found[2].split()], int(found[1])
    leaf, is_it = sha256(b"\x00" + line.text).digest(), line.seq == index < note.size
    demand(is_it and root_by(hashes, leaf, index, note.size) == note.root, "root", index)
    demand(not keys or not PublicKey or is_signed(note, keys), "signature", index)

def main() -> int:
    """Do what the command line says, and print the verdict."""
    usage = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    usage.add_argument("file", nargs="?", metavar="FILE", help="a ledger, as JSON Lines")
    usage.add_argument("--key", action="append", default=[], help="a public key, or its file")
    usage.add_argument("--checkpoint", action="append", default=[], help="a copy kept elsewhere")
    usage.add_argument("--proof", help="in place of FILE: the file with a proof for one line")
    usage.add_argument("--line", help="the file with that line")
    usage.add_argument("--strict", action="store_true", help="end with 1 for remarks, too")
    usage.add_argument("--json", action="store_true", help="print JSON")
    given, keys, known = usage.parse_args(), [], []
    try:
        for at, one in enumerate(given.key + given.checkpoint):
            text = Path(one).read_bytes().decode("utf-8", "replace") if Path(one).is_file() else one
            found, what = (keys, "public key") if at < len(given.key) else (known, "checkpoint")
            found += map(key_of, text.split() or [""]) if found is keys else [note_of(text)]
            if None in found:
                raise ValueError(f"{one} is no {what}, and no file that holds one")
        if bool(given.file) == bool(given.proof and given.line):
            raise ValueError("name FILE, or --proof and --line")
        reading, said = Reading(keys, known), {"verdict": "holds"}
        if given.proof:
            prove(Path(given.proof).read_bytes().decode(), Path(given.line).read_bytes(), keys)
        else:
            with Path(given.file).open("rb") as file:
                if file.peek().startswith(b"SQLite format 3"):
                    raise ValueError(f"{given.file} is a database: ask for an export of it")
                reading.read(file)
    except DamageError as damage:
        said = {"verdict": "DOES NOT HOLD", "kind": damage.args[0], "line": damage.args[1]}
    except (OSError, ValueError) as error:
        usage.error(str(error))
    first, end, torn = reading.first, max(reading.first, reading.sealed + 1), reading.torn
    remarks = {"behind": reading.size - end, "dangling": len(reading.open), "torn": torn}
    remarks["strays"] = reading.strays
    said["signatures"] = "checked" if keys and PublicKey else f"unchecked: {UNCHECKED[not keys]}"
    if given.file and "kind" not in said:
        said.update(lines=reading.size - first, removed=f"0 to {first - 1}" if first else "none")
        covered = f"{first} to {end - 1}" if end > first else "none"
        said.update(checkpoints=reading.checkpoints, covered=covered, **remarks)
        said["calls"] = [f"{seq} {call!a}" for call, seq in reading.open.items()][:1_000]
    text = json.dumps(said) if given.json else "\n".join(f"{name}: {said[name]}" for name in said)
    print(f"{text}\n", end="")  # at once, as `head` may not read all of it
    is_bad = "kind" in said or (given.strict and any(remarks.values()))
    return 1 if is_bad else 3 if keys and not PublicKey else 0
if __name__ == "__main__":
    raise SystemExit(main())
