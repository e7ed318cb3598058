"""Kernels of layers that read compressed weights: they restore them block by block, and never hold them whole."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import f32
from ovir.graph.layers import Layer, Port
from ovir.graph.model import Model
from ovir.ops.base.operator import Kernel
from ovir.ops.gather import Gather1, Gather7, Gather8
from ovir.ops.grouped_matmul import GroupedMatMul
from ovir.ops.matmul import MatMul
from ovir.runtime.decompression import CompressedWeights, Decompressions

# Elements that are multiplied at once: for each product BLAS wakes its threads, which takes long on a busy machine.
_PANEL = 1 << 22


def readers_by_blocks(
    model: Model, found: Decompressions, shown: Callable[[Layer], bool]
) -> dict[Layer, tuple[Port, Kernel]]:
    """The layers that can restore the weights themselves: the port of the weights, and the kernel without that input.

    Weights that nobody else reads, and that are not ``shown`` for themselves, are then absorbed.
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
    found.absorbed |= {layer for layer in found.kept if layer not in read_whole and not shown(layer)}
    return readers


def _kernel_on(weights: CompressedWeights, layer: Layer, position: int) -> Kernel | None:
    make = _KERNELS.get(layer.type)
    return make(layer, position, weights) if make is not None and weights.has_slices else None


def _matmul(layer: Layer, position: int, weights: CompressedWeights) -> Kernel | None:
    op = layer.operator
    assert isinstance(op, MatMul)
    if position != 1 or len(weights.shape) not in (2, 3) or weights.port.element_type != f32:
        return None
    multiply = _by_matrices if len(weights.shape) == 3 else _by_columns if op.transpose_b else _by_rows
    *batch, length, columns = weights.shape
    if op.transpose_b:
        length, columns = columns, length

    def run(a: Array, *, out: Array | None = None) -> Array:
        x = a.swapaxes(-1, -2) if op.transpose_a and a.ndim > 1 else a
        aligned = not batch or x.ndim < 3 or (x.ndim == 3 and x.shape[0] in (1, *batch))
        if x.shape[-1] != length or not aligned:
            return np.asarray(op.run(a, weights.whole(), out=out))  # which also tells what does not fit
        if out is None:
            lead = np.broadcast_shapes(x.shape[:-2], tuple(batch))
            out = np.empty((*lead, *x.shape[-2:-1], columns), np.float32)
        multiply(x, weights, op.transpose_b, out)
        return out

    return run


def _by_columns(x: Array, weights: CompressedWeights, turned: bool, out: Array) -> None:
    """Each block of weights gives some columns of the result."""
    rows = np.ascontiguousarray(x).reshape(-1, weights.shape[1])
    result = out.reshape(-1, weights.shape[0])
    for block in weights.blocks(weights.all, _PANEL):
        result[:, block] = np.matmul(rows, weights.slices(block).T)  # BLAS cannot write to a part of rows


def _by_rows(x: Array, weights: CompressedWeights, turned: bool, out: Array) -> None:
    """Each block of weights adds to all of the result."""
    rows = np.ascontiguousarray(x).reshape(-1, weights.shape[0])
    result = out.reshape(-1, weights.shape[1])
    result[...] = 0
    for block in weights.blocks(weights.all, _PANEL):
        np.add(result, np.matmul(rows[:, block], weights.slices(block)), out=result)


def _by_matrices(x: Array, weights: CompressedWeights, turned: bool, out: Array) -> None:
    """Each block of weights is matrices of a batch."""
    alike = x.ndim < 3 or len(x) == 1
    for block in weights.blocks(weights.all, _PANEL):
        w = weights.slices(block)
        np.matmul(x if alike else x[block], w.swapaxes(-1, -2) if turned else w, out=out[block])


def _grouped_matmul(layer: Layer, position: int, weights: CompressedWeights) -> Kernel | None:
    op = layer.operator
    assert isinstance(op, GroupedMatMul)
    if position != 1 or len(weights.shape) != 3 or weights.port.element_type != f32:
        return None

    def matrix(group: int) -> Array:
        return weights.slices(slice(group, group + 1)).reshape(weights.shape[1:])

    def run(a: Array, offsets: Array | None = None, *, out: Array | None = None) -> Array:
        return op.run_by_group(a, weights.shape, matrix, offsets, out)

    return run


def _gather(layer: Layer, position: int, weights: CompressedWeights) -> Kernel | None:
    op, axis = layer.operator, layer.inputs[2].type.constant
    assert isinstance(op, Gather1 | Gather7 | Gather8)
    if position != 0 or op.batch_dims or axis is None or axis.item() not in (0, -len(weights.shape)):
        return None

    def run(indices: Array, axis: Array, *, out: Array | None = None) -> Array:
        wanted, places = np.unique(indices, return_inverse=True)
        if not wanted.size or wanted[0] < 0 or wanted[-1] >= weights.shape[0]:
            return op.run(weights.whole(), indices, axis, out=out)
        return op.run(weights.slices(wanted), places.reshape(indices.shape), axis, out=out)

    return run


_KERNELS: dict[str, Callable[[Layer, int, CompressedWeights], Kernel | None]] = {
    "MatMul": _matmul,
    "GroupedMatMul": _grouped_matmul,
    "Gather": _gather,
}
