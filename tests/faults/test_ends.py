"""The ends of a stdio client: its input closed, its output closed, or neither read nor closed."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path

import pytest
from tests.faults.clients import Pipe, Speech
from tests.faults.scene import STDIO, Scene, run, scene

LEGACY = "2025-11-25"


async def start(here: Scene, behind: str) -> tuple[Pipe, Speech]:
    """A gateway over stdio in front of one of the servers, and its client."""
    if behind == "http":
        await here.start("--upstream", await here.serve_http(), http=False)
    else:
        await here.start("--", *STDIO, *behind.split()[1:], http=False)
    pipe, speech = Pipe(here.gateway), Speech(LEGACY)
    await pipe.open(speech)
    return pipe, speech


@pytest.mark.parametrize("behind", ["stdio", "http"])
def test_input_ends(behind: str, tmp_path: Path) -> None:
    """What was read before the end of input is answered; then everything ends."""

    async def work() -> None:
        async with scene(tmp_path) as here:
            pipe, speech = await start(here, behind)
            for id in range(1, 51):
                pipe.send(speech.call(id, "slow", nonce=str(id), ms=400))
            pipe.writer.close()
            answers = []
            while (message := await pipe.read()) is not None:
                answers.append(message)
            assert sorted(message["id"] for message in answers) == list(range(1, 51))
            assert all("result" in message for message in answers)
            assert await here.ended() == 0
            assert here.account() == {"ok": 50}
            await here.none_alive()

    run(work())


@pytest.mark.parametrize("behind", ["stdio", "stdio grandchild deaf", "http"])
def test_signal_after_input(behind: str, tmp_path: Path) -> None:
    """A signal ends the waiting for answers that follows the end of input."""

    async def work() -> None:
        async with scene(tmp_path) as here:
            pipe, speech = await start(here, behind)
            pipe.send(speech.call(1, "slow", nonce="1", ms=60_000))
            await here.noted("got")
            pipe.writer.close()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await pipe.read()
            assert await here.stop() == 0
            message = await pipe.read()
            assert message is not None
            assert message["error"]["data"]["code"] == "OUTCOME_UNKNOWN"
            assert here.account() == {"OUTCOME_UNKNOWN": 1}
            await here.none_alive()

    run(work())


def test_as_clients_end(tmp_path: Path) -> None:
    """End of input and two seconds later SIGTERM, as the SDK has it, leave nothing behind."""

    async def work() -> None:
        async with scene(tmp_path) as here:
            pipe, speech = await start(here, "stdio grandchild deaf")
            pipe.send(speech.call(1, "slow", nonce="1"))
            assert await pipe.read() is not None
            pipe.writer.close()
            began = time.monotonic()
            await asyncio.sleep(2)
            if here.gateway.returncode is None:
                assert await here.stop() == 0
            print(f"{time.monotonic() - began:.2f} s")
            here.account()
            await here.none_alive()

    run(work())


@pytest.mark.parametrize("behind", ["stdio", "http"])
def test_output_is_closed(behind: str, tmp_path: Path) -> None:
    """A client that closes our output ends us; calls that are under way end in the ledger."""

    async def work() -> None:
        async with scene(tmp_path) as here:
            pipe, speech = await start(here, behind)
            for id in range(1, 21):
                pipe.send(speech.call(id, "slow", nonce=str(id), ms=100 * (id % 2) + 100))
            await here.noted("got", 20)
            here.gateway._transport.get_pipe_transport(1).close()  # type: ignore[attr-defined]
            assert await here.ended() == 0
            outcomes = here.account()
            print(outcomes)
            assert sum(outcomes.values()) == 20
            assert set(outcomes) <= {"ok", "OUTCOME_UNKNOWN"}
            await here.none_alive()

    run(work())


@pytest.mark.parametrize("ending", ["signal", "end"])
def test_output_is_not_read(ending: str, tmp_path: Path) -> None:
    """A client that reads nothing keeps us neither from ending nor within bounds."""

    async def work() -> None:
        async with scene(tmp_path) as here:
            unread, output = os.pipe()
            await here.start("--", *STDIO, http=False, stdout=output)
            os.close(output)
            assert here.gateway.stdin is not None
            speech = Speech(LEGACY)
            messages = [speech.initialize()]
            messages += [speech.call(i, "flood", nonce="n" * 500, k=3_000) for i in range(1, 6)]
            for message in messages:
                here.gateway.stdin.write(json.dumps(message).encode() + b"\n")
            await here.noted("got", 5)
            await asyncio.sleep(0.5)
            assert here.memory < 120
            if ending == "signal":
                assert await here.stop() == 0
                os.close(unread)
            else:
                here.gateway.stdin.close()
                os.close(unread)
                assert await here.ended() == 0
            assert here.account().total() == 5
            await here.none_alive()

    run(work())
