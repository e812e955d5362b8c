"""The real servers, and what is asked of each: nothing whose answer changes from run to run."""

from __future__ import annotations

import http.server
import os
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from . import places
from .driver import Json, Step

LEGACY = "legacy"
MODERN = "2026-07-28"

_PAGE = b"<html><head><title>Page</title></head><body><h1>Heading</h1><p>Words.</p></body></html>"
_ROBOTS = b"User-agent: *\nDisallow: /private\n"


@dataclass(frozen=True)
class World:
    """What the servers work on: a folder with files, a repository, a web site."""

    folder: Path
    site: str

    @property
    def files(self) -> Path:
        """The folder that the file server may touch."""
        return self.folder / "files"

    @property
    def repository(self) -> Path:
        """A repository with one commit and a change."""
        return self.folder / "repository"


@dataclass(frozen=True)
class Peer:
    """A server: how it is started, which eras it speaks, what it is asked, and words it says.

    ``refused`` are calls that the gateway refuses before the server can, in words of its own:
    arguments that do not fit the schema, and tools that nobody listed.
    """

    name: str
    eras: tuple[str, ...]
    command: Callable[[World], list[str]]
    steps: Callable[[World], Sequence[Step]]
    proof: str
    refused: tuple[Step, ...]


def call(name: str, **arguments: object) -> Step:
    """The step that calls a tool."""
    return "tools/call", {"name": name, "arguments": arguments}


_LISTS: list[Step] = [("tools/list", {}), ("resources/list", {}), ("prompts/list", {})]


def _ask(method: str, **params: object) -> Step:
    told: Json = dict(params)
    return method, told


def _python(name: str, *words: str) -> list[str]:
    return [*places.python_program("servers", name), *words]


def _time_steps(world: World) -> list[Step]:
    noon = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    return [
        *_LISTS,
        call("convert_time", **noon),
        call("convert_time", **{**noon, "time": "25:99"}),
        call("convert_time", **{**noon, "source_timezone": "Mars/Olympus"}),
    ]


def _git_steps(world: World) -> list[Step]:
    here = str(world.repository)
    return [
        *_LISTS,
        call("git_status", repo_path=here),
        call("git_log", repo_path=here, max_count=3),
        call("git_diff_unstaged", repo_path=here),
        call("git_show", repo_path=here, revision="HEAD"),
        call("git_branch", repo_path=here, branch_type="local"),
        call("git_show", repo_path=here, revision="no-such-revision"),
        call("git_status", repo_path=str(world.folder)),
    ]


def _fetch_steps(world: World) -> list[Step]:
    return [
        *_LISTS,
        call("fetch", url=f"{world.site}/page"),
        call("fetch", url=f"{world.site}/page", raw=True, max_length=20),
        call("fetch", url=f"{world.site}/private"),
        call("fetch", url=f"{world.site}/absent"),
        _ask("prompts/get", name="fetch", arguments={"url": f"{world.site}/page"}),
        _ask("prompts/get", name="no-such-prompt"),
    ]


def _everything_steps(world: World) -> list[Step]:
    text = "demo://resource/static/document/features.md"
    department = {"name": "department", "value": "E"}
    return [
        *_LISTS,
        ("resources/templates/list", {}),
        _ask("logging/setLevel", level="debug"),
        ("ping", {}),
        call("echo", message="ħëllo 🌍 \u2028 \\u0000"),
        call("get-sum", a=1e300, b=12345678901234567890),
        call("get-tiny-image"),
        call("get-annotated-message", messageType="error", includeImage=True),
        call("get-resource-links", count=2),
        call("get-resource-reference", resourceType="Text", resourceId=2),
        call("get-structured-content", location="Chicago"),
        call("trigger-long-running-operation", duration=0.2, steps=4),
        call("trigger-sampling-request", prompt="say something", maxTokens=10),
        call("trigger-elicitation-request"),
        call("get-roots-list"),
        _ask("resources/read", uri=text),
        _ask("resources/read", uri="demo://no/such"),
        _ask("resources/subscribe", uri=text),
        _ask("prompts/get", name="simple-prompt"),
        _ask("prompts/get", name="args-prompt", arguments={"city": "Paris"}),
        _ask("prompts/get", name="args-prompt"),
        _ask("completion/complete", prompt="completable-prompt", argument=department),
    ]


def _filesystem_steps(world: World) -> list[Step]:
    here = str(world.files)
    return [
        ("tools/list", {}),
        call("list_directory", path=here),
        call("directory_tree", path=here),
        call("read_text_file", path=f"{here}/umlauts.txt"),
        call("read_media_file", path=f"{here}/bytes.png"),
        call("read_multiple_files", paths=[f"{here}/umlauts.txt", f"{here}/absent"]),
        call("write_file", path=f"{here}/written.txt", content="line 1\nline 2\n"),
        call(
            "edit_file",
            path=f"{here}/written.txt",
            edits=[{"oldText": "line 2", "newText": "line two"}],
            dryRun=True,
        ),
        call("search_files", path=here, pattern="*.txt"),
        call("read_text_file", path="/etc/hostname"),
        ("resources/list", {}),
    ]


def _memory_steps(world: World) -> list[Step]:
    ann = {"name": "Ann", "entityType": "person", "observations": ["sings", "hört zu"]}
    bob = {"name": "Bob", "entityType": "person", "observations": []}
    knows = {"from": "Ann", "to": "Bob", "relationType": "knows"}
    return [
        ("tools/list", {}),
        call("create_entities", entities=[ann, bob]),
        call("create_relations", relations=[knows]),
        call(
            "add_observations",
            observations=[{"entityName": "Bob", "contents": ["is new", "dances"]}],
        ),
        call("read_graph"),
        call("search_nodes", query="sing"),
        call("open_nodes", names=["Bob"]),
        call(
            "add_observations", observations=[{"entityName": "Nobody", "contents": ["is missing"]}]
        ),
        _ask("resources/read", uri="memory://knowledge-graph"),
    ]


def _memory(world: World) -> list[str]:
    # A graph of its own for each run. `env`, so that it holds whoever starts the program.
    graph = world.folder / f"memory-{uuid4().hex}.jsonl"
    return ["/usr/bin/env", f"MEMORY_FILE_PATH={graph}", *places.npm_program("mcp-server-memory")]


BOTH = (LEGACY, MODERN)
# Those from npm are made with an SDK that knows no 2026-07-28.
PEERS = {
    peer.name: peer
    for peer in (
        Peer(
            "time",
            BOTH,
            lambda world: _python("mcp-server-time"),
            _time_steps,
            "+9.0h",
            (call("convert_time"), call("no_such_tool")),
        ),
        Peer(
            "git",
            BOTH,
            lambda world: _python("mcp-server-git"),
            _git_steps,
            "+second",
            (call("git_status"),),
        ),
        Peer(
            "fetch",
            BOTH,
            # The site is on this machine, and the server fetches nothing there unless it is told.
            lambda world: _python("mcp-server-fetch", "--allow-private-ips"),
            _fetch_steps,
            "Words.",
            (call("fetch", url=7), call("fetch", url="")),
        ),
        Peer(
            "everything",
            (LEGACY,),
            lambda world: places.npm_program("mcp-server-everything"),
            _everything_steps,
            "ħëllo",
            (call("get-sum", a="one", b=2), call("no-such-tool")),
        ),
        Peer(
            "filesystem",
            (LEGACY,),
            lambda world: [*places.npm_program("mcp-server-filesystem"), str(world.files)],
            _filesystem_steps,
            "äöü",
            (call("read_text_file"), call("read_text_file", path=["x"])),
        ),
        Peer(
            "memory",
            (LEGACY,),
            _memory,
            _memory_steps,
            "hört zu",
            (call("open_nodes", names="Bob"),),
        ),
    )
}


def furnish(folder: Path) -> None:
    """Put the files and the repository into ``folder``."""
    files = folder / "files"
    files.mkdir()
    (files / "umlauts.txt").write_text("äöü\n¶ 2\n", encoding="utf-8")
    (files / "written.txt").write_text("line 1\nline 2\n", encoding="utf-8")
    (files / "bytes.png").write_bytes(bytes(range(256)))
    repository = folder / "repository"
    repository.mkdir()
    (repository / "kept.txt").write_text("first\n", encoding="utf-8")
    who = {
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@example.com",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@example.com",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
    }
    for line in ("init -q -b main", "add kept.txt", "commit -q -m first"):
        subprocess.run(
            ["git", *line.split()], cwd=repository, env={**os.environ, **who}, check=True
        )
    (repository / "kept.txt").write_text("first\nsecond\n", encoding="utf-8")


class _Site(http.server.BaseHTTPRequestHandler):
    """A page, a robots.txt that forbids another, and nothing else."""

    def do_GET(self) -> None:
        bodies = {"/page": ("text/html", _PAGE), "/robots.txt": ("text/plain", _ROBOTS)}
        kind, body = bodies.get(self.path, ("text/plain", b"nothing here"))
        self.send_response(200 if self.path in bodies else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        """Keep quiet."""


def site() -> http.server.ThreadingHTTPServer:
    """The web site, served by a thread until `shutdown`."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
