"""Whatever a verb writes, no ledger, nothing that belongs to one and no key is lost by it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.ledgers import url_in, write

from mcp_envelope.gateway.keys import key_path, public_path

from .conftest import Run

pytestmark = pytest.mark.usefixtures("state")
#: Each verb that writes a file, but for the file's name.
VERBS = {
    "export": ["ledger", "export", "{}", "--force", "--out"],
    "checkpoint": ["ledger", "checkpoint", "{}", "--force", "--out"],
    "prove": ["ledger", "prove", "{}", "1", "--force", "--out"],
    "line": ["ledger", "prove", "{}", "1", "--force", "--out", "/dev/null", "--line-out"],
    "verifier": ["ledger", "verifier", "--force", "--out"],
    "keys": ["keys", "new", "--out"],
}
BESIDE = ("-wal", "-shm", "-journal", ".lock", ".bodies", ".index", ".index-wal")


def contents(folder: Path) -> dict[str, bytes]:
    """All files, and what is in them."""
    return {str(one): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


@pytest.mark.parametrize("verb", VERBS)
def test_nothing_of_a_ledger_is_replaced(run: Run, tmp_path: Path, kind: str, verb: str) -> None:
    """Not itself, not another one, by no name of theirs, nor what lies or may lie beside them."""
    url = write(url_in(tmp_path, kind), 3)
    own = Path(url.partition(":")[2])
    other = Path(write(url_in(tmp_path, "sqlite", "other"), 1).partition(":")[2])
    lines = Path(write(url_in(tmp_path, "jsonl", "lines"), 1).partition(":")[2])
    (tmp_path / "link").symlink_to(other)
    (tmp_path / "twin").hardlink_to(own)
    (tmp_path / "lost-wal").write_bytes(b"\x37\x7f\x06\x82 and lines")
    run("ledger", "query", url)
    names = [own, other, lines, *(tmp_path / name for name in ("link", "twin", "lost-wal"))]
    names += [one.with_name(one.name + end) for one in (own, other, lines) for end in BESIDE]
    before = contents(tmp_path)
    for name in names:
        done = run(*(word.format(url) for word in VERBS[verb]), str(name))
        assert (done.code, done.out) == (2, b""), name
        assert contents(tmp_path) == before, name


@pytest.mark.parametrize("verb", VERBS)
def test_no_key_is_replaced(run: Run, tmp_path: Path, verb: str) -> None:
    """Neither half of it."""
    url = write(url_in(tmp_path, "sqlite"), 3)
    before = contents(key_path().parent)
    for path in (key_path(), public_path(key_path())):
        done = run(*(word.format(url) for word in VERBS[verb]), str(path))
        assert done.code == 2
        assert contents(key_path().parent) == before


def test_what_is_read_is_not_replaced(run: Run, tmp_path: Path) -> None:
    """Even where it does not look like a ledger any more, and the older checkpoint is needed."""
    url = write(url_in(tmp_path, "jsonl"), 3)
    kept = tmp_path / "kept"
    assert run("ledger", "checkpoint", url, "--out", str(kept)).code == 0
    done = run("ledger", "checkpoint", url, "--since", str(kept), "--out", str(kept), "--force")
    assert (done.code, done.err.count("is what is read here")) == (2, 1)
    path = tmp_path / "calls.jsonl"
    path.write_bytes(b"x" * 200_000 + path.read_bytes())
    done = run("ledger", "export", url, "--out", str(path), "--force")
    assert (done.code, done.err.count("is what is read here")) == (2, 1)


def test_what_is_none_of_these_is_replaced(run: Run, tmp_path: Path) -> None:
    """With ``--force``: a proof, a line alone, an empty file, a text."""
    url = write(url_in(tmp_path, "sqlite"), 3)
    words = ["ledger", "prove", url, "1", "--force"]
    out, line = tmp_path / "proof", tmp_path / "line"
    for given in (b"", b"text"):
        line.write_bytes(given)
        for _ in range(2):
            done = run(*words, "--out", str(out), "--line-out", str(line))
            assert (done.code, line.read_bytes()[:6]) == (0, b'{"v":1')


def test_schemas_spare_them_too(run: Run, tmp_path: Path) -> None:
    """Their folder could hold one of that name."""
    assert run("schemas", "--out", str(tmp_path / "all")).code == 0
    schema = next((tmp_path / "all").rglob("*.json"))
    ledger = Path(write(url_in(tmp_path, "sqlite"), 1).partition(":")[2])
    schema.unlink()
    ledger.rename(schema)
    before = schema.read_bytes()
    assert run("schemas", "--out", str(tmp_path / "all")).code == 2
    assert schema.read_bytes() == before
