"""DeformableConvolution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import f32, f64, i64
from ovir.export.graph import Graph
from ovir.export.registry import exports
from ovir.export.tensors import Tensor
from ovir.export.windows import static_pads
from ovir.kernels.windows import Window
from ovir.ops.base.spatial import output_size
from ovir.ops.deformable import DeformableBase, DeformableConvolution1, DeformableConvolution8


@exports(
    DeformableConvolution1,
    DeformableConvolution8,
    to="DeformConv",
    limits="without bilinear_interpolation_pad, data and filters need static spatial dimensions",
)
def deformable_convolution(
    graph: Graph, op: DeformableBase, data: Tensor, offsets: Tensor, filters: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Export as DeformConv, which interpolates between data and zero outside of it."""
    own = data.element_type
    held = f64 if own.is_integral or own == f64 else f32
    pads = static_pads(op, data, [filters.shape[2], filters.shape[3]]) if data.rank is not None else None
    if pads is None:
        graph.fail("auto_pad {} needs static spatial dimensions", op.auto_pad)
    graph.require(min(map(min, pads)) >= 0, "negative pads {} cannot be exported", pads)
    moved, weights = graph.cast(offsets, held), graph.cast(filters, held)
    scale = None if mask is None else graph.cast(mask, held)
    if not op.bilinear_interpolation_pad:
        moved, inside = _within(graph, op, data, filters, moved)
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


def _within(graph: Graph, op: DeformableBase, data: Tensor, filters: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
    """Return offsets that end at the border of data, and 1 for the positions that are inside of it and else 0."""
    message = "without bilinear_interpolation_pad, the spatial dimensions of data {} and filters {} must be static"
    known = data.shape.slice(2).is_static and filters.shape.slice(2).is_static
    graph.require(known, message, data.shape, filters.shape)
    sizes, kernel = (t.shape.slice(2).to_tuple() for t in (data, filters))
    windows = op.windows(sizes, kernel)
    dtype = offsets.element_type.to_dtype()
    base, limits = _places(op, sizes, windows, dtype), np.array(sizes, dtype).reshape(1, 1, 1, 2, 1, 1)
    split = [0, op.deformable_group, kernel[0] * kernel[1], 2, *base.shape[-2:]]
    places = graph.Add(graph.Reshape(offsets, split), graph.constant(base))
    inside = graph.And(
        graph.GreaterOrEqual(places, graph.constant(np.zeros((), dtype))), graph.Less(places, graph.constant(limits))
    )
    nearest = graph.Min(places, graph.constant(limits - dtype.type(1)))
    shape = graph.Shape(offsets)
    y, x = graph.node("Split", inside, [1, 1], outputs=2, axis=3)
    both = graph.cast(graph.And(y, x), offsets.element_type)
    channels = [0, op.deformable_group * kernel[0] * kernel[1], *base.shape[-2:]]
    return graph.Reshape(graph.Sub(nearest, graph.constant(base)), shape), graph.Reshape(both, channels)


def _places(op: DeformableBase, sizes: Sequence[int], windows: Sequence[Window], dtype: np.dtype[Any]) -> Array:
    """Return the unmoved positions of the taps, [1, 1, taps, axis, *windows]."""
    axes = []
    for size, w in zip(sizes, windows, strict=True):
        count = output_size(size, w.kernel, w.stride, w.dilation, w.pad_begin, w.pad_end)
        axes.append(w.positions(count).T)  # [taps, windows]
    y, x = axes
    shape = len(y), len(x), y.shape[1], x.shape[1]
    both = np.broadcast_to(y[:, None, :, None], shape), np.broadcast_to(x[None, :, None, :], shape)
    taps = np.stack(both, axis=2).reshape(1, 1, shape[0] * shape[1], 2, *shape[2:])
    return taps.astype(dtype)
