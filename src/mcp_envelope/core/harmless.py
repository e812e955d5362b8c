"""What stands behind a credential's name in texts and is none: types, calls, words about it.

Source code and prose name passwords and tokens all day; their digests are worth something too.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from .credentials import NameRule, folded, words

#: Values that say something of a credential, wherever they are its whole value.
_SAID: Final = words(
    "none null nil undefined true false required optional missing invalid expired empty unset n/a"
)
_END: Final = r"(?=[ \t]*+(?:[.,;!)\]}\"'`\\\r\n]|\Z))"
_WORDS: Final = re.compile(
    rf"(?i:(?:{'|'.join(sorted(_SAID))}"
    rf"|not[ _](?:set|found|given|required|provided|configured)){_END}"
    r"|see[ \t](?:the|our|your|below|above|docs?|documentation|readme|section|chapter|also)\b)"
)
_TYPES: Final = (
    r"(?:str|[Ss]tring|bytes|bytearray|int|integer|number|float|bool|boolean|object|[Aa]ny|unknown"
    r"|uuid|UUID|SecretStr|SecretBytes|StrictStr|char|varchar|text|byte|dict|Buffer|None|null|undefined)"
)
_TYPE: Final = re.compile(
    r"[&*?]?(?:\[\])?(?:(?:[a-z]{1,12}\.)?(?:Optional|Option|Final|ClassVar|Union|[Ll]ist|Array)[\[<]){0,3}"
    rf"(?:[a-z]{{1,12}}\.)?{_TYPES}(?:\[\])?[\]>?!]{{0,4}}"
    rf"(?:[ \t]{{0,4}}[|,][ \t]{{0,4}}{_TYPES}(?:\[\])?[\]>]{{0,4}}){{0,4}}"
    r"[ \t]{0,4}(?:(=)(?!=)[ \t]{0,4}|(?=[,;)\]}>#\"'`\\\r\n]|\Z|//))"
)
# Types of other names, as far as brackets or a value behind them show that they are some.
_GENERIC: Final = re.compile(
    r"(?:[A-Z][A-Za-z]{1,40}|tuple|list|dict|set|frozenset|type)(?:\[[^\r\n=\"'`]{1,80}\])?"
    r"(?:[ \t]{0,4}\|[ \t]{0,4}None)?[ \t]{1,4}(=)(?!=)[ \t]{0,4}"
    r"|(?:[A-Z][A-Za-z]{1,40}|tuple|list|dict|set|frozenset|type)\[[A-Za-z_., |]{1,80}\]"
    r"(?=[ \t]{0,4}(?:[,;)\r\n]|\Z|->))"
)
_IDENTIFIER: Final = r"[A-Za-z_$][A-Za-z0-9_$]{0,80}+"
_PATH: Final = rf"{_IDENTIFIER}(?:(?:\.|::|->|\?\.){_IDENTIFIER}){{0,8}}+"
_CALL: Final = re.compile(
    rf"(?:(?:await|new|return|yield)[ \t]{{1,4}}){{0,2}}{_PATH}!?(\(|\[[\"'])([^\r\n]{{0,200}})"
)
_TUPLE: Final = re.compile(r"(\()(?=[\"')])([^\r\n]{1,200})")
# What templates and shells put something else in the place of.
_PLACE: Final = re.compile(
    rf"(?:\$?\{{{{1,2}}[ ]?[A-Za-z_.$][A-Za-z_.$]{{0,80}}[ ]?\}}{{1,2}}|\$[A-Z_]{{3,80}}){_END}"
)
# What goes on after a colon within a sentence.
_PROSE: Final = re.compile(
    r"(?i:the|an?|its?|this|that|these|those|only|under|in|on|at|for|of|from|with|to|and|or|if|is|are|be|must|"
    r"set|use|your|our|their|any|all|no|not|anything|nothing)(?=,?[ \t][A-Za-z`\"'])"
)
_CLOSED: Final = re.compile(r".*[)\]](?:[;,.)\]}\s\"'`\\]|\Z)", re.DOTALL)
_LITERAL: Final = re.compile(r"[\"'`]([^\"'`]{6,200})[\"'`]")
_HELD: Final = re.compile(rf"({_PATH})(?=[ \t]{{0,4}}(?:[,;)\]}}\r\n]|\Z))")
_HOLDERS: Final = words(
    "self this cls args opts options config cfg conf settings env process os ctx context request "
    "req res response resp params props state"
)
# An object in a text that describes a value; what else it may hold is taken for a secret.
_SCHEMA: Final = re.compile(
    r"\{\s{0,40}\"(?:type\"\s{0,4}:\s{0,4}\"(?:string|number|integer|boolean|object|array)\"|\$ref\"\s{0,4}:"
    r"\s{0,4}\"[^\"\\]{0,200}\")(?:\s{0,4},\s{0,40}\"(?:title|description|format|minLength|maxLength|writeOnly)\""
    r"\s{0,4}:\s{0,4}(?:\"[^\"\\]{0,400}\"|[0-9]{1,9}|true|false)){0,8}\s{0,40}\}"
)
_SCHEMA_LINES: Final = re.compile(
    r"(?:[ \t]*+(?:(?:title|description|format|minLength|maxLength|writeOnly|nullable|required):"
    r"[^\r\n]*+"
    r"|type:[ \t]{1,8}\"?(?:string|number|integer|boolean|object|array)\"?[ \t]*+)(?:\r?\n|\Z))++"
)


def is_phrase(value: str) -> bool:
    """Whether it has as many words as what keys are recovered from."""
    return len(value.split(None, 6)) > 5


def says_nothing(value: str) -> bool:
    """Whether a whole value is a word about a credential, like ``none``."""
    return len(value) <= 9 and value.lower() in _SAID


def behind_type(text: str, start: int) -> int | None:
    """Where the value begins if what begins at ``start`` is a type; None if it has none."""
    found = _TYPE.match(text, start) or _GENERIC.match(text, start)
    if found is None:
        return start
    return found.end() if found[1] else None


class Sort(NamedTuple):
    """What is known of a value: its name, which names are credentials', the sign before it."""

    name: str
    rule: NameRule
    sign: str = ""


def is_harmless(text: str, start: int, sort: Sort, *, begins: bool) -> bool:
    """Whether the value without quotes that begins at ``start`` is no secret.

    ``begins`` is whether its name begins a line.
    """
    if _WORDS.match(text, start) or _PLACE.match(text, start):
        return True
    if not begins and sort.sign == ":" and _PROSE.match(text, start):
        return True
    held = _HELD.match(text, start)
    if held is not None:
        first, *rest = re.split(r"[^A-Za-z0-9_$]+", held[1])
        if rest:
            return first in _HOLDERS and bool(sort.rule(rest[-1]))
        # Handed on under its own name, as in `f(token=token)`.
        return text[held.end() : held.end() + 1] in (",", ")") and folded(first) == folded(
            sort.name
        )
    call = _CALL.match(text, start) or (_TUPLE.match(text, start) if sort.sign == "=" else None)
    if call is None:
        return False
    if any(_has_digit(literal) for literal in _LITERAL.findall(call[2])):
        return False
    return call[2] == "" if call[1] == "(" and not call[2] else _CLOSED.match(call[2]) is not None


def is_schema(text: str, start: int) -> bool:
    """Whether an object that begins there only describes a value."""
    return _SCHEMA.match(text, start) is not None


def are_schema_lines(block: str) -> bool:
    """The same of an indented block of lines."""
    return "type:" in block and _SCHEMA_LINES.fullmatch(block) is not None


def _has_digit(text: str) -> bool:
    return any(one.isdigit() for one in text)
