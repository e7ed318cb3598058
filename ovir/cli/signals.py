"""Requests to end a process, after which it cleans up as after Ctrl-C."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_REQUESTS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Terminated(KeyboardInterrupt):  # like KeyboardInterrupt, it is no error
    """A request to end by SIGTERM or SIGHUP; processes and temporary files are removed on its way."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.status = 128 + number


@contextmanager
def raising_terminated() -> Iterator[None]:
    """Raise Terminated for signals that ask to end, once; signals that are ignored remain so."""
    changed = [number for number in _REQUESTS if signal.getsignal(number) is signal.SIG_DFL]

    def end(number: int, _: FrameType | None) -> None:
        for other in changed:  # a second request must not interrupt the cleanup
            signal.signal(other, signal.SIG_IGN)
        raise Terminated(number)

    for number in changed:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)
