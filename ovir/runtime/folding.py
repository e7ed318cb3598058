"""Limits of time and memory for folding the constants of a model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovir.core.arrays import Array
from ovir.core.tensor_types import TensorType, constant_type
from ovir.diagnostics.errors import OperatorError
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer
from ovir.inference.cache import as_tuple
from ovir.ops.base.operator import Operator
from ovir.ops.infrastructure import Const

LARGEST_GROWTH = 16 << 20
"""The largest constant, in bytes, that folding creates from smaller ones, such as by Broadcast."""
_GROWTH = 4
"""How many times as large as its inputs a larger constant may be, as when f32 is made of u8."""
_TOTAL, _TOTAL_GROWTH = 64 << 20, 8
"""All folded constants together may take this many bytes and this many times the constants of the file."""
_TIME, _TIME_PER_BYTE = 1e8, 4
"""The nanoseconds that one kernel may take, in all and for each byte of its inputs."""


class FoldingBudget:
    """Decides which constants of one model or body are folded. What it refuses is computed in each run instead."""

    def __init__(self, model: LayerGraph) -> None:
        constants = (layer.outputs[0] for layer in model.layers if layer.type == "Const" and layer.outputs)
        self._left = _TOTAL + _TOTAL_GROWTH * sum(_most_bytes(port.type) or 0 for port in constants)

    def allows(self, layer: Layer, op: Operator, arrays: Sequence[Array]) -> bool:
        """Return whether the layer may be folded with these inputs; if so, its result is charged to the budget."""
        if isinstance(op, Const):
            return True
        if not op.bounded:
            return False
        inputs = [_known(port.type, array) for port, array in zip(layer.inputs, arrays, strict=True)]
        outputs: Sequence[TensorType] = [port.type for port in layer.outputs]
        if any(_most_bytes(tensor) is None for tensor in outputs):
            try:
                outputs = as_tuple(op.infer(*inputs))
            except OperatorError:
                return False  # the run reports it
        sizes = [_most_bytes(tensor) for tensor in outputs]
        made_from = sum(array.nbytes for array in arrays)
        largest = max(LARGEST_GROWTH, _GROWTH * made_from)
        if any(size is None or size > largest for size in sizes):
            return False
        if op.kernel_time(inputs, outputs) > _TIME + _TIME_PER_BYTE * made_from:
            return False
        total = sum(size or 0 for size in sizes)
        if op.views and total <= made_from:
            return True  # the result shares the memory of its input
        if total > self._left:
            return False
        self._left -= total
        return True


def _known(tensor: TensorType, array: Array) -> TensorType:
    return constant_type(array, None if tensor.element_type.is_dynamic else tensor.element_type)


def _most_bytes(tensor: TensorType) -> int | None:
    """Return the most bytes that an array of this type can take, None if there is no bound."""
    most = tensor.shape.size().upper
    if most is None or tensor.element_type.is_dynamic:
        return None
    return most * np.dtype(tensor.element_type.to_dtype()).itemsize
