"""What commands do when they are asked to end."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ASKING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def cleaning_up() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end a command as Ctrl-C does, so that it saves results and removes temporary files.

    Signals that are ignored remain so.
    """
    changed = [number for number in _ASKING if signal.getsignal(number) is signal.SIG_DFL]
    for number in changed:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


def _end(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)
