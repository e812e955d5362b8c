"""``doctor``: with real children, and with everything that may be wrong."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
from pathlib import Path

import pytest
from tests.cli.ledgers import url_in, write
from tests.core.facts import some_facts

from mcp_envelope.gateway import checkup, checkup_record
from mcp_envelope.gateway.keys import key_path, signers
from mcp_envelope.stores import open_ledger

from .conftest import Run

HERE = Path(__file__).parent
#: The upstreams are parts of their own; without them there is nobody to ask.
upstreams = pytest.mark.requires("module:mcp_envelope.upstreams")
stores = pytest.mark.requires("module:mcp_envelope.stores")
MEMORY = ["--ledger", "memory:"]


def server(kind: str) -> list[str]:
    """The command of a small server."""
    return [sys.executable, str(HERE / "servers.py"), kind]


def line(out: bytes, area: str) -> str:
    """The first line about an area, and what to do."""
    lines = out.decode().splitlines()
    at = next(i for i, text in enumerate(lines) if text[9:].startswith(area))
    more = lines[at + 1].strip() if at + 1 < len(lines) and "  do: " in lines[at + 1] else ""
    return " ".join([*lines[at].split(), more]).strip()


def test_without_settings(run: Run) -> None:
    """The installation, the clock and the streams are looked at in any case."""
    done = run("doctor")
    assert (done.code, done.err) == (0, "")
    text = done.out.decode()
    for said in ("Python 3.", "orjson ", "jsonschema-rs ", "ok       clock ", "ok       streams "):
        assert said in text
    assert line(done.out, "settings").startswith("note settings no settings and no servers")


@upstreams
@pytest.mark.parametrize(
    "words,said",
    [
        (server("small"), "the small one 1.2, MCP 2025-11-25, 2 tools, 3 of 3 schemas usable"),
        (server("modern"), "the modern one 2, MCP 2026-07-28, 2 tools, 3 of 3 schemas usable"),
        (
            [sys.executable, str(HERE / "sdk_server.py")],
            "from the SDK 7, MCP 2025-11-25, 1 tool, 2 of 2 schemas usable",
        ),
    ],
    ids=["2025", "2026", "sdk"],
)
def test_a_server_that_answers(run: Run, words: list[str], said: str) -> None:
    """It is really started, asked and ended; what it says of itself is shown, with the time."""
    done = run("doctor", *MEMORY, "--", *words)
    assert done.code == 0, done.out
    assert said in line(done.out, "upstream")
    assert line(done.out, "upstream").startswith("ok ")


@upstreams
def test_a_tool_whose_schema_cannot_be_used(run: Run) -> None:
    """It does not hold: exit code 1, the tool, the reason, what to do."""
    done = run("doctor", *MEMORY, "--", *server("broken"))
    assert done.code == 1
    assert "problem  upstream servers  bad.inputSchema cannot be used: " in done.out.decode()


@upstreams
@pytest.mark.parametrize(
    "words,said",
    [
        (["--wait", "0.3", "--", *server("silent")], "it did not answer within 0.3 s"),
        (["--", sys.executable, "-c", "exit(3)"], "problem"),
        (["--upstream", "http://127.0.0.1:9/mcp"], "problem"),
    ],
    ids=["silent", "ends", "nobody"],
)
def test_a_server_that_does_not_answer(run: Run, words: list[str], said: str) -> None:
    """Out of reach: exit code 3 and what to do; never a traceback, never for ever."""
    done = run("doctor", *MEMORY, *words)
    assert (done.code, done.err.count("Traceback")) == (3, 0)
    assert said in line(done.out, "upstream")
    assert " do: " in line(done.out, "upstream")


@pytest.mark.parametrize(
    "words,said",
    [
        (["nosuch"], "there is no program 'nosuch' do: install it, or write its whole path"),
        (["./nosuch"], "there is no program './nosuch' do: install it, or write its whole path"),
    ],
)
def test_a_program_that_is_not_there(run: Run, words: list[str], said: str) -> None:
    """Said before anything is started."""
    done = run("doctor", *MEMORY, "--", *words)
    assert done.code == 3
    assert line(done.out, "upstream").endswith(said)


def test_programs_that_many_servers_need(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """``uvx`` and ``npx`` come from somewhere, and doctor knows from where."""
    monkeypatch.setenv("PATH", "/nonexistent")
    assert "do: install uv" in line(run("doctor", *MEMORY, "--", "uvx", "x").out, "upstream")
    assert "do: install Node.js" in line(run("doctor", *MEMORY, "--", "npx", "x").out, "upstream")


def test_a_folder_that_is_not_there(run: Run, tmp_path: Path) -> None:
    """``cwd`` is looked at."""
    file = tmp_path / "s.toml"
    file.write_text('ledger = "memory:"\n[upstreams.a]\ncommand = "x"\ncwd = "no"', "utf-8")
    done = run("doctor", "--config", str(file))
    assert done.code == 3
    assert line(done.out, "upstream a").endswith(f"{tmp_path}/no is none do: mend cwd")


def test_mistakes_in_the_settings(run: Run, tmp_path: Path) -> None:
    """A line each, exit code 2, and no server is started."""
    file = tmp_path / "s.toml"
    file.write_text("nope = 1\n[upstreams.a]\n", encoding="utf-8")
    done = run("doctor", "--config", str(file))
    assert done.code == 2
    text = done.out.decode()
    assert f"{file}: nope: unknown key" in text
    assert f"{file}: upstreams.a: has neither a command nor a url" in text
    assert "do: add one of them" in text
    assert run("doctor", "--upstream", "http://h", "--", "x").code == 2
    assert run("doctor", "--wait", "never", "--", "x").err.startswith(
        "mcp-envelope: --wait must be a number of seconds; write 1 to 3600"
    )


def test_json(run: Run) -> None:
    """The same for programs."""
    done = run("doctor", "--json", *MEMORY, "--", "nosuch")
    assert (done.code, done.err) == (3, "")
    assert done.json["healthy"] is False
    assert {tuple(finding) for finding in done.json["findings"]} == {
        ("area", "state", "message", "hint")
    }
    assert done.json["findings"][-1]["state"] == "problem"


@upstreams
def test_what_reloads_and_what_clashes(run: Run, tmp_path: Path) -> None:
    """Doctor says what needs a restart; without namespaces, names that two servers have."""
    file = tmp_path / "s.toml"
    command = json.dumps(server("small"))
    text = f'ledger = "memory:"\nnamespace = false\n[upstreams]\na.command = {command}\n'
    file.write_text(f"{text}b.command = {command}\n", encoding="utf-8")
    done = run("doctor", "--config", str(file))
    assert done.code == 1
    out = done.out.decode()
    assert "2 upstreams have a tool 'now'" in out
    assert (
        "all needs a restart but these, which count as soon as they change: log_level, "
        "http.hosts, http.origins, rules, upstreams.NAME.rules, upstreams.NAME.tools"
    ) in out


@pytest.mark.parametrize("place", ["file", "folder", "below/file/x", "new/x.jsonl", "locked/x"])
def test_where_the_record_goes(run: Run, tmp_path: Path, place: str) -> None:
    """Whether it could be written, without writing anything."""
    for name in ("folder", "below", "locked"):
        (tmp_path / name).mkdir()
    for name in ("file", "below/file"):
        (tmp_path / name).touch()
    (tmp_path / "locked").chmod(0o500)
    if place.startswith("locked") and os.access(tmp_path / "locked", os.W_OK):
        pytest.skip("root may write everywhere")
    before = sorted(tmp_path.rglob("*"))
    done = run("doctor", "--ledger", f"jsonl:{tmp_path / place}", "--", "nosuch")
    assert line(done.out, "store").startswith(
        "ok " if place in ("file", "new/x.jsonl") else "problem "
    )
    assert sorted(tmp_path.rglob("*")) == before


@stores
def test_where_the_record_goes_by_default(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of the upstream's name in the state directory."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert "nosuch" in line(run("doctor", "--", "nosuch").out, "store")


def test_a_ledger_that_is_being_written(run: Run, tmp_path: Path) -> None:
    """By whom; and if it is the default one, that another file will be used."""
    for scheme in ("sqlite", "jsonl"):
        url = f"{scheme}:{tmp_path / scheme}"
        ledger = open_ledger(url)
        asyncio.run(ledger.append(some_facts(event="refused")))
        held = run("doctor", "--ledger", url, "--", "nosuch")
        assert held.code == 3
        said = line(held.out, "store")
        assert said.startswith("problem ")
        assert f"is being written by process {os.getpid()}" in said
        asyncio.run(ledger.close())
        assert "goes on: 1 lines" in line(
            run("doctor", "--ledger", url, "--", "nosuch").out, "store"
        )


def test_a_default_ledger_that_is_being_written(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Is no problem: the next free one is used."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    ledger = open_ledger(None, name="nosuch")
    said = line(run("doctor", "--", "nosuch").out, "store")
    assert said.startswith("ok ")
    assert "the next free file beside it is used" in said
    asyncio.run(ledger.close())


def test_a_record_from_the_future(run: Run, tmp_path: Path) -> None:
    """Shows that the clock was put back."""
    url = f"sqlite:{tmp_path / 'calls.db'}"
    ledger = open_ledger(url)
    asyncio.run(ledger.append(some_facts(event="refused", time="2999-01-01T00:00:00.000Z")))
    asyncio.run(ledger.close())
    out = run("doctor", "--ledger", url, "--", "nosuch").out
    assert b"the newest line is from 2999-01-01" in out


@pytest.mark.parametrize("most", [20_000, 0], ids=["few", "many"])
def test_a_ledger_that_does_not_hold(
    run: Run, tmp_path: Path, state: Path, kind: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lines, or where they are many its last checkpoint: 1, and that it is to be verified."""
    monkeypatch.setattr(checkup_record, "_FEW", most)
    good, bad = (write(url_in(tmp_path, kind, name), 3) for name in ("good", "bad"))
    assert line(run("doctor", "--ledger", good, "--", "nosuch").out, "store").startswith("ok ")
    path = Path(bad.partition(":")[2])
    if kind == "jsonl":
        path.write_bytes(path.read_bytes().replace(b'"add"', b'"sub"', 1))
    else:
        with sqlite3.connect(path) as database:
            database.executescript(
                "DROP TRIGGER nodes_never_change; DROP TRIGGER lines_never_change"
            )
            old = database.execute("SELECT line FROM lines WHERE seq = 1").fetchone()[0]
            new = old.replace(b'"add"', b'"sub"')
            database.execute("UPDATE lines SET line = ? WHERE seq = 1", (new,))
            database.execute("UPDATE nodes SET hash = zeroblob(32) WHERE idx = 1")
        database.close()
    done = run("doctor", "--ledger", bad, "--", "true")
    said = line(done.out, "store")
    assert said.startswith("problem ")
    assert "does not hold: line 1: altered" in said or "is not about its lines" in said
    assert "do: mcp-envelope ledger verify says more" in said


def test_an_older_copy_of_a_ledger(run: Run, tmp_path: Path, state: Path, kind: str) -> None:
    """A gateway would not go on with it: it has signed more lines than there are now."""
    url = write(url_in(tmp_path, kind), 3, seal=False)
    path = Path(url.partition(":")[2])
    copy = path.read_bytes()
    assert run("ledger", "checkpoint", url, "--out", str(tmp_path / "kept")).code == 0
    assert line(run("doctor", "--ledger", url, "--", "nosuch").out, "store").startswith("ok ")
    path.write_bytes(copy)
    done = run("doctor", "--ledger", url, "--", "nosuch")
    assert done.code == 3
    said = line(done.out, "store")
    assert said.startswith("problem ")
    assert "is older than it was: it has 8 lines" in said
    assert "do: put the newer one back" in said


def test_where_checkpoints_and_old_lines_go(run: Run, tmp_path: Path, state: Path) -> None:
    """The folder of one file, the program, the archive: each is looked at, nothing is made."""
    (tmp_path / "file").touch()

    def said(record: str) -> tuple[int, str]:
        text = f'ledger = "sqlite:l.db"\n[record]\n{record}\n[upstreams.a]\ncommand = "nosuch"'
        (tmp_path / "s.toml").write_text(text, "utf-8")
        done = run("doctor", "--config", str(tmp_path / "s.toml"))
        return done.code, line(done.out, "record")

    for record, why in (
        ('publish_file = "no/kept"', f"there is no folder {tmp_path}/no do: make it, or name"),
        ('publish_file = "."', f"{tmp_path} is no regular file do: name another file"),
        ('publish_file = "file/kept"', f"{tmp_path}/file is no folder do: name another file"),
        ('publish_command = "nosuch x"', "there is no program 'nosuch' do: install it, or"),
        ('keep_days = 1\narchive = "file"', f"{tmp_path}/file is no folder do: name another fol"),
        ('keep_days = 1\narchive = "file/a"', f"{tmp_path}/file is no folder do: name another f"),
    ):
        code, text = said(record)
        assert (code, text.split()[0]) == (3, "problem"), record
        assert why in text, record
    for record in (
        *('publish_file = "kept"', 'publish_file = "file"', 'publish_command = "true"'),
        *('keep_days = 1\narchive = "."', 'keep_days = 1\narchive = "a/b"'),
    ):
        assert said(record)[1].startswith("ok record "), record
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "s.toml"]


@upstreams
def test_rules_for_a_tool_that_is_not_there(run: Run, tmp_path: Path) -> None:
    """A slip in its name would let its calls go without them."""
    command = json.dumps(server("small"))
    text = f'ledger = "memory:"\n[upstreams.a]\ncommand = {command}\n'
    file = tmp_path / "s.toml"
    file.write_text(f"{text}tools.nwo.timeout = 1\ntools.then.timeout = 1\n", encoding="utf-8")
    done = run("doctor", "--config", str(file))
    assert done.code == 1
    out = done.out.decode()
    assert "problem  upstream a    rules for 'nwo', which a does not list\n" in out
    assert "do: did you mean 'now'? mend upstreams.a.tools" in out
    assert out.count("rules for") == 1


def test_what_is_no_ledger(run: Run, tmp_path: Path) -> None:
    """Is found before the gateway is started."""
    (tmp_path / "notes").write_text("milk")
    done = run("doctor", "--ledger", f"sqlite:{tmp_path / 'notes'}", "--", "nosuch")
    assert line(done.out, "store").startswith("problem ")
    assert done.code == 3


def test_the_key(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Will be made, is there, is damaged, or is not wanted."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    words = ("doctor", "--ledger", f"sqlite:{tmp_path}/calls.db", "--", "nosuch")
    assert "ledger.key will be made" in line(run(*words).out, "key")
    (signer,), _ = signers()
    assert signer.key.name in line(run(*words).out, "key")
    key_path().write_text("nonsense")
    assert line(run(*words).out, "key").startswith("problem ")
    monkeypatch.setenv("MCP_ENVELOPE_RECORD__CHECKPOINTS", "false")
    assert "is not signed" in line(run(*words).out, "key")


def test_clocks() -> None:
    """A clock that is years off, or runs backwards, spoils the record."""
    assert [found.state for found in checkup.clock()] == ["ok"]
    (found,) = checkup.clock(now=lambda: 0.0)
    assert (found.state, found.code) == ("problem", 1)
    assert "1970-01-01" in found.message
    ticks = iter([5.0, 4.0])
    assert [found.state for found in checkup.clock(steady=lambda: next(ticks))] == ["ok", "problem"]


def test_streams_and_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Closed streams and packages that cannot be loaded are problems."""
    monkeypatch.setattr(sys, "stdin", None)
    assert [found.state for found in checkup.streams()] == ["problem"]
    monkeypatch.setitem(sys.modules, "uvloop", None)
    monkeypatch.setitem(sys.modules, "jiter", None)
    found = {each.message.split()[0]: each for each in checkup.installation()}
    assert (found["uvloop"].state, found["uvloop"].code) == ("note", 0)
    assert (found["jiter"].state, found["jiter"].code) == ("problem", 1)
