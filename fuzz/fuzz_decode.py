"""Fuzzing the readers: whatever the bytes are, a document or message comes out, or EnvelopeError.

    python fuzz/fuzz_decode.py [--parse-only | --round-trips] [libFuzzer's options]

Starts from the vectors of the tests. Also asserted: a document prints back as it came, has the
value that ``json`` gives it, and its parts are documents; with ``--round-trips``, a message from
which nothing was lost and to which nothing was added is read again as it was.
"""

# ruff: noqa: INP001  (a program, no part of a package)

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["mcp_envelope"]):
    from mcp_envelope.core.canonical import canonical
    from mcp_envelope.core.document import Document, dump, parse
    from mcp_envelope.core.errors import EnvelopeError
    from mcp_envelope.dialects import DIALECTS
    from mcp_envelope.dialects.convert import convert, decode

    for name in DIALECTS:  # loaded here, or the fuzzer could not see which ways they take
        DIALECTS[name]

HERE = Path(__file__).resolve().parent
VECTORS = HERE.parent / "tests" / "vectors"


class WrongError(AssertionError):
    """Something that must hold for every input does not."""


def expect(holds: bool, what: str) -> None:
    """Stop the fuzzer, keeping the input, if something does not hold."""
    if not holds:
        raise WrongError(what)


def check_document(document: Document, data: bytes) -> None:
    """What must hold for every text that parse lets through."""
    value = document.value
    expect(dump(document) == data, "a document prints back as it came")
    expect(repr(json.loads(data)) == repr(value), "the value is the one that json gives")
    expect(parse(dump(value)) == document, "the value survives printing")
    for part in [*document.members().values(), *document.elements()]:
        expect(repr(parse(part.raw).value) == repr(part.value), "parts are documents")
    try:
        text = canonical(document)
    except EnvelopeError:
        return
    # Doubles may come back as integers beyond 2^53-1; text of text is the same without these.
    expect(text == canonical(value), "document and value have one canonical form")
    expect(dump(parse(text)) == text, "a canonical text is a strict document")


def check_message(data: bytes) -> None:
    """What must hold for every envelope: it is read, or refused, in every dialect."""
    for dialect in (None, *DIALECTS):
        try:
            message = decode(data, dialect)
        except EnvelopeError:
            continue
        if ROUND_TRIPS and dialect is not None:
            again = convert(data, dialect, dialect)
            if not again.lost and not again.filled:
                expect(decode(again.data, dialect) == message, f"{dialect} round trip")


def test_one_input(data: bytes) -> None:
    """Try one input."""
    try:
        document = parse(data)
    except EnvelopeError:
        return
    check_document(document, data)
    if not PARSE_ONLY:
        check_message(data)


PARSE_ONLY = "--parse-only" in sys.argv
ROUND_TRIPS = "--round-trips" in sys.argv


def seeds(folder: Path) -> None:
    """Copy all vectors to one folder, and what they become in every dialect."""
    for at, path in enumerate(sorted(VECTORS.rglob("*.json"))):
        text = path.read_bytes()
        if len(text) < 20_000:
            (folder / f"{at:03}.json").write_bytes(text)
            (folder / f"{at:03}.compact").write_bytes(json.dumps(json.loads(text)).encode())
        for number, dialect in enumerate(DIALECTS):
            try:
                converted = convert(text, dialect).data
            except EnvelopeError:
                continue
            if len(converted) < 20_000:
                (folder / f"{at:03}.to.{number}").write_bytes(converted)


def main() -> None:
    """Run until libFuzzer's options end it or something is found."""
    options = [option for option in sys.argv[1:] if not option.startswith("--")]
    with tempfile.TemporaryDirectory() as corpus:
        seeds(Path(corpus))
        # libFuzzer repeats what it is given if that is files only, and fuzzes if it is folders.
        start = [] if any(Path(option).is_file() for option in options) else [corpus]
        limits = [f"-dict={HERE / 'json.dict'}", "-timeout=5", "-rss_limit_mb=2048"]
        atheris.Setup([sys.argv[0], *start, *limits, *options], test_one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
