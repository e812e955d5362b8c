"""The keys that sign the record: where they lie, how they are made, and how one follows another.

``<state>/mcp-envelope/keys/ledger.key`` is the private key, for its owner's eyes only, and
``ledger.pub`` beside it the public one. Where one key replaces another the old pair is called
``ledger-<id>``, and signs along for a while: so whoever trusts the old key learns of the new one
from the record itself. Nothing here ever says what a private key is, and none is overwritten.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from secrets import token_bytes, token_hex
from typing import Final

from mcp_envelope.core.errors import ConfigError, EnvelopeError
from mcp_envelope.core.notes import MOST_SIGNATURES, VerifierKey
from mcp_envelope.core.signing import Signer
from mcp_envelope.stores.places import make_private, state_directory

from .key_files import KeyFileError, locked, read_private, write_anew, write_over

__all__ = ["KeyFileError", "Made", "StoredKey", "key_path", "make", "retire", "signers", "stored"]

#: How long a key that was replaced signs along: in that time each gateway of this machine
#: should have been started once.
SIGNS_ALONG: Final = 30 * 86_400.0

_NAME: Final = re.compile(r"[A-Za-z0-9._/-]{1,100}")
_SEED: Final = 32


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key that lies on this machine, or whose public half does."""

    key: VerifierKey
    #: Where the private key is, or was.
    path: Path
    is_current: bool
    has_private: bool


@dataclass(frozen=True, slots=True)
class Made:
    """A new key, and the one that it replaces, if it does."""

    signer: Signer
    path: Path
    replaced: StoredKey | None = None


def key_path(path: Path | None = None) -> Path:
    """Where the private key lies, unless it is said to be elsewhere."""
    return state_directory() / "keys" / "ledger.key" if path is None else path


def public_path(path: Path) -> Path:
    """Where the public half of a private key lies: beside it."""
    return path.with_suffix(".pub")


def signers(path: Path | None = None) -> tuple[list[Signer], bool]:
    """The keys that a checkpoint is signed by, and whether one was made for that just now.

    The first is the current key; others are those that it replaced lately (:func:`retire`).
    KeyFileError, saying what to do, where a key cannot be read, is damaged, or is readable by
    others; ConfigError where there is no place for one.
    """
    path = key_path(path)
    current, made_now = _load(path), False
    if current is None:
        current, made_now = _first(path)
    else:
        _keep_public(path, current.key)
    return [current, *_older(path, current)][:MOST_SIGNATURES], made_now


def make(name: str | None = None, path: Path | None = None) -> Made:
    """Make a new key; one that is there already is kept as ``ledger-<id>`` and signs along.

    ConfigError for a name that cannot be one. KeyFileError as with :func:`signers`.
    """
    new = _generated(name)
    path = key_path(path)
    make_folder(path.parent)
    with locked(path.parent):
        old = _load(path)
        if old is None:
            if not write_anew(path, new.secret_text(), 0o600):
                raise KeyFileError(f"{path} was made meanwhile", hint="look at it, then try again")
            replaced = None
        else:
            replaced = _put_aside(path, old)
            write_over(path, new.secret_text(), 0o600)
        _write_public(path, new.key)
    return Made(new, path, replaced)


def make_at(path: Path, name: str | None = None) -> Made:
    """Make a key in a file of its own, and its public half beside it. FileExistsError if there."""
    new = _generated(name)
    for one in (path, public_path(path)):
        if os.path.lexists(one):
            raise FileExistsError(f"{one} is there already")
    if not write_anew(path, new.secret_text(), 0o600):
        raise FileExistsError(f"{path} is there already")
    _write_public(path, new.key)
    return Made(new, path)


def stored(path: Path | None = None) -> list[StoredKey]:
    """The public keys of this machine: the current one, if there is one, and those before it."""
    path = key_path(path)
    found = []
    current = _load(path)
    if current is not None:
        found.append(StoredKey(current.key, path, is_current=True, has_private=True))
    older = []
    for public in path.parent.glob(f"{path.stem}-*.pub"):
        private = public.with_suffix(".key")
        one = StoredKey(
            _read_public(public), private, is_current=False, has_private=private.exists()
        )
        if current is None or one.key != current.key:
            older.append((-public.stat().st_mtime_ns, str(public), one))
    return [*found, *(one for _, _, one in sorted(older, key=lambda each: each[:2]))]


def retire(path: Path | None = None, *, now: float | None = None) -> list[Path]:
    """Delete the private keys that were replaced long enough ago; the files that went.

    To be called once a checkpoint with all of :func:`signers` is written. Their public halves
    stay for ever: old checkpoints are verified with them. A key is long enough gone after
    :data:`SIGNS_ALONG`, because other ledgers of this machine need its signature too. ``now``
    is in seconds since 1970.
    """
    path = key_path(path)
    now = time.time() if now is None else now
    gone = []
    for private in _older_paths(path):
        if now - private.stat().st_mtime < SIGNS_ALONG:
            continue
        with locked(path.parent):
            found = _load(private)
            if found is not None:
                _keep_public(private, found.key, must=True)
                private.unlink()
                gone.append(private)
    return gone


def make_folder(folder: Path) -> None:
    """Make the folder of the keys, for nobody but its owner."""
    try:
        make_private(folder)
    except OSError as error:
        raise KeyFileError(
            f"{folder} cannot be made: {error.strerror}", hint="make it, or let us write there"
        ) from None


def _generated(name: str | None) -> Signer:
    name = f"mcp-envelope/{token_hex(4)}" if name is None else name
    if not _NAME.fullmatch(name):
        hint = "use letters, digits, and . _ / - of ASCII, 100 at most, like example.org/gateway"
        raise ConfigError(f"a key cannot be called {name!r:.200}", hint=hint)
    return Signer(name, token_bytes(_SEED))


def _first(path: Path) -> tuple[Signer, bool]:
    """The key, and whether we made it: somebody else may have been faster."""
    new = _generated(None)
    make_folder(path.parent)
    with locked(path.parent):
        if write_anew(path, new.secret_text(), 0o600):
            _write_public(path, new.key)
            return new, True
    found = _load(path)
    if found is None:
        raise KeyFileError(f"{path} comes and goes", hint="see that nothing deletes it")
    return found, False


def _load(path: Path) -> Signer | None:
    """The private key in a file, None if there is no such file."""
    text = read_private(path)
    if text is None:
        return None
    try:
        return Signer.parse(text)
    except EnvelopeError as error:
        raise KeyFileError(
            f"{path} is damaged: {error.message}",
            hint="restore it from a backup, or move it away and make a new key: "
            "mcp-envelope keys new",
        ) from None


def _older_paths(path: Path) -> list[Path]:
    """The private keys that were replaced, newest first."""
    pattern = re.compile(re.escape(path.stem) + r"-[0-9a-f]{8}\.key")
    found = [one for one in path.parent.glob(f"{path.stem}-*.key") if pattern.fullmatch(one.name)]
    return sorted(found, key=lambda one: (-one.stat().st_mtime_ns, one.name))


def _older(path: Path, current: Signer) -> list[Signer]:
    found = (_load(one) for one in _older_paths(path))
    return [one for one in found if one is not None and one.key != current.key]


def _put_aside(path: Path, old: Signer) -> StoredKey:
    """Keep a copy of the key that is about to be replaced."""
    aside = path.with_name(f"{path.stem}-{old.key.id.hex()}.key")
    if not write_anew(aside, old.secret_text(), 0o600):
        there = _load(aside)
        if there is None or there.key != old.key:
            raise KeyFileError(f"{aside} is another key", hint="move it away, then try again")
        os.utime(aside)  # from now on it counts as replaced
    _write_public(aside, old.key)
    return StoredKey(old.key, aside, is_current=False, has_private=True)


def _keep_public(path: Path, key: VerifierKey, *, must: bool = False) -> None:
    """See that the public half lies beside the key; if not it is written, where that can be."""
    try:
        if public_path(path).read_text(encoding="ascii").strip() == str(key):
            return
    except (OSError, ValueError):
        pass
    try:
        _write_public(path, key)
    except KeyFileError:
        if must:
            raise


def _write_public(path: Path, key: VerifierKey) -> None:
    write_over(public_path(path), str(key), 0o644)


def _read_public(path: Path) -> VerifierKey:
    try:
        return VerifierKey.parse(path.read_text(encoding="ascii"))
    except OSError as error:
        raise KeyFileError(f"{path} cannot be read: {error.strerror}") from None
    except (EnvelopeError, ValueError) as error:
        why = error.message if isinstance(error, EnvelopeError) else "it is not ASCII"
        raise KeyFileError(
            f"{path} is damaged: {why}", hint="restore it from a backup, or move it away"
        ) from None
