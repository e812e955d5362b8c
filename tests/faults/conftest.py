"""Of each test with many cases the fast suite takes those that say most; the rest are slow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.stores.processes import small_disk

#: Names of tests, and how the ids of their slow cases look.
_SLOW = {
    ("test_crosstalk.py", "test_http_door"): ("2025-06-18", "[http-2025-11-25"),
    ("test_crosstalk.py", "test_stdio_door"): ("[http-2025", "[http-2026", "2026-07-28-quiet"),
    ("test_disconnect.py", "test_legacy"): ("http-half", "stdio-reset"),
    ("test_disconnect.py", "test_never_reads"): ("stdio-2025", "http-2026"),
    ("test_ends.py", "test_signal_after_input"): ("stdio",),
    ("test_ends.py", "test_as_clients_end"): ("",),
    ("test_ends.py", "test_output_is_not_read"): ("[end]",),
    ("test_flood.py", "test_flood"): ("all", "slowly"),
    ("test_signals.py", "test_http_door"): (
        *("stdio-2025-11-25-SIGINT", "stdio-2026-07-28-SIGTERM", "http-2026-07-28-SIGINT"),
        *("http-2025", "deaf"),
    ),
    ("test_signals.py", "test_stdio_door"): ("deaf", "http-SIGTERM", "stdio-SIGINT"),
    ("test_signals.py", "test_clients_in_the_way"): ("2026",),
    ("test_signals.py", "test_frozen"): ("stdio",),
    ("test_crash.py", "test_connections_are_reset"): ("2025",),
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them."""
    for item in items:
        name = item.name.partition("[")[0]
        cases = _SLOW.get((item.path.name, name), ())
        if item.path.parent.name == "faults":
            item.add_marker(pytest.mark.faults)
            if any(case in item.name for case in cases):
                item.add_marker(pytest.mark.slow)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MiB, for tests that require `disk:small`."""
    with small_disk(tmp_path / "disk", "2m") as place:
        yield place
