"""What provenance records promise beyond their schema: method ids and digests.

The published schemas are lenient where the specification is strict in words. These checks
say the words; each gives a reason, never just a verdict.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from .errors import Problem
from .pointer import pointer_of

# Both grammars are anchored by fullmatch: a trailing newline is no match.
_METHOD_ID: Final = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*(_v[0-9]+_[0-9]+)?")
_SCHEMA_METHOD_ID: Final = re.compile(r"[a-z0-9]+([._-][a-z0-9]+)*")
_HEX: Final = re.compile(r"[0-9a-f]*")
_ANY_HEX: Final = re.compile(r"[0-9A-Fa-f]*")
NAMESPACES: Final = frozenset({"adapter", "engine", "integrity", "lineage"})
RESERVED: Final = frozenset({"policy", "attestation", "execution", "audit"})
DIGEST_LENGTHS: Final[Mapping[str, int]] = {"sha256": 64, "sha512": 128, "blake3": 64}


def method_id_problem(method: str, pointer: str = "") -> Problem | None:
    """What is wrong with a method id (error), or unusual about it (warning)."""
    if not _METHOD_ID.fullmatch(method) or not _SCHEMA_METHOD_ID.fullmatch(method):
        return _problem(
            pointer,
            "method-id-grammar",
            f"{_shown(method)} is no method id",
            "lower-case segments that begin with a letter, joined by dots: engine.prov.build_v0_1",
        )
    namespace = method.partition(".")[0]
    if namespace in RESERVED:
        return _problem(
            pointer,
            "method-id-reserved",
            f"the namespace {namespace!r} of {_shown(method)} is reserved",
            f"reserved are {', '.join(sorted(RESERVED))}",
        )
    if namespace not in NAMESPACES:
        return _problem(
            pointer,
            "method-id-namespace",
            f"the namespace {namespace!r} is not one of those in use",
            f"in use are {', '.join(sorted(NAMESPACES))}",
            "warning",
        )
    return None


def digest_problem(digest: Mapping[str, Any], pointer: str = "") -> Problem | None:
    """Why a digest cannot be verified: not hexadecimal, upper case, or of the wrong length."""
    algorithm, value = digest["alg"], digest["value"]
    place = pointer + "/value"
    if not _ANY_HEX.fullmatch(value):
        return _problem(place, "digest-hex", "the digest is not hexadecimal", "use 0-9 and a-f")
    if not _HEX.fullmatch(value):
        return _problem(place, "digest-case", "the digest has upper-case letters", "use a-f")
    wanted = DIGEST_LENGTHS[algorithm]
    if len(value) != wanted:
        message = f"a {algorithm} digest has {wanted} characters, this one {len(value)}"
        return _problem(place, "digest-length", message, "was it cut short?")
    return None


def record_problems(record: Mapping[str, Any], pointer: str = "") -> list[Problem]:
    """Everything that is wrong with a record that satisfies its schema."""
    found = [
        method_id_problem(method, pointer + pointer_of(["methods", index]))
        for index, method in enumerate(record["methods"])
    ]
    for side in ("inputs", "outputs"):
        found += [
            artifact_problem(artifact, pointer + pointer_of([side, index]))
            for index, artifact in enumerate(record[side])
        ]
    digest = record.get("integrity", {}).get("record_digest")
    if digest is not None:
        found.append(digest_problem(digest, pointer + "/integrity/record_digest"))
    return list(_real(found))


def artifact_problem(artifact: Mapping[str, Any], pointer: str = "") -> Problem | None:
    """What is wrong with an artifact's digest, if it has one."""
    digest = artifact.get("digest")
    return digest_problem(digest, pointer + "/digest") if digest is not None else None


def _real(problems: Iterable[Problem | None]) -> Iterator[Problem]:
    return (problem for problem in problems if problem is not None)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:59] + "…")


def _problem(pointer: str, rule: str, message: str, hint: str, severity: str = "error") -> Problem:
    return Problem(pointer, f"provenance/0.1 {rule}", message, hint, severity)
