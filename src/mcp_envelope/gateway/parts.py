"""The parts that settings ask for."""

from __future__ import annotations

from pathlib import Path

from mcp_envelope.core.document import DEFAULT_LIMITS, Limits
from mcp_envelope.core.link import Upstream
from mcp_envelope.stores import default_path
from mcp_envelope.upstreams import upstream_class

from .settings import Settings, UpstreamSettings


def upstream_of(settings: UpstreamSettings, limits: Limits = DEFAULT_LIMITS) -> Upstream:
    """The upstream that the settings describe; nothing is started or sent yet."""
    if settings.url is not None:
        made: Upstream = upstream_class("http")(
            settings.name,
            settings.url,
            headers=settings.headers,
            connect_timeout=settings.connect_timeout,
            limits=limits,
        )
        return made
    child: Upstream = upstream_class("stdio")(
        settings.name,
        settings.command,
        env=settings.env,
        cwd=settings.cwd,
        limits=limits,
        processes=settings.processes,
        idle=settings.idle,
        grace=settings.grace,
    )
    return child


def limits_of(settings: Settings) -> Limits:
    """How long messages may be."""
    return Limits(request=settings.max_request_bytes, result=settings.max_result_bytes)


def ledger_path_of(settings: Settings) -> Path | None:
    """The file that the record goes to, None for a record in memory."""
    if settings.ledger is not None:
        _, _, place = settings.ledger.partition(":")
        return Path(place) if place else None
    return default_path(ledger_name_of(settings))


def ledger_name_of(settings: Settings) -> str:
    """What a ledger is called by default: the upstream, or that there are several."""
    return settings.upstreams[0].name if len(settings.upstreams) == 1 else "gateway"
