"""How fast the core is beside what one would use instead: interleaved rounds, medians, ratios.

    python bench/core.py [--quick] [--json]

Every row is measured here and now, ours and theirs in the same rounds; what is compared with what
stands in bench/README.md. The exit status is always 0: figures are for reading.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from time import perf_counter, thread_time_ns
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import orjson
import rfc8785

from mcp_envelope.core.canonical import canonical
from mcp_envelope.core.document import DEFAULT_LIMITS, parse
from mcp_envelope.core.schema import compile_schema

HERE = Path(__file__).resolve().parent
SCHEMAS = HERE.parent / "src" / "mcp_envelope" / "dialects" / "schemas" / "mcp"
ROUND_US = 2_000  # how long one contender runs in one round, roughly


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison. Times are medians in microseconds; ``goal`` is the least ratio wanted."""

    what: str
    ours: float
    theirs: float
    ratio: float
    goal: float | None

    @property
    def verdict(self) -> str:
        """Whether the goal is met; nothing where there is none."""
        return "" if self.goal is None else "met" if self.ratio >= self.goal else "MISSED"


@dataclass(frozen=True, slots=True)
class Case:
    """Something to do, and how others do it: name, goal and action of each."""

    what: str
    ours: Callable[[], object]
    peers: Sequence[tuple[str, float | None, Callable[[], object]]]


# -- the calls ---------------------------------------------------------------------------------

SMALL_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "limit": {"type": "integer", "default": 10},
        "recursive": {"type": "boolean", "default": False},
        "query": {"type": "string", "default": ""},
        "tags": {"type": "array", "items": {"type": "string"}, "default": []},
    },
    "required": ["path"],
}
ROW_SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "value": {"type": "integer"},
        "ok": {"type": "boolean"},
        "unit": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name", "value", "ok", "unit", "tags"],
}
LARGE_SCHEMA = {
    "$defs": {"Row": ROW_SCHEMA},
    "type": "object",
    "properties": {
        "table": {"type": "string"},
        "rows": {"type": "array", "items": {"$ref": "#/$defs/Row"}},
        "dry_run": {"type": "boolean", "default": False},
    },
    "required": ["table", "rows"],
}
TEXT_SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
    "required": ["path", "content"],
}


def _call(tool: str, arguments: object) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": "3f1c"}}
    return {"jsonrpc": "2.0", "id": 17, "method": "tools/call", "params": params}


def _rows(size: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    while len(orjson.dumps(rows)) < size:
        i = len(rows)
        unit = None if i % 2 else "mm"
        row = {"name": f"row {i} of the table", "value": i * 7919 % 10**6, "ok": i % 3 == 0}
        rows.append({**row, "unit": unit, "tags": ["a", "b"]})
    return rows


def calls() -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """The calls by name, each with its tool's input schema."""
    small = {"path": "/srv/data/reports/2024", "limit": 250, "recursive": True}
    small |= {"query": "status of the last delivery", "tags": ["a", "b"]}
    text = 'Lorem ipsum dolor sit amet, "consectetur" adipiscing.\n' * 168
    return {
        "260 B": (_call("find", small), SMALL_SCHEMA),
        "10 KB of rows": (
            _call("store", {"table": "readings", "rows": _rows(9_850)}),
            LARGE_SCHEMA,
        ),
        "10 KB of text": (_call("write", {"path": "a.txt", "content": text}), TEXT_SCHEMA),
    }


def _sdk_reader(schema_name: str) -> Callable[[str], object] | None:
    """What the SDK's server does with a line before the tool runs; None without the SDK."""
    if importlib.util.find_spec("mcp") is None:
        return None
    sdk: Any = importlib.import_module("sdk")
    reader: Callable[[str], object] = sdk.reader(schema_name)
    return reader


def call_cases() -> Iterator[Case]:
    """Strict parse, envelope check and input check, beside json with jsonschema and the SDK."""
    envelope = json.loads((SCHEMAS / "request.schema.json").read_bytes())
    for name, (call, schema) in calls().items():
        goals = (None, None) if name.endswith("text") else (15.0, 3.0)
        for style, raw in (("compact", orjson.dumps(call)), ("spaced", json.dumps(call).encode())):
            peers = [("json + jsonschema", goals[0], _jsonschema_reader(raw, envelope, schema))]
            sdk = _sdk_reader(call["params"]["name"])
            if sdk is not None:
                peers.append(("the SDK's models", goals[1], _bind(sdk, raw.decode())))
            yield Case(f"call, {name}, {style}", _our_reader(raw, envelope, schema), peers)


def _bind(action: Callable[[str], object], text: str) -> Callable[[], object]:
    return lambda: action(text)


def _our_reader(raw: bytes, envelope: object, schema: object) -> Callable[[], object]:
    check = compile_schema(envelope, name="request")
    check_input = compile_schema(schema, name="input")
    size = DEFAULT_LIMITS.request

    def read() -> None:
        value = parse(raw, size=size).value
        if not check.accepts(value) or not check_input.accepts(value["params"]["arguments"]):
            raise AssertionError("this call is valid")

    return read


def _jsonschema_reader(raw: bytes, envelope: Any, schema: Any) -> Callable[[], object]:
    check = jsonschema.Draft202012Validator(envelope)
    check_input = jsonschema.Draft202012Validator(schema)

    def read() -> None:
        value = json.loads(raw)
        if not check.is_valid(value) or not check_input.is_valid(value["params"]["arguments"]):
            raise AssertionError("this call is valid")

    return read


# -- the canonical form ------------------------------------------------------------------------


def _documents() -> dict[str, tuple[float, object]]:
    """Values by name, with the goal for each."""
    small = {
        "path": "/srv/data/reports/2024/summary", "limit": 250, "recursive": True, "since": None,
        "query": "status of the last delivery", "tags": ["a", "b"], "offset": 0, "order": ["name"],
        "options": {"encoding": "utf8", "header": True, "skip": 0, "columns": ["id", "name"]},
    }  # fmt: skip
    pointed = {
        "path": "/srv/data/reports/2024/summary-q3.csv", "limit": 250, "recursive": True,
        "options": {"encoding": "utf-8", "header": True, "skip": 0, "columns": ["id", "name"]},
        "query": "status of the last delivery", "tags": ["a", "b"], "since": None, "offset": 0,
    }  # fmt: skip
    station = {
        "station": "Paris-Montsouris", "lat": 48.8217, "lon": 2.3378, "height": 75.0, "note": None,
        "values": [12.5, 13.1, 12.98, 0.0, -1.25], "quality": {"score": 0.875, "tiny": 1.5e-7},
        "unit": "degC", "flags": ["ok", "checked"], "source": "synop/07156", "version": 2,
    }  # fmt: skip
    measured = [
        {**row, "value": i * 0.618, "whole": float(i), "small": 1e-6 * i if i % 9 == 0 else 0.5}
        for i, row in enumerate(_rows(7_400))
    ]
    return {
        "260 B, no floats": (30.0, small),
        "260 B, no floats but . and -": (30.0, pointed),
        "10 KB, no floats": (30.0, {"table": "readings", "rows": _rows(9_970)}),
        "260 B, floats": (8.0, station),
        "10 KB, floats": (8.0, {"table": "readings", "rows": measured}),
    }


def canonical_cases() -> Iterator[Case]:
    """RFC 8785 of documents and of plain values, beside the rfc8785 package."""
    for name, (goal, value) in _documents().items():
        document = parse(orjson.dumps(value))
        if not canonical(document) == canonical(value) == rfc8785.dumps(value):  # type: ignore[arg-type]
            raise AssertionError("the canonical forms differ")
        for given, what in ((document, "document"), (value, "plain value")):
            # The goals are for documents; a plain value must first be proven to be JSON.
            wanted = goal if what == "document" else None
            peers = [("rfc8785", wanted, _canonical_by_rfc8785(value))]
            yield Case(f"canonical, {name}, {what}", _canonical_by_us(given), peers)


def _canonical_by_us(value: object) -> Callable[[], object]:
    return partial(canonical, value)  # a lambda would be timed, too


def _canonical_by_rfc8785(value: Any) -> Callable[[], object]:
    return partial(rfc8785.dumps, value)


# -- measuring ---------------------------------------------------------------------------------


def _microseconds(action: Callable[[], object], repeats: int) -> float:
    # The time of this thread alone, which other processes disturb less than the clock on the wall.
    start = thread_time_ns()
    for _ in range(repeats):
        action()
    return (thread_time_ns() - start) / repeats / 1000


def _repeats(action: Callable[[], object]) -> int:
    return max(1, int(ROUND_US / max(min(_microseconds(action, 1) for _ in range(3)), 0.1)))


def compare(rounds: int) -> list[Row]:
    """All comparisons, ours and theirs by turns in each of the rounds."""
    cases = [*call_cases(), *canonical_cases()]
    actions = [[case.ours, *(action for _, _, action in case.peers)] for case in cases]
    repeats = [[_repeats(action) for action in group] for group in actions]
    times: list[list[list[float]]] = [[[] for _ in group] for group in actions]
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for group, counts, taken in zip(actions, repeats, times, strict=True):
                for action, count, figures in zip(group, counts, taken, strict=True):
                    figures.append(_microseconds(action, count))
            gc.collect()
    finally:
        gc.enable()
    rows = []
    for case, taken in zip(cases, times, strict=True):
        ours, *theirs = [statistics.median(figures) for figures in taken]
        for (name, goal, _), median in zip(case.peers, theirs, strict=True):
            rows.append(Row(f"{case.what}: {name}", ours, median, median / ours, goal))
    return rows


def import_milliseconds(runs: int) -> dict[str, float]:
    """How much longer Python takes with each import than without; best of interleaved runs."""
    programs = {
        "pass": "pass",
        "import mcp_envelope": "import mcp_envelope",
        "parse, canonical": "from mcp_envelope import canonical, parse",
        "decode, convert, Capabilities": "from mcp_envelope import Capabilities, convert, decode",
    }
    best = dict.fromkeys(programs, float("inf"))
    for _ in range(runs):
        for name, program in programs.items():
            start = perf_counter()
            subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ})
            best[name] = min(best[name], (perf_counter() - start) * 1000)
    return {name: best[name] - best["pass"] for name in programs if name != "pass"}


def capability_rows(rounds: int) -> list[dict[str, Any]]:
    """The figures of bench/capability.py."""
    command = [sys.executable, str(HERE / "capability.py"), "--json", "--rounds", str(rounds)]
    ran = subprocess.run(command, check=True, capture_output=True)
    rows: list[dict[str, Any]] = json.loads(ran.stdout)["rows"]
    return rows


# -- printing ----------------------------------------------------------------------------------


def _table(rows: Sequence[Row]) -> str:
    width = max(len(row.what) for row in rows)
    lines = [f"{'µs, medians':<{width}} {'ours':>9} {'theirs':>10} {'ratio':>7} {'goal':>6}"]
    for row in rows:
        goal = "" if row.goal is None else f"{row.goal:.0f}x"
        figures = f"{row.ours:>9.2f} {row.theirs:>10.1f} {row.ratio:>6.1f}x {goal:>6}"
        lines.append(f"{row.what:<{width}} {figures} {row.verdict}")
    return "\n".join(lines)


def _capability_table(rows: Sequence[dict[str, Any]]) -> str:
    lines = ["Capability decisions, µs (bench/capability.py):"]
    for row in rows:
        met = "met" if row["microseconds"] <= row["bound"] else "MISSED"
        name = f"{row['shape']}, {row['verdict']}, {row['given']}"
        lines.append(f"  {name:<32} {row['microseconds']:>7.2f}  goal {row['bound']:>4.0f} {met}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args(arguments)
    rows = compare(7 if options.quick else 41)
    imports = import_milliseconds(5 if options.quick else 30)
    decisions = capability_rows(3 if options.quick else 15)
    if options.json:
        compared = [{**asdict(row), "verdict": row.verdict} for row in rows]
        print(json.dumps({"rows": compared, "imports_ms": imports, "capability": decisions}))
        return 0
    print(_table(rows))
    print("\nImport, ms above `python -c pass` (best of many runs):")
    for name, milliseconds in imports.items():
        goal = f"  goal 50 {'met' if milliseconds <= 50 else 'MISSED'}"
        print(f"  {name:<32} {milliseconds:>7.1f}{goal if name == 'import mcp_envelope' else ''}")
    print(f"\n{_capability_table(decisions)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
