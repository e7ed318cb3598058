"""GridSample."""

from __future__ import annotations

from collections.abc import Callable

from ovir import opset7 as ops
from ovir.core.element_types import f32, f64, i64
from ovir.graph.layers import Layer, LayerOrPort, Port
from ovir.lowering.registry import lowers, refuse
from ovir.lowering.sizes import below, joined, polynomial, reshaped, scalar, size
from ovir.ops.grid_sample import GridSample


@lowers("GridSample", 9)
def grid_sample(op: GridSample, data: Port, grid: Port) -> LayerOrPort:
    """Gather the pixels around each position, and add them up with their weights."""
    if not data.element_type.is_real and op.mode != "nearest":
        refuse(f"older operations do not round {data.element_type} as this one does")
    if grid.element_type not in (f32, f64):
        grid = ops.convert(grid, f32).outputs[0]
    height, width = (ops.convert(ops.squeeze(size(data, axis), [0]), grid.element_type) for axis in (2, 3))
    columns, column_weights = _taps(op, _coordinate(grid, 0), width)
    rows, row_weights = _taps(op, _coordinate(grid, 1), height)
    pixels = reshaped(ops.transpose(data, [0, 2, 3, 1]), joined(-1, size(data, 1)))
    images = below(size(data, 0))
    first = ops.unsqueeze(ops.multiply(images, ops.convert(ops.multiply(height, width), i64)), [1, 2])
    total: Layer | None = None
    for row, row_weight in zip(rows, row_weights, strict=True):
        for column, column_weight in zip(columns, column_weights, strict=True):
            taken = _taken(op, pixels, first, row, column, height, width)
            if row_weight is not None and column_weight is not None:
                weight = ops.unsqueeze(ops.multiply(row_weight, column_weight), [3])
                taken = ops.multiply(taken, ops.convert(weight, data.element_type))
            total = taken if total is None else ops.add(total, taken)
    assert total is not None
    return ops.transpose(total, [0, 3, 1, 2])


def _coordinate(grid: Port, index: int) -> Layer:
    return ops.gather(grid, index, 3)


def _taps(op: GridSample, place: Layer, length: Layer) -> tuple[list[Layer], list[Layer | None]]:
    """Return the indices of the pixels along an axis, as real numbers, and their weights."""
    of = _numbers(place)
    if op.align_corners:
        position = ops.multiply(ops.add(place, of(1)), ops.multiply(ops.subtract(length, of(1)), of(0.5)))
    else:
        position = ops.multiply(ops.subtract(ops.multiply(ops.add(place, of(1)), length), of(1)), of(0.5))
    if op.mode == "nearest":
        return [ops.round(position, "half_to_even")], [None]
    low = ops.floor(position)
    share = ops.subtract(position, low)
    rest = ops.subtract(of(1), share)
    if op.mode == "bilinear":
        return [low, ops.add(low, of(1))], [rest, share]
    # Keys' kernel with the parameter -0.75, at distances of x and 1 + x
    near = [polynomial(x, 1.25, -2.25, 0, 1) for x in (share, rest)]
    far = [polynomial(x, -0.75, 1.5, -0.75, 0) for x in (share, rest)]
    return [ops.add(low, of(step)) for step in (-1, 0, 1, 2)], [far[0], *near, far[1]]


def _numbers(like: Layer) -> Callable[[float], Layer]:
    return lambda value: scalar(value, like.element_type)


def _taken(
    op: GridSample, pixels: Layer, first: Layer, row: Layer, column: Layer, height: Layer, width: Layer
) -> Layer:
    """Return the pixels [images, rows, columns, channels] at these indices; beyond the border as padding_mode says.

    ``first`` is the index of the first pixel of each image. Releases crash at a Gather with batch_dims in its place.
    """
    (y, outside_y), (x, outside_x) = (_inside(op, *axis) for axis in ((row, height), (column, width)))
    index = ops.convert(ops.add(ops.multiply(y, width), x), i64)
    taken = ops.gather(pixels, ops.add(index, first), 0)
    if op.padding_mode != "zeros":
        return taken
    outside = ops.unsqueeze(ops.logical_or(outside_y, outside_x), [3])
    return ops.select(outside, scalar(0, taken.element_type), taken)


def _inside(op: GridSample, index: Layer, length: Layer) -> tuple[Layer, Layer]:
    """Return indices within an axis, and the mask of those that were outside of it."""
    of = _numbers(index)
    last = ops.subtract(length, of(1))
    outside = ops.logical_or(ops.less(index, of(0)), ops.greater(index, last))
    if op.padding_mode == "reflection":
        twice = ops.multiply(last if op.align_corners else length, of(2))
        wrapped = ops.floor_mod(index, ops.maximum(twice, of(1)))
        index = ops.minimum(wrapped, ops.subtract(twice if op.align_corners else ops.subtract(twice, of(1)), wrapped))
    return ops.minimum(ops.maximum(index, of(0)), last), outside
