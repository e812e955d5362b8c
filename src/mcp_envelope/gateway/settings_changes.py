"""What of new settings may be taken over while the gateway runs, and what needs a restart."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Final

from .settings import HttpSettings, RecordSettings, Settings, UpstreamSettings
from .settings_mistakes import dotted

_TOP: Final = (
    "ledger",
    "durability",
    "deterministic",
    "namespace",
    "log_level",
    "max_request_bytes",
    "max_result_bytes",
)
_SAFE: Final = ("log_level",)
_SAFE_HTTP: Final = ("hosts", "origins")
_SAFE_UPSTREAM: Final = ("rules", "tools")


@dataclass(frozen=True, slots=True)
class Changes:
    """The keys that differ: those that count at once, and those that need a restart."""

    safe: tuple[str, ...] = ()
    needs_restart: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.safe or self.needs_restart)


def changes(old: Settings, new: Settings) -> Changes:
    """What differs between two settings."""
    found = [(name, name in _SAFE) for name in _TOP if getattr(old, name) != getattr(new, name)]
    found += [
        (f"record.{field.name}", False)
        for field in fields(RecordSettings)
        if getattr(old.record, field.name) != getattr(new.record, field.name)
    ]
    found += _http_changes(old.http, new.http)
    before = {upstream.name: upstream for upstream in old.upstreams}
    after = {upstream.name: upstream for upstream in new.upstreams}
    for name in {**before, **after}:
        if name not in before or name not in after:
            found.append((dotted(("upstreams", name)), False))
        else:
            found += _upstream_changes(before[name], after[name])
    if list(before) != list(after) and set(before) == set(after):
        found.append(("upstreams", False))  # their order is that of the lists that clients see
    safe = tuple(key for key, is_safe in found if is_safe)
    return Changes(safe, tuple(key for key, is_safe in found if not is_safe))


def adopt(old: Settings, new: Settings) -> Settings:
    """The old settings, with what of the new ones may change while the gateway runs."""
    after = {upstream.name: upstream for upstream in new.upstreams}
    upstreams = tuple(
        replace(upstream, rules=after[upstream.name].rules, tools=after[upstream.name].tools)
        if upstream.name in after
        else upstream
        for upstream in old.upstreams
    )
    http = old.http
    if http is not None and new.http is not None:
        http = replace(http, hosts=new.http.hosts, origins=new.http.origins)
    return replace(old, upstreams=upstreams, http=http, log_level=new.log_level)


def _http_changes(old: HttpSettings | None, new: HttpSettings | None) -> list[tuple[str, bool]]:
    if old is None or new is None:
        return [] if old is new else [("http", False)]
    names = [field.name for field in fields(HttpSettings)]
    return [
        (f"http.{name}", name in _SAFE_HTTP)
        for name in names
        if getattr(old, name) != getattr(new, name)
    ]


def _upstream_changes(old: UpstreamSettings, new: UpstreamSettings) -> list[tuple[str, bool]]:
    names = [field.name for field in fields(UpstreamSettings)]
    return [
        (dotted(("upstreams", old.name, name)), name in _SAFE_UPSTREAM)
        for name in names
        if getattr(old, name) != getattr(new, name)
    ]
