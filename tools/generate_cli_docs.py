"""Bring docs/cli.md up to date: the reference of every verb, and what its examples print.

    python tools/generate_cli_docs.py          write the file
    python tools/generate_cli_docs.py --check  exit 1 if it is stale

By hand are the prose and the commands of the examples. Made are what stands between
``<!-- made: NAME -->`` and ``<!-- end -->``, and the output below each command in a console
block that follows ``<!-- run -->``: as on a terminal, with the project's examples/ at hand.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from mcp_envelope.cli import PROGRAM, VERBS, main, parser  # noqa: E402
from mcp_envelope.cli.arguments import form, spelling  # noqa: E402

PAGE = Path("docs/cli.md")
_MADE = re.compile(r"(<!-- made: ([^>]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_RUN = re.compile(r"(<!-- run -->\n```console\n)(.*?)(```)", re.DOTALL)


class Terminal(io.TextIOWrapper):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        """Always."""
        return True


class Session:
    """Somebody at a terminal: runs the program in this process, remembers its exit code."""

    def __init__(self) -> None:
        self._code = 0

    def enter(self, line: str) -> str:
        """What the terminal shows for a command line.

        It may be the program, ``echo '…' |`` and the program, or ``echo $?``.
        """
        if line == "echo $?":
            return f"{self._code}\n"
        words = shlex.split(line)
        given = b""
        if words[0] == "echo":
            given = words[1].encode() + b"\n"
            words = words[words.index("|") + 1 :]
        if words[0] != PROGRAM:
            raise SystemExit(f"{PAGE}: only {PROGRAM} can be run, not {line!r}")
        screen = io.BytesIO()
        with _streams(io.BytesIO(given), screen):
            self._code = main(words[1:])
        return screen.getvalue().decode()


def generate(text: str) -> str:
    """The page as it should be, from the page as it is."""
    text = _MADE.sub(lambda m: f"{m[1]}{_reference(m[2])}\n{m[3]}", text)
    with _workplace():
        return _RUN.sub(lambda m: m[1] + _played(m[2]) + m[3], text)


def stale(root: Path) -> bool:
    """Whether the page differs from what it should be."""
    text = (root / PAGE).read_text(encoding="utf-8")
    return generate(text) != text


def _reference(name: str) -> str:
    if name == "verbs":
        rows = [
            f"| [`{verb}`](#{verb.replace(' ', '-')}) | {purpose} |"
            for verb, purpose in VERBS.items()
        ]
        return "\n".join(["| verb | does |", "|---|---|", *rows])
    made = parser(name)
    usage = " ".join([made.prog, *map(form, made.shown)])
    rows = [f"| `{_cell(spelling(a))}` | {_cell(a.help or '')} |" for a in made.shown]
    head = ["```text", usage, "```", "", "| argument | meaning |", "|---|---|"]
    return "\n".join([*head, *rows, "| `-h, --help` | show the help |"])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _played(block: str) -> str:
    session = Session()
    commands = [line for line in block.splitlines() if line.startswith("$ ")]
    return "".join(f"{command}\n{session.enter(command[2:])}" for command in commands)


@contextlib.contextmanager
def _workplace() -> Iterator[None]:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "examples", Path(folder) / "examples")
        with contextlib.chdir(folder):
            yield


@contextlib.contextmanager
def _streams(given: io.BytesIO, screen: io.BytesIO) -> Iterator[None]:
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin = io.TextIOWrapper(given)
    sys.stdout, sys.stderr = (
        Terminal(screen, encoding="utf-8", write_through=True) for _ in range(2)
    )
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.detach()
        sys.stdin, sys.stdout, sys.stderr = before


def run(arguments: list[str] | None = None) -> int:
    """Run as a program."""
    usage = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    usage.add_argument("--check", action="store_true", help="change nothing, exit 1 if stale")
    options = usage.parse_args(arguments)
    if not stale(ROOT):
        return 0
    if options.check:
        print(f"stale: {PAGE.as_posix()}\nrun: python tools/generate_cli_docs.py", file=sys.stderr)
        return 1
    page = ROOT / PAGE
    page.write_text(generate(page.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
    print(f"written: {PAGE.as_posix()}")
    return 0


if __name__ == "__main__":
    sys.exit(run())
