"""Secrets behind options of commands whose names say nothing: ``curl -u``, ``mysql -p``."""

from __future__ import annotations

import re
from typing import Any, Final

_VALUE: Final = r"(?:\"([^\"\r\n]++)\"|'([^'\r\n]++)'|([^\s\"'`|;&<>\\]++))"
_BEFORE: Final = r"(?<![^\s\"'])"


def _option(letters: str, gap: str) -> re.Pattern[str]:
    return re.compile(rf"{_BEFORE}-{letters}{gap}(?!-){_VALUE}")


_USER: Final = re.compile(
    rf"{_BEFORE}(?:-[A-Za-z]{{0,5}}[uU]|--user|--proxy-user)[ \t]{{0,8}}+=?[ \t]{{0,8}}+{_VALUE}"
)
_JOINED: Final = _option("p", "")
_APART: Final = _option("p", r"[ \t=]{0,8}+")
_OPTIONS: Final = {
    "curl": _USER,
    **dict.fromkeys(("mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlcheck"), _JOINED),
    **dict.fromkeys(("mariadb", "mariadb-dump", "mariadb-admin"), _JOINED),
    **dict.fromkeys(("login", "sshpass", "mongo", "mongosh"), _APART),
    "redis-cli": _option("a", r"[ \t]{1,8}+"),
    "sqlcmd": _option("P", r"[ \t]{0,8}+"),
}
_NAMES: Final = "|".join(sorted(_OPTIONS, key=len, reverse=True))
_COMMAND: Final = re.compile(rf"(?<![A-Za-z0-9_.-])({_NAMES})(?:\.exe)?(?=[ \t\\])")
_LINE: Final = re.compile(r"(?:[^\r\n\\]|\\.)*+", re.DOTALL)
_LETTERED: Final = re.compile(r"[^\s/$.:-][^\s/]{3,200}")

#: A search, case aside, for what may be such an option, in a text or as a word of a list.
SIGNS: Final = (
    rf'(?:{_NAMES})(?:\.exe)?[ \t\\][^\r\n]*-[a-z]*[pua]|(?:mysql|mariadb)[a-z-]*\\*",|"-[pu]\\*",'
)


def without_options(text: str, mark: str) -> str:
    """The text with ``mark`` in the place of each such secret."""
    if not any(name in text for name in _OPTIONS):
        return text
    commands = list(_COMMAND.finditer(text))
    if not commands:
        return text
    parts: list[str] = []
    done = 0
    ends = [each.start() for each in commands[1:]]
    for command, end in zip(commands, (*ends, len(text)), strict=True):
        line = _LINE.match(text, command.end(), end)
        stop = line.end() if line is not None else command.end()
        for found in _OPTIONS[command[1]].finditer(text, command.end(), stop):
            extent = _extent(found, command[1])
            if extent is not None and text[extent[0] : extent[1]] != mark:
                parts += (text[done : extent[0]], mark)
                done = extent[1]
    return "".join((*parts, text[done:])) if parts else text


def words_without(words: list[Any], mark: str) -> dict[int, str]:
    """Which words of a command as a list are such secrets, and what is left of them."""
    command = _command_of(words)
    if command is None:
        return {}
    found: dict[int, str] = {}
    for index, word in enumerate(words):
        if type(word) is not str:
            continue
        before = words[index - 1] if index else None
        if command in ("", "curl") and before in ("-u", "-U", "--user", "--proxy-user"):
            user, colon, secret = word.partition(":")
            if secret and not secret.startswith("//"):
                found[index] = f"{user}{colon}{mark}"
        elif (command == "" and before == "-p" and _is_telling(word)) or (
            command != "" and before is not None and before == _flag_of(command) and word[:1] != "-"
        ):
            found[index] = mark
        elif _OPTIONS.get(command) is _JOINED and len(word) > 2 and word.startswith("-p"):
            found[index] = "-p" + mark
    return {index: text for index, text in found.items() if text != words[index]}


def _command_of(words: list[Any]) -> str | None:
    """The command; "" if only its options are there; None if it is none of those."""
    first = words[0] if words else None
    if type(first) is not str:
        return None
    if first[:1] == "-":
        return ""
    for word in words[:4]:
        if type(word) is str and len(word) < 200:
            name = word.rpartition("/")[2]
            if name in _OPTIONS and not (name == "login" and word is first):
                return name
    return None


def _flag_of(command: str) -> str | None:
    if command == "redis-cli":
        return "-a"
    if command == "sqlcmd":
        return "-P"
    return "-p" if _OPTIONS[command] is _APART else None


def _extent(found: re.Match[str], command: str) -> tuple[int, int] | None:
    group = found.lastindex or 3
    begin, end = found.span(group)
    value = found[group]
    if command == "curl":
        user, colon, value = value.partition(":")
        begin += len(user) + len(colon)
    if value == "" or value.startswith(("//", "${", "$(")):
        return None
    return begin, end


def _is_telling(word: str) -> bool:
    """Whether it looks like a password rather than a port or a folder."""
    if _LETTERED.fullmatch(word) is None or not any(one.isalpha() for one in word):
        return False
    return not word.isalpha()
