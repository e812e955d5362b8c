"""Where files of ours lie by default, and folders that only their owner can enter."""

from __future__ import annotations

import os
import re
import sys
from hashlib import sha256
from pathlib import Path
from typing import Final

from mcp_envelope.core.errors import ConfigError

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]|^\.")
_LONGEST: Final = 80


def state_directory() -> Path:
    """The user's folder for what programs keep between runs: ours in it is ``mcp-envelope``."""
    try:
        if sys.platform == "win32":
            local = os.environ.get("LOCALAPPDATA", "")
            base = Path(local) if local else Path.home() / "AppData" / "Local"
        elif sys.platform == "darwin":
            base = Path.home() / "Library" / "Application Support"
        else:
            # Relative paths are to be ignored, says the XDG Base Directory specification.
            named = Path(os.environ.get("XDG_STATE_HOME", ""))
            base = named if named.is_absolute() else Path.home() / ".local" / "state"
    except RuntimeError:
        hint = "set HOME, or name a ledger with --ledger sqlite:PATH"
        raise ConfigError("there is no home folder to keep the ledger in", hint=hint) from None
    return base / "mcp-envelope"


def default_path(name: str, number: int = 1) -> Path:
    """The ``number``-th choice for the ledger of the upstream called ``name``.

    What a file cannot safely be called is replaced, and a few digits keep such names apart.
    """
    safe = _UNSAFE.sub("_", name)[:_LONGEST] or "gateway"
    if safe != name:
        safe += "-" + sha256(name.encode(errors="surrogatepass")).hexdigest()[:8]
    return state_directory() / (f"{safe}.db" if number == 1 else f"{safe}-{number}.db")


def path_of(scheme: str, place: str) -> Path:
    """The path in a URL of a ledger in a file; ``~`` is the home folder."""
    example = {"sqlite": "calls.db"}.get(scheme, f"calls.{scheme}")
    hint = f"write {scheme}:PATH, like {scheme}:{example} or {scheme}:/var/log/{example}"
    if not place or "\0" in place:
        raise ConfigError(f"a {scheme}: ledger needs the path of a file", hint=hint)
    if place.startswith("//") and not place.startswith("///"):
        raise ConfigError(f"a {scheme}: ledger is a file on this machine", hint=hint)
    try:
        return Path(place).expanduser().absolute()
    except RuntimeError:
        raise ConfigError("~ stands for no known home folder", hint=hint) from None


def make_private(folder: Path) -> None:
    """Make a folder and what is missing above it, for nobody but the owner."""
    if not folder.is_dir():
        make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
