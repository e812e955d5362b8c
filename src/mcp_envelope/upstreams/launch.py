"""Starting a process, and saying how it ended, or why it did not start."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field

from .backoff import UnavailableError


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How to start a child. The words of its command may be secrets as well as its ``env``.

    ``stderr`` is a file descriptor, None for the gateway's own.
    """

    name: str
    command: tuple[str, ...] = field(repr=False)
    env: Mapping[str, str] = field(repr=False)
    cwd: str | None
    stderr: int | None
    limit: int
    grace: float


def ended_how(code: int) -> str:
    """A return code in words."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def spawn(launch: Launch) -> tuple[subprocess.Popen[bytes], int, int]:
    """Start a process; it, and our ends of its standard input and output, which never block.

    UnavailableError, with nothing left behind, if that cannot be.
    """
    theirs_in, stdin = os.pipe()
    stdout, theirs_out = os.pipe()
    try:
        os.set_blocking(stdin, False)
        os.set_blocking(stdout, False)
        process = subprocess.Popen(  # noqa: S603 - the operator's own command
            launch.command,
            stdin=theirs_in,
            stdout=theirs_out,
            stderr=launch.stderr,
            cwd=launch.cwd,
            env={**os.environ, **launch.env},
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        os.close(stdin)
        os.close(stdout)
        raise _start_failure(launch, error) from None
    finally:
        os.close(theirs_in)
        os.close(theirs_out)
    return process, stdin, stdout


def _start_failure(launch: Launch, error: OSError | ValueError) -> UnavailableError:
    program = launch.command[0] if launch.command else ""
    if launch.cwd is not None and not os.path.isdir(launch.cwd):  # noqa: PTH112 - as given
        reason, hint = f"there is no folder {launch.cwd!r}", "look at its setting cwd"
    elif isinstance(error, FileNotFoundError):
        reason = f"there is no program {program!r}"
        hint = "is it installed, spelled right, and on the PATH that the gateway runs with?"
    elif isinstance(error, PermissionError):
        reason = f"{program!r} may not be executed"
        hint = "is it a program, and may the gateway's user execute it?"
    else:
        said = error.strerror if isinstance(error, OSError) else str(error)
        reason, hint = f"{said}", "look at its command, and at the limits of the gateway's user"
    return UnavailableError(f"upstream {launch.name!r} could not be started: {reason}", hint=hint)
