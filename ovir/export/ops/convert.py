"""Convert, ConvertLike and ConvertPromoteTypes."""

from __future__ import annotations

import numpy as np

from ovir.core.element_types import f4e2m1, f32, i32, nf4, u4, u8
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.ops.convert import NF4, NF4_STEPS, Convert, ConvertLike

_F4E2M1 = np.arange(16, dtype=np.uint8).view(f4e2m1.to_dtype()).astype(np.float32)
"""The numbers that the codes of f4e2m1 represent."""


@exports(Convert, ConvertLike, to="Cast; nf4, and constants of f4e2m1: Gather")
def convert(graph: Graph, op: Convert | ConvertLike, data: Tensor, like: Tensor | None = None) -> Tensor:
    """Export as Cast; codes of nf4 are looked up in a table."""
    source, target = op.input_types[0], op.output_types[0]
    if source == target:
        return data
    if source == nf4:
        return graph.cast(graph.Gather(NF4, graph.cast(data, i32)), target)
    if source == f4e2m1 and data.constant is not None:  # onnxruntime cannot convert it
        codes = graph.constant(data.constant.view(np.uint8), u4)
        return graph.cast(graph.Gather(_F4E2M1, graph.cast(codes, i32)), target)
    if target == nf4:
        return _codes(graph, data)
    if target == f4e2m1:  # Cast makes NaN the same
        return graph.cast(graph.Clip(graph.cast(data, f32), -6.0, 6.0), target)
    if target.is_integral and target.bits < 8:
        # onnxruntime would round real numbers to the nearest integer.
        bits = graph.cast(data, i32) if source.is_real else data
        return graph.cast(graph.wrapped(bits, target), target)
    # A constant stays as it is, which may take less space than what it is converted to.
    return graph.cast(Tensor(data.value, data.element_type, data.shape), target)


def _codes(graph: Graph, data: Tensor) -> Tensor:
    """Return the codes of nf4 of the nearest numbers: the number of steps between two numbers that are below."""
    above = graph.Greater(graph.Unsqueeze(graph.cast(data, f32), [-1]), NF4_STEPS)
    codes = graph.ReduceSum(graph.cast(above, i32), [-1], keepdims=0)
    return graph.cast(graph.cast(codes, u8), nf4)
