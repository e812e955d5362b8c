"""The tasks extension (SEP-2663) of the everything-server; the SDK has none of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from mcp.shared.exceptions import MCPError

from .everything_content import INVALID_PARAMS, Context, Json, Tool, says, takes, text
from .everything_inputs import accepted, capabilities, elicitation, needs

TASKS = "io.modelcontextprotocol/tasks"
MISSING_CAPABILITY = -32021
HEADER_MISMATCH = -32020
INTERNAL_ERROR = -32603
_FINAL = ("completed", "failed", "cancelled")


class Task:
    """Work that goes on after its call was answered."""

    def __init__(self, work: Callable[[Task], Awaitable[Json]]) -> None:
        self.name = f"task-{uuid4().hex}"
        self.status = "working"
        self.pending: dict[str, Json] = {}
        self.answers: dict[str, Any] = {}
        self._outcome: Json = {}
        self._created = self._changed = _now()
        self._answered = asyncio.Event()
        self._running = asyncio.create_task(self._run(work))

    async def ask(self, requests: dict[str, Json]) -> dict[str, Any]:
        """Wait for the answers to these input requests."""
        self.pending = dict(requests)
        self._answered.clear()
        self._move("input_required")
        await self._answered.wait()
        self._move("working")
        return self.answers

    def update(self, answers: dict[str, Any]) -> None:
        """Take the answers that were waited for; the others are none of its business."""
        for key in [key for key in self.pending if key in answers]:
            del self.pending[key]
            self.answers[key] = answers[key]
        if self.status == "input_required" and not self.pending:
            self._answered.set()

    def cancel(self) -> None:
        """End the work, unless it is over."""
        if self.status not in _FINAL:
            self._move("cancelled")
            self._running.cancel()

    def told(self) -> Json:
        """What is said of the task wherever it is shown."""
        return {
            "taskId": self.name,
            "status": self.status,
            "createdAt": self._created,
            "lastUpdatedAt": self._changed,
            "ttlMs": 600_000,
            "pollIntervalMs": 100,
        }

    def detail(self) -> Json:
        """The answer to `tasks/get`."""
        asked = {"inputRequests": self.pending} if self.status == "input_required" else {}
        return {"resultType": "complete", **self.told(), **asked, **self._outcome}

    async def _run(self, work: Callable[[Task], Awaitable[Json]]) -> None:
        try:
            result = await work(self)
        except MCPError as error:
            self._outcome = {"error": {"code": error.code, "message": error.message}}
            self._move("failed")
        else:
            self._outcome = {"result": {"resultType": "complete", **result}}
            self._move("completed")

    def _move(self, status: str) -> None:
        self.status = status
        self._changed = _now()


_KNOWN: dict[str, Task] = {}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _can_have_tasks(ctx: Context) -> bool:
    extensions = capabilities(ctx).get("extensions")
    return isinstance(extensions, dict) and TASKS in extensions


def _demand(ctx: Context) -> None:
    if not _can_have_tasks(ctx):
        lacking: Json = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
        raise MCPError(MISSING_CAPABILITY, "this needs the tasks extension", lacking)


def _begin(work: Callable[[Task], Awaitable[Json]]) -> Json:
    task = Task(work)
    _KNOWN[task.name] = task
    return {"resultType": "task", **task.told()}


def _task(ctx: Context) -> Task:
    """The task that a request names, in its body and (over HTTP) in its header."""
    _demand(ctx)
    name = str((ctx.params or {}).get("taskId"))
    headers = getattr(ctx.request, "headers", None)
    if headers is not None and headers.get("mcp-name", name).strip() != name:
        raise MCPError(HEADER_MISMATCH, "Mcp-Name does not name the task of the body")
    if name not in _KNOWN:
        raise MCPError(INVALID_PARAMS, f"unknown task: {name}")
    return _KNOWN[name]


async def get_task(ctx: Context, params: Any) -> Json:
    """Answer `tasks/get`."""
    return _task(ctx).detail()


async def update_task(ctx: Context, params: Any) -> Json:
    """Answer `tasks/update`."""
    answers = (ctx.params or {}).get("inputResponses")
    _task(ctx).update(answers if isinstance(answers, dict) else {})
    await asyncio.sleep(0)
    return {"resultType": "complete"}


async def cancel_task(ctx: Context, params: Any) -> Json:
    """Answer `tasks/cancel`."""
    _task(ctx).cancel()
    return {"resultType": "complete"}


async def _slow_compute(ctx: Context, arguments: Json) -> Json:
    seconds = float(arguments.get("seconds", 1))

    async def work(task: Task | None = None) -> Json:
        await asyncio.sleep(seconds)
        return says(f"computed for {seconds} s")

    return _begin(work) if _can_have_tasks(ctx) else await work()


async def _failing_job(ctx: Context, arguments: Json) -> Json:
    async def work(task: Task) -> Json:
        await asyncio.sleep(0.3)
        return {"content": [text("the job failed")], "isError": True}

    _demand(ctx)
    return _begin(work)


async def _protocol_error_job(ctx: Context, arguments: Json) -> Json:
    async def work(task: Task) -> Json:
        await asyncio.sleep(0.1)
        raise MCPError(INTERNAL_ERROR, "the job broke")

    _demand(ctx)
    return _begin(work)


async def _confirm_delete(ctx: Context, arguments: Json) -> Json:
    async def work(task: Task) -> Json:
        asked = elicitation(f"Delete {arguments.get('filename')}?", "confirm", kind="boolean")
        await task.ask({"confirm": asked})
        return says(f"deleted {arguments.get('filename')}")

    _demand(ctx)
    return _begin(work)


async def _multi_input(ctx: Context, arguments: Json) -> Json:
    async def work(task: Task) -> Json:
        both = {name: elicitation(f"The {name} name?", "name") for name in ("first", "second")}
        await task.ask(both)
        return says("both are there")

    _demand(ctx)
    return _begin(work)


async def _tool_with_task(ctx: Context, arguments: Json) -> Json:
    _demand(ctx)
    name = accepted(ctx, "user_name", "name")
    if not isinstance(name, str):
        return needs({"user_name": elicitation("What is your name?", "name")})

    async def work(task: Task) -> Json:
        return says(f"the work for {name} is done")

    return _begin(work)


_WORDS: Json = {"type": "string"}
_NUMBER: Json = {"type": "number"}
TOOLS = (
    Tool("slow_compute", "Takes its time", _slow_compute, takes(seconds=_NUMBER, label=_WORDS)),
    Tool("failing_job", "A task that ends with a tool error", _failing_job, takes()),
    Tool("protocol_error_job", "A task that breaks", _protocol_error_job, takes()),
    Tool("confirm_delete", "A task that asks once", _confirm_delete, takes(filename=_WORDS)),
    Tool("multi_input", "A task that asks for two things", _multi_input, takes()),
    Tool("test_tool_with_task", "Asks first, then makes a task", _tool_with_task, takes()),
)
