"""README is run: its set-up commands in a clean copy of the tree, its tour here.

Called as a program, ``.venv/bin/python tests/test_readme.py`` writes into README what the
commands of the tour print now; read the difference before you commit it.

Ids, times, process numbers, the current folder, and the digests that chain the record's lines are
never the same twice. `VARYING` lists them; they are masked on both sides before anything is
compared, and what differs in nothing else is not written anew. All else must be equal, the
digests of arguments and results included.
"""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SETUP = re.findall(r"^```sh\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
TOUR_BLOCK = re.compile(r"<!-- run -->\n```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TOUR = TOUR_BLOCK.findall(README)
VARYING = tuple(
    (re.compile(pattern, re.MULTILINE), instead)
    for pattern, instead in (
        (r'"(time|instance|prev|request_id|run_id)":"[^"]*"', r'"\1":"…"'),
        (r'"duration_ms":[0-9.]+', '"duration_ms":…'),
        (r'("seq":\d+,"digest":"sha256:)[0-9a-f]{64}"', r'\1…"'),
        (r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ", "… "),
        (r"( record +sqlite:)/\S*/", r"\1/…/"),
        (r"^    signed  by .*$", "    signed  by …"),
        (r"mcp-envelope/[0-9a-f]{8} \(id [0-9a-f]{8}\)", "mcp-envelope/… (id …)"),
        (r"^TIME .*$", "TIME …"),
        (r"^\d{4}-\d\d-\d\dT\S+Z +ok +[0-9.]+ +(\S+) +local +[0-9a-f]{8}$", r"… ok … \1 local …"),
        (r"started process \d+$", "started process …"),
    )
)
PYTHON = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def steps_of(block: str) -> list[tuple[str, str]]:
    """The commands of a console block (after `$ `), each with what it printed."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)
    split = [part.partition("\n") for part in parts[1:]]
    return [(command, output) for command, _, output in split]


def masked(output: str) -> str:
    """What is printed, without what is never the same twice."""
    for pattern, instead in VARYING:
        output = pattern.sub(instead, output)
    return output


def copy_of_the_tree(target: Path) -> Path:
    """A clean clone, as it would be if everything that git would take were committed."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    return target


def shell(command: str, folder: Path) -> tuple[int, str]:
    """Exit code and output of a command, as a reader sees them who has this environment active.

    It runs at a terminal: there the command ends its lines, where a pipe gets exact bytes.
    """
    programs = Path(sys.executable).parent
    surroundings = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
        "NO_COLOR": "1",
    }
    surroundings.pop("PYTHONPATH", None)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        ["bash", "-c", command], cwd=folder, env=surroundings,
        stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
    ) as process:  # fmt: skip
        os.close(theirs)
        output = b"".join(iter(lambda: _read(ours), b""))
        os.close(ours)
    return process.returncode, output.decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # Linux says so when the last writer is gone
        return b""


def test_there_are_two_setup_commands() -> None:
    """The first two blocks are one command each: the main job, then the suite that CI runs."""
    first, second = (block.strip() for block in SETUP[:2])
    assert "\n" not in first
    assert "mcp-envelope" in first
    assert second == "python3 tools/ci.py"
    assert (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()[-1] == second


@pytest.mark.requires("bash", "mcp-envelope")
@pytest.mark.parametrize("block", TOUR, ids=lambda block: steps_of(block)[0][0][:40])
def test_the_tour_prints_what_readme_shows(block: str, tmp_path: Path) -> None:
    """Each block of the tour, run by itself from the root of a clone, prints just what it shows."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    steps = steps_of(block)
    assert steps
    for command, output in steps:
        assert masked(shell(command, tmp_path)[1]) == masked(output), command


def test_only_what_varies_is_masked() -> None:
    """A mask leaves everything else as it is: values, digests of bodies, numbers of lines."""
    kept = '{"seq":2,"outcome":"ok","input":{"digest":"sha256:%s","bytes":21}}' % ("a" * 64)
    assert masked(kept) == kept
    line = '{"seq":2,"prev":"%s","time":"2026-11-19T22:00:47.626Z"}' % ("b" * 64)
    assert masked(line) == '{"seq":2,"prev":"…","time":"…"}'


def test_the_call_of_the_first_command_is_shown() -> None:
    """What README shows as the call is what its first command sends."""
    (shown,) = re.findall(r"^```json\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    assert (ROOT / "examples" / "count-words.json").read_text(encoding="utf-8") == shown


def test_the_tour_has_stops() -> None:
    """The tour is found by the pattern above, and so is run."""
    assert len(TOUR) >= 5


@pytest.mark.parametrize("code", PYTHON)
def test_the_python_runs(code: str) -> None:
    """What README shows of the library runs, and its assertions hold."""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT / "src")


@pytest.mark.install
@pytest.mark.requires("bash", "git")
def test_the_first_command_works_in_a_clean_clone(tmp_path: Path) -> None:
    """README's first command does its own set-up, and prints what README shows below it."""
    clone = copy_of_the_tree(tmp_path / "clone")
    code, output = shell(SETUP[0], clone)
    ((_, shown),) = steps_of(TOUR[0])
    assert code == 0, output
    assert masked(output) == masked(shown)


def rewritten(readme: str) -> str:
    """README with the blocks of its tour as the commands print them now."""

    def anew(found: re.Match[str]) -> str:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(ROOT / "examples", Path(folder) / "examples")
            shown = []
            for command, before in steps_of(found[1]):
                now = shell(command, Path(folder))[1].replace(folder, "/home/ada/mcp-envelope")
                shown.append(f"$ {command}\n{before if masked(before) == masked(now) else now}")
        return f"<!-- run -->\n```console\n{''.join(shown)}```"

    return TOUR_BLOCK.sub(anew, readme)


if __name__ == "__main__":
    (ROOT / "README.md").write_text(rewritten(README), encoding="utf-8")
