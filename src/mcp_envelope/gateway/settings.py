"""What an operator can set, as plain frozen values. How it is read: ``settings_file``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal

from mcp_envelope.core.ports import Durability

CheckMode = Literal["off", "warn", "strict"]
LabelMode = Literal["meta", "off"]
UnknownTools = Literal["refuse", "pass"]
Bodies = Literal["none", "errors", "all"]
LogLevel = Literal["debug", "info", "warning", "error"]

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What holds for the calls of an upstream, or of one of its tools.

    ``timeout`` (seconds) and ``concurrency`` (calls at once) are without bound where they are
    0. ``retries`` counts further attempts at a call of which nothing reached the upstream.
    ``bodies`` are kept of no, failed or all calls, after redaction; without ``digests`` neither
    these nor bodies are. What is redacted: ``core.redaction``.
    """

    input: CheckMode = "strict"
    output: CheckMode = "warn"
    label: LabelMode = "meta"
    unknown_tools: UnknownTools = "pass"
    timeout: float = 0.0
    concurrency: int = 0
    retries: int = 2
    bodies: Bodies = "none"
    digests: bool = True
    redact_credentials: bool = True
    redact_keys: tuple[str, ...] = ()
    redact_pointers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamSettings:
    """One upstream: either a ``command`` to start, or the ``url`` of a Streamable HTTP endpoint.

    ``env`` is added to the gateway's own environment, ``headers`` go with every request to
    ``url``; both may hold secrets and are never shown, nor are the words of the command and the
    query of the URL, for the same reason. ``tools`` holds complete rules for
    single tools, by the name that the upstream gives them; ``rules.concurrency`` bounds the
    upstream as a whole, that of a tool the tool. ``processes`` is the most children at once,
    ``idle`` the seconds after which an unused session's child is ended, ``grace`` those that a
    child has to end by itself before it is made to.
    """

    name: str
    command: tuple[str, ...] = field(default=(), repr=False)
    url: str | None = field(default=None, repr=False)
    env: Mapping[str, str] = field(default_factory=lambda: _NOTHING, repr=False)
    cwd: str | None = None
    headers: Mapping[str, str] = field(default_factory=lambda: _NOTHING, repr=False)
    processes: int = 64
    idle: float = 1800.0
    grace: float = 1.5
    connect_timeout: float = 10.0
    rules: Rules = field(default_factory=Rules)
    tools: Mapping[str, Rules] = field(default_factory=lambda: _NOTHING)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """The HTTP door. ``hosts`` and ``origins`` are accepted beside the loopback ones."""

    host: str = "127.0.0.1"
    port: int = 8080
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSettings:
    """How the record is sealed, and for how long it is kept.

    ``checkpoint_time`` and ``keep_days`` are without bound where they are 0. ``key`` is the file
    of the signing key, None for the one in the state directory. A body that is longer than
    ``max_body_bytes`` is not kept.
    """

    checkpoints: bool = True
    checkpoint_lines: int = 1_000
    checkpoint_time: float = 60.0
    key: str | None = None
    publish_file: str | None = None
    publish_command: tuple[str, ...] = field(default=(), repr=False)
    index: bool = True
    keep_days: int = 0
    archive: str | None = None
    max_body_bytes: int = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything. ``http`` is None for the stdio door.

    ``ledger`` is a ledger URL, None for the default file of this upstream. ``path`` is the file
    that was read, None if there was none. ``deterministic`` gives times and ids that are the same
    in each run, for tests.
    """

    upstreams: tuple[UpstreamSettings, ...]
    http: HttpSettings | None = None
    ledger: str | None = field(default=None, repr=False)
    durability: Durability = "process"
    record: RecordSettings = field(default_factory=RecordSettings)
    deterministic: bool = False
    namespace: bool = True
    log_level: LogLevel = "info"
    max_request_bytes: int = 4 * 1024 * 1024
    max_result_bytes: int = 64 * 1024 * 1024
    path: str | None = None
