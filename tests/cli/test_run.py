"""``run``: what the command line makes of its words. The gateway itself is tested elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mcp_envelope as me
from mcp_envelope.cli import parser
from mcp_envelope.gateway import app
from mcp_envelope.gateway.settings import HttpSettings, Settings

from .conftest import Run


class Started:
    """What the gateway was started with."""

    def __init__(self) -> None:
        self.settings: list[Settings] = []
        self.reread: Any = None

    def run(self, settings: Settings, *, reread: Callable[[], Settings] | None = None) -> int:
        """Take the place of the gateway."""
        self.settings.append(settings)
        self.reread = reread
        return 0


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Started:
    """The gateway's place, an empty current folder, and no settings in the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MCP_ENVELOPE_CONFIG", raising=False)
    found = Started()
    monkeypatch.setattr(app, "run", found.run)
    return found


def test_a_command_is_enough(run: Run, started: Started) -> None:
    """``run -- COMMAND``: stdio in front of that server, nothing on standard output."""
    done = run("run", "--", "uvx", "mcp-server-time")
    assert (done.code, done.out, done.err) == (0, b"", "")
    (settings,) = started.settings
    assert settings.upstreams[0].name == "mcp-server-time"
    assert settings.upstreams[0].command == ("uvx", "mcp-server-time")
    assert settings.http is None


@pytest.mark.parametrize(
    "words",
    [
        ["npx", "-y", "foo", "--json"],
        ["x", "--help"],
        ["x", "-h", "--config", "y", "--http", "0"],
        ["x", "--", "y", "--", "--stdio"],
        ["--x"],
        ["x", ""],
        ["x", "-1", "é b"],
    ],
)
def test_all_behind_the_dashes_is_the_command_s(
    run: Run, started: Started, words: list[str]
) -> None:
    """No word of the command is an option of ours, whatever it looks like, at any place."""
    done = run("run", "--http", "0", "--", *words)
    assert (done.code, done.err) == (0, "")
    assert started.settings[0].upstreams[0].command == tuple(words)
    assert started.settings[0].http == HttpSettings(port=0)


def test_mistakes_behind_and_before_the_dashes(run: Run, started: Started) -> None:
    """``--json`` counts before the dashes only, and with it mistakes are JSON."""
    done = run("run", "--timeout", "x", "--", "a", "--json")
    assert done.err.startswith('mcp-envelope: --timeout: must not be "x"; write seconds')
    done = run("run", "--timeout", "x", "--json", "--", "a")
    assert done.code == 2
    (mistake,) = done.json["error"]["mistakes"]
    assert mistake["where"] == "--timeout"
    assert mistake["hint"].startswith("write seconds")


@pytest.mark.parametrize(
    "words,said",
    [
        ([], "there is no server to stand in front of; give -- COMMAND, --upstream URL, "),
        (["--"], "COMMAND: must not be empty; fill it, or leave it out"),
        (["uvx", "x"], "one argument too many: 'uvx'; did you mean -- uvx? see "),
        (["--sdtio", "--", "x"], "no option --sdtio; did you mean --stdio?"),
        (["--stdio", "--http", "0", "--", "x"], "--stdio and --http exclude each other"),
        (["--upstream", "http://h", "--", "x"], "--upstream and a COMMAND both name servers"),
        (["--from", "m", "--upstream", "http://h"], "--from and --upstream both name servers"),
        (["--upstream", "h:1"], "--upstream: is no http:// or https:// URL"),
        (["--http", "0.0.0.0:80", "--", "x"], "--http: is no loopback address"),
        (["--http", "", "--", "x"], "--http: has no port; write HOST:PORT"),
        (["--http"], "argument --http: expected one argument"),
        (["--config", "absent.toml"], "cannot read absent.toml: No such file or directory"),
        (["--config", ""], "--config: the name of the file is empty"),
        (["--from", "absent.json"], "cannot read absent.json: No such file or directory"),
        (["--output", "strct", "--", "x"], '--output: must be one of "off", "warn", "strict"'),
        (["--input", "x", "--", "x"], '--input: must be one of "off", "warn", "strict"'),
        (["--label", "on", "--", "x"], '--label: must be one of "meta", "off"'),
        (["--log-level", "loud", "--", "x"], '--log-level: must be one of "debug", "info"'),
        (
            ["--bodies", "all", "--", "x"],
            "no option --bodies; that is a setting: rules.bodies in the file of --config",
        ),
        (
            ["--keep-days=3", "--", "x"],
            "no option --keep-days; that is a setting: record.keep_days in the file of --config",
        ),
        (
            ["--record.archive", "a", "--", "x"],
            "no option --record.archive; that is a setting: record.archive in the file of",
        ),
        (["--lodger", "x", "--", "x"], "no option --lodger; did you mean --ledger?"),
        (
            ["--ledger", "postgresql:x", "--", "x"],
            "--ledger: this version cannot keep the record in",
        ),
        (["--config", "-"], "standard input cannot hold both the settings and the conversation"),
    ],
)
def test_mistakes(run: Run, started: Started, words: list[str], said: str) -> None:
    """Exit code 2, one line that names the option, and no gateway."""
    done = run("run", *words, given=b"upstreams.a.command = 'x'")
    assert (done.code, done.out, started.settings) == (2, b"", [])
    assert done.err.startswith(f"mcp-envelope: {said}")
    assert done.err.count("\n") == 1


def test_every_mistake_of_a_file_is_a_line(run: Run, started: Started) -> None:
    """And the program's name stands in front of each."""
    Path("s.toml").write_text("nope = 1\n[upstreams.a]\n", encoding="utf-8")
    done = run("run", "--config", "s.toml")
    assert (done.code, started.settings) == (2, [])
    one, two = done.err.splitlines()
    assert one.startswith("mcp-envelope: s.toml: nope: unknown key; leave it out; known here: ")
    assert two == (
        "mcp-envelope: s.toml: upstreams.a: has neither a command nor a url; add one of them"
    )
    error = run("run", "--config", "s.toml", "--json").json["error"]
    assert [mistake["where"] for mistake in error["mistakes"]] == [
        "s.toml: nope",
        "s.toml: upstreams.a",
    ]


def test_options_go_over_the_file(run: Run, started: Started) -> None:
    """Each option that sets something sets it; the file is found by variable as well."""
    Path("s.toml").write_text(
        '[http]\nlisten = "9"\n[upstreams.a]\ncommand = "x"\nrules.timeout = 1\n', encoding="utf-8"
    )
    words = ["--timeout", "2m", "--input", "warn", "--output", "off", "--label", "off"]
    assert run("run", "--config", "s.toml", "--log-level", "debug", *words).code == 0
    (settings,) = started.settings
    rules = settings.upstreams[0].rules
    assert (rules.timeout, rules.input, rules.output, rules.label) == (120, "warn", "off", "off")
    assert (settings.log_level, settings.http, settings.path) == (
        "debug",
        HttpSettings(port=9),
        "s.toml",
    )
    assert run("run", "--config", "s.toml", "--stdio", "--ledger", "memory:").code == 0
    assert (started.settings[1].http, started.settings[1].ledger) == (None, "memory:")


def test_the_file_may_be_named_by_a_variable(
    run: Run, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``--config`` goes before it, and the current folder is never searched."""
    Path("mcp-envelope.toml").write_text("upstreams.here.command = 'x'", encoding="utf-8")
    assert run("run").code == 2
    monkeypatch.setenv("MCP_ENVELOPE_CONFIG", "mcp-envelope.toml")
    assert run("run").code == 0
    Path("other.toml").write_text("upstreams.other.command = 'x'", encoding="utf-8")
    assert run("run", "--config", "other.toml").code == 0
    assert [found.upstreams[0].name for found in started.settings] == ["here", "other"]
    done = run("run", "--", "y")
    assert done.err == (
        "mcp-envelope: mcp-envelope.toml: upstreams: names servers, as COMMAND does; "
        "give one of them\n"
    )


def test_a_client_s_file(run: Run, started: Started) -> None:
    """``--from`` takes its servers and says what it left out."""
    Path("mcp.json").write_text(
        '{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y", "disabled": true}}}',
        encoding="utf-8",
    )
    done = run("run", "--from", "mcp.json")
    assert (done.code, done.out) == (0, b"")
    assert done.err == "mcp-envelope: mcp.json: mcpServers.b: is disabled, and left out\n"
    assert started.settings[0].upstreams[0].name == "a"


def test_settings_may_come_from_standard_input(run: Run, started: Started) -> None:
    """With HTTP, where nothing else does; it cannot be read again."""
    done = run("run", "--config", "-", "--http", "0", given=b"upstreams.a.command = 'x'")
    assert (done.code, done.err) == (0, "")
    with pytest.raises(me.ConfigError):
        started.reread()


def test_settings_can_be_read_again(run: Run, started: Started) -> None:
    """The gateway is given a way to read what may have changed, options included."""
    Path("s.toml").write_text("upstreams.a.command = 'x'", encoding="utf-8")
    run("run", "--config", "s.toml", "--http", "7", "--timeout", "5")
    Path("s.toml").write_text("upstreams.a.command = 'x'\nrules.retries = 9", encoding="utf-8")
    again = started.reread()
    assert again.upstreams[0].rules.retries == 9
    assert again.upstreams[0].rules.timeout == 5
    assert again.http == HttpSettings(port=7)


def test_a_doubled_mark_is_read_as_one() -> None:
    """Launchers that swallow a `--` make people write two of them."""
    assert parser("run").parse(["--", "--", "server", "--", "x"]).command == ("server", "--", "x")
