"""What tests of children say to them, and how they look at what comes back."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from mcp_envelope.core.frame import Frame, frame_of
from mcp_envelope.core.link import Link, Reply
from mcp_envelope.upstreams.stdio import StdioUpstream

PEER = (sys.executable, "-S", "-E", str(Path(__file__).with_name("peer.py")))
META = "io.modelcontextprotocol/"


@asynccontextmanager
async def upstream(*command: str, **settings: Any) -> AsyncIterator[StdioUpstream]:
    """An upstream, of peers unless a command is given, that is closed in the end."""
    settings.setdefault("grace", 1.0)
    made = StdioUpstream("peer", command or PEER, **settings)
    try:
        yield made
    finally:
        await made.close()


@asynccontextmanager
async def link(*, stateless: bool = False, **settings: Any) -> AsyncIterator[Link]:
    """A link to a peer."""
    async with upstream(**settings) as made:
        yield await made.connect(stateless=stateless)


def request(id: object, method: str, meta: dict[str, Any] | None = None, **params: Any) -> Frame:
    """A request."""
    if meta is not None:
        params["_meta"] = meta
    return frame_of({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def notification(method: str, **params: Any) -> Frame:
    """A notification."""
    return frame_of({"jsonrpc": "2.0", "method": method, "params": params})


async def ask(link: Link, id: object, method: str, **params: Any) -> Any:
    """Send a request; its result."""
    return (await values(await link.send(request(id, method, **params), {})))[-1]["result"]


async def frames(reply: Reply) -> list[Frame]:
    """All that comes on a reply."""
    return [item.frame async for item in reply if item.frame is not None]


async def values(reply: Reply) -> list[Any]:
    """The same in plain Python."""
    return [frame.value for frame in await frames(reply)]


async def following(reply: Reply) -> Any:
    """The next message on a reply."""
    item = await anext(aiter(reply))
    assert item.frame is not None
    return item.frame.value


def is_running(pid: int) -> bool:
    """Whether a process is there, and is no zombie that waits for its parent."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False


async def ended(pid: int) -> bool:
    """Whether a process ends within two seconds."""
    late = time.monotonic() + 2
    while is_running(pid) and time.monotonic() < late:  # noqa: ASYNC110 - not our child
        await asyncio.sleep(0.01)
    return not is_running(pid)


def open_descriptors() -> set[str]:
    """Which pipes and processes have a file descriptor open here."""
    found = set()
    for descriptor in Path("/proc/self/fd").glob("*"):
        with suppress(FileNotFoundError):
            target = str(descriptor.readlink())
            if target.startswith("pipe:") or "pidfd" in target:
                found.add(f"{descriptor.name} {target}")
    return found
