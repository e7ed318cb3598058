"""Commands in a terminal of their own, and what they write to it."""

import os
import struct
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import pytest

from ovir.cli.main import main
from ovir.system.processes import ChildProcess

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


def start_in_terminal(arguments: Sequence[object], programs: int, **environment: str) -> ChildProcess:
    """Start a program whose terminal is ``programs``, so that a Ctrl-C typed there reaches it and its children."""
    return ChildProcess(
        [str(argument) for argument in arguments],
        stdin=programs,
        stdout=programs,
        stderr=programs,
        env={**os.environ, "TERM": "xterm", **environment},
        preexec_fn=take_terminal,
    )


def take_terminal() -> None:
    """Make the terminal on stdin the one that controls this process."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def run_in_terminal(*arguments: object, columns: int = 100, **environment: str) -> Shown:
    """Run ``ovir`` with these arguments in this process, whose output goes to a terminal of its own meanwhile."""
    user, programs = open_terminal(columns)
    with ThreadPoolExecutor(1) as pool, mock.patch.dict(os.environ, {"TERM": "xterm", **environment}):
        os.environ.pop("COLUMNS", None)  # which goes before the width of the terminal
        text = pool.submit(_read_to_end, user)  # a terminal that nobody reads takes a few kilobytes
        try:
            with _output_to(programs):
                status = main([str(argument) for argument in arguments])
        finally:
            os.write(programs, _END)  # processes that live on may keep the terminal open
    shown = text.result().decode()
    os.close(user)
    os.close(programs)
    return Shown(status, shown.replace("\r\n", "\n"))


_END = b"\0"


def _read_to_end(user: int) -> bytes:
    text = b""
    while not text.endswith(_END):
        text += os.read(user, 1 << 16)
    return text.removesuffix(_END)


@contextmanager
def _output_to(file: int) -> Iterator[None]:
    """Let stdout and stderr, also those of processes that start meanwhile, be this file in a ``with`` block."""
    before = os.dup(1), os.dup(2)
    try:
        os.dup2(file, 1)
        os.dup2(file, 2)
        with (
            open(1, "w", encoding="utf-8", closefd=False) as out,
            open(2, "w", encoding="utf-8", closefd=False) as errors,
            redirect_stdout(out),
            redirect_stderr(errors),
        ):
            yield
    finally:
        for number, other in enumerate(before, 1):
            os.dup2(other, number)
            os.close(other)
