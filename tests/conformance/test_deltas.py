"""Two runs of the suite are compared check by check, and what differs by itself is not blamed."""

from __future__ import annotations

import json
from pathlib import Path

from .deltas import RECORD, compare
from .suite import Check, Outcome, read

HERE = Check("tools-list", "tools-list")


def _kinds(direct: Outcome, through: Outcome, again: Outcome | None = None) -> list[str]:
    second = {HERE: again} if again else None
    return [delta.kind for delta in compare({HERE: direct}, {HERE: through}, second)]


def test_the_same_is_no_delta() -> None:
    """Two equal outcomes are not mentioned."""
    assert _kinds(Outcome("SUCCESS"), Outcome("SUCCESS")) == []


def test_less_than_success_is_worse() -> None:
    """A success that is anything else through is worse, a warning and information too."""
    for status in ("FAILURE", "WARNING", "SKIPPED", "INFO"):
        assert _kinds(Outcome("SUCCESS"), Outcome(status)) == ["worse"]


def test_a_check_that_is_not_made_through_is_worse() -> None:
    """A scenario that breaks off before a check does not hide it."""
    assert [delta.kind for delta in compare({HERE: Outcome("SUCCESS")}, {})] == ["worse"]


def test_what_never_succeeded_only_differs() -> None:
    """What is no success directly can differ, but not be worse."""
    assert _kinds(Outcome("WARNING"), Outcome("FAILURE")) == ["differs"]


def test_what_differs_between_direct_runs_is_flaky() -> None:
    """Two direct runs that disagree say that the check is nobody's fault."""
    assert _kinds(Outcome("SUCCESS"), Outcome("FAILURE"), Outcome("WARNING")) == ["flaky"]


def test_details_are_compared_without_what_always_differs() -> None:
    """Addresses, ids, times and our record differ in any two runs; values do not."""
    here = {"url": "http://127.0.0.1:8000/mcp", "result": {"content": [1.5]}}
    record = {"_meta": {RECORD: {"seq": 1}}}
    there = {"url": "http://127.0.0.1:9000/mcp", "result": {"content": [1.5], **record}}
    assert _kinds(Outcome("SUCCESS", "", here), Outcome("SUCCESS", "", there)) == []
    there["result"] = {"content": [2.5]}
    assert _kinds(Outcome("SUCCESS", "", here), Outcome("SUCCESS", "", there)) == ["details"]


def test_a_check_that_is_made_several_times_counts_each_time(tmp_path: Path) -> None:
    """The suite uses some ids more than once; each of them is compared."""
    folder = tmp_path / "server-http-header-validation-2026-11-19T21-06-55-347Z"
    folder.mkdir()
    said = [{"id": "reject", "status": "SUCCESS"}, {"id": "reject", "status": "FAILURE"}]
    (folder / "checks.json").write_text(json.dumps(said))
    assert {check.nth: outcome.status for check, outcome in read(tmp_path).items()} == {
        0: "SUCCESS",
        1: "FAILURE",
    }
