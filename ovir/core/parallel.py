"""Threads for kernels: NumPy releases the GIL in its inner loops, so blocks of one operation can run side by side.

A kernel splits its work with `run_blocks`. `threads()` is the number of threads it may use; `limit(n)` sets it for the
current context, so that two requests in one process can have different limits.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar, Token
from functools import cache
from math import prod
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

import numpy as np

from ovir.core.arrays import Array

_BLOCKS_PER_THREAD = 4

_limit: ContextVar[int | None] = ContextVar("ovir_thread_limit", default=None)


_restriction: int | None = None


@cache
def available() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def restrict(count: int | None) -> None:
    """Let this process use at most `count` threads for kernels where `limit` does not set another number."""
    global _restriction
    _restriction = count


def restriction() -> int | None:
    """Return the number that `restrict` has set."""
    return _restriction


_calls: SimpleQueue[Callable[[], object]] = SimpleQueue()
"""Calls that the threads for kernels make. The pools of ``concurrent.futures`` take longer to import than a small model
to run, and longer for each call."""
_started: list[Thread] = []
_starting = Lock()


def _started_threads(wanted: int) -> int:
    """Return the number of threads that make calls: as many as are wanted, or fewer if the system has no more."""
    if len(_started) < wanted:
        with _starting, suppress(RuntimeError):  # the interpreter shuts down, or the system has no more threads
            while len(_started) < wanted:
                thread = Thread(target=_make_calls, args=[_calls], name=f"ovir-kernel_{len(_started)}", daemon=True)
                thread.start()
                _started.append(thread)
    return min(len(_started), wanted)


def _make_calls(calls: SimpleQueue[Callable[[], object]]) -> None:
    _prepare_thread()
    while True:
        calls.get()()


def _prepare_thread() -> None:
    """Set the state that a thread does not inherit from its caller."""
    # A block that calls another kernel must not ask for more threads: all are busy with its siblings.
    _limit.set(1)
    np.seterr(all="ignore")  # infinities and NaN are ordinary values of tensors


def _forget_threads() -> None:
    """Start without threads, which do not survive a fork, with a queue that none of them waits for."""
    global _calls, _starting
    _calls, _starting = SimpleQueue(), Lock()
    _started.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


def threads() -> int:
    """Return the number of threads that a kernel may use now, including the calling one."""
    return _limit.get() or _restriction or available()


class limit:  # noqa: N801 - used as a function, and faster than a generator
    """Let kernels called from this context use at most `count` threads; None means as many as the process may use."""

    __slots__ = ("_count", "_token")

    def __init__(self, count: int | None) -> None:
        if count is not None and count < 1:
            raise ValueError(f"a thread limit must be at least 1, got {count}")
        self._count = count

    def __enter__(self) -> None:
        self._token: Token[int | None] = _limit.set(self._count)

    def __exit__(self, *error: object) -> None:
        _limit.reset(self._token)


def run_blocks(function: Callable[[int, int], object], items: int, min_items_per_thread: int = 1) -> None:
    """Call `function(start, stop)` on contiguous blocks that together cover range(items), on several threads.

    The calling thread runs alone if there is not enough work for two. The first exception is raised again once no block
    is running; blocks that have not begun by then are skipped.
    """
    workers = items // max(min_items_per_thread, 1)
    if workers > 1:
        workers = min(workers, threads())
    if workers <= 1:
        if items:
            function(0, items)
        return

    length = -(-items // (workers * _BLOCKS_PER_THREAD))
    starts = iter(range(0, items, length))
    shared = [function]
    failed = False

    def work() -> None:
        nonlocal failed
        for start in starts:
            if failed:
                return
            try:
                shared[0](start, min(start + length, items))
            except BaseException:
                failed = True
                raise

    # Threads draw blocks from one iterator, so a thread that starts late or never only leaves more work to the others.
    # The caller waits only for threads that have taken one of the tickets, hence never for itself.
    helpers = _started_threads(workers - 1)
    tickets = [None] * helpers
    ended: SimpleQueue[BaseException | None] = SimpleQueue()

    def help_out() -> None:
        if _take(tickets):
            ended.put(_error_of(work))

    try:
        for _ in range(helpers):
            _calls.put(help_out)
        work()
    finally:
        while _take(tickets):
            helpers -= 1
        errors = [ended.get() for _ in range(helpers)]
        # A call without a ticket waits in the queue, and must not keep arrays alive until a thread takes it.
        shared.clear()
    for error in errors:
        if error is not None:
            raise error


def _take(tickets: list[None]) -> bool:
    """Take a ticket, and return whether there was one."""
    try:
        tickets.pop()
    except IndexError:
        return False
    return True


def _error_of(work: Callable[[], object]) -> BaseException | None:
    try:
        work()
    except BaseException as error:
        return error
    return None


# --------------------------------------------------------------------------- copies

_COPIED, _LINE = 1 << 14, 16
"""Elements of a block that is copied into another order, and the number of neighbors there that it has at least: both
sides stay in a core's cache, and whole cache lines are written."""
SHARED_COPY = 1 << 17
"""Elements of a copy for which a further thread pays."""


def contiguous_copy(data: Array) -> Array:
    """Return a copy in C order."""
    out = np.empty(data.shape, data.dtype)
    if not data.ndim or data.size < _COPIED or data.strides[-1] == data.itemsize:
        np.copyto(out, data)  # passes over elements that lie side by side along the last axis are fast
    else:
        copy_in_blocks(out, data)
    return out


def copy_in_blocks(out: Array, data: Array) -> None:
    """Copy ``data`` to an array of the same shape in another order.

    Where neighbors in ``data`` end up far apart, NumPy would read a cache line for each element. Copying in blocks
    that follow the memory order of ``data`` keeps the lines in the cache until all their elements are written.
    """
    order = sorted(range(data.ndim), key=lambda axis: -abs(data.strides[axis]))
    x, y = data.transpose(order), out.transpose(order)
    places = _places(x.shape, _COPIED)

    def run(start: int, stop: int) -> None:
        for place in places[start:stop]:
            np.copyto(y[place], x[place])

    run_blocks(run, len(places), -(-SHARED_COPY * len(places) // max(data.size, 1)))


def _places(shape: tuple[int, ...], size: int) -> list[tuple[Any, ...]]:
    """Return indices of blocks of about ``size`` elements that together cover a shape."""
    axis = 0
    while axis < len(shape) - 1 and prod(shape[axis + 1 :]) > size:
        axis += 1
    step = -(-size // prod(shape[axis + 1 :]) // _LINE) * _LINE
    cuts = [slice(i, i + step) for i in range(0, shape[axis], step)]
    return [(*lead, cut) for lead in np.ndindex(shape[:axis]) for cut in cuts]
