"""The command line: one file a verb.

A verb is a module with ``EXAMPLE``, ``configure(parser)`` and ``run(arguments, console)``, which
returns the exit code. Adding one is that file and a line in :data:`VERBS`. A verb of two words
is in ``first_second.py``. Only the module of the verb that was asked for is imported, so that
none pays for what another one needs.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Final

import mcp_envelope as me

from .arguments import HelpAsked, Parser, nearest, options_among, wrapped
from .console import DOES_NOT_HOLD, FINE, INTERRUPTED, UNREACHABLE, USAGE, Console

PROGRAM: Final = "mcp-envelope"
#: Every verb and what it does, in the order of the help.
VERBS: Final = {
    "run": "stand in front of an MCP server: check, label and record every call",
    "doctor": "check installation, settings, servers, store and clock, and say what to do",
    "ledger list": "list the ledgers that gateways keep here, and who writes them",
    "ledger query": "find calls in a ledger by time, tool, peer, outcome, kind or text",
    "ledger show": "show all that the record knows of one call",
    "ledger tail": "show the newest calls of a ledger, and those that come",
    "ledger verify": "say whether the record holds, and if not, what is wrong where",
    "ledger export": "write the exact lines of a ledger as JSON Lines",
    "ledger checkpoint": "print the newest signed checkpoint, to be kept elsewhere",
    "ledger prove": "prove that a line is in the ledger, or check such a proof",
    "ledger prune": "remove the oldest lines of a ledger; a signed line says so",
    "ledger verifier": "print the verifier in one file, for an auditor",
    "keys new": "make the key that signs the record, in place of the one before",
    "keys show": "print the public key that the record is verified with",
    "validate": "say whether an envelope is valid, and if not, what is wrong where",
    "convert": "turn an envelope into one of another dialect, and list what did not fit",
    "wrap": "wrap any JSON into mcp.envelope.v0.1",
    "digest": "print the canonical form of a JSON document and its digest",
    "schemas": "list the published JSON Schemas, print one, or write them to a folder",
    "errors": "print the table of error codes, or explain one code",
}
_HELP: Final = """\
usage: {program} VERB [ARGUMENT ...]

Stand in front of MCP servers, record each call, check and translate envelopes.

verbs:
{verbs}

options:
  -h, --help  show this help
  --version   show the version

{program} VERB --help explains a verb, with an example.

exit codes: 0 fine; 1 what was looked at does not hold; 2 a mistake in the command line
or the configuration; 3 it could not be done; 130 interrupted with Ctrl-C."""


def parser(verb: str) -> Parser:
    """The parser of one verb."""
    module = _module(verb)
    made = Parser(f"{PROGRAM} {verb}", VERBS[verb], module.EXAMPLE)
    module.configure(made)
    made.add_argument("--json", action="store_true", help="print machine-readable JSON")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code: 0, 1, 2 or 3 (see ``docs/cli.md``)."""
    words = list(sys.argv[1:] if argv is None else argv)
    console = Console(json="--json" in options_among(words))
    # What the clauses below name is only looked up, and so imported, once something is raised.
    try:
        code = _run(words, console)
        console.flush()
    except (me.UsageError, me.ConfigError) as error:
        code = USAGE
        console.complain(error)
    except me.EnvelopeError as error:
        code = DOES_NOT_HOLD
        console.complain(error)
    except BrokenPipeError:
        code = UNREACHABLE  # whoever read our output has seen enough
    except (OSError, MemoryError) as error:
        code = UNREACHABLE
        console.complain(error)
    except KeyboardInterrupt:
        code = INTERRUPTED
    return code


def _run(words: list[str], console: Console) -> int:
    verb, rest = _verb_of(words)
    if verb in VERBS:
        try:
            arguments = parser(verb).parse(rest)
        except HelpAsked as asked:
            console.page(asked.text)
            return FINE
        code: int = _module(verb).run(arguments, console)
        return code
    group = verb if verb in _groups() else ""
    first = rest[0] if group and rest else verb
    if first in ("-h", "--help"):
        console.page(_help(group))
    elif first == "--version":
        console.say(f"{PROGRAM} {me.__version__}")
    elif (group and (rest or console.json)) or (not group and (first or console.json)):
        raise _no_verb(" ".join([group, *rest[:1]]) if group else first)
    else:
        for line in _help(group).splitlines():
            console.note(line)
        return USAGE
    return FINE


def _verb_of(words: list[str]) -> tuple[str, list[str]]:
    """The verb that a command line begins with, of one word or two, and the words behind it."""
    pair = " ".join(words[:2])
    if len(words) > 1 and pair in VERBS:
        return pair, words[2:]
    return (words[0], words[1:]) if words else ("", [])


def _groups() -> set[str]:
    """The first words of the verbs that have two."""
    return {name.partition(" ")[0] for name in VERBS if " " in name}


def _no_verb(word: str) -> Exception:
    group = word.partition(" ")[0] if word.partition(" ")[0] in _groups() else ""
    hint = f"see {PROGRAM} {group} --help" if group else f"see {PROGRAM} --help"
    if word.removeprefix(f"{group} ").startswith("-"):
        return me.UsageError("a verb comes first, options after it", hint=hint)
    near = nearest(word, VERBS)
    if near:
        hint = f"did you mean {near}? {hint}"
    return me.UsageError(f"no verb {word!r}", hint=hint)


def _help(group: str = "") -> str:
    above = f"{group} " if group else ""
    shown = {
        name.removeprefix(above): line for name, line in VERBS.items() if name.startswith(above)
    }
    wide = max(len(name) for name in shown)
    verbs = "\n".join(wrapped(f"  {name:{wide}}  {line}", wide + 4) for name, line in shown.items())
    return _HELP.format(program=f"{PROGRAM} {above}".rstrip(), verbs=verbs)


def _module(verb: str) -> ModuleType:
    return importlib.import_module(f"{__name__}.{verb.replace(' ', '_')}")
