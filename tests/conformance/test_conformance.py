"""The gateway is invisible to the official conformance suite, check by check.

Our everything-server is asked directly (twice, so that what differs by itself is known), then
through a proxy that changes nothing (the control), through the gateway, and through two gateways
with stdio between them. `python -m tests.conformance.rig` prints the same as a table.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import pytest

from . import servers, suite
from .deltas import compare
from .suite import Outcomes

pytestmark = [pytest.mark.peers, pytest.mark.requires("peers:node")]

# What our server cannot show directly, and why.
NOT_SHOWN = {
    # the suite itself says SKIPPED whatever a server does, until it is rewritten for listen streams
    "tasks-status-notifications",
}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The everything-server, over HTTP."""
    with servers.everything() as url:
        yield url


@functools.cache
def directly(url: str, revision: str, time: int) -> Outcomes:
    """A direct run; ``time`` tells the first from the second."""
    return suite.run(url, revision)


def _by_revision() -> list[object]:
    # One worker has all that belongs to a revision, so that the direct runs are made once.
    return [
        pytest.param(revision, marks=pytest.mark.xdist_group(revision), id=revision)
        for revision in suite.REVISIONS
    ]


@pytest.mark.parametrize("revision", _by_revision())
def test_our_server_shows_what_the_suite_looks_for(server: str, revision: str) -> None:
    """Every check of every scenario succeeds directly, or is known not to be shown."""
    found = directly(server, revision, 1)
    lacking = {
        str(check): outcome
        for check, outcome in found.items()
        if outcome.status not in {"SUCCESS", "INFO"} and check.scenario not in NOT_SHOWN
    }
    assert not lacking
    assert len(found) > 50


@pytest.mark.parametrize("way", list(servers.ARRANGEMENTS))
@pytest.mark.parametrize("revision", _by_revision())
def test_nothing_does_less_through(server: str, revision: str, way: str) -> None:
    """A check that is SUCCESS directly is SUCCESS through."""
    first, again = directly(server, revision, 1), directly(server, revision, 2)
    with servers.ARRANGEMENTS[way](server) as url:
        through = suite.run(url, revision)
    worse = [delta for delta in compare(first, through, again) if delta.kind == "worse"]
    assert not worse, "\n".join(map(str, worse))
