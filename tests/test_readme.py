"""README is run: its set-up commands in a clean copy of the tree, its tour here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SETUP = re.findall(r"^```sh\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
TOUR = re.findall(r"<!-- run -->\n```console\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def steps_of(block: str) -> list[tuple[str, str]]:
    """The commands of a console block (after `$ `), each with what it printed."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)
    split = [part.partition("\n") for part in parts[1:]]
    return [(command, output) for command, _, output in split]


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


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command as a reader would who has this environment active, with both streams in one."""
    programs = Path(sys.executable).parent
    surroundings = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    surroundings.pop("PYTHONPATH", None)
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env=surroundings, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
    )  # fmt: skip


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
        assert shell(command, tmp_path).stdout == output, command


def test_the_tour_has_stops() -> None:
    """The tour is found by the pattern above, and so is run."""
    assert len(TOUR) >= 5


@pytest.mark.install
@pytest.mark.requires("bash", "git")
def test_the_first_command_works_in_a_clean_clone(tmp_path: Path) -> None:
    """README's first command does its own set-up, and prints what README shows below it."""
    clone = copy_of_the_tree(tmp_path / "clone")
    done = shell(SETUP[0], clone)
    shown = README.split("```sh\n", 1)[1].split("```json\n", 1)[1].split("```", 1)[0]
    assert done.returncode == 0, done.stdout
    assert done.stdout == shown
