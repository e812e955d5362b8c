"""Settings from file, environment and flags."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mcp_envelope.core.errors import ConfigError
from mcp_envelope.gateway.settings import HttpSettings, Rules, Settings, UpstreamSettings
from mcp_envelope.gateway.settings_file import Flag, Given, load

WHOLE = """
ledger = "jsonl:record/lines.jsonl"
namespace = false
log_level = "debug"
max_request_bytes = 1_000_000
max_result_bytes = 2e6

[http]
listen = "[::1]:0"
hosts = ["Gateway.internal:80"]
origins = ["https://console.example.com"]

[rules]
output = "strict"
timeout = "2m"
concurrency = 10

[upstreams.time]
command = ["uvx", "mcp-server-time"]
env.TZ = "UTC"
env.TOKEN = { env = "MY_TOKEN" }
env.OTHER = { file = "other.txt" }
cwd = "work"
processes = 3
idle = "1h"
grace = 0.5
rules.timeout = "500ms"

[upstreams.time.tools."get time"]
retries = 0
output = "off"

[upstreams.far]
url = "https://example.com/mcp"
headers.Authorization = { env = "MY_TOKEN" }
connect_timeout = 3
"""


def settings(text: str = "", **how: object) -> Settings:
    """The settings of a file of this content in the folder /etc/x."""
    given = Given(config="/etc/x/s.toml" if text else None, **how)  # type: ignore[arg-type]
    return load(given, lambda _: text.encode()).settings


def test_everything_that_can_be_set(tmp_path: Path) -> None:
    """Each key of a file arrives where it belongs; paths count from the file's folder."""
    (tmp_path / "other.txt").write_bytes(b"two\nlines\r\n")
    (tmp_path / "s.toml").write_text(WHOLE, encoding="utf-8")
    given = Given(config=str(tmp_path / "s.toml"), environment={"MY_TOKEN": "hush"})
    own = Rules(output="strict", timeout=0.5, concurrency=10)
    assert load(given).settings == Settings(
        path=str(tmp_path / "s.toml"),
        ledger=f"jsonl:{tmp_path}/record/lines.jsonl",
        namespace=False,
        log_level="debug",
        max_request_bytes=1_000_000,
        max_result_bytes=2_000_000,
        http=HttpSettings(
            host="::1",
            port=0,
            hosts=("gateway.internal:80",),
            origins=("https://console.example.com",),
        ),
        upstreams=(
            UpstreamSettings(
                name="time",
                command=("uvx", "mcp-server-time"),
                env={"TZ": "UTC", "TOKEN": "hush", "OTHER": "two\nlines"},
                cwd=f"{tmp_path}/work",
                processes=3,
                idle=3600.0,
                grace=0.5,
                rules=own,
                tools={"get time": Rules(output="off", timeout=0.5, retries=0)},
            ),
            UpstreamSettings(
                name="far",
                url="https://example.com/mcp",
                headers={"authorization": "hush"},
                connect_timeout=3.0,
                rules=Rules(output="strict", timeout=120.0, concurrency=10),
            ),
        ),
    )


def test_defaults_are_those_of_the_model() -> None:
    """What is not said is as settings.py has it; whole numbers are integers, times are not."""
    found = settings('[upstreams.a]\ncommand = "x"\nprocesses = 64.0\nidle = 5')
    assert found.upstreams == (UpstreamSettings(name="a", command=("x",), idle=5.0),)
    assert (found.http, found.ledger, found.namespace) == (None, None, True)
    assert isinstance(found.upstreams[0].processes, int)
    assert isinstance(found.upstreams[0].idle, float)
    assert settings('[http]\n[upstreams.a]\ncommand = "x"').http == HttpSettings()


def test_what_is_redacted_and_kept() -> None:
    """Rules like the others: a tool's before its server's before all; a list replaces a list."""
    text = """
        deterministic = true
        [record]
        max_body_bytes = 4096
        [rules]
        bodies = "all"
        redact_keys = ["ssn", "date of birth"]
        redact_pointers = ["/input/a~1b", "/output/*/c"]
        [upstreams.a]
        command = "x"
        rules.redact_credentials = false
        [upstreams.a.tools.t]
        digests = false
        redact_keys = []
    """
    found = settings(text, environment={"MCP_ENVELOPE_RULES__REDACT_POINTERS": "/input/x,/output"})
    assert (found.deterministic, found.record.max_body_bytes) == (True, 4096)
    (upstream,) = found.upstreams
    assert upstream.rules == Rules(
        bodies="all",
        redact_credentials=False,
        redact_keys=("ssn", "date of birth"),
        redact_pointers=("/input/x", "/output"),
    )
    assert upstream.tools["t"] == replace(upstream.rules, digests=False, redact_keys=())


def test_a_command_may_be_one_text() -> None:
    """It is split as a shell would split it, and nothing else of a shell happens."""
    found = settings("upstreams.a.command = '''run \"a b\" $HOME 'c' '''")
    assert found.upstreams[0].command == ("run", "a b", "$HOME", "c")


@pytest.mark.parametrize(
    "said,host,port",
    [
        ("127.0.0.1:9000", "127.0.0.1", 9000),
        (":9000", "127.0.0.1", 9000),
        ("9000", "127.0.0.1", 9000),
        ("0", "127.0.0.1", 0),
        ("[::1]:9000", "::1", 9000),
        ("localhost:9000", "127.0.0.1", 9000),
        ("127.1.2.3:9000", "127.1.2.3", 9000),
    ],
)
def test_ways_to_write_an_address(said: str, host: str, port: int) -> None:
    """``--http`` and ``http.listen`` take the same."""
    expected = HttpSettings(host=host, port=port)
    assert settings(command=("x",), http=said).http == expected
    assert settings(f'http.listen = "{said}"\nupstreams.a.command = "x"').http == expected
    if said.isdigit():
        assert settings(f'http.listen = {said}\nupstreams.a.command = "x"').http == expected


@pytest.mark.parametrize(
    "said,seconds",
    [("5", 5.0), ('"5"', 5.0), ('"500ms"', 0.5), ('"2m"', 120.0), ('"1.5h"', 5400.0), ("0.1", 0.1)],
)
def test_ways_to_write_a_time(said: str, seconds: float) -> None:
    """Seconds, or a text with its unit."""
    found = settings(f'rules.timeout = {said}\nupstreams.a.command = "x"')
    assert found.upstreams[0].rules.timeout == seconds


def test_the_environment_goes_over_the_file() -> None:
    """``__`` stands between names; case and what no variable can hold do not matter."""
    variables = {
        "MCP_ENVELOPE_HTTP__PORT": " 9001 ",
        "MCP_ENVELOPE_HTTP__HOSTS": "a.b, c:80",
        "MCP_ENVELOPE_HTTP__ORIGINS": '["https://a.b"]',
        "MCP_ENVELOPE_NAMESPACE": "off",
        "MCP_ENVELOPE_LOG_LEVEL": "",
        "MCP_ENVELOPE_UPSTREAMS__MY_TIME__RULES__TIMEOUT": "30s",
        "MCP_ENVELOPE_UPSTREAMS__MY_TIME__TOOLS__GET_NOW__OUTPUT": "off",
        "MCP_ENVELOPE_UPSTREAMS__MY_TIME__ENV__TOKEN": "a,b",
        "MCP_ENVELOPE_UPSTREAMS__NEW__URL": "http://h/",
        "MCP_ENVELOPE_UPSTREAMS__NEW__HEADERS__X_API_KEY": "k",
        "MCP_ENVELOPE_UPSTREAMS__THIRD__COMMAND": '["a b", "c"]',
        "MCP_ENVELOPE_UPSTREAMS__THIRD__ENV": '{"A": {"env": "HOME"}, "B": "c"}',
        "HOME": "/home/x",
        "MCP_ENVELOPER": "another program's",
    }
    text = """
        log_level = "error"
        [http]
        listen = "127.0.0.2:9000"
        [upstreams.My-Time]
        command = "x"
        tools."get now".retries = 0
    """
    found = settings(text, environment=variables)
    assert (found.namespace, found.log_level) == (False, "error")
    assert found.http == HttpSettings(
        host="127.0.0.2", port=9001, hosts=("a.b", "c:80"), origins=("https://a.b",)
    )
    first, new, third = found.upstreams
    assert (first.name, first.rules.timeout, first.env) == ("My-Time", 30.0, {"TOKEN": "a,b"})
    assert first.tools == {"get now": Rules(output="off", retries=0, timeout=30.0)}
    assert (new.name, new.url, new.headers) == ("new", "http://h/", {"x-api-key": "k"})
    assert (third.command, third.env) == (("a b", "c"), {"A": "/home/x", "B": "c"})


def test_the_environment_may_say_everything() -> None:
    """No file is needed, and one may be named by a variable."""
    variables = {
        "MCP_ENVELOPE_UPSTREAMS__TIME__COMMAND": "uvx mcp-server-time",
        "MCP_ENVELOPE_HTTP__LISTEN": ":0",
    }
    found = settings(environment=variables)
    assert found.upstreams[0].command == ("uvx", "mcp-server-time")
    assert found.http == HttpSettings(port=0)
    given = Given(environment={"MCP_ENVELOPE_CONFIG": "s.toml"})
    assert load(given, lambda name: f'upstreams.a.command = "{name}"'.encode()).settings.upstreams[
        0
    ].command == ("s.toml",)


def test_listen_in_the_environment_replaces_the_file_s_address() -> None:
    """A later layer's whole address is not mixed with an earlier one's host."""
    text = '[http]\nhost = "127.0.0.2"\nport = 1\n[upstreams.a]\ncommand = "x"'
    found = settings(text, environment={"MCP_ENVELOPE_HTTP__LISTEN": "7"})
    assert found.http == HttpSettings(port=7)


def test_flags_go_over_everything() -> None:
    """An option holds for every call, whatever file and environment say of single tools."""
    text = """
        http.port = 1
        [rules]
        timeout = 1
        [upstreams.a]
        command = "x"
        rules.timeout = 2
        tools.t.timeout = 3
        tools.u.retries = 1
    """
    found = settings(
        text,
        environment={"MCP_ENVELOPE_UPSTREAMS__A__RULES__TIMEOUT": "4", "MCP_ENVELOPE_LEDGER": "x"},
        flags=(
            Flag("--timeout", ("rules", "timeout"), "9"),
            Flag("--ledger", ("ledger",), "memory:"),
            Flag("--log-level", ("log_level",), "error"),
        ),
        http="2",
    )
    (upstream,) = found.upstreams
    assert upstream.rules.timeout == 9
    assert [rules.timeout for rules in upstream.tools.values()] == [9, 9]
    assert (found.ledger, found.log_level, found.http) == ("memory:", "error", HttpSettings(port=2))
    assert settings(text, stdio=True).http is None


def test_paths_of_flags_count_from_the_current_folder(tmp_path: Path) -> None:
    """And ``~`` is the home folder."""
    flag = Flag("--ledger", ("ledger",), "jsonl:x.jsonl")
    found = settings('upstreams.a.command = "x"', flags=(flag,), folder=tmp_path)
    assert found.ledger == f"jsonl:{tmp_path}/x.jsonl"
    found = settings('ledger = "jsonl:~/x"\nupstreams.a.command = "x"')
    assert found.ledger == f"jsonl:{Path.home()}/x"


def test_a_file_of_rules_goes_with_a_command() -> None:
    """A file that names no servers may be shared by many command lines."""
    found = settings("rules.retries = 0", command=("uvx", "mcp-server-time"))
    expected = UpstreamSettings(
        name="mcp-server-time", command=("uvx", "mcp-server-time"), rules=Rules(retries=0)
    )
    assert found.upstreams == (expected,)
    assert settings(url="http://h:1/").upstreams[0].name == "h-1"


def test_standard_input_is_read_only_by_who_can() -> None:
    """``-`` is for the command line; a reload cannot read it a second time."""
    with pytest.raises(ConfigError, match="standard input cannot be read twice"):
        load(Given(config="-"))
    found = load(Given(config="-"), lambda _: b'upstreams.a.command = "x"').settings
    assert found.path is None
