"""Range and OneHot."""

from __future__ import annotations

import numpy as np

from ovir.core.element_types import boolean, f32, f64, i32, i64, string
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.ops.generate import OneHot1, OneHot16, Range1, Range4, RangeBase


@exports(Range1, Range4, to="Range")
def range_(graph: Graph, op: RangeBase, start: Tensor, stop: Tensor, step: Tensor) -> Tensor:
    """Export as Range of i64 or f64, or of i32 if all inputs have this type."""
    output = op.output_types[0]
    inputs = (start, stop, step)
    computed = i64 if output.is_integral else f64
    if output == i32 and all(tensor.element_type == i32 for tensor in inputs):
        computed = i32
    return graph.cast(graph.Range(*(graph.cast(graph.as_scalar(tensor), computed) for tensor in inputs)), output)


@exports(OneHot1, OneHot16, to="OneHot")
def one_hot(graph: Graph, op: OneHot1, indices: Tensor, depth: Tensor, on_value: Tensor, off_value: Tensor) -> Tensor:
    """Export as OneHot, with negative indices moved beyond the last one where they set nothing.

    OneHot of ONNX does not accept a scalar, which becomes a list of one index.
    """
    if indices.rank == 0:
        listed = graph.shaped(graph.Reshape(indices, [1]), [1])
        return graph.Reshape(one_hot(graph, op, listed, depth, on_value, off_value), [-1])
    size = graph.cast(graph.as_scalar(depth), i64)
    chosen = graph.shaped(graph.cast(indices, i64), indices.shape)
    may_wrap = getattr(op, "negative_indices_mode", "") == "normalize"
    is_counted = indices.element_type.kind == "unsigned"
    if not (may_wrap or is_counted or (indices.constant is not None and (indices.constant >= 0).all())):
        chosen = graph.Where(graph.Less(chosen, 0), size, chosen)
    own = on_value.element_type
    if own == f64:  # onnxruntime has no kernel
        is_on = graph.cast(graph.OneHot(chosen, size, np.array([0, 1], np.float32), axis=op.axis), boolean)
        return graph.Where(is_on, on_value, off_value)
    pair = graph.Concat(*(graph.Reshape(value, [1]) for value in (off_value, on_value)), axis=0)
    if own != string:  # onnxruntime has kernels for indices of i64 beside values of i64, f32 and string
        pair = graph.cast(pair, f32 if own.is_real else i64)
    return graph.OneHot(chosen, size, pair, axis=op.axis)
