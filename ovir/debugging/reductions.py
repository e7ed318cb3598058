"""How many numbers the elements of a tensor are sums of, on which the rounding error of correct engines depends."""

from __future__ import annotations

from collections.abc import Sequence

from ovir.core.arrays import Array
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.graph.layers import Layer, Port
from ovir.runtime.executor import SeenStep


def reduction_length(step: SeenStep) -> float:
    """Return how many products or elements each output element of a layer is the sum of, estimated from sizes."""
    outputs = max((array.size for array in step.outputs), default=0)
    if not outputs:
        return 1.0
    largest = max((array.size for array in step.inputs), default=0)
    products = _products(step.layer, step.inputs, step.outputs)
    return max(products / outputs, largest / outputs, 1.0)


def _products(layer: Layer, inputs: Sequence[Array], outputs: Sequence[Array]) -> float:
    """Return the multiply-accumulates of a layer for the sizes of a run; 0 where ovir does not count them."""
    op = layer.operator
    if op is None or len(inputs) != len(layer.inputs):
        return 0.0
    types = [
        TensorType(port.element_type, PartialShape(array.shape))
        for port, array in zip(layer.inputs, inputs, strict=True)
    ]
    shapes = {name: tensor.shape for name, tensor in op.named(types).items()}
    count = op.multiply_accumulates(shapes, PartialShape(outputs[0].shape))
    return float(count.lower) if count is not None and count.is_static else 0.0


class Depths:
    """For each tensor: the longest path of layers to it, and the longest sum of reduction lengths."""

    def __init__(self) -> None:
        self._known: dict[Port, tuple[float, float]] = {}

    def of(self, step: SeenStep) -> tuple[float, float]:
        """Return ``terms`` and ``steps`` for the outputs of a layer, and keep them for the layers behind it."""
        sources = [self.of_port(port.source) for port in step.layer.inputs if port.source is not None]
        terms = max((terms for terms, _ in sources), default=0.0)
        steps = max((steps for _, steps in sources), default=0.0)
        if step.layer.operator is None or not step.layer.operator.views:
            terms, steps = terms + reduction_length(step), steps + 1
        self._known.update((port, (terms, steps)) for port in step.layer.outputs)
        return terms, steps

    def of_port(self, port: Port) -> tuple[float, float]:
        """Return ``terms`` and ``steps`` for a tensor; 0 for inputs and constants."""
        return self._known.get(port, (0.0, 0.0))


def local(step: SeenStep) -> tuple[float, float]:
    """Return ``terms`` and ``steps`` for a layer whose inputs have no error."""
    return reduction_length(step), 1.0
