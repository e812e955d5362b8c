"""What the verbs about the record have in common: ledgers, keys and checkpoints by name."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, TypeVar

import mcp_envelope as me
from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.notes import Checkpoint, Note, VerifierKey
from mcp_envelope.core.ports import Source
from mcp_envelope.stores import STORES, default_path, read_ledger
from mcp_envelope.stores.places import state_directory
from mcp_envelope.stores.recognition import scheme_of

from .console import Console

LEDGER: Final = (
    "the ledger: sqlite:PATH or jsonl:PATH, just the file, or the name of the upstream whose "
    "default one it is"
)
KEY: Final = (
    "a public key that you trust, or a file of them: what mcp-envelope keys show prints; "
    "may be given several times"
)
KEY_FILE: Final = "the private key to sign with, where it is not the one of this machine"

T = TypeVar("T")

_ENDINGS: Final = frozenset({".db", ".jsonl"})
_MOST: Final = 8
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_SIGNATURE: Final = "— "
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")


def url_of(name: str) -> str:
    """The URL of a ledger that is named by its URL or its file. UsageError if there is none."""
    found = _SCHEME.match(name)
    scheme = found[1].lower() if found else ""
    if scheme == "memory":
        raise me.UsageError("nothing is left of a ledger in memory", hint="name a file")
    if scheme in STORES:
        place = name.partition(":")[2]
        if scheme not in ("jsonl", "sqlite"):
            return name
    elif "://" in name:  # which may hold a password, so nothing of it is repeated
        hint = "name it: sqlite:PATH or jsonl:PATH"
        raise me.UsageError("this version reads no ledger from a URL like that", hint=hint)
    else:
        place = name
    if place in ("", "-"):
        raise me.UsageError("a ledger is a file here", hint="name it: sqlite:PATH or jsonl:PATH")
    path = Path(place)
    with contextlib.suppress(RuntimeError):  # no home folder is known
        path = path.expanduser()
    if not path.exists():
        default = _default_of(place) if place == name else None
        if default is None:
            raise me.UsageError(f"there is no file {place}", hint=_where())
        path = default
    if path.is_dir():
        raise me.UsageError(f"{place} is a folder", hint="name the file of the ledger")
    kind = scheme if scheme in STORES else scheme_of(path)
    return f"{kind}:{path.absolute()}"


def path_of(name: str) -> Path:
    """The file of a ledger that is named by its URL or its file. UsageError if there is none."""
    return Path(url_of(name).partition(":")[2])


def has_default(name: str) -> bool:
    """Whether an upstream of that name has a ledger where gateways keep them by default."""
    return _default_of(name) is not None


def files_in(folder: Path) -> list[Path]:
    """The files in a folder that may be ledgers, by their names."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.suffix in _ENDINGS and path.is_file())


def _default_of(name: str) -> Path | None:
    with contextlib.suppress(me.ConfigError, OSError):  # no home folder, too long a name
        path = default_path(name)
        return path if path.is_file() else None
    return None


def _where() -> str:
    """What to write instead of a name that is none."""
    there: list[Path] = []
    with contextlib.suppress(me.ConfigError, OSError):
        there = files_in(state_directory())
    if not there:
        return "see how it is written, or name the ledger by its URL: sqlite:PATH or jsonl:PATH"
    names = ", ".join(path.stem if path.suffix == ".db" else str(path) for path in there[:_MOST])
    more = ", …" if len(there) > _MOST else ""
    return f"by default gateways keep these here: {names}{more}; mcp-envelope ledger list says more"


@contextlib.contextmanager
def opened(name: str) -> Iterator[Source]:
    """The ledger of that URL or file, to read it."""
    source = read_ledger(url_of(name))
    try:
        yield source
    finally:
        source.close()


def keys_in(values: Sequence[str], console: Console) -> tuple[VerifierKey, ...]:
    """The public keys that ``--key`` gave, written out or as files. UsageError for others."""
    found: list[VerifierKey] = []
    for value in values:
        found += _written_out(value) or _keys_of_file(value, console)
    return tuple(dict.fromkeys(found))


def _written_out(value: str) -> list[VerifierKey]:
    try:
        return [VerifierKey.parse(value)]
    except EnvelopeError as error:
        # Base64 may hold slashes, so that a key can look like a file, but none like a key.
        if value.count("+") < 2 or Path(value).exists():
            return []
        raise me.UsageError(f"--key: {error.message}", hint=error.hint) from None


def _keys_of_file(name: str, console: Console) -> list[VerifierKey]:
    text = console.read(name).decode("utf-8", "replace")
    lines = [line.strip() for line in text.splitlines()]
    try:
        found = [VerifierKey.parse(line) for line in lines if line and not line.startswith("#")]
    except EnvelopeError as error:
        raise me.UsageError(f"--key {name}: {error.message}", hint=error.hint) from None
    if not found:
        raise me.UsageError(f"--key {name}: it holds no key", hint="mcp-envelope keys show")
    return found


def notes_in(name: str, option: str, console: Console) -> list[Note]:
    """The signed checkpoints in a file, one behind the other. UsageError if they are none."""
    try:
        text = console.read(name).decode()
        found = [Note.parse(part) for part in _cut(text)]
        for note in found:
            Checkpoint.parse(note.text)
    except UnicodeError:
        raise me.UsageError(f"{option} {name}: it is not UTF-8", hint=_NOTE) from None
    except EnvelopeError as error:
        raise me.UsageError(f"{option} {name}: {error.message}", hint=error.hint or _NOTE) from None
    if not found:
        raise me.UsageError(f"{option} {name}: it holds no checkpoint", hint=_NOTE)
    return found


_NOTE: Final = "mcp-envelope ledger checkpoint prints one"


def _cut(text: str) -> list[str]:
    """The texts of notes that stand one behind the other: each ends with its signatures."""
    notes: list[str] = []
    lines: list[str] = []
    is_signed = False
    for line in _LINE.findall(text):
        if is_signed and not line.startswith(_SIGNATURE):
            notes.append("".join(lines))
            lines, is_signed = [], False
        if lines or line.strip():
            lines.append(line)
        is_signed = is_signed or line.startswith(_SIGNATURE)
    return [*notes, *(["".join(lines)] if lines else [])]


def whole_number(text: str | None, option: str, default: T) -> int | T:
    """The number that an option gave."""
    if text is None:
        return default
    if not re.fullmatch(r"[0-9]{1,19}", text):
        raise me.UsageError(f"{option} must be the number of a line, not {text!r:.80}")
    return int(text)
