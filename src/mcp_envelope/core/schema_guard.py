"""What is looked at before the engine may look: depth, size, and keys for costly patterns.

Most schemas need none of it. The engine descends as far as the schema does, so only a recursive
schema can be driven into the stack's end, and only a laborious one into long work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import orjson

from .document import dump
from .errors import EnvelopeError, Problem
from .plain import MAX_DEPTH, bounded_text
from .schema_bounds import LIGHT, Effort, SchemaLimits
from .schema_engine import Engine

_CHARACTERS_A_PLACE: Final = 64
_SHORTEST_PLACE: Final = 2


class Guard:
    """The verdict of a schema on values from anywhere."""

    __slots__ = ("_code", "_effort", "_engine", "_limits", "_looks", "_verdict", "accepts")

    accepts: Callable[[object], bool]

    def __init__(self, engine: Engine, effort: Effort, limits: SchemaLimits, code: str) -> None:
        self._engine = engine
        self._effort = effort
        self._limits = limits
        self._code = code
        self._verdict = engine.whole()
        self._looks = effort.recursive or effort.most > LIGHT or bool(engine.costly_keys)
        plain = not (self._looks or engine.needs_meter)
        self.accepts = self._plain_accepts() if plain else self._accepts_after_a_look

    def _plain_accepts(self) -> Callable[[object], bool]:
        # A closure is the cheapest there is to call, and this is the hot path.
        verdict, translate = self._verdict, self._translate

        def accepts(value: object) -> bool:
            try:
                return verdict(value)
            except ValueError as error:
                raise translate(value, error) from None

        return accepts

    def _accepts_after_a_look(self, value: object) -> bool:
        if self._looks and self.objection(value) is not None:
            return False
        try:
            if self._engine.needs_meter:
                return self._engine.run(self._verdict, value)
            return self._verdict(value)
        except ValueError as error:
            raise self._translate(value, error) from None

    def objection(self, value: Any) -> tuple[str, str] | None:
        """Why a value will not be checked at all, and what to do; None if it will be.

        Raises EnvelopeError for what is not JSON, or nested too deep.
        """
        if not self._looks:
            return None
        size = self._size(value)
        most = self._effort.most
        if most > LIGHT and most * size // _SHORTEST_PLACE > self._limits.matching:
            if most * _places(value) > self._limits.matching:
                return (
                    "checking this against the schema would take too long",
                    "send less at once; or mend the schema: fewer alternatives for one value",
                )
        return self._objection_to_keys(value) if self._engine.costly_keys else None

    def _objection_to_keys(self, value: Any) -> tuple[str, str] | None:
        with self._engine.metered() as meter:
            keys = {key for part in _parts(value) if isinstance(part, dict) for key in part}
            for pattern in self._engine.costly_keys:
                for key in keys:
                    pattern.matches(key)
                if meter.gave_up():
                    return (
                        "checking the members' names against a pattern would take too long",
                        "send shorter names; or write the schema's pattern without look-around",
                    )
        return None

    def _size(self, value: Any) -> int:
        try:
            text = orjson.dumps(value)
            if text.count(b"[") + text.count(b"{") > MAX_DEPTH:
                bounded_text(value)
            return len(text)
        except TypeError:
            with self._under_own_code():
                return len(dump(value))

    def check_is_json(self, value: object) -> None:
        """Raise EnvelopeError for what is not JSON, wherever in the value it stands."""
        with self._under_own_code():
            dump(value)

    @contextmanager
    def translating(self, value: object) -> Iterator[None]:
        """Turn what the engine raises for values that are not JSON into EnvelopeError."""
        try:
            yield
        except ValueError as error:
            raise self._translate(value, error) from None

    def _translate(self, value: object, error: ValueError) -> EnvelopeError:
        try:
            dump(value)
        except EnvelopeError as better:
            better.code = self._code
            return better
        message = f"this value cannot be checked: {str(error)[:100]}"
        return EnvelopeError(
            message, code=self._code, problems=[Problem("", "document/not-json", message)]
        )

    @contextmanager
    def _under_own_code(self) -> Iterator[None]:
        try:
            yield
        except EnvelopeError as error:
            error.code = self._code
            raise


def _parts(value: Any) -> Iterator[Any]:
    pending = [value]
    while pending:
        part = pending.pop()
        yield part
        if isinstance(part, dict):
            pending += part.values()
        elif isinstance(part, (list, tuple)):
            pending += part


def _places(value: Any) -> int:
    return sum(
        1 + (len(part) // _CHARACTERS_A_PLACE if isinstance(part, str) else 0)
        for part in _parts(value)
    )
