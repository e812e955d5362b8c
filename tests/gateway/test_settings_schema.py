"""The published schema of the settings, the page about them, and the model: of one mind."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import jsonschema  # type: ignore[import-untyped]

from mcp_envelope.gateway import settings_schema
from mcp_envelope.gateway.settings import (
    HttpSettings,
    RecordSettings,
    Rules,
    Settings,
    UpstreamSettings,
)
from mcp_envelope.gateway.settings_changes import changes
from mcp_envelope.gateway.settings_environment import variable_for

SCHEMA: dict[str, Any] = settings_schema.document().value


def names(path: tuple[str, ...]) -> set[str]:
    """The keys right below a place."""
    return {key.path[-1] for key in settings_schema.every_key() if key.path[:-1] == path}


def test_it_is_a_published_schema() -> None:
    """2020-12, with an absolute name, a title, and a description of every key."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert SCHEMA["$id"] == "urn:mcp-envelope:settings:settings.schema.json"
    assert SCHEMA["title"]
    assert not [key.path for key in settings_schema.every_key() if not key.schema["description"]]


def test_it_has_what_the_model_has() -> None:
    """Each field of settings.py is a key, and each key a field."""

    def of(model: type) -> set[str]:
        return {field.name for field in fields(model)}

    assert names(()) == (of(Settings) - {"path"}) | {"rules"}
    assert names(("record",)) == of(RecordSettings)
    assert names(("http",)) == of(HttpSettings) | {"listen"}
    assert names(("rules",)) == of(Rules)
    assert names(("upstreams", "NAME")) == of(UpstreamSettings) - {"name"}
    assert names(("upstreams", "NAME", "rules")) == of(Rules)
    assert names(("upstreams", "NAME", "tools", "TOOL")) == of(Rules) - {"unknown_tools"}


def test_defaults_are_those_of_the_model() -> None:
    """What the schema says of defaults is true."""
    models: dict[tuple[str, ...], Any] = {
        (): Settings(upstreams=()),
        ("record",): RecordSettings(),
        ("http",): HttpSettings(),
        ("rules",): Rules(),
        ("upstreams", "NAME"): UpstreamSettings(name="a"),
        ("upstreams", "NAME", "tools", "TOOL"): Rules(),
    }
    compared = 0
    for key in settings_schema.every_key():
        if "default" in key.schema and key.path[:-1] in models:
            default = getattr(models[key.path[:-1]], key.path[-1])
            assert default == (
                tuple(key.schema["default"]) if default == () else key.schema["default"]
            )
            compared += 1
    assert compared > 20


def test_what_reloads_is_what_changes_says() -> None:
    """The mark ``x-reload`` and the comparison of settings agree, key by key."""
    upstream = UpstreamSettings(name="a", command=("x",))
    base = Settings(upstreams=(upstream,), http=HttpSettings())
    others: dict[tuple[str, ...], Settings] = {}
    values: dict[str, Any] = {
        "ledger": "memory:",
        "record": RecordSettings(max_body_bytes=1),
        "deterministic": True,
        "max_body_bytes": 1,
        "namespace": False,
        "log_level": "error",
        "host": "::1",
        "port": 1,
        "max_request_bytes": 1,
        "max_result_bytes": 1,
        "hosts": ("a",),
        "origins": ("b",),
        "command": ("y",),
        "url": "u",
        "env": {"A": "b"},
        "cwd": "/",
        "headers": {"a": "b"},
        "processes": 1,
        "idle": 1.0,
        "grace": 1.0,
        "connect_timeout": 1.0,
        "rules": Rules(retries=0),
        "tools": {"t": Rules()},
        "durability": "power",
        "checkpoints": False,
        "checkpoint_lines": 7,
        "checkpoint_time": 1.0,
        "key": "k",
        "publish_file": "p",
        "publish_command": ("p",),
        "index": False,
        "keep_days": 1,
        "archive": "a",
    }
    for name in names(()) - {"http", "record", "rules", "upstreams"}:
        others[(name,)] = _with(base, name, values[name])
    for name in names(("record",)):
        others["record", name] = _with(base, "record", _with(base.record, name, values[name]))
    for name in names(("http",)) - {"listen"}:
        others["http", name] = _with(base, "http", _with(base.http, name, values[name]))
    for name in names(("upstreams", "NAME")):
        changed = _with(upstream, name, values[name])
        others["upstreams", "NAME", name] = _with(base, "upstreams", (changed,))
    marked = {key.path: key.reloads for key in settings_schema.every_key()}
    for path, other in others.items():
        found = changes(base, other)
        said = ".".join(path).replace("NAME", "a")
        expected = ((said,), ()) if marked[path] else ((), (said,))
        assert (found.safe, found.needs_restart) == expected


def _with(value: Any, name: str, other: Any) -> Any:
    given = {field.name: getattr(value, field.name) for field in fields(value)}
    return type(value)(**{**given, name: other})


def test_the_variables_of_the_page() -> None:
    """How a key is spelled in the environment."""
    assert variable_for(("http", "port")) == "MCP_ENVELOPE_HTTP__PORT"
    path = ("upstreams", "my-time", "rules", "timeout")
    assert variable_for(path) == "MCP_ENVELOPE_UPSTREAMS__MY_TIME__RULES__TIMEOUT"
