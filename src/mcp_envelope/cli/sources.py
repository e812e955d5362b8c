"""The options that say what the gateway stands in front of, and how; for `run` and `doctor`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import mcp_envelope as me
from mcp_envelope.gateway.settings_file import Flag, Given
from mcp_envelope.gateway.settings_mistakes import dotted
from mcp_envelope.gateway.settings_schema import every_key

if TYPE_CHECKING:
    import argparse

    from .arguments import Parser

#: Options that set a key: name, value's name, key, help.
_SETTING: Final = (
    (
        "--ledger",
        "URL",
        ("ledger",),
        "where to keep the record: sqlite:PATH, jsonl:PATH or memory:",
    ),
    ("--timeout", "SECONDS", ("rules", "timeout"), "how long a call may take; 0 is for ever"),
    ("--input", "MODE", ("rules", "input"), "check arguments: off, warn or strict (the default)"),
    ("--output", "MODE", ("rules", "output"), "check results: off, warn (the default) or strict"),
    ("--label", "MODE", ("rules", "label"), "the record's facts in results: meta or off"),
    ("--log-level", "LEVEL", ("log_level",), "debug, info, warning or error"),
)


def configure(parser: Parser) -> None:
    """Add the options."""
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="the settings (docs/settings.md); else the variable MCP_ENVELOPE_CONFIG names them",
    )
    parser.add_argument(
        "--from", dest="clients", metavar="FILE", help="take the servers of a client's mcp.json"
    )
    parser.add_argument(
        "--upstream", metavar="URL", help="stand in front of this Streamable HTTP endpoint"
    )
    for name, value, _, meaning in _SETTING:
        parser.add_argument(name, metavar=value, help=meaning)
    parser.elsewhere = _setting_of
    parser.add_command("command", help="stand in front of the server that this command starts")


def _setting_of(option: str) -> str:
    """Which setting somebody means who writes it as an option; empty if there is none."""
    word = option.lstrip("-").replace("-", "_")
    found = [key.path for key in every_key() if word in (key.path[-1], dotted(key.path))]
    # The most general one: rules.bodies, not that of a tool.
    path = min(found, key=len, default=())
    return f"that is a setting: {dotted(path)} in the file of --config" if path else ""


def given(arguments: argparse.Namespace, *, stdio: bool = False, http: str | None = None) -> Given:
    """What was said, by the command line and the environment."""
    for name, value in (("--config", arguments.config), ("--from", arguments.clients)):
        if value == "":
            raise me.UsageError(f"{name}: the name of the file is empty", hint="name a file")
    flags = [(name, path) for name, _, path, _ in _SETTING]
    return Given(
        config=arguments.config,
        clients=arguments.clients,
        url=arguments.upstream,
        command=arguments.command,
        stdio=stdio,
        http=http,
        flags=tuple(
            Flag(name, path, value)
            for name, path in flags
            if (value := getattr(arguments, name.strip("-").replace("-", "_"))) is not None
        ),
        environment=dict(os.environ),
        folder=Path.cwd(),
    )
