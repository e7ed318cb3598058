"""Commands in a terminal of their own, and what they write to it."""

import os
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PATIENCE = 60
"""The seconds after which a test gives up; none of them waits for this long otherwise."""
needs_terminal = pytest.mark.skipif(os.name != "posix", reason="this system has no pseudoterminals")


class Shown(NamedTuple):
    """What a command has written to its terminal, and its status."""

    status: int
    text: str


def open_terminal(columns: int = 100) -> tuple[int, int]:
    """Return the descriptors of the side of the user and of the side of the programs."""
    import fcntl
    import pty
    import termios

    user, programs = pty.openpty()
    fcntl.ioctl(programs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    return user, programs


def read_all(user: int) -> bytes:
    """Return what programs write to a terminal until the last of them closes it."""
    parts = []
    try:
        while part := os.read(user, 1 << 16):
            parts.append(part)
    except OSError:  # Linux reports the end of a terminal as an error
        pass
    finally:
        os.close(user)
    return b"".join(parts)


def start_in_terminal(
    arguments: Sequence[object], programs: int, *, stdout: int | None = None, **environment: str
) -> subprocess.Popen[bytes]:
    """Start a program whose terminal is ``programs``, so that a Ctrl-C typed there reaches it and its children."""
    return subprocess.Popen(
        [str(argument) for argument in arguments],
        stdin=programs,
        stdout=programs if stdout is None else stdout,
        stderr=programs,
        env={**os.environ, "TERM": "xterm", "PYTHONPATH": str(ROOT), **environment},
        start_new_session=True,
        preexec_fn=take_terminal,
    )


def take_terminal() -> None:
    """Make the terminal on stdin the one that controls this process."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def run_in_terminal(*arguments: object, stdout: int | None = None, columns: int = 100, **environment: str) -> Shown:
    """Run ``ovir`` with these arguments in a terminal of its own."""
    user, programs = open_terminal(columns)
    command = [sys.executable, "-m", "ovir", *arguments]
    with start_in_terminal(command, programs, stdout=stdout, **environment) as process:
        os.close(programs)
        text = read_all(user).decode()
        status = process.wait(PATIENCE)
    return Shown(status, text.replace("\r\n", "\n"))
