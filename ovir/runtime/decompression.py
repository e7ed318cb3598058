"""Compressed weights: constants of few bits, with the arithmetic that decompresses them.

A file computes (codes - zero_point) * scale in f16 and converts the result to f32. Devices that compute in f32 use f32
for the arithmetic as well; the plan does the same, so that it neither rounds nor stores intermediate results.

Weights are decompressed once, when the plan is made; or, with ``keep_compressed``, at each use. Layers that can work on
slices along the first axis of their weights then decompress only these.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, bf16, f16, f32
from ovir.core.values import MAX_ELEMENTS
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port
from ovir.ops.base.operator import Kernel, Operator
from ovir.ops.base.traits import ALL
from ovir.ops.convert import in_f32
from ovir.ops.gather import GatherBase
from ovir.ops.infrastructure import Const
from ovir.ops.matmul import GroupedMatMul, MatMul, oriented
from ovir.runtime.plan import applied_operator

Selection = slice | Array
"""Slices along the first axis: a range (start and stop given), or one for each index of a 1-D array."""

BLOCK = 1 << 18
"""The number of elements that are decompressed together, so that they and their sources stay in a cache."""

_MOST_LAYERS = 100
"""The largest number of layers that together decompress one result, each counted once for every reader among them.

Exporters write fewer than ten. The limit keeps hostile chains from exhausting the stack, and diamonds from being
computed repeatedly.
"""

_NARROW = (f16, bf16)


# --------------------------------------------------------------------------- decompression of one value


@dataclass(frozen=True, eq=False)
class CompressedWeights:
    """The tensor of ``port``, which depends only on constants. It is decompressed to f32, unless the port belongs to a
    Const."""

    port: Port

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return self.port.shape.to_tuple()

    @cached_property
    def has_slices(self) -> bool:
        """Return whether slices along the first axis can be decompressed without the rest."""
        return bool(self.shape) and self.shape[0] > 1 and _has_slices(self.port)

    def slices(self, which: Selection) -> Array:
        op = self.port.layer.operator
        if isinstance(op, Const):
            return op.slices(which)
        if not isinstance(which, slice):
            return _decompressed(self.port, which)
        out = np.empty((which.stop - which.start, *self.shape[1:]), np.float32)
        for block in self.blocks(which, BLOCK):
            np.copyto(out[block.start - which.start : block.stop - which.start], _decompressed(self.port, block))
        return out

    def blocks(self, which: slice, elements: int) -> Iterator[slice]:
        """Yield a range of slices in parts of about the given number of elements."""
        step = max(elements // max(prod(self.shape[1:]), 1), 1)
        return (slice(i, min(i + step, which.stop)) for i in range(which.start, which.stop, step))

    @property
    def element_type(self) -> ElementType:
        return self.port.element_type

    @property
    def all(self) -> slice:
        return slice(0, self.shape[0])

    def whole(self) -> Array:
        if self.has_slices:
            return self.slices(self.all)
        op = self.port.layer.operator
        return op.decoded() if isinstance(op, Const) else _decompressed(self.port, None)


def _has_slices(port: Port) -> bool:
    op = port.layer.operator
    if isinstance(op, Const):
        return op.has_slices
    counts = _rows_from(port)
    sources = _sources(port.layer)
    return counts is not None and all(
        _has_slices(source) for source, count in zip(sources, counts, strict=True) if count
    )


def _rows_from(port: Port) -> tuple[int, ...] | None:
    """Return the number of slices of each input that make one of the output; None if slices do not map to slices."""
    op = port.layer.operator
    assert op is not None
    return op.rows_from([source.type for source in _sources(port.layer)], port.shape)


def _decompressed(port: Port, which: Selection | None) -> Array:
    """Return the selected slices of a port's tensor in f32; all of them if the selection is None."""
    layer, op = port.layer, port.layer.operator
    sources = _sources(layer)
    assert op is not None
    op = applied_operator(layer, op)
    if isinstance(op, Const):
        return in_f32(op.decoded() if which is None else op.slices(which), port.element_type)
    if op.converts:
        return _decompressed(sources[0], which)
    counts = _rows_from(port) if which is not None else None
    through = _compressed_sources(layer)
    parts = [
        _decompressed(source, _within(which, counts[i] if counts else 0)) if source in through else _constant(source)
        for i, source in enumerate(sources)
    ]
    if which is None or _is_arithmetic(layer):
        result = op.run(*parts)
    else:
        length = which.stop - which.start if isinstance(which, slice) else len(which)
        result = op.run_rows((length, *port.shape.to_tuple()[1:]), *parts)
    assert isinstance(result, np.ndarray)
    return result


def _constant(source: Port) -> Array:
    array = source.type.constant
    assert array is not None
    return array


def _within(which: Selection | None, count: int) -> Selection | None:
    """Return the slices of an input from which the slices of the output are made, ``count`` for each; all of them for
    0."""
    if which is None or not count:
        return None
    if count == 1:
        return which
    if isinstance(which, slice):
        return slice(which.start * count, which.stop * count)
    return (which[:, np.newaxis] * count + np.arange(count)).reshape(-1)


def _is_arithmetic(layer: Layer) -> bool:
    """Return whether compressed weights may enter through every input."""
    return layer.operator is not None and layer.operator.decompresses == ALL


# --------------------------------------------------------------------------- the decompressions of a model


class Replacement(NamedTuple):
    """A kernel that decompresses what it needs, in place of the kernel of a layer."""

    kernel: Kernel
    unread: Sequence[Port]
    """The sources of inputs of the layer that the kernel does not have."""


@dataclass
class Decompressions:
    """The compressed weights of a model."""

    folded: dict[Layer, CompressedWeights] = field(default_factory=dict)
    """Weights that are decompressed when the plan is made, by the layer that returns them."""
    replacements: dict[Layer, Replacement] = field(default_factory=dict)
    """The layers that decompress weights at each use: those that return them, and those that need some rows of them."""
    absorbed: set[Layer] = field(default_factory=set)
    """Layers that only feed these layers, so that the plan does not run them."""


def find_decompressions(
    model: LayerGraph, is_tapped: Callable[[Layer], bool], keep_compressed: bool = False
) -> Decompressions:
    """Return all compressed weights of the model; layers whose own output is tapped are not absorbed."""
    decompressing: dict[Layer, int] = {}  # how many layers run to decompress the output of each
    for layer in model.layers:
        if _is_decompression(layer, decompressing):
            count = 1 + sum(decompressing[source.layer] for source in _compressed_sources(layer))
            if count <= _MOST_LAYERS:
                decompressing[layer] = count
    found = Decompressions()
    kept: dict[Layer, CompressedWeights] = {}

    def absorb(ends: dict[Layer, CompressedWeights]) -> None:
        parts = set().union(*map(_before, ends)) - ends.keys()
        for layer in reversed(decompressing):
            if layer in parts and not is_tapped(layer) and _readers(layer) <= ends.keys() | found.absorbed:
                found.absorbed.add(layer)

    if keep_compressed:
        for layer in decompressing:
            if _readers(layer) - decompressing.keys() and _is_worth_keeping(layer):
                kept[layer] = CompressedWeights(layer.outputs[0])
        absorb(kept)
    for layer in decompressing:
        if layer in kept or layer in found.absorbed or not _converts_to_f32(layer):
            continue
        if any(map(_is_arithmetic, _before(layer))):
            found.folded[layer] = CompressedWeights(layer.outputs[0])
    absorb(found.folded)
    for layer, weights in kept.items():
        found.replacements[layer] = Replacement(weights.whole, _sources(layer))
        readers = [reader for reader in _readers(layer) if reader not in kept and reader not in found.absorbed]
        replaced = [_reads_by_rows(found, weights, reader) for reader in readers]
        if all(replaced) and not is_tapped(layer):
            found.absorbed.add(layer)
    return found


def _readers(layer: Layer) -> set[Layer]:
    """Return the layers that read an output of a layer."""
    return {reader.layer for port in layer.outputs for reader in port.readers}


def _is_decompression(layer: Layer, decompressing: Collection[Layer]) -> bool:
    """Return whether a layer is part of a decompression, given that the layers before it are."""
    op = layer.operator
    if isinstance(op, Const):
        return op.element_type.is_real or op.element_type.is_integral
    if op is None or not (op.converts or op.decompresses) or not layer.outputs:
        return False
    sources = _sources(layer)
    if not sources or layer.outputs[0].element_type not in (*_NARROW, f32):
        return False
    if not all(port.shape.is_static for port in (layer.outputs[0], *sources)):
        return False
    if op.converts:
        direct = isinstance(sources[0].layer.operator, Const) or _converts_to_f32(layer)
        return direct and sources[0].layer in decompressing
    through = _compressed_sources(layer)
    rest_is_known = all(source.type.constant is not None for source in sources if source not in through)
    return bool(through) and rest_is_known and all(source.layer in decompressing for source in through)


def _converts_to_f32(layer: Layer) -> bool:
    if layer.operator is None or not layer.operator.converts or not _sources(layer):
        return False
    return layer.inputs[0].element_type in _NARROW and layer.outputs[0].element_type == f32


def _is_worth_keeping(layer: Layer) -> bool:
    """Return whether the sources of the layer's result take less memory than the result; small results do not count."""
    port = layer.outputs[0]
    # inference folds anything up to this size
    if not port.shape.is_static or prod(port.shape.to_tuple()) <= 16 * MAX_ELEMENTS:
        return False
    if isinstance(layer.operator, Const):
        return port.element_type.bits < 8
    stored = sum(_bits(part.outputs[0]) for part in _before(layer) if isinstance(part.operator, Const))
    return port.element_type == f32 and stored < _bits(port)


def _bits(port: Port) -> int:
    return prod(port.shape.to_tuple()) * port.element_type.bits


def _before(layer: Layer) -> set[Layer]:
    """Return all layers that the decompressed output of the layer depends on."""
    found: set[Layer] = set()
    to_visit = [layer]
    while to_visit:
        for source in _compressed_sources(to_visit.pop()):
            if source.layer not in found:
                found.add(source.layer)
                to_visit.append(source.layer)
    return found


def _compressed_sources(layer: Layer) -> list[Port]:
    """Return the inputs through which weights enter; other inputs are shapes or orders."""
    sources = _sources(layer)
    decompresses = layer.operator.decompresses if layer.operator is not None else ()
    return sources if decompresses == ALL else [sources[i] for i in decompresses if i < len(sources)]


def _sources(layer: Layer) -> list[Port]:
    return [port.source for port in layer.inputs if port.source is not None]


# --------------------------------------------------------------------------- layers that read weights by rows

# A row is a slice along the first axis.

_PANEL = 1 << 22
"""The number of elements that are decompressed for one product."""


def _reads_by_rows(found: Decompressions, weights: CompressedWeights, reader: Layer) -> bool:
    """Replace the kernel of a layer that reads weights by one that decompresses some rows of them at a time; return
    whether there is such a kernel."""
    positions = [port.index for port in reader.inputs if port.source is weights.port]
    kernel = (
        _kernel_on(weights, reader, positions[0]) if len(positions) == 1 and reader not in found.replacements else None
    )
    if kernel is not None:
        found.replacements[reader] = Replacement(kernel, (weights.port,))
    return kernel is not None


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
