"""The merge of LayerNormalization with the factors and terms behind it, which the operator has as inputs.

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


def with_parameter(graph: Graph, a: Tensor, b: Tensor, position: int) -> Tensor | None:
    """Return the LayerNormalization of which one tensor is the result, with the other one as its scale or bias.

    Return None where neither is such a result, or where the node has that input already.
    """
    for normal, parameter in ((a, b), (b, a)):
        node = normal.value.producer()
        if node is None or node.op_type != "LayerNormalization" or normal.element_type != f32:
            continue
        data, scale, *rest = node.inputs
        if rest or data is None or scale is None or (position == SCALE and not _is_ones(scale)):
            continue
        if not graph.is_fixed(parameter) or not _fits(parameter, scale):
            continue
        sizes = parameter.shape.to_tuple()[-len(scale.shape or ()) :]
        shaped = parameter if parameter.rank == len(sizes) else _reshaped(graph, parameter, sizes)
        inputs = [Tensor(data, f32), shaped if position == SCALE else Tensor(scale, f32)]
        attributes = {name: node.attributes[name].value for name in ("axis", "epsilon")}
        return graph.LayerNormalization(*inputs, shaped if position == BIAS else None, **attributes)
    return None


def _is_ones(value: ir.Value) -> bool:
    return value.const_value is not None and bool(np.all(value.const_value.numpy() == 1))


def _fits(parameter: Tensor, scale: ir.Value) -> bool:
    """Return whether a parameter has the shape of the scale, but for sizes of 1 before it."""
    if not parameter.shape.is_static or scale.shape is None:
        return False
    sizes, wanted = parameter.shape.to_tuple(), tuple(scale.shape)
    extra = len(sizes) - len(wanted)
    return extra >= 0 and sizes[extra:] == wanted and set(sizes[:extra]) <= {1}


def _reshaped(graph: Graph, parameter: Tensor, sizes: tuple[int, ...]) -> Tensor:
    if parameter.constant is not None and parameter.value.const_value is not None:
        return graph.constant(parameter.constant.reshape(sizes), parameter.element_type)
    return graph.Reshape(parameter, list(sizes))
