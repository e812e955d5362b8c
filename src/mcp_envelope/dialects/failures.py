"""JSON-RPC errors, and MCP results marked ``isError``, as failures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from mcp_envelope.core import codes
from mcp_envelope.core.document import Document, build
from mcp_envelope.core.message import Fault, Message

from .calls import are_blocks, text_content
from .reader import Reader
from .writer import Writer

TOOL_FAILED: Final = "EXECUTION_FAILED"
PARSE_ERROR: Final = -32700
_NUMBER_KEYS: Final = ("mcp.error#/code", "jsonrpc/2.0#/error/code")
#: The number of what has no canonical code.
UNNUMBERED: Final = codes.TABLE[TOOL_FAILED].jsonrpc


@dataclass(frozen=True, slots=True)
class Numbers:
    """How a dialect numbers its errors.

    ``of`` gives the number that a code gets, None where it does not become an error object;
    ``meaning`` the code that a number stands for by itself.
    """

    of: Callable[[str | None], int | None]
    meaning: Callable[[object], str | None]


def read_error(reader: Reader, base: str, numbers: Numbers) -> tuple[Fault, ...]:
    """The fault of a JSON-RPC error object.

    A number that the code alone would not bring back stays among the extras.
    """
    error, data = base + "/error", base + "/error/data"
    found = reader.peek(error + "/code")
    number = found.value if found is not None else None
    made_up = reader.is_filled(error + "/code")
    code = None if made_up else numbers.meaning(number)
    own: list[str] = []
    said, retryable = reader.peek(data + "/code"), reader.peek(data + "/retryable")
    reader.mark("faults", error)
    reader.mark("faults.0.code", error + "/code")
    if said is not None and not made_up and _is_code(said.value, number, code, numbers):
        code = said.value
        own.append("code")
        reader.mark("faults.0.code", data + "/code")
    if retryable is not None and isinstance(retryable.value, bool):
        own.append("retryable")
        reader.mark("faults.0.retryable", data + "/retryable")
    details = reader.meta(data, "faults.0.details", *own)
    if made_up or numbers.of(code) == number:
        reader.take(error + "/code")
    message = reader.text(error + "/message", "faults.0.message") or ""
    again = retryable.value if "retryable" in own and retryable is not None else None
    return (Fault(code=code, message=message, details=details, retryable=again),)


def _is_code(said: object, number: object, meaning: str | None, numbers: Numbers) -> bool:
    """Whether ``data.code`` is the error's code; else it is one of its details.

    A number that several codes share is told apart by it, whichever door's number it is.
    """
    if not isinstance(said, str) or not said or said == meaning:
        return False
    return meaning is None or numbers.of(said) == number or codes.is_number_of(number, said)


def write_error(writer: Writer, base: str, numbers: Numbers) -> None:
    """Write the first fault as an error object; say so where that is not all."""
    error = base + "/error"
    first: Fault = writer.get("faults")[0]
    own = writer.extra(error + "/code")
    foreign = numbered(writer.message) if own is None and first.code is None else None
    number = own.value if own is not None else numbers.of(first.code)
    if foreign is not None:  # the other side's number; it comes back from what is carried
        number = foreign.value
        writer.filled(error + "/code")
    if own is None:
        number = UNNUMBERED if number is None else number
        writer.put(error + "/code", number)
    writer.put(error + "/message", first.message)
    if first.code is None and foreign is None and own is None:
        writer.filled(error + "/code")
    added: dict[str, object] = {}
    meant = numbers.meaning(number)
    if first.code is not None and meant != first.code:
        added["code"] = first.code
    if first.retryable is not None:
        added["retryable"] = first.retryable
    details, taken = first.details, _own_names(first.details, number, meant, numbers)
    if details is not None and not details.is_object:
        writer.put(error + "/data", details)  # no room beside it for code and retryable
        writer.read_back((replace(first, code=meant, retryable=None),))
        return
    rest = details.without(*taken, *added) if details is not None else None
    if rest is not None or added:
        writer.put(error + "/data", build({**(rest.members() if rest else {}), **added}))
    kept = None if added and rest is not None and not len(rest) else rest
    writer.read_back((replace(first, code=first.code or meant, details=kept),))


def _own_names(
    details: Document | None, number: object, meaning: str | None, numbers: Numbers
) -> list[str]:
    """The members of details that would be read as the error's own code and retryable."""
    members = details.value if details is not None and details.is_object else {}
    taken = ["code"] if _is_code(members.get("code"), number, meaning, numbers) else []
    return [*taken, "retryable"] if isinstance(members.get("retryable"), bool) else taken


def numbered(message: Message) -> Document | None:
    """The number of an error that was read as one, where its code does not imply it."""
    return next((message.extras[key] for key in _NUMBER_KEYS if key in message.extras), None)


def error_place(document: Any, base: str = "") -> str | None:
    """Where an error object has room for what else there is to say, if it has."""
    data = document.get("data", {}) if isinstance(document, dict) else {}
    return base + "/error/data" if isinstance(data, dict) else None


def read_tool_failure(reader: Reader, base: str) -> dict[str, Any]:
    """The fields of a result that is marked ``isError``: its text, and what else it holds."""
    result = base + "/result"
    reader.take(result + "/isError")
    content = reader.peek(result + "/content")
    message = _text_of(content.value if content is not None else None)
    payload = reader.take(result + "/structuredContent", "payload")
    structured = payload is not None
    if payload is not None and _says(payload, message):
        reader.keep({result + "/structuredContent": payload})  # or it would become content
    if payload is None and reader.verbatim:  # the text says no more than the message
        reader.take(result + "/content")
    elif payload is None and type(content.value if content else None) is list:
        payload = reader.take(result + "/content", "payload")
    if content is None:
        reader.absent(result + "/content")
    elif content == text_content(message) and not (structured and _says(payload, message)):
        reader.take(result + "/content")
    reader.mark("faults", result + "/content")
    return {"faults": (Fault(code=TOOL_FAILED, message=message),), "payload": payload}


def write_tool_failure(writer: Writer, base: str) -> None:
    """Write a failure as a result that is marked ``isError``."""
    result = base + "/result"
    faults: tuple[Fault, ...] = writer.get("faults")
    first = faults[0]
    payload: Document | None = writer.get("payload")
    writer.put(result + "/isError", True, "payload")
    if _says(payload, first.message) and not writer.has_extra(result + "/content"):
        writer.put(result + "/content", payload)
    else:
        if not writer.has_extra(result + "/structuredContent"):
            writer.put(result + "/structuredContent", payload)
        if not writer.has_extra(result + "/content"):
            if payload is None:
                writer.verbatim()
            writer.put(result + "/content", text_content(first.message))
    writer.read_back((Fault(code=TOOL_FAILED, message=first.message),))


def _says(payload: Document | None, message: str) -> bool:
    """Whether a payload is content whose text is the message."""
    blocks = payload.value if payload is not None else None
    return type(blocks) is list and are_blocks(blocks) and _text_of(blocks) == message


def _text_of(content: object) -> str:
    blocks = content if isinstance(content, list) else []
    texts = [b.get("text") for b in blocks if isinstance(b, dict) and b.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str))
