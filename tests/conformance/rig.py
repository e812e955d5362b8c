"""Measures what stands between a client and a server by the official conformance suite.

Usage::

    python -m tests.conformance.rig                              our everything-server, every way
    python -m tests.conformance.rig --way gateway --revision 2026-07-28
    python -m tests.conformance.rig --direct URL --through URL   any server, any proxy
    python -m tests.conformance.rig --direct URL --way gateway   any server, our gateway

Nothing that is SUCCESS directly may be less through: exit code 1 where something is. `--all` also
lists the checks whose status is the same but which saw something else. Node and the suite come
from .venvs/node (made by `python3 tools/peers.py`).
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections import Counter

from . import servers, suite
from .deltas import Delta, compare
from .suite import Outcomes


def main(words: list[str]) -> int:
    """Run the suite directly twice and through once, and print what is not the same."""
    options = _options(words)
    worse = 0
    with contextlib.ExitStack() as stack:
        direct = options.direct or stack.enter_context(servers.everything())
        for revision in options.revision or suite.REVISIONS:
            first, again = (suite.run(direct, revision) for _ in range(2))
            print(f"\n## {revision}, direct: {counted(first)}", flush=True)
            if options.verbose:
                _print_failures(first)
            for way, through in _ways(options, direct):
                began = time.monotonic()
                with through as url:
                    outcomes = suite.run(url, revision)
                found = compare(first, outcomes, again)
                worse += sum(delta.kind == "worse" for delta in found)
                took = time.monotonic() - began
                print(f"\n### {revision}, {way}: {counted(outcomes)} ({took:.0f} s)")
                _print_deltas(found, everything=options.all)
    print(f"\n{worse} checks are worse through" if worse else "\nnothing is worse through")
    return 1 if worse else 0


def counted(outcomes: Outcomes) -> str:
    """How often each status came."""
    count = Counter(outcome.status for outcome in outcomes.values())
    return ", ".join(f"{number} {status}" for status, number in sorted(count.items()))


def _ways(
    options: argparse.Namespace, direct: str
) -> list[tuple[str, contextlib.AbstractContextManager[str]]]:
    if options.through:
        return [(options.through, contextlib.nullcontext(options.through))]
    names = options.way or list(servers.ARRANGEMENTS)
    return [(name, servers.ALL_WAYS[name](direct)) for name in names]


def _print_failures(outcomes: Outcomes) -> None:
    for check, outcome in sorted(outcomes.items()):
        if outcome.status not in {"SUCCESS", "INFO"}:
            print(f"{outcome.status:<8} {check}: {outcome.message[:200]}")


def _print_deltas(found: list[Delta], *, everything: bool) -> None:
    for kind in ("worse", "differs", "flaky", "details"):
        these = [delta for delta in found if delta.kind == kind]
        if kind == "details" and not everything:
            print(f"{len(these)} checks saw something else (--all lists them)")
            continue
        for delta in these:
            print(delta)


def _options(words: list[str]) -> argparse.Namespace:
    usage = argparse.ArgumentParser(
        prog="python -m tests.conformance.rig",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    usage.add_argument("--direct", metavar="URL", help="the server (else our everything-server)")
    usage.add_argument("--through", metavar="URL", help="the same server behind something")
    usage.add_argument("--way", action="append", choices=list(servers.ALL_WAYS))
    usage.add_argument("--revision", action="append", choices=suite.REVISIONS)
    usage.add_argument("--all", action="store_true", help="list what only saw something else, too")
    usage.add_argument("--verbose", action="store_true", help="list what fails directly")
    options = usage.parse_args(words)
    if options.through and not options.direct:
        usage.error("--through needs --direct: the same server without anything between")
    return options


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
