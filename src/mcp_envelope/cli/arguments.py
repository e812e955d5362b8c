"""Command lines: argparse reads them, and what is said about them is made here.

What argparse prints differs between Pythons; help texts and the reference in docs/cli.md are
made from the same declarations, in words that do not.
"""

from __future__ import annotations

import argparse
import difflib
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NoReturn

import mcp_envelope as me

_WIDTH: Final = 88
_NUMBER: Final = re.compile(r"-\d+(\.\d*)?")


class HelpAsked(Exception):  # noqa: N818  (a detour, not an error)
    """Somebody wants to read the help rather than to run the verb."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class Parser(argparse.ArgumentParser):
    """The parser of a verb. A mistake is a UsageError, so that all errors look alike."""

    def __init__(self, prog: str, purpose: str, example: str) -> None:
        super().__init__(prog=prog, add_help=False, allow_abbrev=False)
        self.purpose = purpose
        self.example = example
        #: What was declared, in that order.
        self.declared: list[argparse.Action] = []
        #: Says of an option that is none what it is instead; empty if it is nothing else either.
        self.elsewhere: Callable[[str], str] = lambda _: ""
        self._command: argparse.Action | None = None

    def add_argument(self, *names: Any, **how: Any) -> argparse.Action:
        """Declare an argument or option, and remember it."""
        action = super().add_argument(*names, **how)
        self.declared.append(action)
        return action

    def add_command(self, dest: str, help: str) -> None:
        """Let everything behind ``--`` be a command line of another program.

        It is a tuple of words then, None if there is no ``--``. Nothing of it is an option here.
        """
        self._command = argparse.Action([], dest, nargs="*", metavar="-- COMMAND ...", help=help)

    @property
    def shown(self) -> list[argparse.Action]:
        """What was declared, in the order in which it is written and explained."""
        return [*self.declared, *([self._command] if self._command is not None else [])]

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """Read the words behind the verb. Raises UsageError or HelpAsked."""
        given = options_among(words)
        if "-h" in given or "--help" in given:
            raise HelpAsked(self.format_help())
        # Before argparse, which would first ask for what is missing.
        known = [name for action in self.declared for name in action.option_strings]
        for name in given:
            if name not in known:
                other = self.elsewhere(name)
                if other:
                    raise me.UsageError(f"no option {name}", hint=other)
                self.error(f"no option {name}", nearest(name, known))
        own, command = list(words), None
        if self._command is not None and "--" in own:
            cut = own.index("--")
            own, command = own[:cut], tuple(own[cut + 1 :])
            if command[:1] == ("--",):  # doubled for a launcher that swallows the first one
                command = command[1:]
        found, rest = self.parse_known_args(own)
        if rest:
            near = None if self._command is None else f"-- {rest[0]}"
            self.error(f"one argument too many: {rest[0]!r}", near)
        if self._command is not None:
            setattr(found, self._command.dest, command)
        return found

    def error(self, message: str, near: str | None = None) -> NoReturn:
        """Raise instead of printing and exiting."""
        hint = f"see {self.prog} --help"
        raise me.UsageError(message, hint=f"did you mean {near}? {hint}" if near else hint)

    def format_help(self) -> str:
        """What ``--help`` prints."""
        usage = " ".join(["usage:", self.prog, *map(form, self.shown)])
        parts = [wrapped(usage, 7), "", wrapped(f"{self.purpose[:1].upper()}{self.purpose[1:]}.")]
        arguments = [(spelling(a), a.help or "") for a in self.shown if not a.option_strings]
        options = [(spelling(a), a.help or "") for a in self.declared if a.option_strings]
        options.append(("-h, --help", "show this help"))
        wide = max(len(name) for name, _ in (*arguments, *options))
        for title, rows in (("arguments", arguments), ("options", options)):
            if rows:
                parts += ["", f"{title}:"]
                parts += [wrapped(f"  {name:{wide}}  {text}", wide + 4) for name, text in rows]
        return "\n".join([*parts, "", "example:", f"  {self.example}"])


def spelling(action: argparse.Action) -> str:
    """How an argument or option is written: ``FILE``, ``--to D``, ``--strict``."""
    value = "" if action.nargs == 0 else str(action.metavar)
    return " ".join(filter(None, [", ".join(action.option_strings), value]))


def form(action: argparse.Action) -> str:
    """The same as it stands in a usage line, in brackets where it may be left out."""
    needed = action.required and action.nargs != "?"
    return spelling(action) if needed else f"[{spelling(action)}]"


def options_among(words: Sequence[str]) -> list[str]:
    """The names of the options among the words, whether they are known or not."""
    before = words[: words.index("--")] if "--" in words else words
    return [
        word.partition("=")[0]
        for word in before
        if word.startswith("-") and word != "-" and " " not in word and not _NUMBER.fullmatch(word)
    ]


def nearest(word: str, known: Iterable[str]) -> str | None:
    """What somebody who wrote this word probably meant."""
    return next(iter(difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)), None)


def wrapped(text: str, indent: int = 0) -> str:
    """The text in lines of a terminal's width, all but the first with an indent."""
    return textwrap.fill(
        text, _WIDTH, subsequent_indent=" " * indent, break_on_hyphens=False, break_long_words=False
    )
