"""Free steps: steps with tensors whose shapes only a run shows. They look up their arrays, and run their kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from ovir.core.arrays import Array
from ovir.runtime.binder import copy_result
from ovir.runtime.failures import explain_failure
from ovir.runtime.plan import Step, require_promised, results_of

Targets = Sequence[tuple[int, Array | None]]
"""The slots of the outputs of a step, each with the permanent array to fill, if there is one."""

_MOST_SHAPES = 1000
"""The number of shapes of a step that are known to fit."""


class FreeStep:
    """A step that looks up its arrays in each run."""

    def __init__(self, step: Step, kernel: Callable[..., Any], targets: Targets, slots: list[Any]) -> None:
        self._layer = step.layer
        self._kernel = kernel
        self._targets = targets
        self._slots = slots
        self._arguments = _getter(step.inputs)
        self._checks_sizes = step.checks_sizes
        self._fitting: set[tuple[tuple[int, ...], ...]] = set()
        """The shapes of inputs that inference accepts."""
        self._promised: set[tuple[int, ...]] = set()
        """The shapes of outputs that are as inferred."""

    def __call__(self) -> None:
        """Run the step. Raises OperatorError if the kernel's results are not as inferred."""
        arrays = self._arguments(self._slots)
        if self._checks_sizes:
            self._require_fitting(arrays)
        results = results_of(self._kernel(*arrays), len(self._targets))
        for index, ((slot, fixed), array) in enumerate(zip(self._targets, results, strict=False)):
            if fixed is not None:
                copy_result(fixed, array)
                continue
            if array.shape not in self._promised:
                require_promised(self._layer.outputs[index], array)
                _add(self._promised, array.shape)
            self._slots[slot] = array

    def _require_fitting(self, arguments: Sequence[Array]) -> None:
        """Infer the layer for shapes that have not been seen before; raise OperatorError if they contradict each
        other."""
        shapes = tuple([array.shape for array in arguments])
        if shapes not in self._fitting:
            if (error := explain_failure(self._layer, arguments)) is not None:
                raise error
            _add(self._fitting, shapes)


def _add(shapes: set[Any], new: Any) -> None:
    if len(shapes) >= _MOST_SHAPES:
        shapes.clear()
    shapes.add(new)


def _getter(slots: tuple[int, ...]) -> Callable[[list[Any]], tuple[Array, ...]]:
    if len(slots) > 1:
        return itemgetter(*slots)
    return lambda values: tuple([values[slot] for slot in slots])
