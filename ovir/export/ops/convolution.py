"""Convolutions, transposed convolutions and deformable convolutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ovir.core.element_types import dynamic, f32, f64, i64
from ovir.core.shapes import UNKNOWN, Dimension
from ovir.core.tensor_types import TensorType
from ovir.export import sliding_windows as sliding
from ovir.export.exporters import exports
from ovir.export.onnx_graph import FIRST, Graph, Tensor
from ovir.kernels.windows import extent
from ovir.ops import convolution as ops
from ovir.ops.base.spatial import SAME

_LIMITS = "integers and f64 need filters of static shape"

Product = Callable[[sliding.Pads], Tensor]
"""Returns the transposed convolution without so many elements at the beginning and end of each axis."""


@exports(ops.Convolution, to="Conv", limits=_LIMITS)
@exports(ops.GroupConvolution, to="Conv", limits=f"the number of groups must be static; {_LIMITS}")
def convolution(graph: Graph, op: ops.ForwardConvolutionBase, data: Tensor, filters: Tensor) -> Tensor:
    """Export as Conv; integers and f64, for which there is no kernel, as MatMul for each tap of the filters."""
    if _is_computed_by_taps(data):
        return _by_taps(graph, op, data, _with_groups(graph, op, filters))
    return _conv(graph, op, data, *_without_groups(graph, op, data, filters))


@exports(ops.BinaryConvolution, to="Conv")
def binary_convolution(graph: Graph, op: ops.BinaryConvolution, data: Tensor, filters: Tensor) -> Tensor:
    """Export as Conv of -1 and 1 with pads of pad_value."""
    # The first bit of each byte comes last.
    bits = graph.Gather(graph.Reshape(filters, [-1, 8]), list(range(7, -1, -1)), axis=1)
    weights = graph.cast(graph.Reshape(bits, graph.Shape(filters)), f32)
    weights = graph.shaped(graph.Sub(graph.Mul(weights, 2.0), 1.0), filters.shape)
    above = graph.Greater(data, graph.constant(np.zeros((), data.element_type.to_dtype())))
    signs = graph.Where(above, np.float32(1 - op.pad_value), np.float32(-1 - op.pad_value))
    # After subtracting the pad value everywhere, pads are zero; its part is added again at the end.
    sums = _conv(graph, op, graph.shaped(signs, data.shape), weights, 1)
    if op.pad_value:
        of_pads = graph.Mul(graph.ReduceSum(weights, [1, 2, 3], keepdims=0), np.float32(op.pad_value))
        sums = graph.Add(sums, graph.Reshape(of_pads, [-1, 1, 1]))
    return graph.cast(sums, i64) if data.element_type.is_integral else sums


def _conv(graph: Graph, op: ops.ForwardConvolutionBase, data: Tensor, filters: Tensor, groups: int) -> Tensor:
    """Add a Conv for filters [outputs, inputs, *kernel]."""
    kernel = list(filters.shape.slice(2)) if filters.rank is not None else [UNKNOWN] * (graph.rank(data) - 2)
    strides, dilations, _, _ = op.per_axis(len(kernel))
    attributes: dict[str, Any] = {"strides": list(strides), "dilations": list(dilations), "group": groups}
    attributes["kernel_shape"] = sliding.static_sizes(kernel)
    around = sliding.spatial_pads(graph, op, data, graph.shape_of(filters, 2), len(kernel))
    pads = sliding.known_pads(around)
    if pads is not None:
        data = sliding.padded(graph, data, [(min(begin, 0), min(end, 0)) for begin, end in pads])
        attributes["pads"] = [max(begin, 0) for begin, _ in pads] + [max(end, 0) for _, end in pads]
    elif sliding.has_same_pads(op, kernel):
        attributes["auto_pad"] = op.auto_pad.upper()
    else:
        data = sliding.padded(graph, data, around)
    return graph.Conv(data, filters, **attributes)


def _is_computed_by_taps(data: Tensor) -> bool:
    """Return whether onnxruntime has no convolution of this type."""
    return data.element_type.is_integral or data.element_type == f64


_Grouped = ops.GroupConvolution | ops.GroupConvolutionBackpropData


def _with_groups(graph: Graph, op: ops.ConvolutionBase, filters: Tensor) -> Tensor:
    """Return filters [groups, a, b, *kernel]."""
    return filters if isinstance(op, _Grouped) else graph.shaped(graph.Unsqueeze(filters, [0]), [1, *filters.shape])


def _without_groups(graph: Graph, op: ops.ConvolutionBase, data: Tensor, filters: Tensor) -> tuple[Tensor, int]:
    """Return filters [groups * a, b, *kernel], and the number of groups."""
    if not isinstance(op, _Grouped):
        return filters, 1
    first, second, *rest = graph.sizes_of(filters, "filters")
    groups = op.solved(*(TensorType(dynamic, tensor.shape) for tensor in (data, filters)))["G"]
    graph.require(groups.is_static, "the number of groups in filters {} is unknown", filters.shape)
    made = graph.reshaped(filters, [graph.Mul(first, second), *rest])
    return graph.shaped(made, [filters.shape[0] * filters.shape[1], *filters.shape.slice(2)]), groups.length


def _by_taps(graph: Graph, op: ops.ForwardConvolutionBase, data: Tensor, filters: Tensor) -> Tensor:
    axes = graph.rank(filters, "filters") - 3
    strides, dilations, _, _ = op.per_axis(axes)
    data = sliding.padded(graph, data, sliding.spatial_pads(graph, op, data, graph.shape_of(filters, 3), axes))
    return sliding.summed_products(graph, data, filters, strides, dilations)


# --------------------------------------------------------------------------- transposed


@exports(ops.ConvolutionBackpropData, ops.GroupConvolutionBackpropData, to="ConvTranspose", limits=_LIMITS)
def transposed_convolution(
    graph: Graph, op: ops.TransposedConvolutionBase, data: Tensor, filters: Tensor, output_shape: Tensor | None = None
) -> Tensor:
    """Export as ConvTranspose; integers and f64 as MatMul for each tap of the filters."""
    axes = graph.rank(data) - 2
    kernel = [filters.shape[axis - axes] for axis in range(axes)]
    if _is_computed_by_taps(data):
        product = _transposed_by_taps(graph, op, data, _with_groups(graph, op, filters))
    else:
        product = _transposed_in_one(graph, op, data, *_without_groups(graph, op, data, filters))
    return _cropped(graph, op, data, kernel, output_shape, product)


def _transposed_in_one(
    graph: Graph, op: ops.TransposedConvolutionBase, data: Tensor, filters: Tensor, groups: int
) -> Product:
    strides, dilations, _, _ = op.per_axis(graph.rank(data) - 2)

    def product(crops: sliding.Pads) -> Tensor:
        made = graph.ConvTranspose(
            data,
            filters,
            strides=list(strides),
            dilations=list(dilations),
            group=groups,
            pads=[max(begin, 0) for begin, _ in crops] + [max(end, 0) for _, end in crops],
            output_padding=list(op.output_padding) or None,
        )
        return sliding.padded(graph, made, [(max(-begin, 0), max(-end, 0)) for begin, end in crops])

    return product


def _transposed_by_taps(graph: Graph, op: ops.TransposedConvolutionBase, data: Tensor, filters: Tensor) -> Product:
    """Return the product as a convolution of data with zeros between its elements and reversed filters."""
    groups, depth, outputs, *kernel = graph.sizes(filters, "filters")
    axes = len(kernel)
    strides, dilations, _, _ = op.per_axis(axes)
    spread = data
    for axis, stride in enumerate(strides):
        spread = _spread(graph, spread, 2 + axis, stride)
    spatial = list(range(3, 3 + axes))
    flipped = graph.Slice(filters, [-1] * axes, [FIRST] * axes, spatial, [-1] * axes)
    weights = graph.Transpose(flipped, perm=[0, 2, 1, *spatial])
    weights = graph.shaped(weights, [groups, outputs, depth, *kernel])
    more = op.output_padding or (0,) * axes

    def product(crops: sliding.Pads) -> Tensor:
        pads = [
            (extent(taps, dilation) - 1 - begin, extent(taps, dilation) - stride - end + padding)
            for taps, dilation, stride, padding, (begin, end) in zip(
                kernel, dilations, strides, more, crops, strict=True
            )
        ]
        return sliding.summed_products(graph, sliding.padded(graph, spread, pads), weights, [1] * axes, dilations)

    return product


def _spread(graph: Graph, data: Tensor, axis: int, stride: int) -> Tensor:
    """Return data with stride - 1 zeros after each element of an axis."""
    if stride == 1:
        return data
    rank = graph.rank(data)
    pads = [0] * (2 * rank + 2)
    pads[rank + 1 + axis + 1] = stride - 1
    apart = graph.Pad(graph.Unsqueeze(data, [axis + 1]), pads)
    around = [graph.Shape(data, end=axis), graph.constant([-1])]
    if axis + 1 < rank:
        around.append(graph.Shape(data, start=axis + 1))
    return graph.shaped(graph.Reshape(apart, graph.Concat(*around, axis=0)), [-1] * rank)


def _cropped(
    graph: Graph,
    op: ops.TransposedConvolutionBase,
    data: Tensor,
    kernel: Sequence[Dimension],
    output_shape: Tensor | None,
    product: Product,
) -> Tensor:
    """Return the product without the pads, or of the sizes in ``output_shape``."""
    axes = len(kernel)
    _, _, begins, ends = op.per_axis(axes)
    is_same = op.auto_pad in SAME
    if is_same or op.auto_pad == "valid":
        begins = ends = [0] * axes
    if output_shape is None:
        return product(list(zip(begins, ends, strict=True)))
    known = _full_sizes(op, data, kernel)
    whole = product([(0, 0)] * axes) if known is None or output_shape.constant is None else None
    full = graph.constant(known) if whole is None else graph.Shape(whole, start=2)
    wanted, begin = graph.as_list(output_shape), graph.constant(list(begins))
    if is_same:
        total = graph.Max(graph.Sub(full, wanted), 0)
        less = graph.Div(total, 2)
        begin = graph.Sub(total, less) if op.auto_pad == "same_upper" else less
    if whole is None:
        return product(sliding.known_pads((begin, graph.Sub(graph.Sub(full, begin), wanted))) or [])
    # Negative pads crop.
    return sliding.padded(graph, whole, (graph.Neg(begin), graph.Add(graph.Sub(wanted, full), begin)))


def _full_sizes(op: ops.TransposedConvolutionBase, data: Tensor, kernel: Sequence[Dimension]) -> list[int] | None:
    """Return the sizes without pads, None if they are known only in a run."""
    taps, sizes = sliding.static_sizes(kernel), sliding.static_sizes(data.shape[2:])
    if taps is None or sizes is None:
        return None
    strides, dilations, _, _ = op.per_axis(len(taps))
    more = op.output_padding or (0,) * len(taps)
    axes = zip(sizes, strides, taps, dilations, more, strict=True)
    return [max(size - 1, 0) * stride + extent(tap, dilation) + added for size, stride, tap, dilation, added in axes]


# --------------------------------------------------------------------------- deformable


@exports(
    ops.DeformableConvolution1,
    ops.DeformableConvolution8,
    to="DeformConv",
    limits="without bilinear_interpolation_pad, the kernel must be static",
)
def deformable_convolution(
    graph: Graph, op: ops.DeformableBase, data: Tensor, offsets: Tensor, filters: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Export as DeformConv, which interpolates between data and zero outside of it."""
    own = data.element_type
    held = f64 if own.is_integral or own == f64 else f32
    pads = sliding.known_pads(sliding.spatial_pads(graph, op, data, graph.shape_of(filters, 2), 2))
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
    return graph.cast(made, i64) if own.is_integral else made


def _within(
    graph: Graph, op: ops.DeformableBase, data: Tensor, filters: Tensor, offsets: Tensor, pads: sliding.Pads
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


def _places(graph: Graph, op: ops.DeformableBase, offsets: Tensor, kernel: Sequence[int], pads: sliding.Pads) -> Tensor:
    """Return the unmoved positions of the taps, [1, 1, taps, axis, *windows]."""
    strides, dilations, _, _ = op.per_axis(2)
    shape = graph.Concat(graph.constant(list(kernel)), graph.Shape(offsets, start=2), axis=0)
    axes = []
    for axis in range(2):
        windows = graph.positions_below(graph.size_of(offsets, 2 + axis))
        along = [-1 if place == 2 + axis else 1 for place in range(4)]
        starts = graph.Sub(graph.Mul(graph.Reshape(windows, along), strides[axis]), pads[axis][0])
        taps = np.arange(kernel[axis]).reshape([-1 if place == axis else 1 for place in range(4)]) * dilations[axis]
        axes.append(graph.Unsqueeze(graph.Expand(graph.Add(starts, graph.constant(taps)), shape), [2]))
    both = graph.Concat(*axes, axis=2)  # [rows, columns, axis, *windows]
    flat = graph.Concat(graph.constant([1, 1, kernel[0] * kernel[1], 2]), graph.Shape(offsets, start=2), axis=0)
    return graph.cast(graph.Reshape(both, flat), offsets.element_type)
