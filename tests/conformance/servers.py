"""Starts what stands behind and between: everything-servers, the control, the gateways."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.gateway_process import command, gateway

ROOT = Path(__file__).resolve().parent.parent.parent
EVERYTHING = [sys.executable, "-m", "tests.conformance.everything"]
_PATIENCE = 30.0


@contextlib.contextmanager
def announced(line: list[str]) -> Iterator[str]:
    """Run a program that says on stderr where it listens (`name: http://…`): that address."""
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "stderr"
        with said.open("wb") as sink:
            process = subprocess.Popen(
                line, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink
            )
        try:
            yield _address(process, said)
        finally:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _address(process: subprocess.Popen[bytes], said: Path) -> str:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until and process.poll() is None:
        words = said.read_text(encoding="utf-8", errors="replace")
        if found := re.search(r"^\w+: (http://\S+)$", words, re.MULTILINE):
            return found[1]
        time.sleep(0.02)
    raise AssertionError(f"no address was said:\n{said.read_text(errors='replace')}")


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


ARRANGEMENTS: dict[str, Callable[[str], contextlib.AbstractContextManager[str]]] = {
    "transparent": transparent,
    "gateway": one_gateway,
    "chain": chain,
}
