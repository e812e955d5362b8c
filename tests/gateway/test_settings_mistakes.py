"""Each mistake gives one line: file, key, problem, fix. Nothing else is ever raised."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given as given_by
from hypothesis import strategies as st

from mcp_envelope.core.errors import ConfigError, UsageError
from mcp_envelope.gateway import settings_schema
from mcp_envelope.gateway.settings_file import Flag, Given, SettingsError, load

from .mistakes import MISTAKES

SECRET = "hunter2-Zq9"


def lines(text: str | bytes, **how: object) -> list[str]:
    """What is said of a file of this content."""
    raw = text.encode() if isinstance(text, str) else text
    with pytest.raises(SettingsError) as caught:
        load(Given(config="s.toml", **how), lambda _: raw)  # type: ignore[arg-type]
    assert str(caught.value) == "\n".join(map(str, caught.value.mistakes))
    return str(caught.value).split("\n")


@pytest.mark.parametrize("text,said", MISTAKES, ids=[said[:60] for _, said in MISTAKES])
def test_each_mistake_gives_one_line(text: str, said: str) -> None:
    """A line that names file, key, problem and fix, and no second one."""
    command = None if "upstreams" in text else ("x",)
    assert lines(text, command=command) == [f"s.toml: {said}"]
    assert "; " in said


def test_there_are_many() -> None:
    """The table is worth its name."""
    assert len(MISTAKES) >= 80


@pytest.mark.parametrize(
    "raw,said",
    [
        (b'\nledger = "\xff"', "line 2: is not UTF-8; save the file as UTF-8"),
        (b"a = " + b"9" * 5000, "is no TOML: a number or date is out of range; mend the TOML"),
        (b"a = " + b"[" * 5000, "is nested too deep; mend the TOML"),
        (b"#" * (4 * 1024 * 1024 + 1), "has more than 4,194,304 bytes; shorten it"),
        (
            ".".join(["a"] * 400).encode() + b" = 1",
            "a.a.a: is nested too deep to be a setting; leave it out",
        ),
        (
            b"namespace = true",
            (
                "upstreams: there is no server to stand in front of; "
                "add [upstreams.NAME] with a command or a url"
            ),
        ),
    ],
    ids=["encoding", "digits", "brackets", "size", "dots", "no server"],
)
def test_files_that_are_hardly_files(raw: bytes, said: str) -> None:
    """Bytes that no TOML reader likes get a line as well."""
    assert f"s.toml: {said}" in lines(raw)


def test_all_mistakes_are_said_at_once() -> None:
    """Whoever mends one need not start again to hear of the next; each has its source's name."""
    found = lines(
        'nmespace = 1\n[http]\nport = -1\n[upstreams.a]\n[upstreams.b]\nurl = "ftp://x"\n',
        environment={
            "MCP_ENVELOPE_HTTP__PROT": "1",
            "MCP_ENVELOPE_RULES__RETRIES": "many",
            "MCP_ENVELOPE_UPSTREAMS__B__HEADERS": "[1",
            "MCP_ENVELOPE_UPSTREAMS": "x",
        },
        flags=(Flag("--timeout", ("rules", "timeout"), "soon"),),
    )
    assert [line.split("; ")[0] for line in found] == [
        "MCP_ENVELOPE_HTTP__PROT: names no setting",
        "MCP_ENVELOPE_UPSTREAMS: names no setting",
        "MCP_ENVELOPE_UPSTREAMS__B__HEADERS: is not the JSON that it begins as",
        "s.toml: nmespace: unknown key",
        "s.toml: http.port: must be at least 0, not -1",
        '--timeout: must not be "soon"',
        "MCP_ENVELOPE_RULES__RETRIES: must be an integer, not a text",
        "s.toml: upstreams.a: has neither a command nor a url",
        "s.toml: upstreams.b.url: is no http:// or https:// URL",
    ]
    assert found[0].endswith("; did you mean MCP_ENVELOPE_HTTP__PORT?")
    assert found[1].endswith("the key: MCP_ENVELOPE_UPSTREAMS__<NAME>__COMMAND")


@pytest.mark.parametrize(
    "given,said",
    [
        (Given(), "there is no server to stand in front of"),
        (Given(command=("x",), url="http://h"), "--upstream and a COMMAND both name servers"),
        (Given(clients="m.json", url="http://h"), "--from and --upstream both name servers"),
        (Given(command=("x",), stdio=True, http="1"), "--stdio and --http exclude each other"),
    ],
)
def test_sources_and_doors_exclude_each_other(given: Given, said: str) -> None:
    """Exactly one thing says which servers there are."""
    with pytest.raises(UsageError, match=said):
        load(given, lambda _: b"")


@pytest.mark.parametrize(
    "given,said",
    [
        (Given(command=()), "COMMAND: must not be empty; fill it, or leave it out"),
        (Given(command=("",)), "COMMAND: is empty; name the program to start"),
        (Given(command=("x", "a\0")), "COMMAND: holds a NUL character; leave it out"),
        (
            Given(url="h:1"),
            (
                "--upstream: is no http:// or https:// URL; "
                "name a Streamable HTTP endpoint, such as https://…/mcp"
            ),
        ),
        (
            Given(command=("x",), http="0.0.0.0:80"),
            (
                "--http: is no loopback address, and without authentication nothing else is "
                "served; listen on 127.0.0.1 or [::1]"
            ),
        ),
        (
            Given(command=("x",), http="x"),
            (
                "--http: has no port; write HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080, "
                "or a port alone"
            ),
        ),
        (
            Given(command=("x",), flags=(Flag("--ledger", ("ledger",), "calls.db"),)),
            "--ledger: is not usable; did you mean sqlite:calls.db?",
        ),
        (
            Given(command=("x",), flags=(Flag("--ledger", ("ledger",), "/a/b.jsonl"),)),
            "--ledger: is not usable; did you mean jsonl:/a/b.jsonl?",
        ),
        (
            Given(command=("x",), flags=(Flag("--ledger", ("ledger",), "/tmp/x"),)),
            "--ledger: is not usable; write `sqlite:PATH`, `jsonl:PATH` or `memory:`",
        ),
        (
            Given(command=("x",), config="s.toml"),
            "s.toml: upstreams: names servers, as COMMAND does; give one of them",
        ),
        (
            Given(config="/nonexistent/s.toml"),
            (
                "/nonexistent/s.toml: cannot be read: No such file or directory; "
                "name a file that can be"
            ),
        ),
    ],
)
def test_mistakes_in_options_name_the_option(given: Given, said: str) -> None:
    """What came from the command line is said of the option."""
    read = None if given.config and given.config.startswith("/") else lambda _: b"upstreams.a={}"
    with pytest.raises(SettingsError) as caught:
        load(given, read)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    "text",
    [
        f'ledger = "postgres://u:{SECRET}@h"',
        f'ledger = "{SECRET}"',
        f'[upstreams.a]\nurl = "http://u:{SECRET}@h"',
        f'[upstreams.a]\nurl = "http://h:{SECRET}/"',
        f'[upstreams.a]\nurl = "{SECRET}"',
        f'[upstreams.a]\ncommand = "x --key \'{SECRET}"',
        f'[upstreams.a]\ncommand = ["x", "{SECRET}\\u0000"]',
        f'[upstreams.a]\ncommand = ["x", {{ a = "{SECRET}" }}]',
        f'[upstreams.a]\ncommand = "x"\nenv.A = ["{SECRET}"]',
        f'[upstreams.a]\ncommand = "x"\nenv.A = "{SECRET}\\u0000"',
        f'[upstreams.a]\ncommand = "x"\nenv = "A={SECRET}"',
        f'[upstreams.a]\nurl = "http://h"\nheaders.a = "{SECRET}\\n"',
        f'[upstreams.a]\nurl = "http://h"\nheaders.host = "{SECRET}"',
        f'[upstreams.a]\nurl = "http://h"\nheaders.a = {{ env = 1, file = "{SECRET}" }}',
        f'[upstreams.a]\nurl = "http://h"\nheaders.a = "{SECRET}" x',
    ],
)
def test_no_secret_is_repeated(text: str) -> None:
    """Values that may be secret are in no message, whatever else is wrong with them."""
    assert SECRET not in "\n".join(lines(text))


def test_no_secret_in_messages_about_the_environment_and_files(tmp_path: Path) -> None:
    """Nor are those that come from variables and files."""
    (tmp_path / "token").write_text(f"{SECRET}\n\n", encoding="utf-8")
    found = lines(
        f'[upstreams.a]\nurl = "http://h"\nheaders.a = {{ file = "{tmp_path}/token" }}\n'
        'headers.b = { env = "B" }\n',
        environment={
            "B": f"{SECRET}\n",
            "MCP_ENVELOPE_UPSTREAMS__A__HEADERS__C": f"{SECRET}\r",
            "MCP_ENVELOPE_UPSTREAMS__C__ENV": f'{{"A": ["{SECRET}"]}}',
            "MCP_ENVELOPE_UPSTREAMS__C__URL": SECRET,
            "MCP_ENVELOPE_TOKEN": SECRET,
        },
    )
    assert len(found) == 7
    assert SECRET not in "\n".join(found)


@pytest.mark.parametrize(
    "content,said",
    [
        (None, "the file is no regular file; name another"),
        (b"\xff", "the file is not UTF-8; name a text file"),
        (b"x" * 65_537, "the file has more than 65536 bytes; name another"),
    ],
)
def test_files_that_hold_no_secret(tmp_path: Path, content: bytes | None, said: str) -> None:
    """A folder, something that is no text, far too much: one line, and none of the content."""
    if content is None:
        (tmp_path / "token").mkdir()
    else:
        (tmp_path / "token").write_bytes(content)
    text = f'[upstreams.a]\nurl = "http://h"\nheaders.a = {{ file = "{tmp_path}/token" }}\n'
    assert lines(text) == [f"s.toml: upstreams.a.headers.a: {said}"]


def test_no_secret_in_a_repr() -> None:
    """Settings and what they are made from can be logged."""
    text = (
        f'ledger = "jsonl:/{SECRET}"\n'
        f'[upstreams.a]\ncommand = ["x", "{SECRET}"]\nenv.A = "{SECRET}"\n'
        f'[upstreams.b]\nurl = "http://h/?k={SECRET}"\nheaders.A = "{SECRET}"\n'
    )
    given = Given(config="s.toml", environment={"A": SECRET})
    loaded = load(given, lambda _: text.encode())
    assert loaded.settings.upstreams[1].headers == {"a": SECRET}
    assert SECRET not in repr(loaded)
    assert SECRET not in repr(given)
    assert SECRET not in repr(Given(command=(SECRET,), url=SECRET))


# -- whatever a file says -------------------------------------------------------------------

NAMES = sorted({"x", "a b", *(name for key in settings_schema.every_key() for name in key.path)})
SCALARS = st.one_of(
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(["30s", "memory:", "jsonl:x", "http://h/", "strict", "off", ":0", "0.0.0.0:1"]),
    st.dates(),
    st.times(),
    st.datetimes(),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
    max_leaves=12,
)
TABLES = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=6)


def as_toml(value: object) -> str:
    """A value as TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        members = ", ".join(f"{as_toml(name)} = {as_toml(part)}" for name, part in value.items())
        return f"{{{members}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(as_toml, value))}]"
    if isinstance(value, str):
        inside = "".join(c if c.isalnum() and c.isascii() else f"\\U{ord(c):08x}" for c in value)
        return f'"{inside}"'
    return value.isoformat() if hasattr(value, "isoformat") else repr(value)


@given_by(table=TABLES, environment=st.dictionaries(st.sampled_from(NAMES), st.text(max_size=8)))
def test_any_toml_gives_settings_or_mistakes(
    table: dict[str, object], environment: dict[str, str]
) -> None:
    """Whatever TOML says, there are settings, or a ConfigError that has mistakes to show."""
    text = "\n".join(f"{as_toml(name)} = {as_toml(part)}" for name, part in table.items())
    tomllib.loads(text)
    variables = {
        f"MCP_ENVELOPE_UPSTREAMS__X__{name.upper()}": value for name, value in environment.items()
    }
    mistakes = None
    try:
        load(Given(config="s.toml", environment=variables), lambda _: text.encode())
    except SettingsError as error:
        mistakes = error.mistakes
    assert mistakes is None or mistakes
    assert "\n" not in "".join(map(str, mistakes or ()))


@given_by(raw=st.one_of(st.binary(max_size=200), st.text(alphabet='a.=[]{}"\n #1-:T', max_size=80)))
def test_any_bytes_give_settings_or_mistakes(raw: bytes | str) -> None:
    """Whatever a file holds, only ConfigError is raised."""
    data = raw if isinstance(raw, bytes) else raw.encode()
    with pytest.raises(ConfigError):
        load(Given(config="s.toml"), lambda _: data)
