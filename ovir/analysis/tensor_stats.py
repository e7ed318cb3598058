"""Statistics of tensors, and the ranges of a model's tensors over many inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ovir.core.arrays import Array
from ovir.graph.layers import Layer
from ovir.runtime.listeners import ResultListener


@dataclass(frozen=True)
class Stats:
    """Statistics of the finite values; None if there are none, or if they are not numbers."""

    minimum: float | int | None = None
    maximum: float | int | None = None
    mean: float | None = None
    nonfinite: int = 0
    """The number of NaN and infinite values."""


def stats(array: Array) -> Stats:
    """Return the statistics of an array of any element type; strings have none."""
    if array.dtype.kind in "TUSO" or array.size == 0:
        return Stats()
    values = as_numbers(array)
    nonfinite = 0
    if values.dtype.kind == "f":
        finite = np.isfinite(values)
        nonfinite = values.size - int(np.count_nonzero(finite))
        if nonfinite:
            values = values[finite]
    if not values.size:
        return Stats(nonfinite=nonfinite)
    return Stats(values.min().item(), values.max().item(), float(values.mean(dtype=np.float64)), nonfinite)


def as_numbers(array: Array) -> Array:
    """Return the array in a type that NumPy computes with: small types are widened, booleans become 0 and 1."""
    if array.dtype.kind == "b":
        return array.view(np.uint8)
    if array.dtype.kind == "V" or array.dtype.type.__module__ != "numpy":
        integral = array.dtype.name.startswith(("int", "uint"))
        return array.astype(np.int32 if integral else np.float32)
    return array


def likely_classes(array: Array) -> list[tuple[int, float]] | None:
    """Return the most probable class of each row of probabilities; None for any other tensor."""
    if array.ndim != 2 or array.shape[1] < 2 or not array.size or array.dtype.kind not in "fV":
        return None
    values = as_numbers(array)
    if values.dtype.kind != "f" or not (values.min() >= 0 and np.allclose(values.sum(axis=1), 1, atol=1e-2)):
        return None
    best = values.argmax(axis=1)
    return [(int(c), float(values[row, c])) for row, c in enumerate(best)]


@dataclass
class Range:
    """The finite values of a layer in all its calls; None if it had no such numbers.

    They are the values of the outputs that other layers read, or of all if none is read: the indices of a MaxPool, for
    example, are often unused, and larger than all other values of a model.
    """

    minimum: float | int | None = None
    maximum: float | int | None = None
    nonfinite: int = 0
    """The number of NaN and infinite values."""
    _sum: float = 0.0
    _count: int = 0

    @property
    def mean(self) -> float | None:
        """Return the mean of the finite values."""
        return self._sum / self._count if self._count else None

    @property
    def largest(self) -> float | int | None:
        """Return the largest absolute value."""
        if self.minimum is None or self.maximum is None:
            return None
        return max(abs(self.minimum), abs(self.maximum))

    def add(self, array: Array) -> None:
        """Add the values of a tensor."""
        of_array = stats(array)
        self.nonfinite += of_array.nonfinite
        if of_array.minimum is None or of_array.maximum is None or of_array.mean is None:
            return
        count = array.size - of_array.nonfinite
        self._sum += of_array.mean * count
        self._count += count
        self.minimum = of_array.minimum if self.minimum is None else min(self.minimum, of_array.minimum)
        self.maximum = of_array.maximum if self.maximum is None else max(self.maximum, of_array.maximum)


class Ranges(ResultListener):
    """A listener of a run; afterwards ``ranges`` has the range of each layer, also of the inputs of the model."""

    def __init__(self) -> None:
        self.ranges: dict[Layer, Range] = {}

    def did_run(self, layer: Layer, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        range_of = self.ranges.setdefault(layer, Range())
        used = [array for port, array in zip(layer.outputs, outputs, strict=False) if port.readers]
        for array in used or outputs:
            range_of.add(array)
