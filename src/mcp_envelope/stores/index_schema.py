"""The tables of a search index, and the statements that put lines of a ledger into them.

What stands in ``calls`` is what people ask for: a row for each call, that of its last line, or of
the only one there is. What stands in ``others`` are the remaining lines. A row's number is the
place of its line. Names are numbers, times milliseconds; a request id is kept as its first and
last characters, enough to find it by, and is compared in full with the line. Ids are random: so
that a batch does not touch every page of a large index, they are kept in parts, by age.

Everything is done by SQLite itself, statement by statement over many lines, because it lets
go of Python's lock meanwhile: a gateway in the same process goes on.
"""

from __future__ import annotations

from typing import Final

#: Changes whenever an index of before could be misread; such an index is made anew.
VERSION: Final = 1
#: "MCPI"
APPLICATION: Final = 0x4D435049

ADMITTED, SETTLED, REFUSED, MALFORMED, STARTED, STOPPED, CHECKPOINT = range(1, 8)
EVENT_NUMBERS: Final = {
    "admitted": ADMITTED,
    "settled": SETTLED,
    "refused": REFUSED,
    "malformed": MALFORMED,
    "started": STARTED,
    "stopped": STOPPED,
    "checkpoint": CHECKPOINT,
}
#: How many lines there are to a part.
PART: Final = 500_000
#: The numbers of these outcomes are the same in every index.
OK, UNKNOWN = 1, 2
#: Which names a number stands for.
PEER, OUTCOME, INSTANCE = 1, 2, 3

TABLES: Final = f"""
PRAGMA application_id = {APPLICATION};
CREATE TABLE state(name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE names(id INTEGER PRIMARY KEY, field INTEGER NOT NULL, name TEXT NOT NULL,
    UNIQUE(field, name));
CREATE TABLE subjects(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, tool TEXT NOT NULL,
    UNIQUE(kind, tool));
CREATE TABLE calls(place INTEGER PRIMARY KEY, time INTEGER NOT NULL, event INTEGER NOT NULL,
    subject INTEGER NOT NULL, peer INTEGER, outcome INTEGER, instance INTEGER, begun INTEGER);
CREATE INDEX calls_time ON calls(time);
CREATE INDEX calls_subject ON calls(subject, time);
CREATE INDEX calls_peer ON calls(peer, time);
CREATE INDEX calls_outcome ON calls(outcome, time) WHERE outcome <> {OK};
CREATE TABLE others(place INTEGER PRIMARY KEY, time INTEGER NOT NULL, event INTEGER NOT NULL,
    subject INTEGER NOT NULL, peer INTEGER, outcome INTEGER, instance INTEGER);
CREATE INDEX others_event ON others(event) WHERE event > {ADMITTED};
CREATE TABLE open(place INTEGER PRIMARY KEY, request TEXT NOT NULL, part INTEGER NOT NULL);
CREATE INDEX open_request ON open(request);
CREATE TABLE ids(part INTEGER, id TEXT, place INTEGER, PRIMARY KEY(part, id, place)) WITHOUT ROWID;
CREATE TABLE traces(part INTEGER, id TEXT, place INTEGER,
    PRIMARY KEY(part, id, place)) WITHOUT ROWID;
INSERT INTO names VALUES({OK}, {OUTCOME}, 'ok'), ({UNKNOWN}, {OUTCOME}, 'outcome_unknown');
PRAGMA user_version = {VERSION};
"""

#: What the tables hold, by the columns of ``names``.
COLUMNS: Final = {PEER: "peer", OUTCOME: "outcome", INSTANCE: "instance"}

SCRATCH: Final = """
PRAGMA temp.journal_mode = OFF;
CREATE TEMP TABLE IF NOT EXISTS raw(place INTEGER PRIMARY KEY, line BLOB);
CREATE TEMP TABLE IF NOT EXISTS batch(place INTEGER PRIMARY KEY, event, time, kind, tool, peer,
    outcome, instance, request, trace);
CREATE TEMP TABLE IF NOT EXISTS traced(place INTEGER PRIMARY KEY);
CREATE TEMP TABLE IF NOT EXISTS ended(place INTEGER PRIMARY KEY, begun INTEGER);
"""


_FIELDS: Final = (
    *("event", "time", "kind", "tool", "peer", "outcome", "instance", "request_id", "trace_id"),
)


def _extracted(rows: str) -> str:
    taken = ", ".join(f"json_extract(text, '$.{field}')" for field in _FIELDS)
    # What is no JSON object has no event.
    return (
        f"INSERT INTO batch SELECT place, {taken} FROM "
        f"(SELECT place, CASE WHEN json_valid(text) THEN text ELSE '{{}}' END AS text FROM "
        f"(SELECT {rows} LIMIT -1 OFFSET 0) LIMIT -1 OFFSET 0)"
    )


#: From the ledger itself, where it is attached: the first number, and the one after the last.
FROM_LEDGER: Final = _extracted(
    "seq AS place, CAST(line AS TEXT) AS text FROM ledger.lines WHERE seq >= ? AND seq < ?"
)
FROM_RAW: Final = _extracted("place, CAST(line AS TEXT) AS text FROM raw")


def short_id(column: str) -> str:
    """What stands for an id in the tables, as SQL; :func:`short` is the same in Python."""
    end = f"CASE WHEN length({column}) > 6 THEN substr({column}, -6) ELSE '' END"
    return f"substr({column}, 1, 6) || {end}"


def short(text: str) -> str:
    """What stands for an id in the tables."""
    return text[:6] + (text[-6:] if len(text) > 6 else "")


_EVENT: Final = (
    "CASE event "
    + " ".join(f"WHEN '{name}' THEN {number}" for name, number in EVENT_NUMBERS.items())
    + " ELSE 0 END"
)
_TIME: Final = "ifnull(CAST(round((julianday(time) - 2440587.5) * 86400000.0) AS INTEGER), 0)"
_SUBJECT: Final = (
    "(SELECT id FROM subjects s WHERE s.kind = ifnull(b.kind, '') AND s.tool = ifnull(b.tool, ''))"
)


def _number(field: int) -> str:
    column = COLUMNS[field]
    return f"(SELECT id FROM names n WHERE n.field = {field} AND n.name = b.{column})"


_ROW: Final = (
    f"b.place, {_TIME}, {_EVENT}, {_SUBJECT}, {_number(PEER)}, {{outcome}}, {_number(INSTANCE)}"
)
_PLAIN_ROW: Final = _ROW.format(outcome=_number(OUTCOME))
_OPEN_ROW: Final = _ROW.format(outcome=UNKNOWN)
_BEGUN: Final = "SELECT begun FROM ended WHERE begun IS NOT NULL"

#: What is done with a batch once it is there, in this order.
TAKE_IN: Final = (
    *(
        f"INSERT OR IGNORE INTO names(field, name) SELECT {field}, {column} FROM batch "
        f"WHERE {column} IS NOT NULL GROUP BY {column}"
        for field, column in COLUMNS.items()
    ),
    (
        "INSERT OR IGNORE INTO subjects(kind, tool) SELECT ifnull(kind, ''), ifnull(tool, '') "
        "FROM batch GROUP BY 1, 2"
    ),
    # Which line began the call that a line ends: the last one before it. Each of many lines with
    # one request id is looked at once.
    (
        "INSERT INTO ended SELECT place, begun FROM (SELECT place, event, "
        "max(CASE event WHEN 'admitted' THEN place END) OVER (PARTITION BY request ORDER BY place) "
        "AS begun FROM batch WHERE request NOT NULL AND event IN ('admitted', 'settled')) "
        "WHERE event = 'settled' AND begun NOT NULL"
    ),
    (
        "INSERT INTO ended SELECT place, begun FROM (SELECT s.place AS place, (SELECT o.place FROM "
        "open o WHERE o.request = s.request ORDER BY o.place DESC LIMIT 1) AS begun FROM batch s "
        "WHERE s.event = 'settled' AND s.place NOT IN (SELECT place FROM ended)) "
        "WHERE begun NOT NULL"
    ),
    (
        f"INSERT INTO others SELECT {_PLAIN_ROW} FROM batch b WHERE b.place IN ({_BEGUN}) OR event "
        "NOT NULL AND event NOT IN ('admitted', 'settled', 'refused', 'malformed')"
    ),
    (
        f"INSERT INTO calls SELECT {_PLAIN_ROW}, begun FROM batch b LEFT JOIN ended USING (place) "
        "WHERE event IN ('settled', 'refused', 'malformed')"
    ),
    (
        f"INSERT INTO calls SELECT {_OPEN_ROW}, NULL FROM batch b WHERE event = 'admitted' "
        f"AND place NOT IN ({_BEGUN})"
    ),
    # What was without an end so far and has one now is no longer a call's only line.
    (
        f"INSERT INTO others SELECT place, time, event, subject, peer, NULL, instance FROM calls "
        f"WHERE place IN (SELECT place FROM open WHERE place IN ({_BEGUN}))"
    ),
    f"DELETE FROM calls WHERE place IN (SELECT place FROM open WHERE place IN ({_BEGUN}))",
    (
        "DELETE FROM ids WHERE (part, id, place) IN "
        f"(SELECT part, {short_id('request')}, place FROM open WHERE place IN ({_BEGUN}))"
    ),
    f"DELETE FROM open WHERE place IN ({_BEGUN})",
    (
        "INSERT INTO open SELECT place, request, :part FROM batch WHERE event = 'admitted' "
        f"AND request NOT NULL AND place NOT IN ({_BEGUN})"
    ),
    (
        f"INSERT INTO ids SELECT :part, {short_id('request')} AS id, place FROM batch "
        f"WHERE request NOT NULL AND event NOT NULL AND place NOT IN ({_BEGUN}) ORDER BY id"
    ),
    (
        f"INSERT INTO traces SELECT :part, {short_id('trace')} AS id, place FROM batch "
        "WHERE trace NOT NULL AND event NOT NULL ORDER BY id"
    ),
    "DELETE FROM batch",
    "DELETE FROM ended",
    "DELETE FROM raw",
)

#: What is done where the lines before a number are no longer in the ledger.
FORGET: Final = (
    "DELETE FROM calls WHERE place < ?",
    "DELETE FROM others WHERE place < ?",
    "DELETE FROM open WHERE place < ?",
    "DELETE FROM ids WHERE place < ?",
    "DELETE FROM traces WHERE place < ?",
)
