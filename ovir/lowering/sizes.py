"""Sizes, constants, slices and the like that many decompositions need, and the same operation in an older version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ovir import opset8 as ops
from ovir.building.creation import create_layer
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, i64
from ovir.core.shapes import PartialShape
from ovir.graph.layers import Layer, LayerOrPort, Port
from ovir.lowering.registry import refuse
from ovir.ops import find
from ovir.ops.base.operator import Operator
from ovir.ops.infrastructure import Const

FAR = 2**31 - 1
"""The largest position that runtimes which compute positions in i32 can hold."""


def tensor(item: LayerOrPort) -> Port:
    """Return the tensor that a layer stands for, or the tensor itself."""
    return item.outputs[0] if isinstance(item, Layer) else item


# ----- constants


def constant(item: LayerOrPort) -> Array | None:
    """Return the array of a tensor that is known before any run, None for others."""
    port = tensor(item)
    operator = port.layer.operator
    return operator.data if isinstance(operator, Const) and operator.has_data else port.type.constant


def known(item: LayerOrPort, name: str) -> list[int]:
    """Return the integers of an input that must be known before any run."""
    array = constant(item)
    if array is None:
        hint = "--fold-constants computes layers that are known before a run; --shape gives inputs exact sizes"
        refuse(f"the input '{name}' is not known before a run", hint)
    return [int(value) for value in array.ravel()]


def number(item: LayerOrPort) -> float | None:
    """Return the number of a known tensor of one element, None for others."""
    array = constant(item)
    return float(array.reshape(()).astype(np.float64)) if array is not None and array.size == 1 else None


def scalar(value: float, element_type: ElementType) -> Layer:
    """Return a constant number of an element type."""
    return ops.constant(value, element_type)


def polynomial(x: Layer, *coefficients: float) -> Layer:
    """Return a polynomial of numbers; the coefficient of the highest power comes first."""
    total = scalar(coefficients[0], x.element_type)
    for coefficient in coefficients[1:]:
        total = ops.multiply(total, x)
        total = ops.add(total, scalar(coefficient, x.element_type)) if coefficient else total
    return total


# ----- shapes


def rank(item: LayerOrPort, name: str = "data") -> int:
    """Return the rank of a tensor; refuse a layer for which it is unknown."""
    found = tensor(item).shape.rank
    if found is None:
        refuse(f"the rank of the input '{name}' is unknown", "--shape gives the inputs of the model a rank")
    return found


def known_sizes(shape: PartialShape, name: str = "data") -> tuple[int, ...]:
    """Return the sizes of a shape, or of a part of it; refuse a layer for which one of them is unknown."""
    if shape.is_dynamic:
        refuse(f"the input '{name}' has unknown sizes, {shape}", "--shape gives inputs exact sizes")
    return shape.to_tuple()


def sizes(item: LayerOrPort) -> Layer:
    """Return the shape of a tensor as a list of i64."""
    shape = tensor(item).shape
    if shape.is_static:
        return ops.constant(np.array(shape.to_tuple(), np.int64))
    return ops.shape_of(tensor(item))


def size(item: LayerOrPort, axis: int) -> Layer:
    """Return one size of a tensor as a list of one i64; negative axes count from the end."""
    port = tensor(item)
    if port.shape.rank is not None and port.shape[axis].is_static:
        return ops.constant([port.shape[axis].length], "i64")
    if port.shape.rank is not None:
        axis %= port.shape.rank
    return ops.gather(ops.shape_of(port), [axis], 0)


def joined(*parts: LayerOrPort | int | Sequence[int]) -> Layer:
    """Return lists of i64 one after the other."""
    lists = [part if isinstance(part, (Layer, Port)) else ops.constant(np.atleast_1d(part), "i64") for part in parts]
    arrays = [array for item in lists if (array := constant(item)) is not None]
    if len(arrays) == len(lists):
        return ops.constant(np.concatenate(arrays))
    return ops.concat(lists, axis=0)


def reshaped(item: LayerOrPort, shape: LayerOrPort | Array | Sequence[int]) -> Layer:
    """Return a tensor in a shape in which 0 is a size, and -1 the size that is left."""
    return ops.reshape(item, shape, special_zero=False)


def below(count: LayerOrPort) -> Layer:
    """Return the numbers 0, 1, ... below an integer, as i64."""
    array = constant(count)
    if array is not None:
        return ops.constant(np.arange(array.item()))
    end = count if tensor(count).shape.rank == 0 else ops.squeeze(count, [0])
    return ops.range(scalar(0, i64), end, scalar(1, i64), i64)


# ----- axes and indices


def part(item: LayerOrPort, axis: int, start: LayerOrPort | int, stop: LayerOrPort | int = FAR) -> Layer:
    """Return the elements along an axis from ``start`` up to ``stop``, which is excluded; layers are lists of one."""
    first, last = (end if isinstance(end, (Layer, Port)) else ops.constant([end], i64) for end in (start, stop))
    return ops.slice(item, first, last, [1], [axis])


def swapped(item: LayerOrPort, axis: int, last: int) -> LayerOrPort:
    """Return a tensor with an axis exchanged with the last one, whose number is given."""
    if axis == last:
        return item
    order = list(range(last + 1))
    order[axis], order[last] = last, axis
    return ops.transpose(item, order)


def taps_of(starts: Layer, stops: Layer) -> tuple[Layer, Layer]:
    """Return the elements of each window along an axis [count, longest], and which are counted: short windows repeat
    their last element."""
    longest = ops.reduce_max(ops.concat([ops.subtract(stops, starts), [1]], axis=0), [0])
    reached, ends = ops.add(ops.unsqueeze(starts, [1]), below(longest)), ops.unsqueeze(stops, [1])
    return ops.minimum(reached, ops.subtract(ends, [1])), ops.less(reached, ends)


def sums(
    item: LayerOrPort, axis: int, table: LayerOrPort, counted: LayerOrPort, weights: LayerOrPort | None = None
) -> Layer:
    """Return the sums of the elements along an axis whose positions are in each row of a table [count, most], as far as
    they are counted, multiplied by weights. Others are not read: infinity times 0 is NaN."""
    trailing = list(range(2, rank(item) - axis + 1))
    taken = ops.gather(item, table, axis)
    if weights is not None:
        taken = ops.multiply(taken, ops.unsqueeze(weights, trailing) if trailing else weights)
    mask = ops.unsqueeze(counted, trailing) if trailing else counted
    taken = ops.select(mask, taken, scalar(0, tensor(item).element_type))
    return ops.reduce_sum(taken, [axis + 1], keep_dims=False)


def from_front(indices: Port, data: Port, axis: Port) -> LayerOrPort:
    """Return indices along an axis with the negative ones counted from the front."""
    value, array = indices.type.value, constant(indices)
    is_counted = value is not None and bool((value.lower >= 0).all())
    if indices.element_type.kind == "unsigned" or is_counted or (array is not None and (array >= 0).all()):
        return indices
    length = ops.convert(ops.squeeze(size(data, known(axis, "axis")[0]), [0]), indices.element_type)
    is_negative = ops.less(indices, scalar(0, indices.element_type))
    return ops.select(is_negative, ops.add(indices, length), indices)


# ----- the same operation in an older version


def older(op: Operator, opset: int, *inputs: Any, **changes: Any) -> Layer:
    """Return a layer of the version that an older opset introduced, with the attributes that both versions have.

    ``changes`` has attributes of another value, by their names in files.
    """
    cls = find(op.type, opset)
    assert cls is not None
    values = {name: getattr(op, spec.field) for name, spec in op.attributes.items() if name in cls.attributes}
    return create_layer(op.type, inputs, {**values, **changes}, version=f"opset{opset}")
