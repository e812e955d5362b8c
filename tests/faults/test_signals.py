"""Being told to stop under load: each call has its end, and nothing is left running."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest
from tests.faults.clients import Http, Pipe, Speech
from tests.faults.scene import STDIO, Scene, run, scene, until

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
GONE = (asyncio.IncompleteReadError, ConnectionError)
BEHIND = ("stdio", "stdio grandchild deaf", "http")


async def start(here: Scene, behind: str, *, http: bool = True) -> None:
    """A gateway in front of one of the servers."""
    if behind == "http":
        await here.start("--upstream", await here.serve_http(), http=http)
    else:
        await here.start("--", *STDIO, *behind.split()[1:], http=http)


def digest_of(nonce: str, ms: int) -> str:
    """What the ledger says of the arguments of a call of `slow`."""
    text = json.dumps({"ms": ms, "nonce": nonce}, separators=(",", ":"), sort_keys=True)
    return f"sha256:{sha256(text.encode()).hexdigest()}"


def all_were_admitted(here: Scene, ms: int) -> None:
    """See that whatever reached the upstream had been admitted."""
    known = Counter(e["input"].get("digest") for e in here.entries() if e["event"] == "admitted")
    for nonce in here.notes("got"):
        assert known[digest_of(nonce, ms)] == 1, nonce


async def load(here: Scene, speech: Speech, name: str, ms: int) -> Counter[str]:
    """Calls one after another until the connection ends; how they ended."""
    http, ends = Http(here.port), Counter[str]()
    try:
        await speech.open(http)
        for id in range(1, 10_000):
            response = await speech.post(http, speech.call(id, "slow", nonce=f"{name}.{id}", ms=ms))
            assert response.status == 200
            assert len(response.messages) == 1, response
            last = response.messages[0]
            assert last["id"] == id
            ends[last["error"]["data"]["code"] if "error" in last else "ok"] += 1
    except GONE:
        ends["gone"] += 1
    return ends


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda n: n.name)
@pytest.mark.parametrize("revision", [LEGACY, MODERN])
@pytest.mark.parametrize("behind", BEHIND)
def test_http_door(behind: str, revision: str, number: signal.Signals, tmp_path: Path) -> None:
    """Over HTTP each call under way is answered or its connection ends, and the ledger knows."""

    async def work() -> None:
        async with scene(tmp_path) as here:
            await start(here, behind)
            clients = [
                asyncio.create_task(load(here, Speech(revision, logs=False), f"c{i}", 150))
                for i in range(8)
            ]
            await here.noted("got", 20)
            code = await here.stop(number)
            ends = sum(await asyncio.gather(*clients), Counter[str]())
            print(ends, here.account())
            assert code == 0
            outcomes = here.account()
            assert outcomes["ok"] >= 12
            assert outcomes["ok"] == ends["ok"]
            all_were_admitted(here, 150)
            await here.none_alive()

    run(work())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda n: n.name)
@pytest.mark.parametrize("behind", BEHIND)
def test_stdio_door(behind: str, number: signal.Signals, tmp_path: Path) -> None:
    """Over stdio each call that was read is answered before the output ends."""

    async def work() -> None:
        async with scene(tmp_path) as here:
            await start(here, behind, http=False)
            pipe, speech = Pipe(here.gateway), Speech(LEGACY, logs=False)
            await pipe.open(speech)
            for id in range(1, 101):
                pipe.send(speech.call(id, "slow", nonce=str(id), ms=60_000 if id % 2 else 0))
            await here.noted("got", 100)
            here.gateway.send_signal(number)
            ended = asyncio.create_task(here.ended())
            said = []
            while (message := await pipe.read()) is not None:
                said.append(message)
            assert await ended == 0
            assert sorted(message["id"] for message in said) == list(range(1, 101))
            codes = Counter(m["error"]["data"]["code"] if "error" in m else "ok" for m in said)
            print(codes)
            assert here.account() == codes
            await here.none_alive()

    run(work())


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
@pytest.mark.parametrize("behind", ["stdio", "http"])
def test_clients_in_the_way(behind: str, revision: str, tmp_path: Path) -> None:
    """Clients that listen, that are in the middle of a body or that never read hold up nothing."""

    async def work() -> None:
        async with scene(tmp_path) as here:
            await start(here, behind)
            http, speech = Http(here.port), Speech(revision, logs=False)
            await speech.open(http)
            await speech.post(http, speech.call(1, "slow", nonce="1"))
            flood = speech.call(1, "flood", nonce="n" * 500, k=8_000)
            for _ in range(3):
                other, text = Http(here.port), json.dumps(flood).encode()
                head = {**speech.head(flood), "Content-Type": "application/json"}
                await other.send("POST", {**head, "Content-Length": str(len(text))})
                assert other.writer is not None
                other.writer.write(text[:50])
                deaf = Http(here.port)
                await deaf.send("POST", speech.head(flood), text)
                assert deaf.writer is not None
                deaf.writer.transport.pause_reading()  # type: ignore[attr-defined]
                if revision == LEGACY:
                    session = {"Mcp-Session-Id": speech.session} if speech.session else {}
                    listener = Http(here.port)
                    await listener.send(
                        "GET", {**session, "Accept": "text/event-stream", "Host": "127.0.0.1"}
                    )
                    assert (await listener.begun()).status == 200
                flood["id"] += 1
            await here.noted("got", 4)
            assert await here.stop() == 0
            assert here.account().total() == 4
            await here.none_alive()

    run(work())


@pytest.mark.parametrize("behind", ["stdio", "http"])
def test_frozen(behind: str, tmp_path: Path) -> None:
    """An upstream that does nothing at all any more is no reason to stay."""

    async def work() -> None:
        async with scene(tmp_path) as here:
            await start(here, behind)
            speech = Speech(LEGACY, logs=False)
            https = [Http(here.port) for _ in range(10)]
            await speech.open(https[0])
            await speech.post(https[0], speech.call(1, "slow", nonce="0"))
            frozen = here.alive() if behind == "stdio" else [here.upstream.pid]  # type: ignore[union-attr]
            for pid in frozen:
                os.kill(pid, signal.SIGSTOP)
            for id, http in enumerate(https):
                call = speech.call(id, "slow", nonce=str(id))
                await http.send("POST", speech.head(call), json.dumps(call).encode())
            await until(lambda: sum(e["event"] == "admitted" for e in here.entries()) == 11)
            assert await here.stop() == 0
            assert here.account() == {"ok": 1, "OUTCOME_UNKNOWN": 10}
            await here.none_alive()

    run(work())


def test_twice(tmp_path: Path) -> None:
    """A second signal does not make it leave anything behind."""

    async def work() -> None:
        async with scene(tmp_path) as here:
            await start(here, BEHIND[1])
            http, speech = Http(here.port), Speech(MODERN, logs=False)
            await speech.post(http, speech.call(1, "slow", nonce="1"))
            assert len(here.alive()) == 2
            here.gateway.send_signal(signal.SIGINT)
            await asyncio.sleep(0.5)
            assert await here.stop(signal.SIGINT) == 0
            here.account()
            await here.none_alive()

    run(work())


@pytest.mark.parametrize("behind", ["stdio", "http"])
def test_killed(behind: str, tmp_path: Path) -> None:
    """After SIGKILL the ledger is whole, knows of whatever was done, and children end."""

    async def work() -> None:
        async with scene(tmp_path) as here:
            await start(here, behind)
            clients = [
                asyncio.create_task(load(here, Speech(LEGACY, logs=False), f"c{i}", 5))
                for i in range(6)
            ]
            await here.noted("got", 100)
            assert await here.stop(signal.SIGKILL) == -signal.SIGKILL
            await asyncio.gather(*clients)
            here.account(stopped=False)
            await here.none_alive()
            all_were_admitted(here, 5)
            # The next gateway goes on with the chain.
            await start(here, behind)
            http, speech = Http(here.port), Speech(MODERN, logs=False)
            assert (await speech.post(http, speech.call(1, "echo", nonce="n"))).status == 200
            assert await here.stop() == 0
            assert [e["event"] for e in here.entries()].count("started") == 2
            await here.none_alive()

    run(work())
