"""Processes that ovir starts and talks to by pipes."""

from __future__ import annotations

import contextlib
import subprocess


def finish(process: subprocess.Popen[bytes]) -> None:
    """Wait for a process that was killed, and close its pipes."""
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):  # what could not be written is not needed any more
                pipe.close()
