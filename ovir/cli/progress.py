"""A progress bar for long runs: a listener of the executor."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ovir.diagnostics import escaped
from ovir.model import Layer

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE = 1.0
"""Seconds before the bar appears; shorter runs need none."""


class ProgressBar:
    """Counts the layers of the model itself, not those of its bodies."""

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
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        layer = TextColumn("{task.description}", markup=False)
        console = Console(stderr=True)
        progress = Progress(
            BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), layer, console=console, transient=True
        )
        progress.start()
        return progress, progress.add_task("", total=self.total)

    def stop(self) -> None:
        if self._shown is not None:
            self._shown[0].stop()
