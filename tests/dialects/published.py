"""Our published schemas in the hands of two validators that know nothing of each other."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema  # type: ignore[import-untyped]
import jsonschema_rs
from referencing import Registry, Resource
from tests.dialects.strategies import PATHS, ROOT, SCHEMAS, Schema

VECTORS = ROOT / "tests" / "vectors"


class Verdict(NamedTuple):
    """What each validator thinks of a document; both must think the same."""

    jsonschema_rs: bool
    jsonschema: bool


ACCEPTED, REFUSED = Verdict(True, True), Verdict(False, False)


@cache
def compiled(identifier: str) -> tuple[Any, Any]:
    """A schema compiled by either library, offline and with every format asserted."""
    schema = SCHEMAS[identifier]
    ours = jsonschema_rs.validator_for(
        dict(schema),
        registry=jsonschema_rs.Registry([(name, dict(found)) for name, found in SCHEMAS.items()]),
        offline=True,
        validate_formats=True,
    )
    resources = [(name, Resource.from_contents(found)) for name, found in SCHEMAS.items()]
    kind = jsonschema.validators.validator_for(schema)
    theirs = kind(
        schema,
        registry=Registry().with_resources(resources),
        format_checker=kind.FORMAT_CHECKER,
    )
    return ours, theirs


def verdict(identifier: str, document: Any) -> Verdict:
    """Whether each validator accepts the document."""
    ours, theirs = compiled(identifier)
    return Verdict(ours.is_valid(document), theirs.is_valid(document))


def pointers(identifier: str, document: Any) -> tuple[set[str], set[str]]:
    """Where either validator finds something wrong."""
    ours, theirs = compiled(identifier)
    return (
        {_pointer(error.instance_path) for error in ours.iter_errors(document)},
        {_pointer(error.absolute_path) for error in theirs.iter_errors(document)},
    )


def _pointer(path: Any) -> str:
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)


def walk(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Every schema inside a schema, itself first, with its place."""
    pending: list[tuple[str, Schema]] = [("#", schema)]
    while pending:
        place, found = pending.pop()
        yield place, found
        for keyword, value in found.items():
            if keyword in ("properties", "$defs"):
                pending += [(f"{place}/{keyword}/{name}", sub) for name, sub in value.items()]
            elif keyword in ("allOf", "anyOf", "oneOf"):
                pending += [(f"{place}/{keyword}/{n}", sub) for n, sub in enumerate(value)]
            elif isinstance(value, dict):
                pending.append((f"{place}/{keyword}", value))


def vector_files(verdict: str) -> list[Path]:
    """Our hand-written documents: ``valid`` or ``invalid``."""
    return sorted(VECTORS.glob(f"*/{verdict}/*.json"))


def schema_of(path: Path) -> str:
    """The ``$id`` of the schema that a vector is for: its name begins with the schema's."""
    name = f"{path.name.split('--')[0]}.json"
    wanted = (path.parent.parent.name, name)
    return next(i for i, file in PATHS.items() if (file.parent.name, file.name) == wanted)


def short(value: object) -> str:
    """How tests name schemas and vectors."""
    if isinstance(value, Path):
        return f"{value.parent.parent.name}/{value.stem}"
    return str(value).removeprefix("urn:mcp-envelope:")
