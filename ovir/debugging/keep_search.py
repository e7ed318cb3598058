"""Search for the few layers that must stay exact, from what each layer alone does to the outputs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

from ovir.core.arrays import Array
from ovir.debugging.output_errors import output_error, tensor_error
from ovir.model import Model
from ovir.runtime.emulation import Emulation
from ovir.runtime.partial import PartialRuns, Tensors

IN_MEMORY = 1 << 30
"""Bytes of recorded tensors that stay in memory; others are put into a temporary file."""


@dataclass
class Found:
    """The result of a search. Steps are known by their numbers."""

    error_before: float = 0.0
    """The error with all steps emulated."""
    error: float = 0.0
    """The error with all steps emulated except those to keep."""
    keep: frozenset[int] = frozenset()
    errors: dict[int, float] = field(default_factory=dict)
    """The error of the outputs with one step emulated."""
    own_errors: dict[int, float] = field(default_factory=dict)
    """The error of the step's own results if it is emulated."""


class Search:
    """Finds the steps to keep for one model and some sets of inputs."""

    def __init__(
        self,
        model: Model,
        emulation: Emulation,
        sets: Sequence[Sequence[Array]],
        tolerance: float,
        seconds: float,
        progress: Callable[[int, int, str], None],
    ) -> None:
        self.runs = PartialRuns(model, emulation)
        self._inputs: list[Tensors] = [self.runs.inputs(arrays) for arrays in sets]
        self._tolerance = tolerance
        self._end = perf_counter() + seconds
        self._progress = progress
        self._references = [self.runs.run(inputs, ()) for inputs in self._inputs]
        self._verified: dict[frozenset[int], float] = {}

    def find(self) -> Found:
        """Return the steps to keep."""
        found = Found(error_before=self.error_with(frozenset()))
        found.error = found.error_before
        self._measure(found)
        if found.error_before > self._tolerance:
            ranked = self._ranked(found)
            found.keep = self._shrunk(self._first_enough(ranked), ranked)
            found.error = self.error_with(found.keep)
        return found

    # ----- one step alone

    def _measure(self, found: Found) -> None:
        """Set the error of each step's own results, then the error of the outputs, for the largest own errors first."""
        for inputs, reference in zip(self._inputs, self._references, strict=True):
            recorded = self.runs.record(inputs, Keeper().keep)
            for index in self.runs.candidates:
                own = [tensor_error(array, recorded[port]) for port, array in self.runs.run_step(recorded, index)]
                found.own_errors[index] = max(found.own_errors.get(index, 0.0), *own, 0.0)
            order = sorted(self.runs.candidates, key=lambda index: -found.own_errors[index])
            for done, index in enumerate(order):
                if found.own_errors[index] == 0.0:
                    error = 0.0
                elif perf_counter() > self._end:
                    continue
                else:
                    error = output_error(self.runs.rerun(recorded, [index]), reference)
                found.errors[index] = max(found.errors.get(index, 0.0), error)
                self._progress(done + 1, len(order), "sensitivity")

    def _ranked(self, found: Found) -> list[int]:
        """Return the steps that may matter, the most sensitive first; those that were not measured come last."""

        def rank(index: int) -> tuple[bool, float, float, int]:
            error = found.errors.get(index)
            return (error is None, -(error or 0.0), -found.own_errors[index], index)

        return sorted((i for i in self.runs.candidates if found.own_errors[i] > 0.0), key=rank)

    # ----- all together

    def error_with(self, keep: frozenset[int]) -> float:
        """Return the error of the outputs with all steps emulated except those in ``keep``."""
        if keep not in self._verified:
            emulated = [index for index in self.runs.candidates if index not in keep]
            errors = (
                output_error(self.runs.run(inputs, emulated), reference)
                for inputs, reference in zip(self._inputs, self._references, strict=True)
            )
            worst = 0.0
            for error in errors:
                worst = max(worst, error)
                if worst > self._tolerance and keep:  # no other sample makes it better
                    break
            self._verified[keep] = worst
        return self._verified[keep]

    def _is_enough(self, keep: Collection[int]) -> bool:
        return self.error_with(frozenset(keep)) <= self._tolerance

    def _first_enough(self, ranked: Sequence[int]) -> list[int]:
        """Return as many of the first steps as are needed, by doubling and then halving their number."""
        high = 1
        while high < len(ranked) and not self._is_enough(ranked[:high]):
            self._progress(0, high, "layers to keep")
            high *= 2
        low, high = high // 2, min(high, len(ranked))
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._is_enough(ranked[:middle]) else (middle, high)
            self._progress(low, high, "layers to keep")
        return list(ranked[:high])

    def _shrunk(self, keep: list[int], ranked: Sequence[int]) -> frozenset[int]:
        """Return the steps that are left when those that are not needed are taken out, the least sensitive first, at
        first many at a time."""
        size = max(len(keep) // 2, 1)
        while keep:
            position = len(keep)
            while position > 0 and perf_counter() < self._end:
                start = max(position - size, 0)
                without = keep[:start] + keep[position:]
                if self._is_enough(without):
                    keep = without
                position = start
                self._progress(len(keep) - position, len(keep), "layers that are not needed")
            if size == 1 or perf_counter() >= self._end:
                break
            size = max(size // 2, 1)
        return frozenset(keep)


class Keeper:
    """Keeps arrays in memory up to a size, and in a temporary file from then on."""

    def __init__(self, most: int = IN_MEMORY) -> None:
        self._left = most

    def keep(self, array: Array) -> Array:
        """Return the array, or a copy of it in a file."""
        self._left -= array.nbytes
        if self._left >= 0 or array.dtype.kind in "TUSO" or not array.size:
            return array
        with tempfile.TemporaryFile() as file:  # it disappears with the last array that lies in it
            kept: Array = np.memmap(file, array.dtype, "w+", shape=array.shape)
        kept[...] = array
        return kept
