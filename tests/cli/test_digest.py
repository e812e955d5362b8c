"""``digest``: the canonical form and its digest, as JSON in any case."""

from __future__ import annotations

import hashlib

import pytest

from .conftest import Run

DATA = '{"b":1.0,"a":["é",1e2]}'.encode()
FORM = '{"a":["é",100],"b":1}'


def test_the_shape(run: Run) -> None:
    """The shape of the interface, with --json and without."""
    done = run("digest", "-", given=DATA)
    value = hashlib.sha256(FORM.encode()).hexdigest()
    assert (done.code, done.err) == (0, "")
    assert done.json == {"canonical_form": FORM, "digest": {"alg": "sha256", "value": value}}
    assert run("digest", "-", "--json", given=DATA) == done


@pytest.mark.parametrize("alg,length", [("sha256", 64), ("sha512", 128), ("blake3", 64)])
def test_algorithms(run: Run, alg: str, length: int) -> None:
    """The three algorithms of the provenance specification."""
    found = run("digest", "-", "--alg", alg, given=DATA).json["digest"]
    assert (found["alg"], len(found["value"])) == (alg, length)


def test_the_old_form(run: Run) -> None:
    """The specification's own rule keeps floats as Python prints them."""
    found = run("digest", "-", "--form", "prov-6.2", given=DATA).json
    assert found["canonical_form"] == '{"a":["é",100.0],"b":1.0}'


def test_outside_of_the_domain_there_is_no_digest(run: Run) -> None:
    """Exit code 1, the reason and the place."""
    done = run("digest", "-", given=b'{"n":[9007199254740992]}')
    assert (done.code, done.out) == (1, b"")
    assert done.err.endswith("at /n/0\n")
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    "words,said",
    [
        (["--alg", "md5"], "no digest 'md5'; known: sha256, sha512, blake3"),
        (["--form", "jcs"], "no canonical form 'jcs'; known: rfc8785, prov-6.2"),
    ],
)
def test_unknown_algorithms_and_forms(run: Run, words: list[str], said: str) -> None:
    """Exit code 2, and what is known; the help lists the same."""
    done = run("digest", "-", *words, given=DATA)
    assert (done.code, done.out, done.err) == (2, b"", f"mcp-envelope: {said}\n")
    assert said.partition("known: ")[2] in run("digest", "--help").out.decode()
