"""Progress bars: for long runs, as a listener of the executor, and for many files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import NDArray

from ovir.cli.output import print_message
from ovir.diagnostics.text import escaped
from ovir.graph.layers import Layer

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE = 1.0
"""Seconds before the bar appears; shorter runs need none."""


class BarBase:
    """A progress bar on stderr, which is hidden until ``PATIENCE`` is over; use it in a ``with`` block."""

    def __init__(self) -> None:
        self._start = perf_counter()
        self._shown: tuple[Progress, TaskID] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Remove the bar."""
        if self._shown is not None:
            self._shown[0].stop()

    def _draw(self, done: int, total: int, text: str = "") -> None:
        """Update the bar, or make it appear once it is time."""
        if self._shown is None:
            if perf_counter() - self._start < PATIENCE:
                return
            self._shown = _shown_bar(total)
        progress, task = self._shown
        progress.update(task, completed=done, total=total, description=text)


class ProgressBar(BarBase):
    """A progress bar that counts the layers of the model, without those in bodies."""

    def __init__(self, total: int) -> None:
        super().__init__()
        self.total = total
        self.done = 0

    def will_run(self, layer: Layer, inputs: Sequence[NDArray[Any]]) -> None:
        self._draw(self.done, self.total, f"{layer.type} {escaped(layer.name[-_MOST_TEXT:])}")

    def did_run(self, layer: Layer, inputs: Sequence[NDArray[Any]], outputs: Sequence[NDArray[Any]]) -> None:
        self.done += not layer.scope


class CountedProgress(BarBase):
    """A progress bar for work that calls ``update``; it appears only on a terminal.

    ``note`` is a message to print when the work has begun, which it may not if it is refused.
    """

    def __init__(self, note: str | None = None) -> None:
        super().__init__()
        self._note = note

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        if not any(error):
            self._print_note()

    def _print_note(self) -> None:
        note, self._note = self._note, None
        if note is not None:
            print_message(note)

    def update(self, done: int, total: int, text: str = "") -> None:
        """Record how many of how many things are done, and the latest one of them."""
        self._print_note()
        if self._shown is not None or (done < total and sys.stderr.isatty()):
            self._draw(done, total, escaped(text[-_MOST_TEXT:]))


class FileProgress(CountedProgress):
    """A progress bar that counts files; it appears only on a terminal."""

    def __init__(self, total: int) -> None:
        super().__init__()
        self.total = total
        self.done = 0

    def advance(self) -> None:
        """Count one more file."""
        self.done += 1
        self.update(self.done, self.total)

    def print(self, say: Callable[[], None]) -> None:
        """Call ``say``, which prints, while the bar is hidden."""
        self.stop()
        say()
        if self._shown is not None:
            self._shown[0].start()


_MOST_TEXT = 40
"""The number of characters beside a bar."""


def _shown_bar(total: int) -> tuple[Progress, TaskID]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    what = TextColumn("{task.description}", markup=False)
    console = Console(stderr=True)
    progress = Progress(BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), what, console=console, transient=True)
    progress.start()
    return progress, progress.add_task("", total=total)
