"""The program as a process of its own: what only shows with real streams and real signals."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes and signals as POSIX has them")

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = [sys.executable, "-W", "error", "-m", "mcp_envelope"]
SURROUNDINGS = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUTF8": "1"}


def run(*words: str | bytes, **how: Any) -> subprocess.CompletedProcess[bytes]:
    """Run the program; streams that are not given are captured, standard input is empty."""
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if "input" in how:
        del streams["stdin"]
    how = {"env": SURROUNDINGS, **streams, **how}
    return subprocess.run([*PROGRAM, *words], check=False, timeout=60, **how)


@contextlib.contextmanager
def full() -> Iterator[IO[bytes]]:
    """A disk that is full."""
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with Path("/dev/full").open("wb") as file:
        yield file


def closing(number: int) -> Callable[[], None]:
    """Something to do in the child before it starts: close this stream."""
    return lambda: os.close(number)


def test_it_runs_as_a_module() -> None:
    """``python -m mcp_envelope`` is the program, streams, exit code and all."""
    done = run("wrap", "-", input=b"[1e2]")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == b'{"schema_version":"mcp.envelope.v0.1","result":[1e2]}'


@pytest.mark.parametrize("words", [["errors"], ["errors", "--json"], ["--help"]])
def test_a_reader_that_has_gone(words: list[str]) -> None:
    """``| head`` may close the pipe: no word about it, exit code 3."""
    reading, writing = os.pipe()
    os.close(reading)
    done = run(*words, stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (3, b"")


@pytest.mark.parametrize("words", [["errors"], ["errors", "--json"], ["validate", "--help"]])
def test_a_disk_that_is_full(words: list[str]) -> None:
    """What cannot be written is said once, and the exit code is 3, not Python's own 120."""
    with full() as disk:
        done = run(*words, stdout=disk)
    assert done.returncode == 3
    assert done.stderr == b"mcp-envelope: standard output: No space left on device\n"


def test_a_full_disk_hides_no_other_trouble() -> None:
    """A complaint that cannot be written as JSON is made in words."""
    with full() as disk:
        done = run("wrap", "absent", "--json", stdout=disk)
    assert done.returncode == 2
    assert b"No space left on device\n" in done.stderr
    assert b"mcp-envelope: cannot read absent" in done.stderr


@pytest.mark.parametrize("words", [["nonsense"], []])
def test_standard_error_that_is_full(words: list[str]) -> None:
    """Complaints that nobody can read change no exit code."""
    with full() as disk:
        assert run(*words, stderr=disk).returncode == 2


def test_lists_that_cannot_be_written() -> None:
    """A conversion whose losses nobody could read of is no success."""
    call = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a"}}'
    with full() as disk:
        done = run("convert", "-", "--to", "tool/1.0", input=call, stderr=disk)
        assert (done.returncode, done.stdout[:1]) == (3, b"{")
        assert run("convert", "-", "--to", "mcp", input=call, stderr=disk).returncode == 0


def test_standard_streams_that_are_closed() -> None:
    """A stream that is closed gives an exit code and a sentence, where one can be said."""
    done = run("errors", preexec_fn=closing(1))
    assert done.returncode == 3
    assert done.stderr == b"mcp-envelope: standard output is closed\n"
    done = run("wrap", "-", preexec_fn=closing(0))
    assert done.returncode == 2
    assert done.stderr == b"mcp-envelope: standard input is closed; name a file\n"
    assert run("nonsense", preexec_fn=closing(2)).returncode == 2


def test_file_names_that_are_not_utf8(tmp_path: Path) -> None:
    """They are read like others, and are shown escaped, in JSON too."""
    name = os.fsencode(tmp_path) + b"/\xff\x1b.json"
    try:
        Path(os.fsdecode(name)).write_bytes(b"[1]")
    except OSError:
        pytest.skip("the file system here has UTF-8 names only")
    assert run("wrap", name).stdout.endswith(b'"result":[1]}')
    done = run("wrap", name + b"x")
    assert done.returncode == 2
    assert b"/\\udcff\\x1b.jsonx: No such file" in done.stderr
    assert b"/\\\\udcff\\u001b.jsonx: No such file" in run("wrap", name + b"x", "--json").stdout


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 0)() == 0, reason="root may read everything")
def test_files_that_may_not_be_read(tmp_path: Path) -> None:
    """A file without permission is a mistake in the command line."""
    (tmp_path / "secret").touch(mode=0o000)
    done = run("wrap", str(tmp_path / "secret"))
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.endswith(b"Permission denied; name a file, or - for standard input\n")


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="no file here that breaks off")
def test_reading_that_breaks_off() -> None:
    """A file that opens and cannot be read to its end: exit code 3, with its name."""
    done = run("wrap", "/proc/self/mem")
    assert (done.returncode, done.stdout) == (3, b"")
    assert done.stderr.startswith(b"mcp-envelope: /proc/self/mem: ")


def test_streams_that_are_not_utf8() -> None:
    """JSON is UTF-8 whatever the locale is; words are in the locale's encoding."""
    latin = {**SURROUNDINGS, "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii:strict"}
    done = run("digest", "-", input='["é"]'.encode(), env=latin)
    assert '[\\"é\\"]'.encode() in done.stdout
    done = run("digest", "-", input=b"[9007199254740992]", env=latin)
    assert b"beyond \\xb1(2^53-1)" in done.stderr


def test_ctrl_c() -> None:
    """An interrupt while it waits for input: no traceback, exit code 130."""
    # Where pytest itself runs in the background, interrupts are ignored, and children inherit it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        started = subprocess.Popen(
            [*PROGRAM, "wrap", "-"], env=SURROUNDINGS, stdin=subprocess.PIPE, stderr=subprocess.PIPE
        )
    finally:
        signal.signal(signal.SIGINT, before)
    with started:
        assert started.stdin is not None
        assert started.stderr is not None
        started.stdin.write(b"[1,")
        started.stdin.flush()
        status = Path(f"/proc/{started.pid}/wchan")
        for _ in range(200):  # until it waits for the pipe
            time.sleep(0.02)
            if not status.exists() or "pipe" in status.read_text(encoding="ascii"):
                break
        time.sleep(0.05 if status.exists() else 1.0)
        started.send_signal(signal.SIGINT)
        assert started.wait(10) == 130
        assert started.stderr.read() == b""


@pytest.mark.parametrize("module", ["mcp_envelope.cli", "mcp_envelope.cli.wrap", "orjson"])
def test_ctrl_c_while_it_starts(tmp_path: Path, module: str) -> None:
    """An interrupt in the middle of imports is as quiet, and 130 as well."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
    )
    path = os.pathsep.join([str(tmp_path), SURROUNDINGS["PYTHONPATH"]])
    done = run("wrap", "-", input=b"[1]", env={**SURROUNDINGS, "PYTHONPATH": path})
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_at_a_terminal() -> None:
    """A real terminal gets no byte that could steer it, and the result before the notes."""
    pty = pytest.importorskip("pty")
    master, slave = pty.openpty()
    params = '{"name":"a","arguments":{"text":"\x9b2J\u202e"}}'
    call = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}'.encode()
    done = run("convert", "-", "--to", "tool/1.0", input=call, stdout=slave, stderr=slave)
    os.close(slave)
    seen = os.read(master, 65_536).decode()
    os.close(master)
    assert done.returncode == 0
    assert "\\u009b2J\\u202e" in seen
    assert seen.replace("\r\n", "").isprintable()
    assert seen.startswith('{"')
    assert seen.index("}\r\nfilled: ") > 0


def test_only_what_is_needed_is_imported() -> None:
    """Help and the error table need no JSON library, no schema library and no dialect."""
    heavy = ["orjson", "jiter", "jsonschema_rs", "blake3", "json", "hashlib"]
    code = (
        "import sys; from mcp_envelope.cli import main; main(sys.argv[1:]); "
        f"print([m for m in {heavy} if m in sys.modules], file=sys.stderr)"
    )
    for words in (["--help"], ["--version"], ["errors"]):
        command = [sys.executable, "-c", code, *words]
        done = subprocess.run(command, env=SURROUNDINGS, capture_output=True, check=True)
        assert done.stderr == b"[]\n"
