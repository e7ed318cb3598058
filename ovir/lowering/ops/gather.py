"""Gather and GatherND."""

from __future__ import annotations

from ovir import opset7 as ops
from ovir.graph.layers import LayerOrPort, Port
from ovir.lowering.registry import lowers, refuse
from ovir.lowering.sizes import from_front, joined, known_sizes, older, part, rank, reshaped, scalar, sizes
from ovir.ops.gather import Gather7, Gather8, GatherND8


@lowers("Gather", 8)
def gather_8(op: Gather8, data: Port, indices: Port, axis: Port) -> LayerOrPort:
    """Count negative indices from the front, as the older versions do not define them."""
    return older(op, 7, data, from_front(indices, data, axis), axis)


@lowers("Gather", 7)
def gather_7(op: Gather7, data: Port, indices: Port, axis: Port) -> LayerOrPort:
    if op.batch_dims:
        refuse(f"Gather-1 has no batch_dims, and these are {op.batch_dims}")
    return older(op, 1, data, indices, axis)


@lowers("GatherND", 8)
def gather_nd_8(op: GatherND8, data: Port, indices: Port) -> LayerOrPort:
    """Count negative indices from the front, and divide the batch that the older version merges."""
    batch, (count,) = op.batch_dims, known_sizes(indices.shape.slice(-1), "indices")
    known = indices.type.value
    counted: LayerOrPort = indices
    if known is None or (known.lower < 0).any():
        ends = ops.convert(part(sizes(data), 0, batch, batch + count), indices.element_type)
        counted = ops.select(ops.less(indices, scalar(0, indices.element_type)), ops.add(indices, ends), indices)
    picked = older(op, 5, data, counted)
    if batch < 2:
        return picked
    shape = joined(
        part(sizes(data), 0, 0, batch),
        part(sizes(indices), 0, batch, rank(indices, "indices") - 1),
        part(sizes(data), 0, batch + count, rank(data)),
    )
    return reshaped(picked, shape)
