"""Progress bars: for long runs, as a listener of the executor, and for many files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import NDArray

from ovir.diagnostics.text import escaped
from ovir.graph.layers import Layer

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE = 1.0
"""Seconds before the bar appears; shorter runs need none."""


class ProgressBar:
    """A progress bar that counts the layers of the model, without those in bodies."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        self._start = perf_counter()
        self._shown: tuple[Progress, TaskID] | None = None

    def will_run(self, layer: Layer, inputs: Sequence[NDArray[Any]]) -> None:
        if self._shown is None:
            if perf_counter() - self._start < PATIENCE:
                return
            self._shown = self._show()
        progress, task = self._shown
        progress.update(task, completed=self.done, description=f"{layer.type} {escaped(layer.name[-40:])}")

    def did_run(self, layer: Layer, inputs: Sequence[NDArray[Any]], outputs: Sequence[NDArray[Any]]) -> None:
        self.done += not layer.scope

    def _show(self) -> tuple[Progress, TaskID]:
        return _shown_bar(self.total)

    def stop(self) -> None:
        if self._shown is not None:
            self._shown[0].stop()


class FileProgress:
    """A progress bar that counts files; it appears after a while, and only on a terminal."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        self._start = perf_counter()
        self._shown: tuple[Progress, TaskID] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown is not None:
            self._shown[0].stop()

    def advance(self) -> None:
        """Count one more file."""
        self.done += 1
        late = perf_counter() - self._start > PATIENCE
        if self._shown is None and late and self.done < self.total and sys.stderr.isatty():
            self._shown = _shown_bar(self.total)
        if self._shown is not None:
            self._shown[0].update(self._shown[1], completed=self.done)

    def print(self, say: Callable[[], None]) -> None:
        """Call ``say``, which prints, while the bar is hidden."""
        if self._shown is not None:
            self._shown[0].stop()
        say()
        if self._shown is not None:
            self._shown[0].start()


class SearchProgress:
    """A progress bar for a search in the layers of a model: how many of them are excluded or compared by now."""

    def __init__(self) -> None:
        self._start = perf_counter()
        self._shown: tuple[Progress, TaskID] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown is not None:
            self._shown[0].stop()

    def update(self, total: int, done: int, text: str) -> None:
        """Update the bar: ``done`` of ``total`` layers are excluded or compared."""
        if self._shown is None and perf_counter() - self._start > PATIENCE and sys.stderr.isatty():
            self._shown = _shown_bar(total)
        if self._shown is not None:
            self._shown[0].update(self._shown[1], completed=done, total=total, description=escaped(text[-60:]))


class CountedProgress:
    """A progress bar for work that calls ``update``; it appears after a while, and only on a terminal."""

    def __init__(self) -> None:
        self._start = perf_counter()
        self._shown: tuple[Progress, TaskID] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown is not None:
            self._shown[0].stop()

    def update(self, done: int, total: int, text: str) -> None:
        """Record how many of how many things are done, and the latest one of them."""
        late = perf_counter() - self._start > PATIENCE
        if self._shown is None and late and done < total and sys.stderr.isatty():
            self._shown = _shown_bar(total)
        if self._shown is not None:
            progress, task = self._shown
            progress.update(task, completed=done, total=total, description=escaped(text[-40:]))


def _shown_bar(total: int) -> tuple[Progress, TaskID]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    what = TextColumn("{task.description}", markup=False)
    console = Console(stderr=True)
    progress = Progress(BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), what, console=console, transient=True)
    progress.start()
    return progress, progress.add_task("", total=total)
