"""Mistakes in the settings: where each stands, what is wrong, what to do. One line each.

Values are not repeated where they may be secret: under ``env`` and ``headers``, in commands, in
URLs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from mcp_envelope.core.errors import ConfigError

#: The place of a value: names of keys, and indexes of arrays.
KeyPath: TypeAlias = tuple[str | int, ...]

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake. ``where`` is ``FILE: key.path``, the name of a variable, or a flag."""

    where: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" + (f"; {self.hint}" if self.hint else "")


class SettingsError(ConfigError):
    """Settings that cannot be used, with all their mistakes; as a text, one a line."""

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        if len(self.mistakes) == 1:
            only = self.mistakes[0]
            super().__init__(f"{only.where}: {only.message}", hint=only.hint)
        else:
            super().__init__("\n".join(map(str, self.mistakes)))


def dotted(path: KeyPath) -> str:
    """A path as TOML writes it: ``upstreams.time.tools."get time".timeout``, ``command[1]``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            bare = _BARE.fullmatch(step) is not None
            shown = step if bare else json.dumps(_cut(step), ensure_ascii=False)
            text += f".{shown}" if text else shown
    return text


def _cut(text: str) -> str:
    return text if len(text) <= 64 else text[:63] + "…"
