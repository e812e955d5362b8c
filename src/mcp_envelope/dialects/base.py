"""What the dialects of this package share: published schemas, and checking against them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final

from mcp_envelope.core.document import Document, parse
from mcp_envelope.core.errors import ConversionError, EnvelopeError, Problem
from mcp_envelope.core.message import Message, Success
from mcp_envelope.core.ports import Encoded, Filling
from mcp_envelope.core.schema import SchemaCheck, compile_schema

from .carriage import MARK
from .contradictions import as_foreign, bears_out, disagreements, own_extras
from .reader import ContradictionError, Layout, Reader
from .writer import Writer

_SCHEMAS: Final = Path(__file__).with_name("schemas")


class SchemaDialect:
    """A dialect whose parts are described by JSON Schemas in ``schemas/<folder>``.

    A subclass says what the parts are, recognises them, and moves their members to and from
    messages (:meth:`read`, :meth:`write`). What a schema cannot say goes into :meth:`faults`.
    """

    id: ClassVar[str]
    parts: ClassVar[Mapping[str, str]]
    #: Parts that are no message: they can be validated, not decoded.
    records: ClassVar[frozenset[str]] = frozenset()
    #: The schemas of what is written, where that is more than what is accepted.
    written: ClassVar[Mapping[str, str]] = {}
    #: Folders of other dialects whose schemas this one's refer to.
    borrows: ClassVar[tuple[str, ...]] = ()

    def detect(self, value: object) -> str | None:
        raise NotImplementedError

    def part_of(self, value: object) -> str:
        """The part to read a value as, once it is known to be this dialect's."""
        return self.detect(value) or next(iter(self.parts))

    def layout(self, value: Any, part: str) -> Layout:
        """Where the extras of a document belong, and where something may have been carried."""
        raise NotImplementedError

    def read(self, reader: Reader, part: str) -> Message:
        """Make the message of a document that satisfies the part's schema."""
        raise NotImplementedError

    def write(self, message: Message, filling: Filling) -> Writer:
        """Put every field where it belongs."""
        raise NotImplementedError

    def faults(self, value: Any, part: str) -> list[Problem]:
        """What is wrong, or strange, beyond the schema; the value satisfies the schema."""
        return []

    def refusals(self, value: Any, part: str) -> list[Problem]:
        """The faults for which decoding refuses a document although its schema is satisfied."""
        return []

    # -- the port ------------------------------------------------------------------------

    def problems(self, document: Document, part: str) -> list[Problem]:
        version = self.version_problem(document.value, part)
        if version is not None:
            return [version]
        found = self.schema_problems(document.value, part)
        return found or [*self.refusals(document.value, part), *self.faults(document.value, part)]

    def decode(self, document: Document, part: str) -> Message:
        value = document.value
        if part in self.records:
            hint = f"validate it as part {part!r}"
            raise EnvelopeError(f"a {self.id} {part} is no message by itself", hint=hint)
        version = self.version_problem(value, part)
        if version is not None:
            raise EnvelopeError(
                version.message,
                code="UNSUPPORTED_VERSION",
                pointer=version.pointer,
                hint=version.hint,
                problems=[version],
            )
        if not self.check(part).accepts(value):
            self.refuse(part, self.schema_problems(value, part))
        if refusals := self.refusals(value, part):
            self.refuse(part, refusals)
        if MARK.encode() not in document.raw:
            return self._read(document, part)
        return self._read_carried(document, part)

    def encode(self, message: Message, filling: Filling) -> Encoded:
        encoded = self.write(message, filling).finish()
        if message.origin is not None and message.origin.dialect != self.id:
            encoded = self._without_contradiction(message, filling, encoded)
        problem = self._objection(encoded.document)
        if problem is not None:
            raise ConversionError(
                f"{self.id} cannot hold this message: {problem.message}",
                lost=encoded.lost,
                filled=encoded.filled,
                pointer=problem.pointer,
                problems=[problem],
                hint=problem.hint,
            )
        return encoded

    def schemas(self) -> Mapping[str, Document]:
        return self._documents

    # -- for subclasses ------------------------------------------------------------------

    def version_problem(self, value: Any, part: str) -> Problem | None:
        """What to say of an envelope of a version that is not served, before anything else."""
        return None

    def schema_problems(self, value: Any, part: str) -> list[Problem]:
        """What the part's schema says against a value."""
        return self.check(part).problems(value)

    def check(self, part: str, file: str | None = None) -> SchemaCheck:
        """The compiled schema of a part, or another of the dialect's files."""
        file = file or self.parts[part]
        found = self._checks.get(file)
        if found is None:
            found = self._checks[file] = compile_schema(
                self._documents[file].value,
                name=f"{self._folder}/{file}",
                resources=self._resources,
            )
        return found

    def refuse(self, part: str, problems: list[Problem]) -> None:
        """Raise for a document that is not a valid part."""
        first = next((p for p in problems if p.severity == "error"), problems[0])
        raise EnvelopeError(
            f"not a valid {self.id} {part}: {first.message}",
            problems=problems,
            pointer=first.pointer,
            hint=first.hint,
        )

    def no_meaning(self, message: Message) -> ConversionError:
        """The error for a kind of message that the dialect has no words for."""
        what = type(message).__name__.lower()
        if isinstance(message, Success) and message.method is None and not message.waiting:
            return ConversionError(
                f"{self.id} speaks of tools, and nothing says that a tool gave this result",
                hint="method=tools/call (--method tools/call) says so",
            )
        return ConversionError(
            f"{self.id} has no way to say a {what}"
            + (f" {message.method}" if message.method else ""),
            hint="choose a target that has one",
        )

    # -- inside ----------------------------------------------------------------------------

    def _reader(self, document: Document, part: str, *, trusting: bool = True) -> Reader:
        return Reader(document, part, self.layout(document.value, part), trusting=trusting)

    def _read(self, document: Document, part: str) -> Message:
        return self.read(self._reader(document, part, trusting=False), part)

    def _read_carried(self, document: Document, part: str) -> Message:
        """The message with what was carried along, if that does not contradict the envelope."""
        reader = self._reader(document, part)
        try:
            message = self.read(reader, part)
            # Some write their own messages otherwise than those from elsewhere.
            for source in (as_foreign(message), message):
                if bears_out(reader, self.write(source, Filling())):
                    return message
        except (ContradictionError, ConversionError):
            pass
        return self._read(document, part)

    def _without_contradiction(
        self, message: Message, filling: Filling, encoded: Encoded
    ) -> Encoded:
        """The envelope without extras of ours that would change what the message says."""
        doubtful = own_extras(message, self._namespaces(encoded.document))
        if not doubtful:
            return encoded
        differing = self._differing(message, encoded.document)
        if not differing:
            return encoded
        rest = {key: value for key, value in message.extras.items() if key not in doubtful}
        plain = self.write(replace(message, extras=rest), filling).finish()
        without = self._differing(message, plain.document)
        if all(name in without and without[name] == said for name, said in differing.items()):
            return encoded  # it is the dialect that cannot say these fields better
        lost = {message.place_of(key) for key in doubtful if message.extras[key] is not None}
        return replace(plain, lost=tuple(sorted({*plain.lost, *lost})))

    def _namespaces(self, document: Document) -> set[str]:
        value = document.value
        return set(self.layout(value, self.part_of(value)).namespaces.values())

    def _differing(self, message: Message, document: Document) -> dict[str, object]:
        """What an envelope says otherwise than the message does."""
        objection = self._objection(document)
        if objection is not None:
            return {"objection": objection}
        # As anybody will read it, who believes what is carried only if the rest bears it out.
        return disagreements(message, self._read_carried(document, self.part_of(document.value)))

    def _objection(self, document: Document) -> Problem | None:
        """Why this envelope must not be written, if there is a reason."""
        value = document.value
        part = self.part_of(value)
        check = self.check(part, self.written.get(part))
        if not check.accepts(value):
            return check.problems(value)[0]
        return next(iter(self.refusals(value, part)), None)

    @cached_property
    def _checks(self) -> dict[str, SchemaCheck]:
        return {}

    @property
    def _folder(self) -> str:
        return self.id.replace("/", "-")

    @cached_property
    def _documents(self) -> dict[str, Document]:
        return _read_folder(self._folder)

    @cached_property
    def _resources(self) -> dict[str, object]:
        folders = [self._documents, *(_read_folder(name) for name in self.borrows)]
        return {d.value["$id"]: d.value for folder in folders for d in folder.values()}


def _read_folder(name: str) -> dict[str, Document]:
    paths = sorted((_SCHEMAS / name).glob("*.json"))
    return {path.name: parse(path.read_bytes()) for path in paths}
