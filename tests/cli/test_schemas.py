"""``schemas``: listed, printed, written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcp_envelope.cli import schemas
from mcp_envelope.dialects import DIALECTS
from mcp_envelope.gateway import settings_schema

from .conftest import Run

FOLDER = Path(schemas.__file__).parent.parent / "dialects" / "schemas"
EVERY = {
    (dialect, name): document.raw
    for dialect in DIALECTS
    for name, document in DIALECTS[dialect].schemas().items()
}
EVERY["settings", settings_schema.NAME] = settings_schema.document().raw


def test_the_list(run: Run) -> None:
    """Two lines for each schema: dialect, name and title, and the $id that others refer to."""
    done = run("schemas")
    lines = done.out.decode().splitlines()
    assert (done.code, done.err, len(lines)) == (0, "", 2 * len(EVERY))
    assert [tuple(line.split()[:2]) for line in lines[::2]] == list(EVERY)
    assert [line.strip() for line in lines[1::2]] == [json.loads(t)["$id"] for t in EVERY.values()]


def test_json_has_them_all(run: Run) -> None:
    """With --json the schemas themselves."""
    found = run("schemas", "--json").json
    assert {(s["dialect"], s["name"]): s["schema"] for s in found["schemas"]} == {
        key: json.loads(text) for key, text in EVERY.items()
    }
    assert found["written"] == []
    only = run("schemas", "--dialect", "mcp", "--json").json["schemas"]
    assert {s["dialect"] for s in only} == {"mcp"}
    only = run("schemas", "--dialect", "settings", "--json").json["schemas"]
    assert [s["name"] for s in only] == ["settings.schema.json"]


def test_one_is_printed_byte_for_byte(run: Run) -> None:
    """By name, by name and dialect, or by $id."""
    text = EVERY["tool/1.0", "request.schema.json"]
    for words in (
        ["request.schema.json", "--dialect", "tool/1.0"],
        ["--dialect", "tool/1.0", "request.schema.json"],
        ["urn:mcp-envelope:tool/1.0:request.schema.json"],
    ):
        assert run("schemas", *words).out == text
    digest = "digest.schema.v0.1.json"
    assert run("schemas", digest).out == EVERY["provenance/0.1", digest]
    (found,) = run("schemas", digest, "--json").json["schemas"]
    assert found["name"] == digest


@pytest.mark.parametrize(
    "words,said",
    [
        (["--dialect", "tol/1.0"], "no dialect 'tol/1.0'; did you mean 'tool/1.0'?"),
        (["request.schem.json"], "no schema 'request.schem.json'; did you mean request.schema"),
        (["zzz"], "no schema 'zzz'; mcp-envelope schemas lists them"),
        (
            ["request.schema.json"],
            "request.schema.json is a file of several dialects; with --dialect: tool/1.0, mcp",
        ),
        (["--out", ""], "the name of the folder is empty; --out . is this folder"),
        (["--out", "file"], "file is not a folder; name one with --out"),
        (["--out", "file/below"], "file/below/provenance/0.1 is not a folder; name one with --out"),
    ],
)
def test_mistakes(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    """Exit code 2, and what to do."""
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    done = run("schemas", *words)
    assert (done.code, done.out) == (2, b"")
    assert done.err.startswith(f"mcp-envelope: {said}")


def test_written_to_a_folder(run: Run, tmp_path: Path) -> None:
    """Every schema at DIR/<dialect>/<name>, byte for byte; what is there is replaced."""
    out = tmp_path / "deep" / "down"
    done = run("schemas", "--out", str(out))
    assert done.code == 0
    assert {key: (out / key[0] / key[1]).read_bytes() for key in EVERY} == EVERY
    assert done.out.decode().splitlines() == [str(out / d / n) for d, n in EVERY]
    (out / "mcp" / "error.schema.json").write_bytes(b"old")
    again = run("schemas", "error.schema.json", "--out", str(out), "--json").json
    assert again["written"] == [str(out / "mcp" / "error.schema.json")]
    assert (out / "mcp" / "error.schema.json").read_bytes() == EVERY["mcp", "error.schema.json"]


def test_what_cannot_be_written(run: Run, tmp_path: Path) -> None:
    """Trouble with the disk is no mistake in the command line: exit code 3, and the file."""
    (tmp_path / "mcp" / "error.schema.json").mkdir(parents=True)
    done = run("schemas", "error.schema.json", "--out", str(tmp_path))
    assert done.code == 3
    assert str(tmp_path / "mcp" / "error.schema.json") in done.err
    error = run("schemas", "error.schema.json", "--out", str(tmp_path), "--json").json["error"]
    assert list(error) == ["message"]
