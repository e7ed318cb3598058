"""LayerNormalization with the factors and terms behind it, which the operator has as inputs, and RMSNormalization.

MVN becomes a LayerNormalization with a scale of ones. What multiplies its result takes the place of the ones, and what
is added becomes the bias, so that one node computes all of it.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from ovir.core.element_types import f32
from ovir.export.graph import Graph
from ovir.export.tensors import Tensor

SCALE, BIAS = 1, 2
"""The positions of the inputs of LayerNormalization."""
_TAKES = {SCALE: ("LayerNormalization", "RMSNormalization"), BIAS: ("LayerNormalization",)}


def with_parameter(graph: Graph, a: Tensor, b: Tensor, position: int) -> Tensor | None:
    """Return a LayerNormalization that takes in what follows it: one tensor is its result, the other its scale or bias.

    Return None where neither is such a result, or where the node has that input already.
    """
    for normal, parameter in ((a, b), (b, a)):
        node = normal.value.producer()
        if node is None or node.op_type not in _TAKES[position] or normal.element_type != f32:
            continue
        data, scale, *rest = node.inputs
        if rest or data is None or scale is None or (position == SCALE and not _is_ones(scale)):
            continue
        if not graph.is_fixed(parameter) or not _fits(parameter, scale):
            continue
        sizes = parameter.shape.to_tuple()[-len(scale.shape or ()) :]
        shaped = parameter if parameter.rank == len(sizes) else _reshaped(graph, parameter, sizes)
        inputs = [Tensor(data, f32), shaped] if position == SCALE else [Tensor(data, f32), Tensor(scale, f32), shaped]
        attributes = {name: node.attributes[name].value for name in ("axis", "epsilon")}
        return graph.node(node.op_type, *inputs, **attributes)[0]
    return None


def root_mean_square(graph: Graph, a: Tensor, b: Tensor) -> Tensor | None:
    """Return the RMSNormalization that the product of x and 1 / sqrt(mean(x^2) + eps) is, None for other products."""
    if not graph.has("RMSNormalization"):
        return None
    for x, factor in ((a, b), (b, a)):
        one, root = _inputs(factor.value, "Div")
        mean, eps = _inputs(*_inputs(root, "Sqrt")[:1], "Add")
        power, axes = _inputs(mean, "ReduceMean")
        base, exponent = _inputs(power, "Pow")
        numbers = [_number(value) for value in (one, eps, axes, exponent)]
        if base is not x.value or None in numbers or x.element_type != f32 or x.rank is None:
            continue
        if numbers[0] == 1 and numbers[3] == 2 and numbers[2] in (-1, x.rank - 1) and x.shape[-1].is_static:
            ones = np.ones(x.shape[-1].length, np.float32)
            return graph.RMSNormalization(x, ones, axis=-1, epsilon=numbers[1])
    return None


def _inputs(value: ir.Value | None, op_type: str) -> tuple[ir.Value | None, ir.Value | None]:
    """Return the first two inputs of the node that computes a tensor, None for what another operator computes."""
    node = None if value is None else value.producer()
    if node is None or node.op_type != op_type:
        return None, None
    first, second = (*node.inputs, None)[:2]
    return first, second


def _number(value: ir.Value | None) -> float | None:
    """Return the number in a constant of one element, which may be converted from another type, else None."""
    node = None if value is None else value.producer()
    if node is not None and node.op_type == "Cast":
        value = node.inputs[0]
    if value is None or value.const_value is None or value.const_value.size != 1:
        return None
    return float(value.const_value.numpy().item())


def _is_ones(value: ir.Value) -> bool:
    return value.const_value is not None and bool(np.all(value.const_value.numpy() == 1))


def _fits(parameter: Tensor, scale: ir.Value) -> bool:
    """Return whether a parameter has the shape of the scale, apart from sizes of 1 before it."""
    if not parameter.shape.is_static or scale.shape is None:
        return False
    sizes, wanted = parameter.shape.to_tuple(), tuple(scale.shape)
    extra = len(sizes) - len(wanted)
    return extra >= 0 and sizes[extra:] == wanted and set(sizes[:extra]) <= {1}


def _reshaped(graph: Graph, parameter: Tensor, sizes: tuple[int, ...]) -> Tensor:
    if parameter.constant is not None and parameter.value.const_value is not None:
        return graph.constant(parameter.constant.reshape(sizes), parameter.element_type)
    return graph.Reshape(parameter, list(sizes))
