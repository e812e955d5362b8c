"""``digest``: the canonical form of a document and its digest."""

from __future__ import annotations

import argparse

from mcp_envelope.core.canonical import digest
from mcp_envelope.core.document import parse

from .console import FINE, Console

HELP = "print the canonical form of a JSON document and its digest, as JSON"
EXAMPLE = "mcp-envelope digest result.json --alg blake3"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the document; - is standard input")
    parser.add_argument(
        "--alg", metavar="A", default="sha256", help="sha256 (default), sha512 or blake3"
    )
    parser.add_argument(
        "--form",
        metavar="F",
        default="rfc8785",
        help="rfc8785 (default), or prov-6.2: the provenance specification's own rule, "
        "for checking old digests",
    )


def run(arguments: argparse.Namespace, console: Console) -> int:
    document = parse(console.read(arguments.file))
    found = digest(document, arguments.alg, arguments.form)
    console.result({"canonical_form": found.canonical_form.decode(), "digest": found.as_dict()})
    return FINE
