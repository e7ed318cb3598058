"""Convolution, GroupConvolution and BinaryConvolution."""

from __future__ import annotations

from typing import Any

import numpy as np

from ovir.core.element_types import f32, f64, i64
from ovir.core.shapes import UNKNOWN
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.sliding_windows import has_same_pads, padded, same_padded, static_pads, static_sizes, summed_products
from ovir.ops.convolution import BinaryConvolution, Convolution, ForwardConvolutionBase, GroupConvolution


@exports(Convolution, to="Conv", limits="integers and f64 need filters of static shape")
def convolution(graph: Graph, op: Convolution, data: Tensor, filters: Tensor) -> Tensor:
    """Export as Conv; integers and f64, for which there is no kernel, as MatMul for each tap of the filters."""
    if is_computed_by_taps(data):
        grouped = graph.shaped(graph.Unsqueeze(filters, [0]), [1, *filters.shape])
        return _by_taps(graph, op, data, grouped)
    return conv(graph, op, data, filters, 1)


@exports(
    GroupConvolution,
    to="Conv",
    limits="the number of groups must be static; integers and f64 need filters of static shape",
)
def group_convolution(graph: Graph, op: GroupConvolution, data: Tensor, filters: Tensor) -> Tensor:
    """Export as Conv, with filters [groups * outputs, inputs, *kernel]."""
    if is_computed_by_taps(data):
        return _by_taps(graph, op, data, filters)
    graph.rank(filters, "filters")
    groups = op.groups(data.shape, filters.shape, filters.shape[2])
    graph.require(groups.is_static, "the number of groups in filters {} is unknown", filters.shape)
    return conv(graph, op, data, without_groups(graph, filters), groups.length)


@exports(BinaryConvolution, to="Conv")
def binary_convolution(graph: Graph, op: BinaryConvolution, data: Tensor, filters: Tensor) -> Tensor:
    """Export as Conv of -1 and 1 with pads of pad_value."""
    kernel = [filters.shape[2], filters.shape[3]]
    # The first bit of each byte comes last.
    bits = graph.Gather(graph.Reshape(filters, [-1, 8]), list(range(7, -1, -1)), axis=1)
    weights = graph.shaped(graph.cast(graph.Reshape(bits, graph.Shape(filters)), f32), filters.shape)
    weights = graph.Sub(graph.Mul(weights, 2.0), 1.0)
    above = graph.Greater(data, graph.constant(np.zeros((), data.element_type.to_dtype())))
    signs = graph.Where(above, np.float32(1 - op.pad_value), np.float32(-1 - op.pad_value))
    pads = static_pads(op, data, kernel)
    # After subtracting the pad value everywhere, pads are zero; its part is added again at the end.
    signs = graph.shaped(signs, data.shape)
    signs = (
        same_padded(graph, op, signs, graph.Shape(filters, start=2), 2) if pads is None else padded(graph, signs, pads)
    )
    strides, dilations, _, _ = op.per_axis(2)
    sums = graph.Conv(signs, weights, strides=list(strides), dilations=list(dilations))
    if op.pad_value:
        of_pads = graph.Mul(graph.ReduceSum(weights, [1, 2, 3], keepdims=0), np.float32(op.pad_value))
        sums = graph.Add(sums, graph.Reshape(of_pads, [-1, 1, 1]))
    return graph.cast(graph.cast(sums, i64) if data.element_type.is_integral else sums, data.element_type)


def conv(graph: Graph, op: ForwardConvolutionBase, data: Tensor, filters: Tensor, groups: int) -> Tensor:
    """Add a Conv for filters [outputs, inputs, *kernel]."""
    kernel = list(filters.shape.slice(2)) if filters.rank is not None else [UNKNOWN] * (graph.rank(data) - 2)
    strides, dilations, _, _ = op.per_axis(len(kernel))
    attributes: dict[str, Any] = {"strides": list(strides), "dilations": list(dilations), "group": groups}
    attributes["kernel_shape"] = static_sizes(kernel)
    pads = static_pads(op, data, kernel) if data.rank is not None or op.auto_pad == "explicit" else None
    if pads is not None:
        data = padded(graph, data, [(min(begin, 0), min(end, 0)) for begin, end in pads])
        attributes["pads"] = [max(begin, 0) for begin, _ in pads] + [max(end, 0) for _, end in pads]
    elif has_same_pads(op, kernel):
        attributes["auto_pad"] = op.auto_pad.upper()
    else:
        data = same_padded(graph, op, data, static_sizes(kernel) or graph.Shape(filters, start=2), len(kernel))
    return graph.Conv(data, filters, **attributes)


def is_computed_by_taps(data: Tensor) -> bool:
    """Return whether onnxruntime has no convolution of this type."""
    return data.element_type.is_integral or data.element_type == f64


def without_groups(graph: Graph, filters: Tensor) -> Tensor:
    """Return filters [groups, a, b, *kernel] as [groups * a, b, *kernel]."""
    rest = filters.shape.slice(2)
    dims = [filters.shape[0] * filters.shape[1], *rest]
    sizes = static_sizes(dims)
    if filters.value.const_value is not None and filters.constant is not None and sizes is not None:
        return graph.constant(filters.constant.reshape(sizes), filters.element_type)
    if (known := static_sizes(rest)) is not None:
        made = graph.Reshape(filters, [-1, *known])
    else:
        made = graph.Reshape(filters, graph.Concat(graph.constant([-1]), graph.Shape(filters, start=2), axis=0))
    return graph.shaped(made, dims)


def _by_taps(graph: Graph, op: ForwardConvolutionBase, data: Tensor, filters: Tensor) -> Tensor:
    taps = graph.sizes(filters, "filters")[3:]
    kernel = list(filters.shape.slice(3))
    strides, dilations, _, _ = op.per_axis(len(kernel))
    pads = static_pads(op, data, kernel) if data.rank is not None else None
    data = same_padded(graph, op, data, taps, len(taps)) if pads is None else padded(graph, data, pads)
    return summed_products(graph, data, filters, strides, dilations)
