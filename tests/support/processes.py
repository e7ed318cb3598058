"""Waiting for processes that tests have started."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ovir.system.processes import ChildProcess

PATIENCE = 60
"""The seconds after which a test gives up; none of them waits for this long otherwise."""


@contextmanager
def started(command: Sequence[str], **options: Any) -> Iterator[ChildProcess]:
    """Start a process with text streams; in the end, kill what is left of it, so that no test waits for it."""
    with ChildProcess(command, text=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def has_ended(number: int) -> bool:
    """Return whether a process has ended, also if nobody has asked for its status yet."""
    try:
        os.kill(number, 0)
        state = Path(f"/proc/{number}/stat")
        return state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z"
    except (ProcessLookupError, FileNotFoundError):
        return True
