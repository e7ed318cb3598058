"""Smaller and simpler data: fewer elements along axes, constants of equal elements, no rt_info."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial

import numpy as np

from ovir.analysis.tensor_stats import as_numbers
from ovir.core.arrays import Array
from ovir.core.shapes import PartialShape
from ovir.debugging.reducing.stage import Stage
from ovir.editing.constant_edits import set_data
from ovir.graph.layers import Layer
from ovir.ops.infrastructure import Const

_LARGEST_SHAPE = 16
"""Integer constants of at most this many elements may be shapes, so that sizes in them are replaced, too."""


def sizes(stage: Stage) -> list[int]:
    """Return the different sizes of dimensions of inputs and constants that can be reduced, the largest first."""
    found = {
        dim.lower
        for layer in stage.model.layers
        if layer.type in ("Parameter", "Const")
        for dim in (layer.shape if layer.shape.rank is not None else ())
        if dim.is_static and dim.lower > 1
    }
    return sorted(found, reverse=True)


def resized(size: int, wanted: int) -> Iterator[Callable[[Stage], Stage]]:
    """Yield ways to make dimensions of one size smaller.

    First all dimensions of this size are replaced, because the layers between inputs and constants often need equal
    sizes; then only dimensions of inputs and constants, without the numbers in shapes; then only dimensions of inputs.
    """
    yield partial(_resized, size=size, wanted=wanted, in_constants=True, in_shapes=True)
    yield partial(_resized, size=size, wanted=wanted, in_constants=True, in_shapes=False)
    yield partial(_resized, size=size, wanted=wanted, in_constants=False, in_shapes=False)


def _resized(stage: Stage, size: int, wanted: int, in_constants: bool, in_shapes: bool) -> Stage:
    model = stage.model.clone()
    with model.editing():
        model.reshape({i: _replaced(port.shape, size, wanted) for i, port in enumerate(model.inputs)})
        for layer in list(model.layers) if in_constants else ():
            op = layer.operator
            if not isinstance(op, Const):
                continue
            if size in op.shape:
                _set(layer, op, op.data[tuple(slice(wanted if dim == size else None) for dim in op.shape)])
            elif in_shapes and _may_be_shape(op) and (op.data == size).any():
                _set(layer, op, np.where(op.data == size, op.data.dtype.type(wanted), op.data))
    return Stage(model, stage, stage.model.inputs)


def _replaced(shape: PartialShape, size: int, wanted: int) -> PartialShape:
    if shape.rank is None:
        return shape
    return PartialShape(wanted if dim.is_static and dim.lower == size else dim for dim in shape)


def _set(layer: Layer, op: Const, array: Array) -> None:
    set_data(layer, Const.of(array, op.element_type))


def static(stage: Stage) -> Stage | None:
    """Return the model whose inputs have size 1, or the least that is allowed, where they are dynamic."""
    if all(port.shape.is_static or port.shape.rank is None for port in stage.model.inputs):
        return None
    model = stage.model.clone()
    shapes = {i: port.shape for i, port in enumerate(model.inputs) if port.shape.rank is not None}
    model.reshape({i: [d if d.is_static else max(1, d.lower) for d in shape] for i, shape in shapes.items()})
    return Stage(model, stage, stage.model.inputs)


def _may_be_shape(op: Const) -> bool:
    return op.element_type.is_integral and op.element_type.bits >= 32 and 0 < op.data.size <= _LARGEST_SHAPE


# --------------------------------------------------------------------------- values


def varied_constants(stage: Stage) -> list[int]:
    """Return the ids of constants of numbers that are not all equal, without those that may be shapes."""
    return [layer.id for layer in stage.model.layers if isinstance(op := layer.operator, Const) and _varies(op)]


def _varies(op: Const) -> bool:
    if _may_be_shape(op) or op.element_type.kind == "string" or op.data.size < 2:
        return False
    numbers = as_numbers(op.data)
    first = numbers.reshape(-1)[0]
    return not bool(((numbers == first) | (np.isnan(numbers) & np.isnan(first))).all())


def with_equal_elements(stage: Stage, constants: Collection[int]) -> Stage:
    """Return the model in which all elements of constants are equal to the one that is largest in size, or NaN."""
    model = stage.model.clone()
    with model.editing():
        for number in constants:
            layer = model.layer(number)
            assert isinstance(layer.operator, Const)
            data = layer.operator.data
            largest = int(np.argmax(np.abs(as_numbers(data))))  # NaN counts as larger than all numbers
            _set(layer, layer.operator, np.full_like(data, data.reshape(-1)[largest]))
    return Stage(model, stage, stage.model.inputs)


def has_rt_info(stage: Stage) -> bool:
    """Return whether the model or anything in it has runtime information."""
    return any(
        graph.rt_info or any(layer.rt_info or any(port.rt_info for port in layer.outputs) for layer in graph.layers)
        for graph in stage.model.graphs()
    )


def stripped(stage: Stage) -> Stage:
    """Return the model without rt_info."""
    model = stage.model.clone()
    model.strip_rt_info()
    return Stage(model, stage, stage.model.inputs)
