"""What is said on standard error when the gateway has started: what is served, checked, kept."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from pathlib import Path, PurePath

from mcp_envelope import __version__

from .ground import log
from .recording import Recording
from .settings import Rules, Settings, UpstreamSettings


def announce(settings: Settings, record: Recording, door: str) -> None:
    """Say on standard error what is served where, which checks are on, where the record is."""
    with contextlib.suppress(
        OSError
    ):  # nobody may be reading it, and the gateway serves all the same
        print("\n".join(_lines(settings, record, door)), file=sys.stderr, flush=True)  # noqa: T201


def warn_of_missing_programs(settings: Settings) -> None:
    """Say at once which upstreams cannot be started; their calls will say so as well."""
    for each in settings.upstreams:
        program = each.command[0] if each.command else None
        path = {**os.environ, **each.env}.get("PATH")
        if each.cwd is not None and not Path(each.cwd).is_dir():
            log.warning("upstream %s: there is no folder %r to start in", each.name, each.cwd)
        if program is not None and shutil.which(program, path=path) is None:
            log.warning("upstream %s: there is no program %r to start", each.name, program)


def _lines(settings: Settings, record: Recording, door: str) -> list[str]:
    lines = [f"mcp-envelope {__version__}: MCP on {door}"]
    if settings.path is not None:
        lines.append(f"  settings  {settings.path}")
    for each in settings.upstreams:
        lines.append(f"  upstream  {each.name}: {_target(each)}")
        lines.append(f"    checks  {_checks(each.rules)}")
        if kept := _kept(each.rules):
            lines.append(f"    keeps   {kept}")
        if each.tools:
            lines.append(f"            other rules for {', '.join(map(repr, each.tools))}")
    lines.append(f"  record    {record.ledger.url}")
    if record.signed:
        lines.append(f"    signed  by {record.signed}")
    return lines


def _target(settings: UpstreamSettings) -> str:
    """Where an upstream is, without what might be a secret: arguments, user names, queries."""
    if settings.url is not None:
        return (
            settings.url.partition("?")[0].rpartition("@")[2]
            if "@" in settings.url
            else (settings.url.partition("?")[0])
        )
    words = len(settings.command) - 1
    rest = f" and {words} more word{'s' if words > 1 else ''}" if words else ""
    return PurePath(settings.command[0]).name + rest


def _kept(rules: Rules) -> str:
    """What the record has of calls, where that is not as usual."""
    parts = []
    if not rules.digests:
        parts.append("no digests")
    elif rules.bodies != "none":
        parts.append(f"bodies of {'all calls' if rules.bodies == 'all' else 'calls that fail'}")
    if not rules.redact_credentials:
        parts.append("credentials are not redacted")
    return ", ".join(parts)


def _checks(rules: Rules) -> str:
    parts = [f"input {rules.input}", f"output {rules.output}"]
    parts.append(f"unknown tools {'refused' if rules.unknown_tools == 'refuse' else 'passed on'}")
    parts.append("label in _meta" if rules.label == "meta" else "no label")
    if rules.timeout:
        parts.append(f"at most {rules.timeout:g} s a call")
    if rules.concurrency:
        parts.append(f"at most {rules.concurrency} calls at once")
    return ", ".join(parts)
