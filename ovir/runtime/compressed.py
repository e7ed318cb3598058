"""Rewrites of steps that read compressed weights: they decompress the rows that they need, never the whole.

A row is a slice along the first axis.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import f32
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port
from ovir.ops.base.operator import Kernel, Operator
from ovir.ops.gather import GatherBase
from ovir.ops.grouped_matmul import GroupedMatMul
from ovir.ops.matmul import MatMul, oriented
from ovir.runtime.decompression import CompressedWeights, Decompressions
from ovir.runtime.failures import applied_operator

# Elements per product: BLAS wakes its threads for each, which takes long on a busy machine.
_PANEL = 1 << 22


def readers_by_rows(
    model: LayerGraph, found: Decompressions, is_tapped: Callable[[Layer], bool]
) -> dict[Layer, tuple[Port, Kernel]]:
    """Return the layers that need only some rows of their weights at a time, each with the port of the weights and a
    kernel without that input.

    Weights that no other layer reads, and whose layers are not tapped, are absorbed.
    """
    kept = {weights.port: weights for weights in found.kept.values()}
    readers: dict[Layer, tuple[Port, Kernel]] = {}
    read_whole: set[Layer] = set()
    for layer in model.layers:
        for position, port in enumerate(layer.inputs):
            weights = kept.get(port.source) if port.source else None
            if weights is None or layer in found.kept or layer in found.absorbed:
                continue
            kernel = _kernel_on(weights, layer, position) if layer not in readers else None
            if kernel is not None:
                readers[layer] = weights.port, kernel
            else:
                read_whole.add(weights.port.layer)
    found.absorbed |= {layer for layer in found.kept if layer not in read_whole and not is_tapped(layer)}
    return readers


def _kernel_on(weights: CompressedWeights, layer: Layer, position: int) -> Kernel | None:
    if layer.operator is None or not weights.has_slices:
        return None
    op = applied_operator(layer, layer.operator)
    constants = [port.type.constant for port in layer.inputs]
    if isinstance(op, GatherBase) and position == 0:
        return gather(op, weights, constants[2])
    if weights.element_type != f32 or position != 1:
        return None
    if isinstance(op, MatMul) and len(weights.shape) in (2, 3):
        return matmul(op, weights)
    if isinstance(op, GroupedMatMul) and len(weights.shape) == 3:
        return grouped_matmul(op, weights)
    return None


def gather(op: GatherBase, weights: CompressedWeights, axis: Array | None) -> Kernel | None:
    """Decompress the rows that a Gather along the first axis picks."""
    if op.batch_dims or axis is None or axis.item() not in (0, -len(weights.shape)):
        return None

    def run(indices: Array, axis: Array) -> Array:
        wanted, places = np.unique(indices, return_inverse=True)
        if not wanted.size or wanted[0] < 0 or wanted[-1] >= weights.shape[0]:
            return _array(op, weights.whole(), indices, axis)
        return _array(op, weights.slices(wanted), places.reshape(indices.shape), axis)

    return run


def matmul(op: MatMul, weights: CompressedWeights) -> Kernel:
    """Multiply with a panel of rows at a time: each gives columns of the result, a term of it, or part of the batch."""
    *batch, length, columns = weights.shape
    if op.transpose_b:
        length, columns = columns, length

    def run(a: Array) -> Array:
        x = oriented(a, op.transpose_a)
        aligned = not batch or x.ndim < 3 or (x.ndim == 3 and x.shape[0] in (1, *batch))
        if x.shape[-1] != length or not aligned:
            return _array(op, a, weights.whole())  # which also reports shapes that do not match
        result = np.zeros((*np.broadcast_shapes(x.shape[:-2], batch), *x.shape[-2:-1], columns), np.float32)
        for rows in weights.blocks(weights.all, _PANEL):
            panel = weights.slices(rows)
            if batch:
                part = x if x.ndim < 3 or len(x) == 1 else x[rows]
                result[rows] = np.matmul(part, oriented(panel, op.transpose_b))
            elif op.transpose_b:
                result[..., rows] = np.matmul(x, panel.T)
            else:
                result += np.matmul(x[..., rows], panel)
        return result

    return run


def grouped_matmul(op: GroupedMatMul, weights: CompressedWeights) -> Kernel:
    """Decompress the matrix of a group when its rows are multiplied."""

    class Matrices:
        shape = weights.shape

        def __getitem__(self, group: int) -> Array:
            return weights.slices(slice(group, group + 1)).reshape(weights.shape[1:])

    matrices: Any = Matrices()
    return lambda a, *offsets: _array(op, a, matrices, *offsets)


def _array(op: Operator, *inputs: Array) -> Array:
    result = op.run(*inputs)
    assert isinstance(result, np.ndarray)
    return result
