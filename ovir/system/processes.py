"""Processes that ovir starts, and how they are ended."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from typing import Any


class ChildProcess(subprocess.Popen[bytes]):
    """A process in a group and a session of its own: a Ctrl-C of the terminal does not reach it, and ``kill`` and
    ``end`` end it with all that it has started."""

    def __init__(self, arguments: Sequence[str], **given: Any) -> None:
        super().__init__(arguments, start_new_session=True, **given)

    def kill(self) -> None:
        """Let the process and those of its group end at once, unless it is known to have ended."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended
                if hasattr(os, "killpg"):
                    os.killpg(self.pid, signal.SIGKILL)
                else:
                    super().kill()

    @contextlib.contextmanager
    def killed_after(self, seconds: float | None) -> Iterator[threading.Event]:
        """Kill the process if the ``with`` block takes longer, and set the event that is yielded."""
        expired = threading.Event()

        def stop() -> None:
            expired.set()
            self.kill()

        if seconds is None:
            yield expired
            return
        timer = threading.Timer(seconds, stop)
        timer.daemon = True
        timer.start()
        try:
            yield expired
        finally:
            timer.cancel()
            timer.join()  # so that ``expired`` does not change any more

    def end(self) -> None:
        """Kill the process, wait until it has ended, and close its pipes."""
        self.kill()
        self.wait()
        for pipe in (self.stdin, self.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what could not be written is not needed any more
                    pipe.close()


def ending_of(status: int) -> str:
    """Return in words how a process ended: with a status, or a signal, whose number is negative then."""
    if status >= 0:
        return f"status {status}"
    try:
        return f"signal {signal.Signals(-status).name}"
    except ValueError:
        return f"signal {-status}"


def why_not_started(program: str, error: Exception) -> str:
    """Return why a program could not be started, in words about the program."""
    if isinstance(error, FileNotFoundError):
        return f"there is no program {program}"
    if isinstance(error, PermissionError) or getattr(error, "errno", None) == errno.ENOEXEC:
        return f"{program} is no program: it is not executable"
    return f"{program}: {getattr(error, 'strerror', None) or error}"
