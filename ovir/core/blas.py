"""The number of threads of BLAS.

BLAS shares a product among threads that wait for each other. If other processes want the cores, each product waits for
a time slice of the scheduler: a model can take thirty times as long. Bound plans therefore run BLAS on one thread, and
share large products among the threads of ``ovir.core.parallel``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from functools import cache
from types import TracebackType
from typing import Any


class _SingleThread:
    """A context in which BLAS uses one thread; several threads may be in it at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users: list[int] = []
        """The threads in the context, each once for each time that it has entered it."""
        self._before: list[tuple[Callable[[int], object], int]] = []

    def __enter__(self) -> None:
        with self._lock:
            self._users.append(threading.get_ident())
            if len(self._users) == 1:
                self._before = [(put, get()) for get, put in _libraries()]
                for put, _ in self._before:
                    put(1)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._leave([threading.get_ident()])

    def forget_other_threads(self) -> None:
        """Go on after a fork, which other threads do not survive; one of them may have held the lock."""
        self._lock = threading.Lock()
        self._leave([user for user in self._users if user != threading.get_ident()])

    def _leave(self, users: Sequence[int]) -> None:
        for user in users:
            self._users.remove(user)
        if users and not self._users:
            for put, count in self._before:
                put(count)


single_thread = _SingleThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=single_thread.forget_other_threads)


@cache
def has_small_products() -> bool:
    """Return whether BLAS multiplies small matrices without packing them first, as OpenBLAS does on processors with
    AVX-512."""
    return any(library.get("architecture") in _WITH_SMALL_PRODUCTS for library in _loaded().info())


_WITH_SMALL_PRODUCTS = ("SkylakeX", "Cooperlake", "SapphireRapids")


@cache
def _loaded() -> Any:
    """Return the loaded libraries of BLAS."""
    from threadpoolctl import ThreadpoolController  # takes longer to import than a small model to run

    return ThreadpoolController().select(user_api="blas")


@cache
def _libraries() -> list[tuple[Callable[[], int], Callable[[int], object]]]:
    """Return the functions that get and set the number of threads of each loaded BLAS."""
    libraries = _loaded().lib_controllers
    return [(_function(library, "get_num_threads"), _function(library, "set_num_threads")) for library in libraries]


def _function(library: Any, name: str) -> Callable[..., Any]:
    """Return a function of a library: the one of OpenBLAS itself, since threadpoolctl looks it up at each call."""
    look_up = getattr(library, "_get_symbol", None)
    function = look_up(f"openblas_{name}") if look_up is not None and library.internal_api == "openblas" else None
    found: Callable[..., Any] = getattr(library, name) if function is None else function
    return found
