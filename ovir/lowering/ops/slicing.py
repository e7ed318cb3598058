"""Slice and SliceScatter."""

from __future__ import annotations

import numpy as np

from ovir import opset8 as ops
from ovir.core.element_types import i64
from ovir.graph.layers import Layer, LayerOrPort, Port
from ovir.lowering.registry import lowers
from ovir.lowering.sizes import FAR, below, constant, known, part, rank, size
from ovir.ops.slicing import Slice, SliceScatter


@lowers("Slice", 8)
def slice_8(op: Slice, data: Port, start: Port, stop: Port, step: Port, axes: Port | None = None) -> Layer:
    """Slice all axes up to the last one that is named, whose masks leave out the others."""
    places = _axes(data, start, axes)
    count = max(places, default=-1) + 1
    begin, end, stride = (_spread(port, places, count) for port in (start, stop, step))
    keep = [int(axis not in places) for axis in range(count)]
    return ops.strided_slice(data, begin, end, stride, keep, keep)


def _axes(data: Port, start: Port, axes: Port | None) -> list[int]:
    if axes is not None:
        return [axis + rank(data) if axis < 0 else axis for axis in known(axes, "axes")]
    length = start.shape[0]
    return list(range(length.length if length.is_static else rank(data)))


def _spread(items: Port, places: list[int], count: int) -> LayerOrPort:
    """Return a list with the items at these places, and 1 elsewhere."""
    array = constant(items)
    if array is not None:
        spread = np.ones(count, np.int64)
        spread[places] = np.clip(array.astype(np.int64), -FAR, FAR)
        return ops.constant(spread)
    if places == list(range(count)):
        return items
    wide = ops.convert(items, i64)
    parts: list[LayerOrPort] = [ops.constant([1], i64)] * count
    for index, place in enumerate(places):
        parts[place] = ops.strided_slice(wide, [index], [index + 1], [1], [0], [0])
    return ops.concat(parts, axis=0)


@lowers("SliceScatter", 15, onnx="Range, Slice, Gather and ScatterND for each axis", limits="axes must be constant")
def slice_scatter(
    op: SliceScatter, data: Port, updates: Port, start: Port, stop: Port, step: Port, axes: Port | None = None
) -> LayerOrPort:
    """Write the updates into slices along one axis after another: those of the last axis into those of the others."""
    places = _axes(data, start, axes)
    selected = []
    for index, axis in enumerate(places):
        whole = below(size(data, axis))
        first, last, stride = (part(p, 0, index, index + 1) for p in (start, stop, step))
        selected.append(ops.slice(whole, first, last, stride))
    return _written(data, updates, places, selected)


def _written(data: LayerOrPort, updates: LayerOrPort, places: list[int], selected: list[Layer]) -> LayerOrPort:
    if not places:
        return updates
    inner = updates
    if len(places) > 1:
        inner = _written(ops.gather(data, selected[0], places[0]), updates, places[1:], selected[1:])
    return ops.scatter_update(data, selected[0], inner, places[0])
