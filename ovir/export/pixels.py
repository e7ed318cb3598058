"""Pooling of regions of interest in ONNX: interpolated samples of pixels, gathered one by one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from ovir.core.element_types import ElementType, i64
from ovir.export.onnx_graph import Graph, Size, Tensor


class Pixels:
    """The pixels of planes [planes, channels, height, width] as rows that hold all channels."""

    def __init__(self, graph: Graph, planes: Tensor) -> None:
        self.graph = graph
        self.element_type = planes.element_type
        self.height, self.width = (graph.scalar_size_of(planes, axis) for axis in (2, 3))
        last = graph.Transpose(planes, perm=[0, 2, 3, 1])
        count = graph.constant([-1])
        if planes.shape[1].contains(0):  # Reshape cannot compute a size beside one of 0
            count = graph.reduced("ReduceProd", graph.Shape(last, end=3), [0])
        self.rows = graph.in_shape(last, graph.Concat(count, graph.Shape(last, start=3), axis=0))

    def number(self, value: float) -> Tensor:
        """Return a constant of the pixels' type."""
        return self.graph.number(value, self.element_type)

    def real(self, size: Tensor) -> Tensor:
        """Return a size as a number of the pixels' type."""
        return self.graph.cast(size, self.element_type)

    def at(self, plane: Tensor, y: Tensor, x: Tensor, factor: Tensor) -> Tensor:
        """Return the interpolated pixels at some positions times a factor, [..., channels].

        Positions beyond the center of a border pixel count as that center.
        """
        graph = self.graph
        total = None
        for row, share in self._neighbors(y, self.height):
            for column, part in self._neighbors(x, self.width):
                place = graph.Add(graph.Mul(graph.Add(graph.Mul(plane, self.height), row), self.width), column)
                weight = graph.Unsqueeze(graph.Mul(graph.Mul(share, part), factor), [-1])
                term = graph.Mul(graph.Gather(self.rows, place), weight)
                total = term if total is None else graph.Add(total, term)
        assert total is not None
        return total

    def between(self, y: Tensor, x: Tensor, low: float, beyond: float) -> Tensor:
        """Return 1 for positions from ``low`` to the size plus ``beyond`` on both axes, else 0."""
        graph, checks = self.graph, []
        for place, size in ((y, self.height), (x, self.width)):
            most = graph.Add(self.real(size), self.number(beyond))
            checks += [graph.GreaterOrEqual(place, self.number(low)), graph.LessOrEqual(place, most)]
        return graph.cast(reduce(graph.And, checks), self.element_type)

    def _neighbors(self, place: Tensor, size: Tensor) -> list[tuple[Tensor, Tensor]]:
        graph = self.graph
        last = self.real(graph.Sub(size, 1))
        positive = graph.Where(graph.GreaterOrEqual(place, self.number(0)), place, self.number(0))  # NaN counts as 0
        place = graph.Min(positive, last)
        low = graph.Floor(place)
        part = graph.Sub(place, low)
        first, second = graph.cast(low, i64), graph.cast(graph.Ceil(place), i64)
        return [(first, graph.Sub(self.number(1), part)), (second, part)]


def listed(graph: Graph, numbers: Tensor) -> tuple[Tensor, Tensor]:
    """Return the images of regions, and whether each region comes before the first -1, which ends the list."""
    images = graph.cast(numbers, i64)
    ended = graph.CumSum(graph.cast(graph.Equal(images, -1), i64), graph.constant(0))
    exists = graph.Equal(ended, 0)
    return graph.Where(exists, images, graph.constant(0)), exists


def columns(graph: Graph, table: Tensor, numbers: Sequence[int], rank: int) -> list[Tensor]:
    """Return some columns of a table [regions, numbers], each as [regions, 1, ...] of a rank."""
    shape = [-1] + [1] * (rank - 1)
    return [graph.Reshape(graph.Gather(table, graph.constant(n), axis=1), shape) for n in numbers]


def positions_shaped(graph: Graph, count: Size, element_type: ElementType, shape: Sequence[int]) -> Tensor:
    """Return the numbers 0, 1, ... below ``count`` in a shape."""
    return graph.Reshape(graph.cast(graph.positions_below(count), element_type), list(shape))


def zero_unless(graph: Graph, pooled: Tensor, exists: Tensor) -> Tensor:
    """Return pooled regions [regions, a, b, c], zero where they do not exist."""
    return graph.Mul(pooled, graph.cast(graph.Reshape(exists, [-1, 1, 1, 1]), pooled.element_type))


def greatest(graph: Graph, counts: Tensor) -> Tensor:
    """Return the largest of some counts as an integer, 0 if there are none."""
    none = graph.cast(graph.constant([0]), counts.element_type)
    return graph.cast(graph.ReduceMax(graph.Concat(graph.Reshape(counts, [-1]), none, axis=0), keepdims=0), i64)


def sampled(
    pixels: Pixels,
    images: Tensor,
    start: Sequence[Tensor],
    size: Sequence[Tensor],
    bins: Sequence[int],
    ratio: int,
    *,
    largest: bool = False,
) -> Tensor:
    """Return the mean or the largest of the samples in the bins of regions, [regions, channels, *bins].

    ``images`` are [regions], ``start`` and ``size`` hold y and x, each [regions, 1, 1, 1, 1]. ``ratio`` is the number
    of samples per bin on each axis; 0 means the length of the bin, rounded up.
    """
    graph, own = pixels.graph, pixels.element_type
    places, counts, exists = [], [], []
    for axis in range(2):
        step = graph.Div(size[axis], pixels.number(bins[axis]))
        along = [1, *(-1 if a == axis else 1 for a in range(2)), 1, 1]
        within = [1, 1, 1, *(-1 if a == axis else 1 for a in range(2))]
        most: int | Tensor = ratio
        count = pixels.number(ratio)
        if not ratio:
            count = graph.Max(graph.Ceil(step), pixels.number(0))
            most = greatest(graph, count)
        number = positions_shaped(graph, most, own, within)
        used = graph.Min(number, graph.Sub(count, pixels.number(1)))
        first = graph.Add(start[axis], graph.Mul(positions_shaped(graph, bins[axis], own, along), step))
        inner = graph.Mul(graph.Div(step, count), graph.Add(used, pixels.number(0.5)))
        places.append(graph.Add(first, inner))
        counts.append(count)
        if not ratio:
            exists.append(graph.Less(number, count))
    y, x = places
    factor = pixels.between(y, x, -1, 0)
    if exists:
        factor = graph.Mul(factor, graph.cast(graph.And(*exists), own))
    samples = pixels.at(graph.Reshape(images, [-1, 1, 1, 1, 1]), y, x, factor)
    if largest:
        made = graph.Max(graph.reduced("ReduceMax", samples, [3, 4], keep=False), pixels.number(0))
    else:
        total = graph.Mul(counts[0], counts[1])
        if not ratio:
            total = graph.Reshape(graph.Max(total, pixels.number(1)), [-1, 1, 1, 1])
        made = graph.Div(graph.ReduceSum(samples, [3, 4], keepdims=0), total)
    return graph.Transpose(made, perm=[0, 3, 1, 2])
