"""Reading words, and speaking of them without argparse's words."""

from __future__ import annotations

import pytest

import mcp_envelope as me
from mcp_envelope.cli.arguments import HelpAsked, Parser, form, nearest, options_among, spelling

HELP = """\
usage: mcp-envelope try FILE [NAME] --to D [--fast]

Try something.

arguments:
  FILE        the file; a long explanation of it that goes on for so many words that it
              has to be wrapped
  NAME        its name

options:
  --to D      where to
  --fast      hurry
  -h, --help  show this help

example:
  mcp-envelope try a --to b"""


@pytest.fixture
def parser() -> Parser:
    """A parser with one of everything."""
    made = Parser("mcp-envelope try", "try something", "mcp-envelope try a --to b")
    long = "the file; a long explanation of it that goes on for so many words that it has to be"
    made.add_argument("file", metavar="FILE", help=f"{long} wrapped")
    made.add_argument("name", metavar="NAME", nargs="?", help="its name")
    made.add_argument("--to", metavar="D", required=True, help="where to")
    made.add_argument("--fast", action="store_true", help="hurry")
    return made


def test_help_is_ours(parser: Parser) -> None:
    """The help is the same under every Python: no word and no line break of argparse's."""
    assert parser.format_help() == HELP
    with pytest.raises(HelpAsked, match="usage: mcp-envelope try"):
        parser.parse(["--to", "--help"])


def test_spelling_and_form(parser: Parser) -> None:
    """How arguments are written, and in brackets where they may be left out."""
    assert [spelling(a) for a in parser.declared] == ["FILE", "NAME", "--to D", "--fast"]
    assert [form(a) for a in parser.declared] == ["FILE", "[NAME]", "--to D", "[--fast]"]


def test_reading(parser: Parser) -> None:
    """Options stand anywhere, ``=`` or not; a lone dash and a negative number are no options."""
    found = parser.parse(["--fast", "--to=x", "-", "-7"])
    assert (found.file, found.name, found.to, found.fast) == ("-", "-7", "x", True)
    found = parser.parse(["--to", "x y", "--", "--fast"])
    assert (found.file, found.name, found.to, found.fast) == ("--fast", None, "x y", False)


@pytest.mark.parametrize("words", [["a", "--f", "--to", "b"], ["a", "--tu=b"], ["a", "-f"]])
def test_options_are_not_abbreviated(parser: Parser, words: list[str]) -> None:
    """What is no option's full name is none, so that a later option breaks no script."""
    with pytest.raises(me.UsageError, match="no option"):
        parser.parse(words)


def test_options_among_words() -> None:
    """The names of the options, before ``--``."""
    words = ["a", "-", "--x=1", "-h", "-1", "-1.5", "-e5", "--a b", "--", "--y"]
    assert options_among(words) == ["--x", "-h", "-e5"]


def test_nearest() -> None:
    """One near word, or none."""
    assert nearest("digset", ["digest", "wrap"]) == "digest"
    assert nearest("zzz", ["digest", "wrap"]) is None
