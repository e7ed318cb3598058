"""Sections that a request to end, such as Ctrl-C, does not interrupt halfway.

Python raises KeyboardInterrupt between any two instructions: also between the start of a process and the ``try`` that
ends it, or while a temporary folder is removed. The command ``ovir`` handles signals itself, and asks this module
whether the exception has to wait. In programs that use ovir as a library, Python's own handler does not wait.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import local
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")


class _Sections(local):
    """The open sections of a thread; handlers run in the main thread, and see its sections."""

    def __init__(self) -> None:
        self.depth = 0
        self.waiting: Callable[[], None] | None = None


_sections = _Sections()


def is_deferred(request: Callable[[], None]) -> bool:
    """Return whether a request has to wait; it is called at the end of the section then."""
    if not _sections.depth:
        return False
    _sections.waiting = request
    return True


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let requests wait until the end of a ``with`` block, which must be short."""
    _sections.depth += 1
    try:
        yield
    finally:
        _sections.depth -= 1
        if not _sections.depth and (request := _sections.waiting) is not None:
            _sections.waiting = None
            request()


def result_of(future: Future[T]) -> T:
    """Wait for a future and return its result.

    A request that is raised between two instructions of ``future.result()`` may leave a lock of the future locked, so
    that the thread which sets the result waits for ever, and the process does not end.
    """
    while True:
        with uninterrupted():
            if wait_for((future,)):
                return future.result()


def wait_for(futures: Collection[Future[T]]) -> set[Future[T]]:
    """Return the futures that are done, after a tenth of a second at most if there are none; for the same reason."""
    from concurrent.futures import FIRST_COMPLETED, wait  # only needed here

    with uninterrupted():
        return wait(futures, _PATIENCE, FIRST_COMPLETED).done


_PATIENCE = 0.1
"""Seconds that a request waits at most."""


@contextmanager
def interrupting_nobody_else() -> Iterator[None]:
    """Start processes in a ``with`` block that do not get the Ctrl-C of the terminal: this process ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # processes inherit what is blocked
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def temporary_folder(prefix: str = "ovir-", place: str | None = None) -> Iterator[Path]:
    """Yield a temporary folder, which no interrupt leaves behind."""
    import tempfile  # most commands do not need it

    with uninterrupted():
        folder = tempfile.TemporaryDirectory(prefix=prefix, dir=place)
    try:
        yield Path(folder.name)
    finally:
        with uninterrupted():
            folder.cleanup()
