"""Names of servers that nobody named."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_envelope.gateway.settings_names import name_of_command, name_of_url, prefix_of


@pytest.mark.parametrize(
    "command,name",
    [
        ("uvx mcp-server-time", "mcp-server-time"),
        ("uvx mcp-server-time@latest --local-timezone Europe/Berlin", "mcp-server-time"),
        ("uvx --from git+https://example.org/x/y.git y-server", "y-server"),
        ("uvx git+https://example.org/x/y.git@v1", "y"),
        ("uvx -p 3.12 --with requests 'mcp-server-fetch[all]==1.2'", "mcp-server-fetch"),
        ("uv --directory /srv/x run server.py", "server"),
        ("uv run --with mcp mcp run server.py", "mcp"),
        ("uv tool run mcp-server-git", "mcp-server-git"),
        ("uv run python -m x.y", "x.y"),
        ("pipx run mcp-server-git", "mcp-server-git"),
        ("npx -y @scope/pkg@1.2 args", "pkg"),
        ("npx pkg@latest", "pkg"),
        ("npx -y --package @a/b c", "c"),
        ("npm exec @scope/pkg -- x", "pkg"),
        ("pnpm dlx @scope/pkg", "pkg"),
        ("bunx @scope/pkg", "pkg"),
        ("bun run ./server.ts", "server"),
        ("npx github:someone/thing", "thing"),
        ("python -m x.y", "x.y"),
        ("/usr/bin/python3.11 -u -W error -m x.y --port 1", "x.y"),
        ("python /srv/weather.py", "weather"),
        ("python -c 'print()'", "python"),
        ("python", "python"),
        ("node path/to/server.js", "server"),
        ("node --require x /srv/weather/build/index.js", "weather"),
        ("node", "node"),
        ("deno run -A jsr.ts", "jsr.ts"),
        ("docker run -i --rm -e TOKEN ghcr.io/github/github-mcp-server:1.2", "github-mcp-server"),
        ("docker run -i --name x -v a:b mcp/fetch@sha256:abc", "fetch"),
        ("docker run", "docker"),
        ("java -jar /srv/weather.jar", "weather"),
        ("env -i A=b uvx x", "x"),
        ("env A=b uvx mcp-x", "mcp-x"),
        ("/opt/bin/my-server --x", "my-server"),
        ("./run.sh", "run"),
        ("C:\\\\tools\\\\srv.exe", "srv"),
        ("日本", "server"),
        ("", "server"),
    ],
)
def test_names_of_commands(command: str, name: str) -> None:
    """The name says which server it is, not what runs it."""
    assert name_of_command(shlex.split(command)) == name


@pytest.mark.parametrize(
    "url,name",
    [
        ("https://api.example.com/mcp", "api.example.com"),
        ("http://127.0.0.1:9000/mcp", "127.0.0.1-9000"),
        ("http://[::1]:9000/mcp", "1-9000"),
        ("http://h:x/", "server"),
        ("", "server"),
    ],
)
def test_names_of_urls(url: str, name: str) -> None:
    """Host and port."""
    assert name_of_url(url) == name


@pytest.mark.parametrize(
    "name,prefix",
    [
        ("time", "time"),
        ("x.y", "x_y"),
        ("My Server", "My_Server"),
        ("a__b_", "a_b"),
        ("日本", ""),
        ("a-b", "a-b"),
    ],
)
def test_prefixes(name: str, prefix: str) -> None:
    """What model APIs allow in tools' names, and ``__`` once only."""
    assert prefix_of(name) == prefix


@given(st.lists(st.text(max_size=20), max_size=5), st.text(max_size=30))
def test_any_command_and_url_has_a_name(command: list[str], url: str) -> None:
    """Whatever is started, its name can be a file's and stands before a tool's."""
    for name in (name_of_command(command), name_of_url(url), name_of_command(["uvx", *command])):
        assert 1 <= len(name) <= 64
        assert prefix_of(name) or name.strip("._-")
        assert "/" not in name
        assert not name.startswith(".")
