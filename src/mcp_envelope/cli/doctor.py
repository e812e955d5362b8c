"""``doctor``: is everything there that the gateway needs, and if not, what to do."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import mcp_envelope as me
from mcp_envelope.core.errors import ConfigError
from mcp_envelope.gateway import checkup, checkup_record, parts, settings_schema
from mcp_envelope.gateway.checkup import Finding
from mcp_envelope.gateway.settings_file import Given, SettingsError, load
from mcp_envelope.gateway.settings_mistakes import dotted

from . import sources
from .console import FINE, USAGE, Console, utf8

if TYPE_CHECKING:
    import argparse

    from mcp_envelope.gateway.settings import Settings

    from .arguments import Parser

EXAMPLE = "mcp-envelope doctor --config mcp-envelope.toml"
_WAIT = "30"


def configure(parser: Parser) -> None:
    """Add the verb's arguments."""
    parser.add_argument(
        "--wait",
        metavar="SECONDS",
        default=_WAIT,
        help=f"how long each server may take to start and to list its tools ({_WAIT})",
    )
    sources.configure(parser)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Run the verb and return its exit code."""
    wait = _seconds(arguments.wait)
    findings = [*checkup.installation(), *checkup.clock(), *checkup.streams()]
    given = sources.given(arguments)
    if not given.names_servers:
        hint = "with --config, --from, --upstream or -- COMMAND they are looked at too"
        findings.append(Finding("settings", "note", "no settings and no servers are named", hint))
    else:
        settings = _settings(given, console, findings)
        if settings is not None:
            findings += [*checkup_record.store(settings), *checkup_record.key(settings)]
            findings += checkup_record.outside(settings)
            findings += asyncio.run(_upstreams(settings, wait, console))
    return _report(findings, console)


def _seconds(text: str) -> float:
    try:
        wait = float(text)
    except ValueError:
        wait = 0.0
    if not 0 < wait <= 3600:
        raise me.UsageError("--wait must be a number of seconds", hint="write 1 to 3600")
    return wait


def _settings(given: Given, console: Console, findings: list[Finding]) -> Settings | None:
    try:
        loaded = load(given, console.read)
    except SettingsError as error:
        findings += [
            Finding("settings", "problem", f"{each.where}: {each.message}", each.hint, USAGE)
            for each in error.mistakes
        ]
        return None
    except (ConfigError, me.UsageError) as error:
        findings.append(Finding("settings", "problem", error.message, error.hint, USAGE))
        return None
    settings = loaded.settings
    count = len(settings.upstreams)
    door = f"HTTP on {settings.http.host}:{settings.http.port}" if settings.http else "stdio"
    what = f"{count} upstream{'' if count == 1 else 's'}, {door}"
    where = f"{settings.path}: " if settings.path is not None else ""
    findings.append(Finding("settings", "ok", f"{where}{what}"))
    findings += [Finding("settings", "note", note) for note in loaded.notes]
    if settings.path is not None:
        keys = ", ".join(_reloading())
        message = f"all needs a restart but these, which count as soon as they change: {keys}"
        findings.append(Finding("settings", "note", message))
    return settings


def _reloading() -> list[str]:
    """The keys that may change while the gateway runs; not those below one that is named."""
    found: list[tuple[str, ...]] = []
    for key in settings_schema.every_key():
        if key.reloads and not any(key.path[: len(above)] == above for above in found):
            found.append(key.path)
    return [dotted(path) for path in found]


async def _upstreams(settings: Settings, wait: float, console: Console) -> list[Finding]:
    if sys.stderr is not None and sys.stderr.isatty():
        names = ", ".join(upstream.name for upstream in settings.upstreams)
        console.note(f"asking {names} …")
    limits = parts.limits_of(settings)
    asked = [checkup.upstream(upstream, wait, limits) for upstream in settings.upstreams]
    answers = await asyncio.gather(*asked)
    findings = [finding for found, _ in answers for finding in found]
    probed = [one for _, one in answers if one is not None]
    return [*findings, *checkup.clashes(probed, namespace=settings.namespace)]


def _report(findings: list[Finding], console: Console) -> int:
    codes = {finding.code for finding in findings}
    code = next(
        (code for code in (USAGE, checkup.UNREACHABLE, checkup.BROKEN) if code in codes), FINE
    )
    if console.json:
        names = ("area", "state", "message", "hint")
        listed = [{n: utf8(getattr(each, n)) for n in names} for each in findings]
        console.result({"healthy": code == FINE, "findings": listed})
        return code
    wide = max(len(finding.area) for finding in findings)
    for finding in findings:
        console.say(f"{finding.state:7}  {finding.area:{wide}}  {finding.message}")
        if finding.hint:
            console.say(f"{'':7}  {'':{wide}}  do: {finding.hint}")
    return code
