"""ConvolutionBackpropData and GroupConvolutionBackpropData."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ovir.core.element_types import i64
from ovir.core.shapes import Dimension
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.ops.convolution import is_computed_by_taps, without_groups
from ovir.export.sizes import FIRST
from ovir.export.sliding_windows import Pads, padded, static_sizes, summed_products
from ovir.kernels.windows import extent
from ovir.ops.base.spatial import SAME
from ovir.ops.convolution import (
    ConvolutionBackpropData,
    GroupConvolutionBackpropData,
    TransposedConvolutionBase,
)

Product = Callable[[Pads], Tensor]
"""Returns the transposed convolution without so many elements at the begin and end of each axis."""


@exports(ConvolutionBackpropData, to="ConvTranspose", limits="integers and f64 need filters of static shape")
def convolution_backprop(
    graph: Graph, op: ConvolutionBackpropData, data: Tensor, filters: Tensor, output_shape: Tensor | None = None
) -> Tensor:
    """Export as ConvTranspose; integers and f64 as MatMul for each tap of the filters."""
    axes = graph.rank(data) - 2
    kernel = [filters.shape[2 + axis] for axis in range(axes)]
    if not is_computed_by_taps(data):
        return _cropped(graph, op, data, kernel, output_shape, _conv_transpose(graph, op, data, filters, axes, 1))
    grouped = graph.shaped(graph.Unsqueeze(filters, [0]), [1, *graph.sizes(filters, "filters")])
    return _cropped(graph, op, data, kernel, output_shape, _by_taps(graph, op, data, grouped))


@exports(GroupConvolutionBackpropData, to="ConvTranspose", limits="integers and f64 need filters of static shape")
def group_convolution_backprop(
    graph: Graph, op: GroupConvolutionBackpropData, data: Tensor, filters: Tensor, output_shape: Tensor | None = None
) -> Tensor:
    """Export as ConvTranspose, with filters [groups * inputs, outputs, *kernel]."""
    axes = graph.rank(data) - 2
    graph.rank(filters, "filters")
    kernel = list(filters.shape.slice(3))
    if is_computed_by_taps(data):
        return _cropped(graph, op, data, kernel, output_shape, _by_taps(graph, op, data, filters))
    groups = op.groups(data.shape, filters.shape, filters.shape[1])
    graph.require(groups.is_static, "the number of groups in filters {} is unknown", filters.shape)
    merged = without_groups(graph, filters)
    return _cropped(
        graph, op, data, kernel, output_shape, _conv_transpose(graph, op, data, merged, axes, groups.length)
    )


def _conv_transpose(
    graph: Graph, op: TransposedConvolutionBase, data: Tensor, filters: Tensor, axes: int, groups: int
) -> Product:
    strides, dilations, _, _ = op.per_axis(axes)

    def product(crops: Pads) -> Tensor:
        made = graph.ConvTranspose(
            data,
            filters,
            strides=list(strides),
            dilations=list(dilations),
            group=groups,
            pads=[max(begin, 0) for begin, _ in crops] + [max(end, 0) for _, end in crops],
            output_padding=list(op.output_padding) or None,
        )
        return padded(graph, made, [(max(-begin, 0), max(-end, 0)) for begin, end in crops])

    return product


def _by_taps(graph: Graph, op: TransposedConvolutionBase, data: Tensor, filters: Tensor) -> Product:
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

    def product(crops: Pads) -> Tensor:
        pads = [
            (extent(taps, dilation) - 1 - begin, extent(taps, dilation) - stride - end + padding)
            for taps, dilation, stride, padding, (begin, end) in zip(
                kernel, dilations, strides, more, crops, strict=True
            )
        ]
        return summed_products(graph, padded(graph, spread, pads), weights, [1] * axes, dilations)

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
    op: TransposedConvolutionBase,
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
    full = _full_sizes(op, data, kernel)
    if full is None or output_shape.constant is None:
        return _cropped_in_run(graph, op, product([(0, 0)] * axes), output_shape, begins)
    sizes = [int(size) for size in output_shape.constant]
    if is_same:
        totals = [max(size - wanted, 0) for size, wanted in zip(full, sizes, strict=True)]
        begins = [total - total // 2 if op.auto_pad == "same_upper" else total // 2 for total in totals]
    return product([(b, size - b - wanted) for b, size, wanted in zip(begins, full, sizes, strict=True)])


def _full_sizes(op: TransposedConvolutionBase, data: Tensor, kernel: Sequence[Dimension]) -> list[int] | None:
    """Return the sizes without pads, None if they are known in a run only."""
    taps, sizes = static_sizes(kernel), static_sizes(data.shape[2:])
    if taps is None or sizes is None:
        return None
    strides, dilations, _, _ = op.per_axis(len(taps))
    more = op.output_padding or (0,) * len(taps)
    axes = zip(sizes, strides, taps, dilations, more, strict=True)
    return [max(size - 1, 0) * stride + extent(tap, dilation) + added for size, stride, tap, dilation, added in axes]


def _cropped_in_run(
    graph: Graph, op: TransposedConvolutionBase, whole: Tensor, output_shape: Tensor, begins: Sequence[int]
) -> Tensor:
    axes, wanted = len(begins), graph.cast(output_shape, i64)
    full = graph.Shape(whole, start=2)
    begin = graph.constant(list(begins))
    if op.auto_pad in SAME:
        total = graph.Max(graph.Sub(full, wanted), [0] * axes)
        less = graph.Div(total, [2] * axes)
        begin = graph.Sub(total, less) if op.auto_pad == "same_upper" else less
    # Negative pads crop.
    end = graph.Add(graph.Sub(wanted, full), begin)
    pads = graph.Concat(graph.constant([0, 0]), graph.Neg(begin), graph.constant([0, 0]), end, axis=0)
    return graph.Pad(whole, pads)
