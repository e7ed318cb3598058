"""The code that runs in a worker: a task of one or more items."""

from __future__ import annotations

import os
import platform
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from time import perf_counter
from typing import Any, Protocol, TypeVar, runtime_checkable

from ovir.core import parallel
from ovir.diagnostics.codes import INTERNAL, OUT_OF_MEMORY
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import OWN_FAULT, OvirError, RunError

Item = TypeVar("Item", contravariant=True)
Result = TypeVar("Result", covariant=True)


class UnreachableError(Exception):
    """A function of a task needs a file that this machine does not have; the caller can send its content."""


class SetUpError(Exception):
    """No item can be worked on, for the reason of the OvirError that is its cause."""

    def __init__(self, error: OvirError) -> None:
        super().__init__(error)
        self.error = error


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one item, or the error."""

    result: Any = None
    error: OvirError | None = None
    seconds: float = 0.0


@runtime_checkable
class TaskFunction(Protocol):
    """A function of all items of a task together. It can be sent with the content of its files."""

    def on_all(self, items: Sequence[Any]) -> list[Answer]:
        """Return an answer for each item."""

    def with_content(self) -> Callable[[Any], Any]:
        """Return the function with the content of its files."""

    def item_with_content(self, item: Any) -> Any:
        """Return an item with the content of its file, or the item itself; raise OvirError if it cannot be read."""


def this_process() -> tuple[str, int]:
    """Return the machine and the number of this process, which together identify it among those of all machines."""
    return platform.node(), os.getpid()


@cache
def _use_one_thread() -> None:
    """Restrict kernels and BLAS to one thread, so that workers do not fight over cores."""
    from threadpoolctl import threadpool_limits

    parallel.restrict(1)
    threadpool_limits(1)


def run_task(function: Callable[[Any], Any], items: Sequence[Any], origin: tuple[str, int]) -> list[Answer] | None:
    """Return an answer for each item; None if this process needs files that it cannot reach.

    ``origin`` is the process that the task comes from; all others are restricted to one thread. Raise SetUpError if the
    function cannot work on any item.
    """
    if origin != this_process():
        _use_one_thread()
    try:
        if len(items) > 1 and isinstance(function, TaskFunction):
            return function.on_all(items)
        return [answer_of(function, item) for item in items]
    except UnreachableError:
        return None


def answer_of(function: Callable[[Any], Any], item: Any) -> Answer:
    """Return the result of one item, or its error."""
    start = perf_counter()
    error: OvirError
    try:
        return Answer(function(item), None, perf_counter() - start)
    except (UnreachableError, SetUpError):
        raise
    except OvirError as found:
        error = found
    except MemoryError as found:
        reason = f": {found}" if str(found) else ""
        error = RunError(diagnose(OUT_OF_MEMORY, f"there is not enough memory{reason}"))
    except Exception as found:
        error = RunError(diagnose(INTERNAL, f"{type(found).__name__}: {found}", hint=OWN_FAULT))
    return Answer(None, error.with_traceback(None), perf_counter() - start)


SAFE_PATH = "PYTHONSAFEPATH"
"""The variable of the environment that keeps the folder of a script, or the current one, out of ``sys.path``."""


def set_safe_path(value: str | None) -> None:
    """Set the variable, or remove it."""
    if value is None:
        os.environ.pop(SAFE_PATH, None)
    else:
        os.environ[SAFE_PATH] = value


def start_process(safe_path: str | None) -> None:
    """Prepare a process that belongs to a pool of ovir: Ctrl-C is for its parent, and it ends with its parent."""
    set_safe_path(safe_path)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    from multiprocessing import parent_process  # which slows down `import ovir`

    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
