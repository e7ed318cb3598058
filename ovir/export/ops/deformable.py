"""DeformableConvolution."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovir.core.element_types import f32, f64, i64
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.sizes import positions_below, size_of
from ovir.export.sliding_windows import Pads, static_pads
from ovir.ops.convolution import DeformableBase, DeformableConvolution1, DeformableConvolution8


@exports(
    DeformableConvolution1,
    DeformableConvolution8,
    to="DeformConv",
    limits="without bilinear_interpolation_pad, the kernel must be static",
)
def deformable_convolution(
    graph: Graph, op: DeformableBase, data: Tensor, offsets: Tensor, filters: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Export as DeformConv, which interpolates between data and zero outside of it."""
    own = data.element_type
    held = f64 if own.is_integral or own == f64 else f32
    pads = static_pads(op, data, [filters.shape[2], filters.shape[3]])
    if pads is None:
        graph.fail("auto_pad {} needs static spatial dimensions", op.auto_pad)
    graph.require(min(map(min, pads)) >= 0, "negative pads {} cannot be exported", pads)
    moved, weights = graph.cast(offsets, held), graph.cast(filters, held)
    scale = None if mask is None else graph.cast(mask, held)
    if not op.bilinear_interpolation_pad:
        moved, inside = _within(graph, op, data, filters, moved, pads)
        scale = inside if scale is None else graph.Mul(scale, inside)
    strides, dilations, _, _ = op.per_axis(2)
    made = graph.DeformConv(
        graph.cast(data, held),
        weights,
        moved,
        None,
        scale,
        strides=list(strides),
        dilations=list(dilations),
        pads=[begin for begin, _ in pads] + [end for _, end in pads],
        group=op.group,
        offset_group=op.deformable_group,
    )
    return graph.cast(graph.cast(made, i64) if own.is_integral else made, own)


def _within(
    graph: Graph, op: DeformableBase, data: Tensor, filters: Tensor, offsets: Tensor, pads: Pads
) -> tuple[Tensor, Tensor]:
    """Return offsets that end at the border of data, and 1 for the positions that are inside of it and else 0."""
    kernel = filters.shape.slice(2)
    graph.require(kernel.is_static, "the kernel of filters {} is unknown", filters.shape)
    rows, columns = kernel.to_tuple()
    taps, own = rows * columns, offsets.element_type
    windows = graph.Shape(offsets, start=2)
    base = _places(graph, op, offsets, (rows, columns), pads)
    limits = graph.Reshape(graph.cast(graph.Shape(data, start=2), own), [1, 1, 1, 2, 1, 1])
    none, one = (graph.number(n, own) for n in (0, 1))
    split = graph.Concat(graph.constant([0, op.deformable_group, taps, 2]), windows, axis=0)
    places = graph.Add(graph.Reshape(offsets, split), base)
    inside = graph.And(graph.GreaterOrEqual(places, none), graph.Less(places, limits))
    nearest = graph.Min(places, graph.Sub(limits, one))
    y, x = graph.node("Split", inside, [1, 1], outputs=2, axis=3)
    both = graph.cast(graph.And(y, x), offsets.element_type)
    channels = graph.Concat(graph.constant([0, op.deformable_group * taps]), windows, axis=0)
    return graph.Reshape(graph.Sub(nearest, base), graph.Shape(offsets)), graph.Reshape(both, channels)


def _places(graph: Graph, op: DeformableBase, offsets: Tensor, kernel: Sequence[int], pads: Pads) -> Tensor:
    """Return the unmoved positions of the taps, [1, 1, taps, axis, *windows]."""
    strides, dilations, _, _ = op.per_axis(2)
    shape = graph.Concat(graph.constant(list(kernel)), graph.Shape(offsets, start=2), axis=0)
    axes = []
    for axis in range(2):
        windows = positions_below(graph, size_of(graph, offsets, 2 + axis))
        along = [-1 if place == 2 + axis else 1 for place in range(4)]
        starts = graph.Sub(graph.Mul(graph.Reshape(windows, along), strides[axis]), pads[axis][0])
        taps = np.arange(kernel[axis]).reshape([-1 if place == axis else 1 for place in range(4)]) * dilations[axis]
        axes.append(graph.Unsqueeze(graph.Expand(graph.Add(starts, graph.constant(taps)), shape), [2]))
    both = graph.Concat(*axes, axis=2)  # [rows, columns, axis, *windows]
    flat = graph.Concat(graph.constant([1, 1, kernel[0] * kernel[1], 2]), graph.Shape(offsets, start=2), axis=0)
    return graph.cast(graph.Reshape(both, flat), offsets.element_type)
