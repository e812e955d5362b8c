"""``digest``: the canonical form of a document and its digest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mcp_envelope as me
from mcp_envelope.core.canonical import ALGORITHMS, FORMS

from .console import FINE, Console

if TYPE_CHECKING:
    import argparse

EXAMPLE = "mcp-envelope digest result.json --alg blake3"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("file", metavar="FILE", help="the document; - is standard input")
    parser.add_argument(
        "--alg",
        metavar="A",
        default="sha256",
        help=f"the algorithm: {', '.join(ALGORITHMS)}; sha256 unless given",
    )
    parser.add_argument(
        "--form",
        metavar="F",
        default="rfc8785",
        help=f"the canonical form: {', '.join(FORMS)}; rfc8785 unless given. prov-6.2 is the "
        "provenance specification's own rule, for checking old digests",
    )


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Run the verb and return its exit code. What it prints is JSON in any case."""
    document = me.parse(console.read(arguments.file))
    found = me.digest(document, arguments.alg, arguments.form)
    console.result({"canonical_form": found.canonical_form.decode(), "digest": found.as_dict()})
    return FINE
