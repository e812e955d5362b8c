"""Other processes of tests of stores, and disks that they share."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WRITER = [sys.executable, str(Path(__file__).with_name("writer.py"))]
MORTAL = [sys.executable, str(Path(__file__).with_name("mortal.py"))]
SURROUNDINGS = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}


@contextlib.contextmanager
def small_disk(place: Path, size: str) -> Iterator[Path]:
    """A disk of that size, for tests that require `disk:small`."""
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    subprocess.run(mount, check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def kill_writers(url: str, durability: str, times: int, seed: int) -> list[tuple[int, str]]:
    """Have processes write a ledger and kill each; what they were told is written."""
    done = subprocess.run(
        [*MORTAL, url, durability, str(times), str(seed)],
        env=SURROUNDINGS,
        stdout=subprocess.PIPE,
        check=True,
        timeout=60,
    )
    told = [one.split() for one in done.stdout.decode().splitlines(keepends=True) if "\n" in one]
    return [(int(seq), digest) for seq, digest in told]


def assert_kept(told: list[tuple[int, str]], lines: list[bytes]) -> None:
    """Every line that somebody was told of is there."""
    digests = [sha256(line).hexdigest() for line in lines]
    assert [digests[seq] for seq, _ in told] == [digest for _, digest in told]
