"""Gather and GatherND."""

from __future__ import annotations

import numpy as np

from ovir import opset6 as ops
from ovir.graph.layers import LayerOrPort, Port
from ovir.lowering.parts import constant, known, older, scalar, size
from ovir.lowering.registry import lowers, refuse
from ovir.ops.gather import Gather7, Gather8


@lowers("Gather", 8)
def gather_8(op: Gather8, data: Port, indices: Port, axis: Port) -> LayerOrPort:
    """Count negative indices from the front, which the older versions do not define."""
    return older(op, 7, data, _from_front(data, indices, axis), axis)


def _from_front(data: Port, indices: Port, axis: Port) -> LayerOrPort:
    value = indices.type.value
    if indices.element_type.name.startswith("u") or (value is not None and bool((value.lower >= 0).all())):
        return indices
    where = known(axis, "axis")[0]
    array = constant(indices)
    if array is not None and (array >= 0).all():
        return indices
    if array is not None and data.shape.rank is not None and (length := data.shape[where]).is_static:
        return ops.constant(np.where(array < 0, array + length.length, array).astype(array.dtype), indices.element_type)
    length_of_axis = ops.convert(ops.squeeze(size(data, where), [0]), indices.element_type)
    is_negative = ops.less(indices, scalar(0, indices.element_type))
    return ops.select(is_negative, ops.add(indices, length_of_axis), indices)


@lowers("Gather", 7)
def gather_7(op: Gather7, data: Port, indices: Port, axis: Port) -> LayerOrPort:
    if op.batch_dims:
        refuse(f"Gather-1 has no batch_dims, and these are {op.batch_dims}")
    return older(op, 1, data, indices, axis)
