"""Several servers of different eras behind one door."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.gateway.crew import ABSENT, crew
from tests.gateway.rig import STATELESS


def test_a_client_of_both_eras_gets_servers_of_either(tmp_path: Path) -> None:
    """If some server knows no server/discover, the client is told so, and shakes hands with all.

    Those that stay in the era of their first request have forgotten the probe.
    """

    async def work() -> None:
        parts = {"old": {"era": "legacy"}, "both": {"era": "locked"}}
        async with crew("stdio", STATELESS, tmp_path, parts, hands=False) as rig:
            assert (await rig.error("server/discover"))["code"] == -32601
            rig.revision = "2025-11-25"
            said = await rig.shake_hands()
            assert ABSENT not in said.message["result"].get("_meta", {})
            for server in parts:
                assert "result" in (await rig.ask(rig.call(f"{server}__free"))).message

    asyncio.run(work())


def test_an_era_is_kept_once_it_is_agreed_on(tmp_path: Path) -> None:
    """After server/discover no handshake, after a handshake no other era: as the servers say."""

    async def work() -> None:
        parts = {"a": {"era": "locked"}, "b": {"era": "locked"}}
        async with crew("stdio", STATELESS, tmp_path, parts, hands=False) as rig:
            await rig.result("server/discover")
            assert len((await rig.result("tools/list"))["tools"]) == 12
            rig.revision = "2025-11-25"
            assert (await rig.shake_hands()).message["error"]["code"] == -32022
        folder = tmp_path / "again"
        folder.mkdir()
        async with crew("stdio", "2025-11-25", folder, parts) as rig:
            rig.revision = STATELESS
            for method in ("server/discover", "tools/list"):
                assert (await rig.error(method))["code"] == -32601
            assert "error" in (await rig.ask(rig.call("a__free"))).message
            rig.revision = "2025-11-25"
            assert len((await rig.result("tools/list"))["tools"]) == 12

    asyncio.run(work())
