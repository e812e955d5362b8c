"""Servers that die in the middle of calls: each call has an end, and the next ones work."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import Counter
from pathlib import Path

import pytest
from tests.faults.clients import Http, Message, Pipe, Speech
from tests.faults.scene import STDIO, Scene, run, scene, until

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
LOST = ("OUTCOME_UNKNOWN", "UPSTREAM_UNAVAILABLE")


def outcome_of(message: Message) -> str:
    """The canonical code of an answer."""
    return str(message["error"]["data"]["code"]) if "error" in message else "ok"


async def work_on(here: Scene, speech: Speech, name: str, ends: dict[str, str], count: int) -> None:
    """One client's calls, one after another; how each of them ended."""
    http = Http(here.port)
    await speech.open(http)
    for id in range(1, count + 1):
        nonce = f"{name}.{id}"
        response = await speech.post(http, speech.call(id, "slow", nonce=nonce, ms=20))
        assert response.status == 200, (response, nonce)
        assert response.messages[-1]["id"] == id
        assert nonce not in ends
        ends[nonce] = outcome_of(response.messages[-1])
        if ends[nonce] != "ok":
            await asyncio.sleep(0.05)
    http.close()


def compare(here: Scene, ends: dict[str, str]) -> Counter[str]:
    """What clients, ledger and servers say of the same calls has to agree."""
    said = Counter(ends.values())
    assert here.account() == said
    got = Counter(here.notes("got"))
    for nonce, end in ends.items():
        assert got[nonce] <= 1, f"{nonce} was done {got[nonce]} times"
        if end == "UPSTREAM_UNAVAILABLE":
            assert not got[nonce], f"{nonce} reached the server, and is said not to have"
        if end == "ok":
            assert got[nonce] == 1
    assert set(said) <= {"ok", *LOST}
    return said


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_child_is_killed(revision: str, tmp_path: Path) -> None:
    """A child that is killed under load costs the calls that were with it, and no others."""

    async def work() -> None:
        async with scene(tmp_path) as here:
            await here.start("--", *STDIO)
            ends: dict[str, str] = {}
            clients = [
                asyncio.create_task(work_on(here, Speech(revision, logs=False), f"c{i}", ends, 30))
                for i in range(6)
            ]
            for _ in range(3):
                await until(lambda: len(ends) >= 20, 20)
                for pid in here.alive()[:2]:
                    os.kill(pid, signal.SIGKILL)
                await asyncio.sleep(0.3)
            await asyncio.gather(*clients)
            http, speech = Http(here.port), Speech(revision, logs=False)
            await speech.open(http)
            last = await speech.post(http, speech.call(1, "echo", nonce="last"))
            ends["last"] = outcome_of(last.messages[-1])
            assert ends["last"] == "ok"
            assert await here.stop() == 0
            said = compare(here, ends)
            assert said["ok"] > 100
            print(said)
            await here.none_alive()

    run(work())


def test_session_survives(tmp_path: Path) -> None:
    """A session goes on with another child, to which the handshake is repeated."""

    async def work() -> None:
        async with scene(tmp_path) as here:
            await here.start("--", *STDIO)
            http, speech = Http(here.port), Speech(LEGACY)
            await speech.open(http)
            ends = []
            for id in range(1, 7):
                tool = "die" if id % 2 else "echo"
                response = await speech.post(http, speech.call(id, tool, nonce=str(id), k=2))
                ends.append(outcome_of(response.messages[-1]))
                assert len(response.messages) == (1 if id % 2 else 5)
                await asyncio.sleep(0.3 * (id % 2))
            assert ends == ["OUTCOME_UNKNOWN", "ok"] * 3
            assert len(here.notes("pid")) == 4
            assert await here.stop() == 0
            assert here.account() == {"ok": 3, "OUTCOME_UNKNOWN": 3}

    run(work())


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_connections_are_reset(revision: str, tmp_path: Path) -> None:
    """An HTTP upstream that resets its connections costs what was on them, and is not redone."""

    async def work() -> None:
        async with scene(tmp_path) as here:
            await here.start("--upstream", await here.serve_http())
            ends: dict[str, str] = {}
            clients = [
                asyncio.create_task(work_on(here, Speech(revision, logs=False), f"c{i}", ends, 30))
                for i in range(6)
            ]
            http, speech = Http(here.port), Speech(revision, logs=False)
            for i in range(3):
                await until(lambda: len(ends) >= 20, 20)
                nonce = f"die.{i}"
                response = await speech.post(http, speech.call(1, "die", nonce=nonce))
                ends[nonce] = outcome_of(response.messages[-1])
                await asyncio.sleep(0.1)
            await asyncio.gather(*clients)
            last = await speech.post(http, speech.call(1, "echo", nonce="last"))
            ends["last"] = outcome_of(last.messages[-1])
            assert ends["last"] == "ok"
            assert await here.stop() == 0
            said = compare(here, ends)
            assert said["ok"] > 100
            assert said["OUTCOME_UNKNOWN"] >= 3
            print(said)

    run(work())


def test_upstream_is_restarted(tmp_path: Path) -> None:
    """While an HTTP upstream is away calls say so, and nothing reached it; then all is well."""

    async def work() -> None:
        async with scene(tmp_path) as here:
            url = await here.serve_http()
            await here.start("--upstream", url)
            http, speech, ends = Http(here.port), Speech(MODERN), {}

            async def call(nonce: str) -> None:
                response = await speech.post(http, speech.call(1, "echo", nonce=nonce, k=1))
                ends[nonce] = outcome_of(response.messages[-1])

            await call("a")
            assert here.upstream is not None
            here.upstream.kill()
            await here.upstream.wait()
            await call("b")
            await here.serve_http(port=int(url.split(":")[2].split("/")[0]))
            await call("c")
            assert ends == {"a": "ok", "b": "UPSTREAM_UNAVAILABLE", "c": "ok"}
            assert await here.stop() == 0
            compare(here, ends)

    run(work())


def test_child_dies_over_stdio(tmp_path: Path) -> None:
    """Calls side by side on one pipe all end when their child dies, and the next one works."""

    async def work() -> None:
        async with scene(tmp_path) as here:
            await here.start("--", *STDIO, http=False)
            pipe, speech = Pipe(here.gateway), Speech(LEGACY)
            await pipe.open(speech)
            for id in range(1, 21):
                pipe.send(speech.call(id, "hang", nonce=str(id)))
            await here.noted("got", 20)
            os.kill(here.alive()[0], signal.SIGKILL)
            ends: dict[str, str] = {}
            for _ in range(20):
                message = await pipe.read()
                assert message is not None
                ends[str(message["id"])] = outcome_of(message)
            assert len(ends) == 20
            pipe.send(speech.call(21, "echo", nonce="21"))
            message = await pipe.read()
            assert message is not None
            assert message["id"] == 21
            ends["21"] = outcome_of(message)
            pipe.writer.close()
            assert await pipe.read() is None
            assert await here.ended() == 0
            assert compare(here, ends) == {"OUTCOME_UNKNOWN": 20, "ok": 1}

    run(work())


def test_child_that_will_not_start(tmp_path: Path) -> None:
    """A child that dies at once is not started over and over; each call is told so."""

    async def work() -> None:
        async with scene(tmp_path) as here:
            await here.start("--", "/bin/sh", "-c", 'echo "pid $$" >> "$NOTES"; exit 3')
            http, speech, ends = Http(here.port), Speech(MODERN, logs=False), []
            for id in range(1, 9):
                call = speech.call(id, "echo", nonce=str(id))
                await http.send("POST", speech.head(call), json.dumps(call).encode())
                response = await http.begun()
                ends += [outcome_of(m) async for m in http.messages(response)]
                assert response.status == 200
            assert set(ends) <= set(LOST)
            assert len(ends) == 8
            print(ends, len(here.notes("pid")))
            assert len(here.notes("pid")) <= 16
            assert await here.stop() == 0

    run(work())
