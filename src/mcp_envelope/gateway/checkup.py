"""What `doctor` looks at besides the settings: installation, clock, streams, store, upstreams."""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import os
import platform
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import mcp_envelope as me
from mcp_envelope.core.document import DEFAULT_LIMITS, Limits
from mcp_envelope.core.errors import ConfigError, EnvelopeError

from . import parts
from .probe import Probed, probe
from .settings import UpstreamSettings

State = Literal["ok", "note", "problem"]

BROKEN: Final = 1
UNREACHABLE: Final = 3
_EARLIEST: Final = 1_735_689_600  # 2025 begins
_LATEST: Final = 4_102_444_800  # 2100 begins
_NEEDED: Final = {
    "jiter": "jiter",
    "orjson": "orjson",
    "jsonschema-rs": "jsonschema_rs",
    "blake3": "blake3",
    "cryptography": "cryptography",
}
_FOR_HTTP: Final = {"uvicorn": "uvicorn", "httptools": "httptools"}
_FOR_SPEED: Final = {"uvloop": "uvloop"}
#: Where programs come from that upstreams are often started with.
_INSTALL: Final = {
    **dict.fromkeys(("uv", "uvx"), "install uv"),
    **dict.fromkeys(("node", "npm", "npx"), "install Node.js"),
    "docker": "install Docker",
    "pipx": "install pipx",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of what was found. ``code`` is the exit code that it asks for."""

    area: str
    state: State
    message: str
    hint: str = ""
    code: int = 0


def installation() -> Iterator[Finding]:
    """Python, and whether what we are built on can be loaded."""
    area = "installation"
    yield Finding(area, "ok", f"mcp-envelope {me.__version__}, Python {platform.python_version()}")
    if sys.platform == "win32":
        yield Finding(
            area, "note", "the gateway runs on Linux and macOS", "run it there, or in WSL"
        )
        return
    for names, state, hint in (
        (_NEEDED, "problem", "install mcp-envelope anew"),
        (_FOR_HTTP, "problem", "install mcp-envelope anew; the HTTP door needs it"),
        (_FOR_SPEED, "note", "asyncio's own loop serves as well, slower"),
    ):
        yield from _packages(area, names, "note" if state == "note" else "problem", hint)


def _packages(area: str, names: dict[str, str], state: State, hint: str) -> Iterator[Finding]:
    for package, module in names.items():
        try:
            importlib.import_module(module)
            version = importlib.metadata.version(package)
        except (ImportError, OSError) as error:
            code = BROKEN if state == "problem" else 0
            yield Finding(area, state, f"{package} cannot be loaded: {error}", hint, code)
        else:
            yield Finding(area, "ok", f"{package} {version}")


def clock(
    now: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic
) -> Iterator[Finding]:
    """Whether times in the record would be believed."""
    seconds = now()
    said = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(max(0.0, min(seconds, 2.0**36))))
    if _EARLIEST <= seconds < _LATEST:
        yield Finding("clock", "ok", said)
    else:
        hint = "set it: the record's times are worth nothing like this"
        yield Finding("clock", "problem", f"it says {said}", hint, BROKEN)
    first = steady()
    if steady() < first:
        hint = "timeouts will not work here; look at the machine's clock source"
        yield Finding("clock", "problem", "the steady clock runs backwards", hint, BROKEN)


def streams() -> Iterator[Finding]:
    """Whether the standard streams are open."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            hint = "start it with all three open; the stdio door speaks on them"
            yield Finding("streams", "problem", f"{name} is closed", hint, BROKEN)
    if sys.stdin is not None and sys.stdout is not None:
        yield Finding("streams", "ok", "standard input and output are open")


async def upstream(
    settings: UpstreamSettings, wait: float, limits: Limits = DEFAULT_LIMITS
) -> tuple[list[Finding], Probed | None]:
    """What an upstream says of itself: it is really started, or connected to."""
    area = f"upstream {settings.name}"
    missing = _missing(area, settings)
    if missing is not None:
        return [missing], None
    try:
        found = await probe(parts.upstream_of(settings, limits), wait=wait)
    except TimeoutError:
        hint = "look into its own log, or give it longer with --wait"
        message = f"it did not answer within {wait:g} s"
        return [Finding(area, "problem", message, hint, UNREACHABLE)], None
    except (EnvelopeError, ConfigError) as error:
        hint = error.hint or "start it by hand to see what it says"
        return [Finding(area, "problem", error.message, hint, UNREACHABLE)], None
    findings = [Finding(area, "ok", _described(found))]
    for name, why in found.unusable.items():
        hint = "its author can mend that; until then its calls are not checked against it"
        findings.append(Finding(area, "problem", f"{name} cannot be used: {why}", hint, BROKEN))
    return [*findings, *_ruled(area, settings, found.tools)], found


def _ruled(area: str, settings: UpstreamSettings, tools: Sequence[str]) -> Iterator[Finding]:
    """Rules for tools that are not there: what they should hold for goes without them."""
    for name in settings.tools:
        if name not in tools:
            near = difflib.get_close_matches(name, tools, n=1, cutoff=0.5)
            message = f"rules for {name!r:.100}, which {settings.name} does not list"
            meant = f"did you mean {near[0]!r:.100}? " if near else ""
            hint = f"{meant}mend upstreams.{settings.name}.tools"
            yield Finding(area, "problem", message, hint, BROKEN)


def clashes(found: Iterable[Probed], *, namespace: bool) -> Iterator[Finding]:
    """Tools that several upstreams have, where names get nothing in front."""
    if namespace:
        return
    counts = Counter(name for probed in found for name in set(probed.tools))
    for name, count in counts.items():
        if count > 1:
            hint = "leave out namespace = false"
            message = f"{count} upstreams have a tool {name!r:.100}"
            yield Finding("settings", "problem", message, hint, BROKEN)


def _missing(area: str, settings: UpstreamSettings) -> Finding | None:
    """What can be seen to be missing before anything is started."""
    if settings.cwd is not None and not Path(settings.cwd).is_dir():
        message = f"its folder {settings.cwd} is none"
        return Finding(area, "problem", message, "mend cwd", UNREACHABLE)
    if not settings.command:
        return None
    program = settings.command[0]
    where = Path(settings.cwd or ".") / program if os.sep in program else program
    path = settings.env.get("PATH", os.environ.get("PATH"))
    if shutil.which(where, path=path) is not None:
        return None
    hint = _INSTALL.get(program, "install it, or write its whole path")
    return Finding(area, "problem", f"there is no program {program!r:.200}", hint, UNREACHABLE)


def _described(found: Probed) -> str:
    name = " ".join(part for part in (found.server, found.version) if part) or "nameless"
    schemas = found.schemas + len(found.unusable)
    usable = f"{found.schemas} of {schemas} schemas usable" if schemas else "no schemas"
    tools = f"{len(found.tools)} tool{'' if len(found.tools) == 1 else 's'}"
    return f"{name}, MCP {found.revision}, {tools}, {usable}, {found.seconds:.2f} s"
