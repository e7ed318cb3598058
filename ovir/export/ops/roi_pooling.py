"""ROIPooling and PSROIPooling."""

from __future__ import annotations

import numpy as np

from ovir.core.element_types import f32, f64, i64
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.pixels import Pixels, columns, greatest, listed, positions_shaped, zero_unless
from ovir.kernels.precision import lowest_finite
from ovir.ops.roi_pooling import PSROIPooling, ROIPooling

_NOT_FINITE = "NaN and infinities spread over sums of a plane"


@exports(ROIPooling, to="gathered pixels", of_reals=True)
def roi_pooling(graph: Graph, op: ROIPooling, data: Tensor, rois: Tensor) -> Tensor:
    """Export as the maximum of gathered pixels, or as interpolated pixels."""
    pixels = Pixels(graph, data)
    pool = _largest if op.method == "max" else _interpolated
    regions = _Regions(graph, pixels, rois, op.spatial_scale)
    return zero_unless(graph, pool(graph, op, pixels, regions), regions.exist)


class _Regions:
    """Regions [image, x1, y1, x2, y2] in the type of the pixels."""

    def __init__(self, graph: Graph, pixels: Pixels, rois: Tensor, scale: float) -> None:
        self.graph = graph
        numbers = graph.Gather(rois, graph.constant(0), axis=1)
        self.images, self.exist = listed(graph, numbers)
        self.rois = graph.cast(rois, pixels.element_type)
        self.scale = pixels.number(float(np.float32(scale)))

    def corners(self, rank: int) -> tuple[list[Tensor], list[Tensor]]:
        """Return starts and ends, y before x, [regions, 1, ...]."""
        left, top, right, bottom = columns(self.graph, self.rois, range(1, 5), rank)
        return [top, left], [bottom, right]


def _along(axis: int, rank: int, *at: int) -> list[int]:
    """Return a shape with -1 at one of two positions, and 1 elsewhere."""
    return [-1 if place == at[axis] else 1 for place in range(rank)]


def _largest(graph: Graph, op: ROIPooling, pixels: Pixels, regions: _Regions) -> Tensor:
    starts, ends = regions.corners(5)
    far = 2.0**30
    axes, present = [], []
    for axis, (count, size) in enumerate(zip(op.bins, (pixels.height, pixels.width), strict=True)):
        first, last = (
            graph.cast(graph.Clip(graph.rounded_away(graph.Mul(corner[axis], regions.scale)), -far, far), i64)
            for corner in (starts, ends)
        )
        side = graph.Max(graph.Add(graph.Sub(last, first), 1), 1)
        bins = positions_shaped(graph, count, i64, _along(axis, 5, 1, 2))
        most = graph.Sub(size, 1)
        begin = graph.Max(graph.Add(first, graph.Div(graph.Mul(bins, side), count)), 0)
        above = graph.Div(graph.Add(graph.Mul(graph.Add(bins, 1), side), count - 1), count)
        length = graph.Max(graph.Sub(graph.Min(graph.Add(first, above), size), begin), 0)
        number = positions_shaped(graph, greatest(graph, length), i64, _along(axis, 5, 3, 4))
        axes.append(graph.Max(graph.Min(graph.Add(begin, number), most), 0))
        present.append(graph.Less(number, length))
    images = graph.Reshape(regions.images, [-1, 1, 1, 1, 1])
    place = graph.Add(graph.Mul(graph.Add(graph.Mul(images, pixels.height), axes[0]), pixels.width), axes[1])
    exists = graph.Unsqueeze(graph.And(*present), [-1])
    lowest = pixels.number(float(lowest_finite(pixels.element_type.to_dtype())))
    values = graph.Where(exists, graph.Gather(pixels.rows, place), lowest)
    found = graph.reduced("ReduceMax", values, [3, 4], keep=False)
    has_pixels = graph.Greater(graph.ReduceSum(graph.cast(exists, f32), [3, 4], keepdims=0), 0.0)
    return graph.Transpose(graph.Where(has_pixels, found, pixels.number(0)), perm=[0, 3, 1, 2])


def _spaced(
    graph: Graph, pixels: Pixels, low: Tensor, high: Tensor, count: int, most: Tensor, shape: list[int]
) -> Tensor:
    """Return ``count`` evenly spaced positions from ``low`` to ``high``, shares of ``most``; one alone lies between."""
    if count == 1:
        return graph.Mul(graph.Mul(graph.Add(low, high), pixels.number(0.5)), most)
    step = graph.Div(graph.Mul(graph.Sub(high, low), most), pixels.number(count - 1))
    numbers = positions_shaped(graph, count, pixels.element_type, shape)
    return graph.Add(graph.Mul(numbers, step), graph.Mul(low, most))


def _interpolated(graph: Graph, op: ROIPooling, pixels: Pixels, regions: _Regions) -> Tensor:
    starts, ends = regions.corners(3)
    places = []
    for axis, (count, size) in enumerate(zip(op.bins, (pixels.height, pixels.width), strict=True)):
        most, shape = pixels.real(graph.Sub(size, 1)), _along(axis, 3, 1, 2)
        place = _spaced(graph, pixels, starts[axis], ends[axis], count, most, shape)
        if count > 1:  # rounding must not move the last one outside
            is_last = graph.constant((np.arange(count) == count - 1).reshape(shape))
            place = graph.Where(is_last, graph.Mul(ends[axis], most), place)
        places.append(place)
    y, x = places
    images = graph.Reshape(regions.images, [-1, 1, 1])
    made = pixels.at(images, y, x, pixels.between(y, x, 0, -1))
    return graph.Transpose(made, perm=[0, 3, 1, 2])


# --------------------------------------------------------------------------- channels for each bin


@exports(PSROIPooling, to="gathered pixels", limits="in mode average, " + _NOT_FINITE, of_reals=True)
def psroi_pooling(graph: Graph, op: PSROIPooling, data: Tensor, rois: Tensor) -> Tensor:
    """Export as differences of sums over planes, or as means of interpolated pixels."""
    pool = _average if op.mode == "average" else _bilinear
    return zero_unless(graph, *pool(graph, op, data, rois))


def _bilinear(graph: Graph, op: PSROIPooling, data: Tensor, rois: Tensor) -> tuple[Tensor, Tensor]:
    parts = op.spatial_bins_y, op.spatial_bins_x
    group, taps = op.group_size, parts[0] * parts[1]
    sizes = graph.Concat(graph.constant([-1, op.output_dim]), graph.Shape(data, start=2), axis=0)
    pixels = Pixels(graph, graph.Reshape(data, sizes))
    regions = _Regions(graph, pixels, rois, op.spatial_scale)
    starts, ends = regions.corners(5)
    places = []
    for axis, size in enumerate((pixels.height, pixels.width)):
        most = pixels.real(graph.Sub(size, 1))
        start = graph.Mul(starts[axis], regions.scale)
        part = graph.Div(graph.Sub(graph.Mul(ends[axis], regions.scale), start), pixels.number(parts[axis]))
        numbers = positions_shaped(graph, parts[axis], pixels.element_type, _along(axis, 5, 3, 4))
        low = graph.Add(start, graph.Mul(numbers, part))
        high = graph.Add(start, graph.Mul(graph.Add(numbers, pixels.number(1)), part))
        places.append(_spaced(graph, pixels, low, high, group, most, _along(axis, 5, 1, 2)))
    y, x = places
    images = graph.Reshape(graph.Mul(regions.images, taps), [-1, 1, 1, 1, 1])
    numbers = graph.constant(np.arange(taps).reshape(1, 1, 1, *parts))
    samples = pixels.at(graph.Add(images, numbers), y, x, pixels.between(y, x, 0, -1))
    made = graph.Div(graph.ReduceSum(samples, [3, 4], keepdims=0), pixels.number(taps))
    return graph.Transpose(made, perm=[0, 3, 1, 2]), regions.exist


def _average(graph: Graph, op: PSROIPooling, data: Tensor, rois: Tensor) -> tuple[Tensor, Tensor]:
    group, area = op.group_size, op.group_size**2
    planes = graph.Reshape(
        data, graph.Concat(graph.constant([0, op.output_dim, area]), graph.Shape(data, start=2), axis=0)
    )
    planes = graph.Transpose(planes, perm=[0, 2, 1, 3, 4])
    sizes = graph.Concat(graph.constant([-1, op.output_dim]), graph.Shape(data, start=2), axis=0)
    planes = graph.Reshape(planes, sizes)
    pixels = Pixels(graph, planes)
    regions = _Regions(graph, pixels, rois, op.spatial_scale)
    # The sum of a box is a difference of sums from the corner of the plane, which are exact enough in f64.
    sums = graph.Pad(graph.cast(planes, f64), [0, 0, 1, 1, 0, 0, 0, 0])
    corners = Pixels(graph, graph.CumSum(graph.CumSum(sums, graph.constant(2)), graph.constant(3)))
    starts, ends = regions.corners(3)
    cuts, lengths = [], []
    for axis, size in enumerate((pixels.height, pixels.width)):
        start = graph.Mul(graph.rounded_away(starts[axis]), regions.scale)
        end = graph.Mul(graph.rounded_away(graph.Add(ends[axis], pixels.number(1))), regions.scale)
        step = graph.Div(graph.Max(graph.Sub(end, start), pixels.number(0.1)), pixels.number(group))
        bins = positions_shaped(graph, group, pixels.element_type, _along(axis, 3, 1, 2))
        low = graph.Floor(graph.Add(graph.Mul(bins, step), start))
        high = graph.Ceil(graph.Add(graph.Mul(graph.Add(bins, pixels.number(1)), step), start))
        most = pixels.real(size)
        first, stop = (graph.cast(graph.Min(graph.Max(cut, pixels.number(0)), most), i64) for cut in (low, high))
        cuts.append((first, graph.Max(stop, first)))
        lengths.append(graph.Sub(cuts[-1][1], first))
    bins_of = graph.constant(np.arange(area).reshape(1, group, group))
    plane = graph.Add(graph.Reshape(graph.Mul(regions.images, area), [-1, 1, 1]), bins_of)
    total = None
    for row, column, operator in ((1, 1, "Add"), (0, 1, "Sub"), (1, 0, "Sub"), (0, 0, "Add")):
        at = graph.Add(graph.Mul(plane, corners.height), cuts[0][row])
        at = graph.Add(graph.Mul(at, corners.width), cuts[1][column])
        found = graph.Gather(corners.rows, at)
        total = found if total is None else getattr(graph, operator)(total, found)
    assert total is not None
    count = graph.Unsqueeze(graph.Max(graph.Mul(*lengths), 1), [-1])
    made = graph.Div(total, graph.cast(count, f64))
    return graph.Transpose(graph.cast(made, data.element_type), perm=[0, 3, 1, 2]), regions.exist
