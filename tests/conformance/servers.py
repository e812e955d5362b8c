"""Starts what stands behind and between: everything-servers, the control, the gateways."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from tests.gateway_process import command, gateway

ROOT = Path(__file__).resolve().parent.parent.parent
EVERYTHING = [sys.executable, "-m", "tests.conformance.everything"]
_PATIENCE = 30.0


@contextlib.contextmanager
def announced(line: list[str], known: str = "") -> Iterator[str]:
    """Run a program that says on stderr where it listens (`name: http://…`): that address.

    Of one that does not say it, the address is ``known``, and its port is waited for.
    """
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "stderr"
        with said.open("wb") as sink:
            process = subprocess.Popen(
                line, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink
            )
        try:
            yield _address(process, said, known)
        finally:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _address(process: subprocess.Popen[bytes], said: Path, known: str) -> str:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until and process.poll() is None:
        if known and _listens(known):
            return known
        words = said.read_text(encoding="utf-8", errors="replace")
        if found := re.search(r"^\w+: (http://\S+)$", words, re.MULTILINE):
            return found[1]
        time.sleep(0.02)
    raise AssertionError(f"no address was said:\n{said.read_text(errors='replace')}")


def _listens(url: str) -> bool:
    try:
        socket.create_connection(("127.0.0.1", urlsplit(url).port or 80), 1).close()
    except OSError:
        return False
    return True


@contextlib.contextmanager
def everything() -> Iterator[str]:
    """Our everything-server over HTTP."""
    with announced([*EVERYTHING, "--http", "0"]) as url:
        yield url


@contextlib.contextmanager
def transparent(url: str) -> Iterator[str]:
    """The control in front of ``url``."""
    with announced([sys.executable, "-m", "tests.conformance.transparent", url]) as here:
        yield here


@contextlib.contextmanager
def one_gateway(url: str) -> Iterator[str]:
    """HTTP → gateway → HTTP."""
    with gateway("--upstream", url) as running:
        yield running.url


@contextlib.contextmanager
def chain(url: str) -> Iterator[str]:
    """HTTP → gateway → stdio → gateway → HTTP."""
    with gateway("--", *command("--upstream", url)) as running:
        yield running.url


@contextlib.contextmanager
def stdio_child(url: str) -> Iterator[str]:
    """HTTP → gateway → our everything-server as its child over stdio; ``url`` is not used."""
    # The child of a gateway may be started anywhere; it must find this package.
    around = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    with gateway("--", *EVERYTHING, environment=around) as running:
        yield running.url


Way = Callable[[str], contextlib.AbstractContextManager[str]]
ARRANGEMENTS: dict[str, Way] = {"transparent": transparent, "gateway": one_gateway, "chain": chain}
# What differs here may be due to stdio, which has no streams to cut and none to come back to.
ALL_WAYS: dict[str, Way] = {**ARRANGEMENTS, "child": stdio_child}
