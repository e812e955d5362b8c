"""The database of a ledger: whose it is, which version it has, and how it gets the next one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
from pathlib import Path

import pytest
from tests.core.facts import some_facts

from mcp_envelope.core.errors import EnvelopeError
from mcp_envelope.core.ports import LedgerError
from mcp_envelope.stores import read_ledger
from mcp_envelope.stores.sqlite import SqliteLedger
from mcp_envelope.stores.sqlite_schema import APPLICATION, MIGRATIONS, open_database
from mcp_envelope.stores.sqlite_source import SqliteSource


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a ledger may be made."""
    return tmp_path / "calls.db"


def tables(path: Path) -> set[str]:
    """What a database has."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}


def test_the_schema_is_the_published_one(path: Path) -> None:
    """`PRAGMA user_version`, `application_id`, and the tables that docs and verifiers name."""
    asyncio.run(SqliteLedger(path).close())
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for pragma, value in (
            ("user_version", 1),
            ("application_id", 0x4D435045),
            ("journal_mode", "wal"),
        ):
            assert connection.execute(f"PRAGMA {pragma}").fetchone() == (value,)
    assert tables(path) >= {"lines", "nodes", "bodies", "facts"}


def foreign(path: Path, *statements: str) -> bytes:
    """A database of somebody else's; its bytes."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path.read_bytes()


@pytest.mark.parametrize(
    "statements",
    [
        ("CREATE TABLE lines(seq INTEGER PRIMARY KEY, line BLOB)",),
        ("PRAGMA user_version = 1", "CREATE TABLE a(b)"),
        ("PRAGMA journal_mode = WAL", "CREATE TABLE a(b)"),
        ("PRAGMA application_id = 7", "PRAGMA user_version = 1"),
        (f"PRAGMA application_id = {APPLICATION}", "CREATE TABLE a(b)"),
        (
            f"PRAGMA application_id = {APPLICATION}",
            "PRAGMA user_version = 1",
            *(f"CREATE TABLE {name}(a)" for name in ("nodes", "bodies", "uses", "facts")),
            "CREATE VIEW lines AS SELECT 0 AS seq, 'x' AS line",
        ),
    ],
)
def test_a_database_that_is_no_ledger_is_not_touched(
    path: Path, statements: tuple[str, ...]
) -> None:
    """Neither written to nor read as one; and nothing stays behind beside it."""
    before = foreign(path, *statements)
    for opened in (SqliteLedger, SqliteSource):
        with pytest.raises(LedgerError, match="it is not a ledger; name another file") as caught:
            opened(path)
        assert str(path) in str(caught.value)
        assert not caught.value.taken
        # What has a table of a ledger may have been one, which is damage; the others never were.
        has_tables = any("lines" in one for one in statements)
        is_ours = any(str(APPLICATION) in one for one in statements)
        is_empty = not any("CREATE" in one for one in statements)
        assert (caught.value.reached == 0) == (has_tables or is_ours or is_empty)
    assert path.read_bytes() == before
    assert not {one.name for one in path.parent.iterdir()} - {
        "calls.db",
        "calls.db-shm",
        "calls.db-wal",
    }


@pytest.mark.parametrize("content", [b"hello", b'{"v":1,"event":"started"}\n' * 50, b"\0" * 9_000])
def test_a_file_that_is_no_database_is_not_touched(path: Path, content: bytes) -> None:
    """A mistyped path costs nobody a file."""
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="it is not a ledger"):
        SqliteLedger(path)
    assert path.read_bytes() == content
    assert [one.name for one in path.parent.iterdir()] == ["calls.db"]


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """Folders, pipes, links in circles, and paths that lead through files."""
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"")
    for name in ("folder", "pipe"):
        with pytest.raises(LedgerError, match="not a regular file"):
            SqliteLedger(tmp_path / name)
        with pytest.raises(LedgerError, match="not a regular file"):
            SqliteSource(tmp_path / name)
    for place in (tmp_path / "circle", tmp_path / "file" / "calls.db"):
        with pytest.raises(LedgerError, match="cannot be opened"):
            SqliteLedger(place)
    names = {one.name for one in tmp_path.iterdir()}
    assert names == {"circle", "pipe", "folder", "file"}


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_folder_that_may_not_be_written_to_is_named(tmp_path: Path) -> None:
    """With the reason of the operating system."""
    tmp_path.chmod(0o500)
    with pytest.raises(LedgerError, match="Permission denied"):
        SqliteLedger(tmp_path / "calls.db")


def test_an_empty_file_becomes_a_ledger(path: Path) -> None:
    """As tools that make names for files leave them; it is its owner's alone then."""
    path.touch(mode=0o644)
    ledger = SqliteLedger(path)
    asyncio.run(ledger.append(some_facts()))
    asyncio.run(ledger.close())
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_log_of_a_ledger_that_is_gone_is_not_taken_for_that_of_a_new_one(path: Path) -> None:
    """Else lines of the old one would come back in the midst of the new one."""
    old = SqliteLedger(path)
    asyncio.run(old.append(some_facts(tool="old")))
    path.unlink()
    asyncio.run(old.close())
    assert Path(f"{path}-wal").exists()
    new = SqliteLedger(path)
    assert asyncio.run(new.append(some_facts(tool="new"))).seq == 0
    asyncio.run(new.close())
    with contextlib.closing(SqliteSource(path)) as source:
        assert [b'"tool":"new"' in one.line for one in source.after(0)] == [True]


@pytest.mark.parametrize("is_deleted", [True, False])
def test_lines_in_the_log_of_a_lost_database_are_kept(
    path: Path, is_deleted: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Under another name: with an empty database beside it SQLite reads them all."""
    ledger = SqliteLedger(path)
    for _ in range(3):
        asyncio.run(ledger.append(some_facts(tool="old")))
    log = path.with_name("calls.db-wal")
    kept = log.read_bytes()
    path.unlink()
    asyncio.run(ledger.close())
    if not is_deleted:
        path.touch()
        with pytest.raises(LedgerError, match=r"was emptied; keep calls\.db-wal"):
            read_ledger(str(path))
        with pytest.raises(LedgerError, match=r"was emptied; keep calls\.db-wal"):
            SqliteSource(path)
    path.with_name("calls.db-wal.lost-1").write_bytes(b"an earlier one")
    new = SqliteLedger(path)
    assert asyncio.run(new.append(some_facts(tool="new"))).seq == 0
    asyncio.run(new.close())
    lost = path.with_name("calls.db-wal.lost-2")
    assert lost.read_bytes() == kept
    assert "calls.db is gone or empty, but its log is not: that is kept as" in caplog.text
    other = path.with_name("other.db")
    asyncio.run(SqliteLedger(other).close())
    lost.rename(path.with_name("other.db-wal"))
    with contextlib.closing(SqliteSource(other)) as source:
        assert [b'"tool":"old"' in one.line for one in source.after(0)] == [True] * 3


def test_a_newer_ledger_is_left_to_newer_versions(path: Path) -> None:
    """It says which version wrote it, and which we know."""
    asyncio.run(SqliteLedger(path).close())
    foreign(path, "PRAGMA user_version = 7")
    before = path.read_bytes()
    for opened in (SqliteLedger, SqliteSource):
        with pytest.raises(LedgerError, match=r"newer version .*\(schema 7, known: 1\); install"):
            opened(path)
    assert path.read_bytes() == before


NEXT = (
    "CREATE TABLE more(name TEXT); INSERT INTO more SELECT count(*) FROM lines;",
    "ALTER TABLE more ADD COLUMN other TEXT;",
)


def test_an_older_ledger_gets_what_is_new(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All steps that it lacks, once; its lines stay what they are."""

    async def write() -> None:
        ledger = SqliteLedger(path)
        await ledger.append(some_facts())
        await ledger.close()

    asyncio.run(write())
    steps = (*MIGRATIONS, *NEXT)
    for _ in range(2):
        with contextlib.closing(open_database(path, path, steps)) as connection:
            assert connection.execute("SELECT * FROM more").fetchall() == [("1", None)]
            assert connection.execute("PRAGMA user_version").fetchone() == (3,)
            assert connection.execute("SELECT count(*) FROM lines").fetchone() == (1,)
    new = path.with_name("new.db")
    with contextlib.closing(open_database(new, new, steps)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)
    with pytest.raises(LedgerError, match="schema 3, known: 1"):
        SqliteLedger(path)


def test_a_step_that_fails_changes_nothing(path: Path) -> None:
    """The ledger stays at the version that it had, and whole."""
    asyncio.run(SqliteLedger(path).close())
    with pytest.raises(LedgerError, match="cannot be opened: no such table: nowhere"):
        open_database(path, path, (*MIGRATIONS, NEXT[0], "DELETE FROM nowhere;"))
    assert "more" not in tables(path)
    ledger = SqliteLedger(path)
    assert asyncio.run(ledger.append(some_facts())).seq == 0
    asyncio.run(ledger.close())


STRANGE = (
    "CREATE TRIGGER z BEFORE INSERT ON lines BEGIN SELECT RAISE(IGNORE); END",
    "CREATE TRIGGER z AFTER INSERT ON facts BEGIN DELETE FROM nodes; END",
    "CREATE VIEW z AS SELECT 1",
    "CREATE TABLE z(a)",
    "CREATE INDEX z ON bodies(body)",
)


@pytest.mark.parametrize("statement", STRANGE)
def test_what_others_put_into_a_ledger_is_found_at_the_start(path: Path, statement: str) -> None:
    """A trigger could swallow what is written; who only reads is not troubled by it."""
    asyncio.run(SqliteLedger(path).close())
    foreign(path, statement)
    with pytest.raises(LedgerError, match="somebody changed its schema: 'z' is not as we made it"):
        SqliteLedger(path)
    SqliteSource(path).close()
    foreign(
        path, f"DROP {statement.split()[1]} z", "DROP TRIGGER nodes_stay", "DROP INDEX uses_seq"
    )
    foreign(path, "ANALYZE")
    before = tables(path)
    asyncio.run(SqliteLedger(path).close())
    assert tables(path) - before == {"nodes_stay", "uses_seq"}
    foreign(path, "DROP TRIGGER nodes_stay", STRANGE[0].replace("TRIGGER z", "TRIGGER nodes_stay"))
    with pytest.raises(LedgerError, match="'nodes_stay' is not as we made it"):
        SqliteLedger(path)


def test_a_line_that_vanishes_as_it_is_written_is_not_acknowledged(path: Path) -> None:
    """Where a trigger came while the ledger was open."""

    async def run() -> None:
        ledger = SqliteLedger(path)
        await ledger.append(some_facts())
        foreign(path, STRANGE[0])
        with pytest.raises(EnvelopeError, match="something else changed its database"):
            await ledger.append(some_facts())
        foreign(path, "DROP TRIGGER z")
        assert (await ledger.append(some_facts())).seq == 1
        await ledger.close()

    asyncio.run(run())
