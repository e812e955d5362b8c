"""The keys of the record: made once, closed to others, replaced without a gap."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_envelope.core.errors import ConfigError
from mcp_envelope.core.notes import Note, VerifierKey
from mcp_envelope.core.signing import is_signed_by
from mcp_envelope.gateway import keys
from mcp_envelope.gateway.keys import KeyFileError

DAY = 86_400.0
#: Waits for its input to end, so that several begin at once, and says which key it has.
STARTS = """
import sys
from pathlib import Path
from mcp_envelope.gateway import keys
sys.stdout.write("ready\\n")
sys.stdout.flush()
sys.stdin.read()
found, made = keys.signers(Path(sys.argv[1]))
print(found[0].key, made)
"""
ROTATES = STARTS.replace("found, made = keys.signers", "made = keys.make").replace(
    "Path(sys.argv[1])", "None, Path(sys.argv[1])"
)
ROTATES = ROTATES.replace("print(found[0].key, made)", "print(made.signer.key)")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the key of a test lies."""
    return tmp_path / "state" / "keys" / "ledger.key"


def mode_of(path: Path) -> int:
    """Who may do what with a file."""
    return stat.S_IMODE(path.stat().st_mode)


def test_a_key_is_made_on_first_use_and_stays(path: Path) -> None:
    """The first look makes one, closed to others, with its public half beside; later ones read."""
    first, made = keys.signers(path)
    assert made
    assert len(first) == 1
    assert (mode_of(path), mode_of(path.parent)) == (0o600, 0o700)
    assert first[0].key.name.startswith("mcp-envelope/")
    assert VerifierKey.parse((path.parent / "ledger.pub").read_text()) == first[0].key
    again, made = keys.signers(path)
    assert not made
    assert [one.key for one in again] == [first[0].key]
    assert sorted(one.name for one in path.parent.iterdir()) == [
        ".lock",
        "ledger.key",
        "ledger.pub",
    ]


def test_the_default_place_is_in_the_state_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a path the key lies in ``mcp-envelope/keys`` of the user's state directory."""
    monkeypatch.setattr(keys, "state_directory", lambda: tmp_path / "mcp-envelope")
    keys.signers()
    assert (tmp_path / "mcp-envelope" / "keys" / "ledger.key").is_file()


def test_the_public_half_is_written_anew_if_it_is_lost(path: Path) -> None:
    """It follows from the private key, so a lost or wrong one is mended."""
    found, _ = keys.signers(path)
    public = keys.public_path(path)
    for harm in (public.unlink, lambda: public.write_text("nonsense")):
        harm()
        keys.signers(path)
        assert public.read_text() == f"{found[0].key}\n"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o666])
def test_a_key_that_others_can_read_is_refused(path: Path, mode: int) -> None:
    """It says what to do, and not what the key is."""
    keys.signers(path)
    secret = path.read_text().strip()
    path.chmod(mode)
    with pytest.raises(KeyFileError, match="chmod 600") as caught:
        keys.signers(path)
    assert secret.split("+", 4)[4] not in str(caught.value)
    path.chmod(0o600)
    assert path.read_text().strip() == secret


@pytest.mark.parametrize("cut", [0, 1, 20, -2])
def test_a_damaged_key_is_refused_and_kept(path: Path, cut: int) -> None:
    """Nothing overwrites it, neither first use nor ``keys new``, and nothing shows it."""
    keys.signers(path)
    whole = path.read_text().strip()
    harmed = whole[:cut] if cut >= 0 else whole[:cut] + "AA"
    path.write_text(harmed)
    for act in (lambda: keys.signers(path), lambda: keys.make(None, path)):
        with pytest.raises(KeyFileError, match="damaged") as caught:
            act()
        assert whole.split("+", 4)[4][:20] not in str(caught.value)
        assert path.read_text() == harmed


def test_what_is_no_file_or_huge_is_refused(path: Path) -> None:
    """A folder, a pipe and a file of megabytes are no keys; none is waited for."""
    path.parent.mkdir(parents=True)
    path.mkdir()
    with pytest.raises(KeyFileError, match="regular"):
        keys.signers(path)
    path.rmdir()
    os.mkfifo(path)
    with pytest.raises(KeyFileError, match="no regular file"):
        keys.signers(path)
    path.unlink()
    path.write_bytes(b"x" * 10_000)
    path.chmod(0o600)
    with pytest.raises(KeyFileError, match="damaged"):
        keys.signers(path)


def test_where_no_key_can_be_written_it_is_said(tmp_path: Path) -> None:
    """The reason and the place, not a traceback of the system's."""
    (tmp_path / "file").write_text("")
    with pytest.raises(KeyFileError, match="Not a directory"):
        keys.signers(tmp_path / "file" / "keys" / "ledger.key")


@pytest.mark.parametrize("name", ["", "a b", "a+b", "é", "a\n", "x" * 101])
def test_names_are_plain(path: Path, name: str) -> None:
    """Notes forbid spaces and plus signs, and what is not ASCII only confuses."""
    with pytest.raises(ConfigError, match="cannot be called"):
        keys.make(name, path)
    assert not path.exists()


def test_a_new_key_replaces_the_old_one_and_both_sign(path: Path) -> None:
    """The old pair is kept under its id, and checkpoints are signed by the new one first."""
    old = keys.make("example.org/one", path).signer
    made = keys.make("example.org/two", path)
    assert made.replaced is not None
    assert made.replaced.path == path.with_name(f"ledger-{old.key.id.hex()}.key")
    assert mode_of(made.replaced.path) == 0o600
    found, is_new = keys.signers(path)
    assert not is_new
    assert [one.key.name for one in found] == ["example.org/two", "example.org/one"]
    note = Note("a\n", tuple(one.sign("a\n") for one in found))
    assert is_signed_by(note, old.key)
    listed = keys.stored(path)
    assert [(one.key.name, one.is_current, one.has_private) for one in listed] == [
        ("example.org/two", True, True),
        ("example.org/one", False, True),
    ]


def test_older_keys_sign_along_for_a_while(path: Path) -> None:
    """Then their private halves are deleted, and the public ones stay for ever."""
    old = keys.make("one", path).signer
    keys.make("two", path)
    aside = path.with_name(f"ledger-{old.key.id.hex()}.key")
    at = aside.stat().st_mtime
    assert keys.retire(path, now=at + 29 * DAY) == []
    keys.public_path(aside).unlink()
    assert keys.retire(path, now=at + 31 * DAY) == [aside]
    assert not aside.exists()
    assert [one.key.name for one in keys.signers(path)[0]] == ["two"]
    assert [(one.key.name, one.has_private) for one in keys.stored(path)] == [
        ("two", True),
        ("one", False),
    ]
    assert path.exists()


def test_a_rotation_that_was_cut_off_does_no_harm(path: Path) -> None:
    """Where only the copy of the old key was written, that key still is the current one."""
    old = keys.make("one", path).signer
    aside = path.with_name(f"ledger-{old.key.id.hex()}.key")
    aside.write_text(path.read_text())
    aside.chmod(0o600)
    assert [one.key for one in keys.signers(path)[0]] == [old.key]
    assert [one.key for one in keys.stored(path)] == [old.key]
    made = keys.make("two", path)
    assert made.replaced is not None
    assert [one.key.name for one in keys.signers(path)[0]] == ["two", "one"]


def test_many_rotations_leave_no_more_keys_than_a_note_may_have(path: Path) -> None:
    """A note has 16 signatures at most; the newest keys sign."""
    for number in range(20):
        keys.make(f"key-{number}", path)
        for one in path.parent.glob("ledger-*.key"):
            os.utime(one, (one.stat().st_mtime - 10, one.stat().st_mtime - 10))
    found, _ = keys.signers(path)
    assert [one.key.name for one in found] == [f"key-{n}" for n in range(19, 3, -1)]
    assert len(keys.stored(path)) == 20


def test_a_key_for_another_machine(tmp_path: Path) -> None:
    """It is written where it was said, pair and all, and never over anything."""
    made = keys.make_at(tmp_path / "other.key", "other")
    assert mode_of(made.path) == 0o600
    assert VerifierKey.parse((tmp_path / "other.pub").read_text()) == made.signer.key
    with pytest.raises(FileExistsError):
        keys.make_at(tmp_path / "other.key")
    with pytest.raises(FileExistsError):
        keys.make_at(tmp_path / "other")
    assert keys.signers(made.path)[0][0].key == made.signer.key


def several(script: str, path: Path, count: int) -> list[str]:
    """What several processes print that begin at the same time."""
    command = [sys.executable, "-c", script, str(path)]
    running = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    said = []
    for one in running:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in running:
        assert one.stdin is not None
        one.stdin.close()
    for one in running:
        assert one.stdout is not None
        said.append(one.stdout.read().strip())
        one.stdout.close()
        assert one.wait() == 0
    return said


def test_gateways_that_start_at_once_have_one_key(path: Path) -> None:
    """One of them makes it, and nobody sees half of one."""
    said = [line.rsplit(" ", 1) for line in several(STARTS, path, 4)]
    assert len({key for key, _ in said}) == 1
    assert sorted(made for _, made in said) == ["False", "False", "False", "True"]


def test_rotations_at_once_lose_no_key(path: Path) -> None:
    """Each new key is the current one or is kept as one that was replaced."""
    keys.make("zero", path)
    said = set(several(ROTATES, path, 3))
    assert len(said) == 3
    kept = {str(one.key) for one in keys.stored(path)}
    assert said <= kept
    assert len(kept) == 4
    assert len(keys.signers(path)[0]) == 4
