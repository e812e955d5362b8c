"""What clients keep about their servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcp_envelope.gateway.settings import UpstreamSettings
from mcp_envelope.gateway.settings_file import Given, Loaded, SettingsError, load

ENVIRONMENT = {"TOKEN": "hush", "EMPTY": ""}


def loaded(value: Any, key: str = "mcpServers") -> Loaded:
    """What becomes of a client's file."""
    raw = value if isinstance(value, bytes) else json.dumps({key: value}).encode()
    return load(Given(clients="mcp.json", environment=ENVIRONMENT), lambda _: raw)


@pytest.mark.parametrize("key", ["mcpServers", "servers"])
def test_servers_of_both_sorts(key: str) -> None:
    """Commands with arguments and variables, URLs with headers, in the order of the file."""
    found = loaded(
        {
            "time": {"command": "uvx", "args": ["mcp-server-time"], "type": "stdio"},
            "git hub": {
                "command": "docker",
                "args": ["run", "${TOKEN}", "${NONE:-x y}", "${EMPTY:-z}", "$TOKEN", 7],
                "env": {"T": "${env:TOKEN}", "PORT": 8080, "V": True, "N": None},
                "cwd": "work",
            },
            "far": {
                "type": "http",
                "url": "https://h/mcp",
                "headers": {"Authorization": "Bearer ${TOKEN}"},
            },
            "windsurf": {"serverUrl": "https://w/mcp"},
        },
        key,
    )
    assert found.notes == ()
    assert found.settings.upstreams == (
        UpstreamSettings(name="time", command=("uvx", "mcp-server-time")),
        UpstreamSettings(
            name="git hub",
            command=("docker", "run", "hush", "x y", "z", "$TOKEN", "7"),
            env={"T": "hush", "PORT": "8080", "V": "true"},
            cwd=str(Path.cwd() / "work"),
        ),
        UpstreamSettings(name="far", url="https://h/mcp", headers={"authorization": "Bearer hush"}),
        UpstreamSettings(name="windsurf", url="https://w/mcp"),
    )


def test_what_is_left_out_is_said() -> None:
    """Disabled servers, and keys that mean something to the client alone."""
    found = loaded(
        {
            "a": {"command": "x", "autoApprove": ["t"], "timeout": 5},
            "b": {"command": "x", "disabled": True, "type": "sse"},
            "c.d": {"url": "http://h", "enabled": False},
        }
    )
    assert [upstream.name for upstream in found.settings.upstreams] == ["a"]
    assert found.notes == (
        (
            "mcp.json: mcpServers.a: these keys are the client's own, and ignored: autoApprove, "
            "timeout"
        ),
        "mcp.json: mcpServers.b: is disabled, and left out",
        'mcp.json: mcpServers."c.d": is disabled, and left out',
    )


@pytest.mark.parametrize(
    "value,said",
    [
        (b"{", "mcp.json: line 1: the document ends too early; was it cut off?"),
        (b"// hello\n{}", "mcp.json: line 1: no JSON value begins here; JSON knows no NaN, "),
        (b"[]", "mcp.json: has no mcpServers; name a client's mcp.json, or the file of settings "),
        ([], "mcp.json: mcpServers: must map names to servers; name at least one"),
        ({}, "mcp.json: mcpServers: names no server; name at least one"),
        (
            {"a": {"command": "x", "disabled": True}},
            "mcp.json: mcpServers: has disabled servers only; enable one of them",
        ),
        ({"a": 1}, "mcp.json: mcpServers.a: must be an object; give it a command or a url"),
        ({"a": {}}, "mcp.json: mcpServers.a: has neither a command nor a url; add one of them"),
        (
            {"a": {"type": "sse", "url": "http://h"}},
            (
                "mcp.json: mcpServers.a: is of the type sse, a transport of 2024 that is not "
                "spoken here; name its Streamable HTTP endpoint, or disable it"
            ),
        ),
        (
            {"a": {"command": ["x"]}},
            "mcp.json: mcpServers.a.command: must be a text; put it in quotes",
        ),
        (
            {"a": {"command": "x", "args": "y"}},
            "mcp.json: mcpServers.a.args: must be an array of texts; put each argument into it",
        ),
        (
            {"a": {"command": "x", "args": ["y", {}]}},
            "mcp.json: mcpServers.a.args[1]: must be a text; put it in quotes",
        ),
        (
            {"a": {"command": "x", "env": ["A=b"]}},
            "mcp.json: mcpServers.a.env: must be an object of texts; map names to texts",
        ),
        (
            {"a": {"command": "x", "env": {"T": "${NOPE}"}}},
            (
                "mcp.json: mcpServers.a.env.T: the variable NOPE is not set; "
                "set it, or write ${NAME:-default}"
            ),
        ),
        (
            {"a": {"url": "http://h", "headers": {"T": "${input:key}"}}},
            (
                "mcp.json: mcpServers.a.headers.T: asks the client's user for key; "
                "use a variable instead: ${VAR}"
            ),
        ),
        (
            {"a": {"url": "ftp://h"}},
            (
                "mcp.json: mcpServers.a.url: is no http:// or https:// URL; "
                "name a Streamable HTTP endpoint, such as https://…/mcp"
            ),
        ),
        ({"a": {"command": ""}}, "mcp.json: mcpServers.a.command: is empty; name the program"),
        ({"a/b": {"command": "x"}}, 'mcp.json: mcpServers."a/b": the name is not usable; it must'),
    ],
)
def test_mistakes(value: Any, said: str) -> None:
    """Each gives one line with the place in the client's own file."""
    with pytest.raises(SettingsError) as caught:
        loaded(value)
    assert len(caught.value.mistakes) == 1
    assert str(caught.value).startswith(said)
    assert "hush" not in str(caught.value)


def test_the_environment_and_the_file_are_remembered(tmp_path: Path) -> None:
    """Rules from the environment reach such servers too, and the file is the one to watch."""
    file = tmp_path / "mcp.json"
    file.write_text('{"mcpServers": {"a": {"command": "x"}}}', encoding="utf-8")
    variables = {"MCP_ENVELOPE_UPSTREAMS__A__RULES__RETRIES": "0"}
    found = load(Given(clients=str(file), environment=variables)).settings
    assert found.upstreams[0].rules.retries == 0
    assert found.path == str(file)
