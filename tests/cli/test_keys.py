"""``keys new`` and ``keys show``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mcp_envelope.core.notes import VerifierKey
from mcp_envelope.gateway import keys

from .conftest import Run

pytestmark = pytest.mark.usefixtures("state")


def test_a_key_is_made_and_shown(run: Run, state: Path) -> None:
    """Standard output is the public key and nothing else, so that it can go to a file."""
    made = run("keys", "new", "example.org/gateway")
    assert made.code == 0
    assert VerifierKey.parse(made.out.decode()).name == "example.org/gateway"
    assert str(state / "keys" / "ledger.key") in made.err
    shown = run("keys", "show")
    assert (shown.code, shown.out, shown.err) == (0, made.out, "")
    assert (state / "keys" / "ledger.pub").read_bytes() == made.out


def test_the_private_key_is_never_printed(run: Run, state: Path) -> None:
    """Neither when it is made, nor when it is shown, nor when something is wrong with it."""
    printed = [run("keys", "new"), run("keys", "new", "--json"), run("keys", "show", "--all")]
    path = state / "keys" / "ledger.key"
    secret = path.read_text().strip().split("+", 4)[4]
    path.chmod(0o644)
    printed += [run("keys", "show"), run("keys", "new"), run("keys", "show", "--json")]
    path.chmod(0o600)
    path.write_text(path.read_text()[:-3])
    printed += [run("keys", "show"), run("keys", "new")]
    assert [one.code for one in printed] == [0, 0, 0, 3, 3, 3, 3, 3]
    for one in printed:
        assert secret[:12].encode() not in one.out
        assert secret[:12] not in one.err


def test_no_key_yet(run: Run, state: Path) -> None:
    """Nothing is made by looking, and what to do is said."""
    shown = run("keys", "show")
    assert (shown.code, shown.out) == (3, b"")
    assert "mcp-envelope keys new" in shown.err
    assert not state.exists()


def test_a_second_key_replaces_the_first(run: Run) -> None:
    """It says so, and ``--all`` shows both, the current one first."""
    first = run("keys", "new", "one").out
    second = run("keys", "new", "two")
    assert "replaced:    one" in second.err
    assert "restart the gateways" in second.err
    assert run("keys", "show").out == second.out
    assert run("keys", "show", "--all").out == second.out + first
    listed = run("keys", "show", "--all", "--json").json["keys"]
    assert [(one["name"], one["current"], one["private"]) for one in listed] == [
        ("two", True, True),
        ("one", False, True),
    ]
    assert len(run("keys", "show", "--json").json["keys"]) == 1


def test_json_says_where_everything_is(run: Run, state: Path) -> None:
    """The key that was replaced is named, or null."""
    first = run("keys", "new", "--json").json
    assert first["path"] == str(state / "keys" / "ledger.key")
    assert first["public"] == str(state / "keys" / "ledger.pub")
    assert first["replaced"] is None
    assert run("keys", "new", "--json").json["replaced"] == first["key"]


@pytest.mark.parametrize("name", ["a b", "a+b", "é", ""])
def test_names_that_cannot_be(run: Run, state: Path, name: str) -> None:
    """A mistake of the command line; nothing is made."""
    done = run("keys", "new", name)
    assert (done.code, done.out) == (2, b"")
    assert "cannot be called" in done.err
    assert not state.exists()


def test_a_key_for_another_machine(run: Run, state: Path, tmp_path: Path) -> None:
    """It goes where it was said, and this machine's key is not touched."""
    done = run("keys", "new", "other", "--out", str(tmp_path / "other.key"))
    assert done.code == 0
    assert keys.signers(tmp_path / "other.key")[0][0].key == VerifierKey.parse(done.out.decode())
    assert (tmp_path / "other.pub").read_bytes() == done.out
    assert not state.exists()


def test_a_key_in_another_file(run: Run, state: Path, tmp_path: Path) -> None:
    """What ``record.key`` names is shown and replaced as the one of the machine is."""
    words = ["--key-file", str(tmp_path / "deep" / "other.key")]
    absent = run("keys", "show", *words)
    assert (absent.code, f"keys new --out {words[1]}" in absent.err) == (3, True)
    first = run("keys", "new", "one", *words).out
    assert run("keys", "show", *words).out == first
    second = run("keys", "new", "two", *words).out
    assert run("keys", "show", "--all", *words).out == second + first
    assert run("keys", "new", *words, "--out", str(tmp_path / "x.key")).code == 2
    assert not state.exists()


def test_what_to_do_with_a_key_that_is_open_to_others(run: Run, tmp_path: Path) -> None:
    """Done in the order in which it is said, it works, and replaces that very key."""
    path = tmp_path / "own.key"
    old = run("keys", "new", "old", "--out", str(path)).out
    path.chmod(0o644)
    words = ["--key-file", str(path)]
    said = run("keys", "show", *words).err
    assert f"first chmod 600 {path}; then, if others may have read it, " in said
    assert said.endswith(f"mcp-envelope keys new --key-file {path}\n")
    assert run("keys", "new", *words).code == 3
    path.chmod(0o600)
    assert run("keys", "new", "new", *words).code == 0
    assert run("keys", "show", "--all", *words).out.endswith(old)


@pytest.mark.parametrize("name", ["there.key", "", ".", "absent/other.key", "other.pub"])
def test_places_where_no_key_can_be(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A key is never overwritten, and a folder that is not there is not made."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.key").write_text("mine")
    done = run("keys", "new", "--out", name)
    assert (done.code, done.out) == (2, b"")
    assert (tmp_path / "there.key").read_text() == "mine"
    assert not (tmp_path / "other.pub").exists()


def test_at_a_terminal_more_is_said(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The id and the place, beside the key: standard output stays the key alone."""
    made = run("keys", "new")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    shown = run("keys", "show")
    assert shown.out == made.out
    assert "the private key is" in shown.err
