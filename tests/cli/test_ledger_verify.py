"""``ledger verify``: the verdict, in words, as JSON and as an exit code."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.cli.ledgers import key_of, url_in, write

from mcp_envelope.core.notes import Note
from mcp_envelope.gateway import keys

from .conftest import Run

pytestmark = pytest.mark.usefixtures("state")


def key_file(folder: Path, *names: str) -> str:
    """A file of the public keys with these names."""
    path = folder / "trusted.pub"
    path.write_text("# whom we trust\n\n" + "".join(f"{key_of(name).key}\n" for name in names))
    return str(path)


def checkpoint_of(run: Run, url: str, path: Path) -> str:
    """A copy of the newest checkpoint, kept elsewhere."""
    assert run("ledger", "checkpoint", url, "--out", str(path)).code == 0
    return str(path)


def test_a_ledger_that_holds(run: Run, tmp_path: Path, kind: str) -> None:
    """Lines, checkpoints and who vouches for how many of them."""
    url = write(url_in(tmp_path, kind), 3)
    done = run("ledger", "verify", url, "--key", str(keys.key_path().with_suffix(".pub")))
    said = done.out.decode()
    assert (done.code, done.err) == (0, "")
    assert said.startswith(f"holds: {url}\n")
    assert re.search(r"lines +9 \(0 to 8\)\n", said)
    assert "nothing stands behind the last one" in said
    assert re.search(r"signatures +checked: lines 0 to 8 are vouched for by mcp-envelope/", said)


@pytest.mark.parametrize("form", ["url", "file"])
def test_a_ledger_is_named_by_url_or_file(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, form: str
) -> None:
    """What is in a file says of which kind it is, whatever it is called."""
    url = write(url_in(tmp_path, kind, "odd:name"), 1)
    path = Path(url.partition(":")[2]).rename(tmp_path / "odd:name")
    monkeypatch.chdir(tmp_path)
    name = f"{kind}:{path}" if form == "url" else path.name
    assert run("ledger", "verify", name).code == 0


def test_without_a_key_signatures_are_unchecked(run: Run, tmp_path: Path, kind: str) -> None:
    """It holds, and how to give a key is said."""
    url = write(url_in(tmp_path, kind), 1)
    done = run("ledger", "verify", url)
    assert done.code == 0
    assert b"unchecked: no trusted key given" in done.out
    assert run("ledger", "verify", url, "--json").json["ledgers"][0]["signatures"] == "unchecked"


def test_another_key_does_not_vouch(run: Run, tmp_path: Path, kind: str) -> None:
    """With a key that signed nothing of it the ledger does not hold."""
    url = write(url_in(tmp_path, kind), 1)
    done = run("ledger", "verify", url, "--key", str(key_of("other").key), "--json")
    assert done.code == 1
    assert done.json["ledgers"][0]["damage"]["kind"] == "unsigned"
    told = run("ledger", "verify", url, "--key", str(key_of("other").key)).out.decode()
    assert "does not hold" in told
    assert re.search(r"do +see that it is the right key: mcp-envelope keys show", told)


def test_dangling_calls_are_listed(run: Run, tmp_path: Path, kind: str) -> None:
    """Number, time, tool and id of the first twenty, and how many there are; strictly it fails."""
    url = write(url_in(tmp_path, kind), 30, dangling=25)
    done = run("ledger", "verify", url)
    said = done.out.decode()
    assert done.code == 0
    assert "25 calls were admitted and never settled" in said
    assert "  11  2026-01-01T00:00:05.000Z  add  call-5\n" in said
    assert "call-24\n" in said
    assert "call-25\n" not in said
    assert "and 5 more" in said
    strict = run("ledger", "verify", url, "--strict")
    assert strict.code == 1
    assert strict.out.startswith(b"does not hold strictly: ")
    found = run("ledger", "verify", url, "--strict", "--json").json
    assert (found["holds"], found["strict"]) == (False, True)
    one = found["ledgers"][0]
    assert (one["holds"], one["holds_strictly"], one["dangling_count"]) == (True, False, 25)
    assert one["dangling"][0] == {
        "seq": 11,
        "time": "2026-01-01T00:00:05.000Z",
        "tool": "add",
        "kind": None,
        "request_id": "call-5",
    }


def test_a_torn_tail_is_shown(run: Run, tmp_path: Path) -> None:
    """At the end, and once the next line tells of it; it fails strictly only."""
    url = write(url_in(tmp_path, "jsonl"), 1)
    path = tmp_path / "calls.jsonl"
    with path.open("ab") as file:
        file.write(b'{"v":1,"eve')
    done = run("ledger", "verify", url)
    assert done.code == 0
    assert b"11 bytes, instead of line 5\n" in done.out
    assert run("ledger", "verify", url, "--strict").code == 1
    write(url, 1, begin=10)
    done = run("ledger", "verify", url, "--json")
    assert done.json["ledgers"][0]["torn"] == [{"seq": 5, "bytes": 12, "mended": True}]
    assert b"12 bytes, told of by line 5\n" in run("ledger", "verify", url).out


def damaged(path: Path, kind: str, harm: str) -> None:
    """Do something to line 4 of a ledger, in the way that its kind allows."""
    if kind == "jsonl":
        lines = path.read_bytes().splitlines(keepends=True)
        lines[4:5] = {"altered": [lines[4].replace(b'"add"', b'"sub"')], "missing": []}[harm]
        path.write_bytes(b"".join(lines))
        return
    with sqlite3.connect(path) as database:
        for (name,) in database.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall():
            database.execute(f"DROP TRIGGER {name}")
        if harm == "missing":
            database.execute("DELETE FROM lines WHERE seq = 4")
        else:
            line = database.execute("SELECT line FROM lines WHERE seq = 4").fetchone()[0]
            new = line.replace(b'"add"', b'"sub"')
            database.execute("UPDATE lines SET line = ? WHERE seq = 4", (new,))
    database.close()


@pytest.mark.parametrize("harm", ["altered", "missing"])
def test_damage_is_named(run: Run, tmp_path: Path, kind: str, harm: str) -> None:
    """Its kind, its line, what that means and what to do; exit code 1."""
    url = write(url_in(tmp_path, kind), 5)
    damaged(Path(url.partition(":")[2]), kind, harm)
    done = run("ledger", "verify", url)
    said = done.out.decode()
    assert done.code == 1
    assert said.startswith(f"does not hold: {url}\n  line         4")
    for row in (harm, "means", "do"):
        assert re.search(rf"^  {row} +\S", said, re.MULTILINE)
    damage = run("ledger", "verify", url, "--json").json["ledgers"][0]["damage"]
    assert (damage["kind"], damage["seq"]) == (harm, 4)


def test_a_corrupt_database(run: Run, tmp_path: Path) -> None:
    """It names the line that was reached; the database cannot be read from there on."""
    url = write(url_in(tmp_path, "sqlite"), 200)
    path = tmp_path / "calls.db"
    data = bytearray(path.read_bytes())
    at = data.index(b'"call-150"') // 4096 * 4096
    data[at : at + 8] = b"\xff" * 8
    path.write_bytes(data)
    done = run("ledger", "verify", url, "--json")
    damage = done.json["ledgers"][0]["damage"]
    assert (done.code, damage["kind"]) == (1, "corrupt")
    assert 250 < damage["seq"] <= 301
    assert b"corrupt" in run("ledger", "verify", url).out


def test_a_bit_anywhere_in_a_database(run: Run, tmp_path: Path) -> None:
    """Header, schema, tree of pages: a verdict each time, and the right one of what can be read."""
    url = write(url_in(tmp_path, "sqlite"), 20)
    lines = run("ledger", "export", url).out
    path = tmp_path / "calls.db"
    data = path.read_bytes()
    used = [at for at in range(4096) if data[at]]
    kinds = set()
    for number, at in enumerate([*used[::40], *range(4096, len(data), 997)]):
        harmed = bytearray(data)
        harmed[at] ^= 1 << number % 8
        path.write_bytes(harmed)
        done = run("ledger", "verify", url, "--json")
        damage = done.json["ledgers"][0]["damage"]
        assert (done.code, done.err) == (1 if damage else 0, ""), at
        if damage is None:
            assert run("ledger", "export", url).out == lines
        else:
            kinds.add(damage["kind"])
    assert {"corrupt", "unreadable"} <= kinds


def test_a_damaged_tree(run: Run, tmp_path: Path) -> None:
    """The lines hold without it; but somebody should look, as proofs are made with it."""
    url = write(url_in(tmp_path, "sqlite"), 200)
    assert run("ledger", "verify", url, "--strict").code == 0
    with sqlite3.connect(tmp_path / "calls.db") as database:
        database.execute("DROP TRIGGER nodes_never_change")
        database.execute("UPDATE nodes SET hash = zeroblob(32)")
    database.close()
    done = run("ledger", "verify", url)
    assert done.code == 0
    assert b"the tree that is kept beside the lines is damaged" in done.out
    assert run("ledger", "verify", url, "--strict").code == 1
    assert run("ledger", "prove", url, "300").code == 1
    assert run("ledger", "export", url, "--out", str(tmp_path / "out.jsonl")).code == 0
    assert run("ledger", "prove", str(tmp_path / "out.jsonl"), "300").code == 0


def test_who_vouches(run: Run, tmp_path: Path) -> None:
    """Only who is trusted, whoever else signed."""
    one, other = key_of("one"), key_of("other")
    url = write(url_in(tmp_path, "jsonl"), 2, signers=[other])
    write(url, 2, begin=2, signers=[one])
    done = run("ledger", "verify", url, "--key", str(one.key))
    assert done.code == 0
    assert b"are vouched for by one (id " in done.out
    assert b"other (id" not in done.out
    found = run("ledger", "verify", url, "--key", str(one.key), "--json").json["ledgers"][0]
    assert found["vouching"] == [str(one.key)]
    assert found["keys"] == [str(other.key), str(one.key)]


def test_something_else_under_the_name_of_a_ledger(run: Run, tmp_path: Path) -> None:
    """It does not hold, whatever it is."""
    path = tmp_path / "calls"
    for data in (b"{}\n", b"\x7fELF\0\0\0", b"SQLite format 3\0", b"\n"):
        path.write_bytes(data)
        for name in (str(path), f"sqlite:{path}", f"jsonl:{path}"):
            if name.startswith("jsonl:") and not data.endswith(b"\n"):
                continue  # a line that was never finished, as far as one can see
            done = run("ledger", "verify", name)
            assert (done.code, done.err) == (1, ""), (name, data)


def test_a_kept_checkpoint_shows_what_is_gone(run: Run, tmp_path: Path, kind: str) -> None:
    """Lines cut off the end, and an old copy put back."""
    url = write(url_in(tmp_path, kind), 2)
    path = Path(url.partition(":")[2])
    old = path.read_bytes()
    write(url, 2, begin=2)
    kept = checkpoint_of(run, url, tmp_path / "kept")
    assert run("ledger", "verify", url, "--checkpoint", kept).code == 0
    for ending in ("-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    path.write_bytes(old)
    assert run("ledger", "verify", url).code == 0
    done = run("ledger", "verify", url, "--checkpoint", kept, "--json")
    assert done.code == 1
    assert done.json["ledgers"][0]["damage"]["kind"] == "truncated"


def test_a_ledger_that_was_replaced(run: Run, tmp_path: Path, kind: str) -> None:
    """The checkpoint of another ledger is a fork, given alone or with several ledgers."""
    one = write(url_in(tmp_path, kind, "one"), 2)
    two = write(url_in(tmp_path, kind, "two"), 3)
    kept = checkpoint_of(run, one, tmp_path / "kept")
    done = run("ledger", "verify", two, "--checkpoint", kept, "--json")
    assert (done.code, done.json["ledgers"][0]["damage"]["kind"]) == (1, "fork")
    assert run("ledger", "verify", one, two, "--checkpoint", kept).code == 0
    three = write(url_in(tmp_path, kind, "three"), 4)
    done = run("ledger", "verify", two, three, "--checkpoint", kept, "--json")
    assert done.code == 1
    assert [one["holds"] for one in done.json["ledgers"]] == [True, True]
    assert [one["kind"] for one in done.json["findings"]] == ["unmatched"]
    assert (
        b"none of these ledgers is the one"
        in run("ledger", "verify", two, three, "--checkpoint", kept).out
    )


def test_several_checkpoints_in_a_file(run: Run, tmp_path: Path) -> None:
    """As a file to which they were added one by one, with or without empty lines between."""
    url = write(url_in(tmp_path, "jsonl"), 2)
    notes = [run("ledger", "checkpoint", url).out]
    write(url, 2, begin=2)
    notes.append(run("ledger", "checkpoint", url).out)
    for between in (b"", b"\n"):
        (tmp_path / "kept").write_bytes(between.join(notes) + between)
        assert run("ledger", "verify", url, "--checkpoint", str(tmp_path / "kept")).code == 0
    bad = notes[0].replace(b"\n6\n", b"\n5\n")
    (tmp_path / "kept").write_bytes(notes[1] + bad)
    assert run("ledger", "verify", url, "--checkpoint", str(tmp_path / "kept")).code == 1


def test_several_ledgers(run: Run, tmp_path: Path) -> None:
    """A verdict each; one that does not hold is enough for exit code 1."""
    good = write(url_in(tmp_path, "sqlite"), 2)
    bad = write(url_in(tmp_path, "jsonl"), 5)
    assert run("ledger", "verify", good, bad).code == 0
    damaged(tmp_path / "calls.jsonl", "jsonl", "altered")
    done = run("ledger", "verify", good, bad)
    assert done.code == 1
    assert f"holds: {good}\n".encode() in done.out
    assert f"does not hold: {bad}\n".encode() in done.out
    assert b"1 of 2 ledgers hold\n" in done.out


def test_copies_of_a_ledger_must_agree(run: Run, tmp_path: Path) -> None:
    """An older copy begins the ledger; two that went on differently are two histories."""
    url = write(url_in(tmp_path, "jsonl"), 2)
    old = tmp_path / "old.jsonl"
    old.write_bytes((tmp_path / "calls.jsonl").read_bytes())
    write(url, 2, begin=2)
    done = run("ledger", "verify", url, str(old))
    assert done.code == 0
    assert f"note: {old} is an older copy of {url}, with its first 7 lines".encode() in done.out
    write(f"jsonl:{old}", 1, begin=7)
    done = run("ledger", "verify", url, str(old))
    assert done.code == 1
    assert b"went different ways at line 7: only one of them can be right" in done.out
    assert b"2 of 2 ledgers hold, but not together\n" in done.out


def test_a_key_that_one_ledger_hands_on_to_is_trusted_in_others(run: Run, tmp_path: Path) -> None:
    """The new key of a machine is signed along by the old one where that signed before."""
    old, new = key_of("old"), key_of("new")
    one = write(url_in(tmp_path, "jsonl", "one"), 2, signers=[old])
    write(one, 2, begin=2, signers=[new, old])
    two = write(url_in(tmp_path, "jsonl", "two"), 2, signers=[new])
    trusted = key_file(tmp_path, "old")
    assert run("ledger", "verify", two, "--key", trusted).code == 1
    done = run("ledger", "verify", two, one, "--key", trusted)
    assert done.code == 0
    assert b"is trusted as well" in done.out


def test_standard_input(run: Run, tmp_path: Path) -> None:
    """JSON Lines come in on ``-``, and are verified as they come."""
    url = write(url_in(tmp_path, "sqlite"), 3)
    lines = run("ledger", "export", url).out
    done = run("ledger", "verify", "-", given=lines)
    assert (done.code, done.out.splitlines()[0]) == (0, b"holds: -")
    assert run("ledger", "verify", "-", given=lines.replace(b"call-1", b"call-7")).code == 1
    done = run("ledger", "verify", "-", given=lines.split(b"\n", 1)[1])
    assert done.code == 1
    assert b"give it as a file" in done.out
    assert run("ledger", "verify", "-", given=b"\0" * 300_000 + b"\n").code == 1


def test_what_is_in_lines_cannot_steer_a_terminal(run: Run, tmp_path: Path) -> None:
    """Names in dangling calls come from outside."""
    url = write(url_in(tmp_path, "jsonl"), 1, dangling=1, seal=False)
    path = tmp_path / "calls.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"add"', b'"a\\u001b[2Jb\\u202ec"'))
    assert b"a\\x1b[2Jb\\u202ec" in run("ledger", "verify", url).out


@pytest.mark.parametrize(
    "words,why",
    [
        (["absent.db"], "there is no file"),
        (["sqlite:absent.db"], "there is no file"),
        (["."], "is a folder"),
        ([""], "a ledger is a file"),
        (["memory:"], "nothing is left"),
        (["postgresql://ada:s3cret@host/db"], "no ledger from a URL like that"),
        (["{ledger}", "--key", "absent.pub"], "absent.pub"),
        (["{ledger}", "--key", "a+b+c"], "--key: "),
        (["{ledger}", "--key", "{ledger_file}"], "no public key"),
        (["{ledger}", "--key", "empty"], "holds no key"),
        (["{ledger}", "--checkpoint", "absent.note"], "absent.note"),
        (["{ledger}", "--checkpoint", "empty"], "holds no checkpoint"),
        (["{ledger}", "--checkpoint", "{ledger_file}"], "no signed note"),
        ([], "required"),
        (["-", "{ledger}"], "standard input among several"),
    ],
)
def test_mistakes(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], why: str
) -> None:
    """What cannot be read of what was named is a mistake of the command line: 2."""
    monkeypatch.chdir(tmp_path)
    url = write(url_in(tmp_path, "jsonl"), 1)
    (tmp_path / "empty").write_text("\n# nothing\n" if "--key" in words else "\n")
    filled = [word.format(ledger=url, ledger_file=tmp_path / "calls.jsonl") for word in words]
    done = run("ledger", "verify", *filled)
    assert (done.code, done.out) == (2, b"")
    assert why in done.err
    assert "s3cret" not in done.err


def test_a_private_key_is_not_taken_for_a_public_one(run: Run, tmp_path: Path) -> None:
    """And not repeated either."""
    url = write(url_in(tmp_path, "jsonl"), 1)
    path = keys.key_path()
    for given in (str(path), path.read_text().strip()):
        done = run("ledger", "verify", url, "--key", given)
        assert done.code == 2
        assert "private key" in done.err
        assert path.read_text().strip().split("+", 4)[4] not in done.err


def test_the_json_is_the_same_for_both_kinds(run: Run, tmp_path: Path) -> None:
    """An export has the verdict of its ledger, but for the name."""
    url = write(url_in(tmp_path, "sqlite"), 40, dangling=2)
    copy = tmp_path / "copy.jsonl"
    run("ledger", "export", url, "--out", str(copy))
    found = [run("ledger", "verify", one, "--json").json["ledgers"][0] for one in (url, str(copy))]
    assert found[0].pop("ledger") != found[1].pop("ledger")
    assert found[0] == found[1]


def test_checkpoints_signed_by_strangers_are_of_no_use(run: Run, tmp_path: Path) -> None:
    """With keys given, what they did not sign says nothing against a ledger."""
    signer = key_of("good")
    url = write(url_in(tmp_path, "jsonl"), 2, signers=[signer])
    note = Note.parse(run("ledger", "checkpoint", url, "--read-only").out)
    text = note.text.replace("\n5\n", "\n4\n")
    forged = Note(text, (key_of("bad").sign(text),))
    (tmp_path / "kept").write_text(str(forged))
    words = ["ledger", "verify", url, "--checkpoint", str(tmp_path / "kept"), "--json"]
    found: dict[str, Any] = run(*words, "--key", str(signer.key)).json
    assert found["ledgers"][0]["damage"]["kind"] == "signature"
    assert json.dumps(found)
