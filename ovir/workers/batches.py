"""Batches: several inputs of a model in one run, along an axis whose size the model leaves open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from ovir.analysis.tensor_comparison import Tolerance, compare_tensors
from ovir.analysis.tensor_stats import stats
from ovir.core.arrays import Array
from ovir.core.shapes import Dimension, PartialShape
from ovir.diagnostics.codes import BAD_INPUT
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import InputError, ModelError
from ovir.model import Model
from ovir.runtime.inputs import collect_inputs

_PROBES = 5, 7
"""Sizes of the batch for which the model is inferred: numbers that other sizes are rarely products of."""


@dataclass(frozen=True)
class Batched:
    """The axis of each output that has one entry for each entry of the inputs along ``axis``."""

    axis: int
    output_axes: tuple[int, ...]

    def split(self, arrays: Sequence[Array], sizes: Sequence[int]) -> list[list[Array]]:
        """Return the arrays of each input from the outputs of a batch; ``sizes`` has the size
        of each."""
        ends = np.cumsum(sizes)[:-1]
        parts = [np.split(array, ends, axis) for array, axis in zip(arrays, self.output_axes, strict=True)]
        return [[part.copy() for part in one] for one in zip(*parts, strict=True)]


def find_batch_axis(model: Model) -> Batched:
    """Return the first axis that all inputs leave open, if inference shows that it passes through to each output.

    Raise InputError if there is no such axis, or an output lacks it.
    """
    shapes = [port.shape for port in model.inputs]
    axes = [{axis for axis in range(shape.rank or 0) if not shape[axis].is_static} for shape in shapes]
    common = sorted(set.intersection(*axes)) if axes else []
    if not common:
        inputs = ", ".join(f"'{port.any_name}' {port.type}" for port in model.inputs) or "none"
        hint = "give one with model.reshape, as in model.reshape({0: [-1, 3, 224, 224]})"
        _refuse(model, f"a batch needs an axis that all inputs leave open; the inputs are {inputs}", hint)
    first, *_ = common
    inferred = [_output_shapes(model, first, size) for size in _PROBES]
    by_output = zip(*inferred, strict=True)
    return Batched(first, tuple(_axis_of(model, i, probed) for i, probed in enumerate(by_output)))


def _output_shapes(model: Model, axis: int, size: int) -> list[PartialShape]:
    """Return the shapes of the outputs when the inputs have ``size`` entries along an axis."""
    copy = model.clone()
    try:
        copy.reshape({i: port.shape.with_dim(axis, Dimension(size)) for i, port in enumerate(model.inputs)})
    except ModelError as error:
        _refuse(model, f"the model cannot have batches along axis {axis} of its inputs: {error.diagnostic.message}")
    return [port.shape for port in copy.outputs]


def _axis_of(model: Model, output: int, shapes: Sequence[PartialShape]) -> int:
    """Return the axis of an output whose size is the size of the batch."""
    axes = [
        axis
        for axis in range(shapes[0].rank or 0)
        if all(
            shape.rank is not None and shape[axis] == Dimension(size)
            for shape, size in zip(shapes, _PROBES, strict=True)
        )
    ]
    if len(axes) != 1:
        which = "more than one axis" if axes else "no axis"
        port = model.outputs[output]
        _refuse(model, f"output '{port.any_name}' {port.type} has {which} that is as long as the batch")
    return axes[0]


def _refuse(model: Model, message: str, hint: str | None = None) -> NoReturn:
    raise InputError.usage(message, Place(model.path), hint=hint)


def join_batch(model: Model, feeds: Sequence[Any], batched: Batched) -> tuple[list[Array], list[int]]:
    """Return the arrays of one run on several inputs, and the size of each along the axis.

    Raise InputError for inputs that do not match the model or each other.
    """
    inputs = [collect_inputs(model, one, model.input_index) for one in feeds]
    sizes: list[int] = []
    for arrays in inputs:
        counts = {array.shape[batched.axis] for array in arrays}
        if len(counts) != 1:
            message = f"the arrays have {sorted(counts)} entries along axis {batched.axis}: expected the same number"
            raise InputError(diagnose(BAD_INPUT, message, Place(model.path)))
        sizes += counts
    joined = []
    for column in zip(*inputs, strict=True):
        others = {(*array.shape[: batched.axis], *array.shape[batched.axis + 1 :]) for array in column}
        if len(others) != 1:
            raise InputError(diagnose(BAD_INPUT, "the inputs of a batch have different shapes", Place(model.path)))
        joined.append(np.concatenate(column, batched.axis))
    return joined, sizes


def differs(alone: Sequence[Array], batched: Sequence[Array]) -> bool:
    """Return whether results of an input differ between a batch and a run of its own by more than rounding."""
    for a, b in zip(alone, batched, strict=True):
        if a.shape == b.shape and a.dtype.kind in "iubOTSU":  # a rounded score may change which index wins
            continue
        statistics = stats(a)
        largest = max(abs(statistics.minimum or 0), abs(statistics.maximum or 0))
        if not compare_tensors(b, a, Tolerance(_ROUNDING, _ROUNDING * largest)).within:
            return True
    return False


_ROUNDING = 0.02
"""A batch may be computed in another order; bf16 has 8 bits."""
