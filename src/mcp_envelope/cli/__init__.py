"""The command line: one file a verb.

A verb is a module with ``HELP`` (a line), ``EXAMPLE``, ``configure(parser)`` and
``run(arguments, console) -> exit code``. Adding one is that file and a line in :data:`VERBS`.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from mcp_envelope import __version__
from mcp_envelope.core.errors import ConfigError, EnvelopeError, UsageError

from .console import DOES_NOT_HOLD, UNREACHABLE, USAGE, Console

VERBS: Final = ("validate", "convert", "wrap", "digest", "schemas", "errors")
PROGRAM: Final = "mcp-envelope"


class _Parser(argparse.ArgumentParser):
    """Like argparse's, but a mistake is a UsageError, so that all errors look alike."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=f"see {self.prog} --help")


def parser() -> argparse.ArgumentParser:
    """The whole parser, every verb configured: for ``--help`` and for the documentation."""
    top = _Parser(
        prog=PROGRAM,
        description="Envelopes for MCP tool calls: check, translate, wrap, digest.",
        epilog=f"{PROGRAM} VERB --help explains a verb, with an example.",
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=_Parser)
    for name in VERBS:
        verb = _verb(name)
        sub = verbs.add_parser(
            name,
            help=verb.HELP,
            description=verb.HELP[0].upper() + verb.HELP[1:] + ".",
            epilog=f"example:\n  {verb.EXAMPLE}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        verb.configure(sub)
        sub.add_argument("--json", action="store_true", help="print machine-readable JSON")
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code: 0, 1, 2 or 3 (see ``docs/cli.md``)."""
    words = list(sys.argv[1:] if argv is None else argv)
    console = Console(json="--json" in words)
    try:
        arguments = parser().parse_args(words)
        code: int = _verb(arguments.verb).run(arguments, console)
        console.flush()
    except (UsageError, ConfigError) as error:
        console.complain(error)
        return USAGE
    except EnvelopeError as error:
        console.complain(error)
        return DOES_NOT_HOLD
    except BrokenPipeError:
        # Whoever read our output has seen enough. Python would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREACHABLE
    except OSError as error:
        console.complain(error)
        return UNREACHABLE
    except KeyboardInterrupt:
        return 130
    return code


def _verb(name: str) -> Any:
    return importlib.import_module(f"{__name__}.{name}")
