"""Files that are there as a whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from mcp_envelope.gateway import keys
from mcp_envelope.gateway.whole_file import WholeFile


def test_nothing_is_there_before_it_is_finished(tmp_path: Path) -> None:
    """And then all of it, for its owner only; nothing else stays behind."""
    path = tmp_path / "file"
    with WholeFile(path) as file:
        file.write(b"one")
        file.write(b"two")
        assert not path.exists()
        file.finish()
    assert path.read_bytes() == b"onetwo"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("over", [True, False])
def test_what_is_broken_off_leaves_nothing(tmp_path: Path, over: bool) -> None:
    """What was there before is as it was."""
    path = tmp_path / "file"
    path.write_bytes(b"before")
    with WholeFile(path, over=over) as file:
        file.write(b"half")
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_there_is_replaced_only_if_that_is_meant(tmp_path: Path) -> None:
    """Without ``over`` not even where it came meanwhile."""
    path = tmp_path / "file"
    with WholeFile(path) as file:
        path.write_bytes(b"meanwhile")
        with pytest.raises(FileExistsError):
            file.finish()
    assert path.read_bytes() == b"meanwhile"
    with WholeFile(path, over=True) as file:
        file.write(b"new")
        file.finish()
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_disk_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and files are made there too, and not overwritten either."""

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "file"
    for wanted in (b"first", b"second"):
        with WholeFile(path) as file:
            file.write(wanted)
            if wanted == b"first":
                file.finish()
            else:
                with pytest.raises(FileExistsError):
                    file.finish()
    assert path.read_bytes() == b"first"
    made, is_new = keys.signers(tmp_path / "keys" / "ledger.key")
    assert is_new
    again, is_new = keys.signers(tmp_path / "keys" / "ledger.key")
    assert not is_new
    assert again[0].key == made[0].key


def test_other_trouble_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fails is said to."""

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(errno.EIO, "broken disk")

    monkeypatch.setattr(os, "link", fail)
    with pytest.raises(OSError, match="broken disk"), WholeFile(tmp_path / "file") as file:
        file.finish()
    with pytest.raises(keys.KeyFileError, match="cannot be written: broken disk"):
        keys.signers(tmp_path / "keys" / "ledger.key")
    assert [one.name for one in tmp_path.rglob("*") if one.is_file()] == [".lock"]
