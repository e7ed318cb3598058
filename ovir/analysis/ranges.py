"""A listener that measures the range of the values that each layer of a run produces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ovir.analysis.tensor_stats import stats
from ovir.core.arrays import Array
from ovir.graph.layers import Layer
from ovir.model import Model


@dataclass
class Range:
    """The finite values of a layer in all its calls; None if it had no such numbers.

    They are the values of the outputs that other layers read, or of all if none is read: the indices of a MaxPool, for
    example, are often unused, and larger than all other values of a model.
    """

    minimum: float | int | None = None
    maximum: float | int | None = None
    nonfinite: int = 0
    """How many values were NaN or infinite."""
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
        found = stats(array)
        self.nonfinite += found.nonfinite
        if found.minimum is None or found.maximum is None or found.mean is None:
            return
        count = array.size - found.nonfinite
        self._sum += found.mean * count
        self._count += count
        self.minimum = found.minimum if self.minimum is None else min(self.minimum, found.minimum)
        self.maximum = found.maximum if self.maximum is None else max(self.maximum, found.maximum)


class Ranges:
    """A listener of a run; afterwards ``ranges`` has the range of each layer, also of the inputs of the model."""

    def __init__(self) -> None:
        self._ranges: dict[Layer, Range] = {}

    def see_inputs(self, model: Model, arrays: Sequence[Array]) -> None:
        """Add the inputs of the model."""
        for port, array in zip(model.inputs, arrays, strict=True):
            self.did_run(port.layer, (), (array,))

    def will_run(self, layer: Layer, inputs: Sequence[Array]) -> None:
        """Do nothing before a layer."""

    def did_run(self, layer: Layer, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        found = self._ranges.setdefault(layer, Range())
        used = [array for port, array in zip(layer.outputs, outputs, strict=False) if port.readers]
        for array in used or outputs:
            found.add(array)

    @property
    def ranges(self) -> Mapping[Layer, Range]:
        return self._ranges
