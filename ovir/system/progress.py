"""Progress of long work: its stages, such as reading or inferring, and how much of each is done.

Work opens a stage and counts in it. A display of progress watches the stages of a context, and reads them when there
is time to draw something. So work calls nothing for a layer, and does not even count where nobody watches. A thread
that the work starts has a context of its own, in which nobody watches.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import TypeVar

T = TypeVar("T")


class Stage:
    """A part of the work."""

    __slots__ = ("done", "item", "name", "start", "total")

    def __init__(self, name: str, total: int = 0) -> None:
        self.name = name
        self.total = total
        """The number of items to do; 0 if it is not known."""
        self.done = 0
        self.item: object = ""
        """The item in work: a text, or an item that the stage counts, such as a layer."""
        self.start = perf_counter()

    @property
    def seconds(self) -> float:
        """Return the time since the beginning of the stage."""
        return perf_counter() - self.start


_watched: ContextVar[list[Stage] | None] = ContextVar("ovir_stages", default=None)


@contextmanager
def watching() -> Iterator[list[Stage]]:
    """Yield the list of the open stages of the ``with`` block, the outermost one first."""
    stages: list[Stage] = []
    token = _watched.set(stages)
    try:
        yield stages
    finally:
        _watched.reset(token)


@contextmanager
def stage(name: str, total: int = 0) -> Iterator[Stage]:
    """Open a stage for a ``with`` block."""
    opened = Stage(name, total)
    stages = _watched.get()
    if stages is None:
        yield opened
        return
    depth = len(stages)
    stages.append(opened)
    try:
        yield opened
    finally:
        del stages[depth:]  # also the stages of loops that an exception has left


@contextmanager
def trials(name: str) -> Iterator[None]:
    """Open a stage for a ``with`` block of many trials, whose own stages are not shown: each would begin at 0 again."""
    with stage(name):
        token = _watched.set(None)
        try:
            yield
        finally:
            _watched.reset(token)


def is_shown() -> bool:
    """Return whether anybody shows the stages of this context."""
    return _watched.get() is not None


def counted(name: str, items: Collection[T]) -> Iterable[T]:
    """Return the items of a loop, which is a stage that counts them."""
    stages = _watched.get()
    return items if stages is None else _counted(name, items, stages)


def _counted(name: str, items: Collection[T], stages: list[Stage]) -> Iterator[T]:
    opened = Stage(name, len(items))
    stages.append(opened)
    try:
        for done, item in enumerate(items):
            opened.done, opened.item = done, item
            yield item
    finally:
        if opened in stages:
            stages.remove(opened)
