"""Compressed weights: constants of few bits, with the arithmetic that decompresses them.

A file computes (codes - zero_point) * scale in f16 and converts the result to f32. Devices that compute in f32 use f32
for the arithmetic as well; the plan does the same, so that it neither rounds nor stores intermediate results.

Weights are decompressed once, when the plan is made; or they stay as the file holds them, and each use decompresses the
parts that it needs. The rule is in ``_stays_compressed``; ``keep_compressed`` changes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import prod
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, bf16, f16, f32
from ovir.core.parallel import run_blocks
from ovir.core.values import MAX_ELEMENTS
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port, layers_after, sources_of
from ovir.inference.layer_weights import codes_of, main_constant, unconverted
from ovir.ops.base.operator import Operator
from ovir.ops.base.replacement import replacements
from ovir.ops.base.traits import ALL
from ovir.ops.compressed import (
    Codes,
    Compressed,
    CompressedGather,
    CompressedMatMul,
    Decompress,
    Selection,
    blocks,
)
from ovir.ops.convert import fill_converted, in_f32
from ovir.ops.infrastructure import Const
from ovir.runtime.plan import applied_operator
from ovir.system.python_runtime import free_memory

LARGE = 1 << 20
"""The number of elements above which a matrix of codes of 4 or 8 bits stays compressed by default.

Up to this size, a product of one row with codes takes 1.7 to 4.4 times as long as with f32; beyond, 1.2 to 1.7 times
with 8 bits, and 1.4 to 2.5 with 4 bits. With 128 rows it takes 1.2 to 1.5 times as long.
"""

SMALL = 1 << 27
"""The bytes that all codes of a model may take in f32; beyond, smaller matrices stay compressed as well."""

_SHARE = 0.5
"""The share of the free memory that weights of 16 bits may take in f32."""
_ALWAYS = 1 << 20
"""The bytes that they may take in any case: to ask the system takes longer than to compile a small model."""

BLOCK = 1 << 19
"""The number of elements that are decompressed together, so that they and their sources stay in a cache."""

_SHARED = 2
"""The number of such blocks for which a further thread pays."""

_MOST_LAYERS = 100
"""The largest number of layers that together decompress one result, each counted once for every reader among them.

Exporters write fewer than ten. The limit keeps hostile chains from exhausting the stack, and diamonds from being
computed repeatedly.
"""

_NARROW = (f16, bf16)


# --------------------------------------------------------------------------- decompression of one value


@dataclass(frozen=True, eq=False)
class ConstantWeights:
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

    @cached_property
    def codes(self) -> Codes | None:
        return codes_of(self.port)

    @property
    def numbers(self) -> Array | None:
        op = unconverted(self.port).layer.operator
        return op.data if isinstance(op, Const) and op.element_type in _NARROW and len(self.shape) == 2 else None

    def stored(self) -> list[Array]:
        layers = {self.port.layer, *_before(self.port.layer)}
        layers |= {source.layer for layer in layers for source in sources_of(layer)}
        constants = [layer.operator for layer in layers if isinstance(layer.operator, Const)]
        return [op.data if (stored := op.stored()) is None else stored for op in constants]

    def slices(self, which: Selection) -> Array:
        op = self.port.layer.operator
        if isinstance(op, Const):
            return op.slices(which)
        if not isinstance(which, slice):
            return self._decompression(which)
        out = np.empty((which.stop - which.start, *self.shape[1:]), np.float32)
        self.fill(which.start, out)
        return out

    def fill(self, first: int, out: Array) -> None:
        places = list(blocks(out.shape, BLOCK))

        def run(start: int, stop: int) -> None:
            for place in places[start:stop]:
                _decompress(self.port, slice(first + place.start, first + place.stop), out[place])

        run_blocks(run, len(places), _SHARED)

    @cached_property
    def _decompression(self) -> Callable[[Selection | None], Array]:
        return _decompression(self.port)

    @property
    def element_type(self) -> ElementType:
        return self.port.element_type

    def whole(self) -> Array:
        if self.has_slices:
            return self.slices(slice(0, self.shape[0]))
        op = self.port.layer.operator
        return op.decoded() if isinstance(op, Const) else self._decompression(None)


def _has_slices(port: Port) -> bool:
    op = port.layer.operator
    if isinstance(op, Const):
        return op.has_slices
    counts = _rows_from(port)
    sources = sources_of(port.layer)
    return counts is not None and all(
        _has_slices(source) for source, count in zip(sources, counts, strict=True) if count
    )


def _rows_from(port: Port) -> tuple[int, ...] | None:
    """Return the number of slices of each input that make one of the output; None if slices do not map to slices."""
    op = port.layer.operator
    assert op is not None
    return op.rows_from([source.type for source in sources_of(port.layer)], port.shape)


def _decompress(port: Port, which: slice, out: Array) -> None:
    """Fill an f32 array with some slices of a port's tensor."""
    port = unconverted(port)
    op = port.layer.operator
    if isinstance(op, Const):
        fill_converted(op.slices(which), port.element_type, f32, out)
    else:
        np.copyto(out, _decompression(port)(which))


def _decompression(port: Port) -> Callable[[Selection | None], Array]:
    """Return the function that returns the selected slices of a port's tensor in f32; all of them if the selection is
    None."""
    layer, op = port.layer, port.layer.operator
    sources = sources_of(layer)
    assert op is not None
    op = applied_operator(layer, op)
    if isinstance(op, Const):
        constant = op
        return lambda which: in_f32(constant.decoded() if which is None else constant.slices(which), port.element_type)
    if op.converts:
        return _decompression(sources[0])
    through, counts = _compressed_sources(layer), _rows_from(port) or (0,) * len(sources)
    parts = [_decompression(source) if source in through else partial(_constant, source) for source in sources]
    is_arithmetic, shape = _is_arithmetic(layer), port.shape.to_tuple()

    def decompressed(which: Selection | None) -> Array:
        arrays = [part(_within(which, count)) for part, count in zip(parts, counts, strict=True)]
        if which is None or is_arithmetic:
            result = op.run(*arrays)
        else:
            length = which.stop - which.start if isinstance(which, slice) else len(which)
            result = op.run_rows((length, *shape[1:]), *arrays)
        assert isinstance(result, np.ndarray)
        return result

    return decompressed


def _constant(source: Port, which: Selection | None) -> Array:
    """Return a whole constant, whatever slices of it are asked for."""
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


@dataclass
class Decompressions:
    """The compressed weights of a model."""

    folded: dict[Layer, ConstantWeights] = field(default_factory=dict)
    """Weights that are decompressed when the plan is made, by the layer that returns them."""
    replacements: dict[Layer, tuple[Compressed[Any], Sequence[Port]]] = field(default_factory=dict)
    """The layers that decompress weights at each use: those that return them, and those that need some rows of them;
    each with its operation, and the sources of inputs of the layer that the operation does not have."""
    absorbed: set[Layer] = field(default_factory=set)
    """Layers that only feed these layers, so that the plan does not run them."""


def types_kept_compressed(model: LayerGraph) -> frozenset[ElementType]:
    """Return the types of the weights that stay compressed by default, because all of them in a model and its bodies
    take too much memory in f32: for 16 bits, more than half of what is free, and for codes, more than ``SMALL``."""
    sizes: Counter[ElementType] = Counter()
    for layer in model.walk():
        if isinstance(op := layer.operator, Const):
            sizes[op.element_type] += prod(op.shape) * f32.bits // 8
    codes = [kind for kind in sizes if kind.is_integral and kind.bits <= 8]
    kept = codes if sum(sizes[kind] for kind in codes) > SMALL else []
    narrow = sum(sizes[kind] for kind in _NARROW)
    if narrow > _ALWAYS and (free := free_memory()) is not None and narrow > _SHARE * free:
        kept.extend(_NARROW)
    return frozenset(kept)


def find_decompressions(
    model: LayerGraph,
    is_tapped: Callable[[Layer], bool],
    keep_compressed: bool | None,
    kept_types: Collection[ElementType] = (),
) -> Decompressions:
    """Return all compressed weights of the model; layers whose own output is tapped are not absorbed. ``kept_types``
    are those of ``types_kept_compressed``."""
    decompressing: dict[Layer, int] = {}  # how many layers run to decompress the output of each
    for layer in model.layers:
        if _is_decompression(layer, decompressing):
            count = 1 + sum(decompressing[source.layer] for source in _compressed_sources(layer))
            if count <= _MOST_LAYERS:
                decompressing[layer] = count
    result = Decompressions()
    compressed: dict[Layer, ConstantWeights] = {}

    def absorb(ends: dict[Layer, ConstantWeights]) -> None:
        parts = set().union(*map(_before, ends)) - ends.keys()
        for layer in reversed(decompressing):
            if layer in parts and not is_tapped(layer) and set(layers_after(layer)) <= ends.keys() | result.absorbed:
                result.absorbed.add(layer)

    ends: set[Layer] = set()
    for layer in decompressing:
        readers = set(layers_after(layer)) - decompressing.keys()
        if readers and _is_smaller(layer):
            weights = ConstantWeights(layer.outputs[0])
            if _stays_compressed(weights, readers, keep_compressed, kept_types):
                compressed[layer] = weights
            elif not isinstance(layer.operator, Const):
                ends.add(layer)
    absorb(compressed)
    for layer in decompressing:
        if layer in compressed:
            continue
        before = _before(layer)
        is_restored = _converts_to_f32(layer) and any(map(_is_arithmetic, before))
        if is_restored or (layer in ends and ends.isdisjoint(before)):
            result.folded[layer] = ConstantWeights(layer.outputs[0])
    absorb(result.folded)
    for layer, weights in compressed.items():
        result.replacements[layer] = Decompress(_operator(layer), weights), sources_of(layer)
        unreplaced = set(layers_after(layer)) - compressed.keys() - result.absorbed
        replaced = [_replace_reader(result, weights, reader) for reader in unreplaced]
        if all(replaced) and not is_tapped(layer):
            result.absorbed.add(layer)
    return result


def _operator(layer: Layer) -> Operator:
    assert layer.operator is not None
    return layer.operator


def _is_decompression(layer: Layer, decompressing: Collection[Layer]) -> bool:
    """Return whether a layer is part of a decompression, given that the layers before it are."""
    op = layer.operator
    if isinstance(op, Const):
        return op.element_type.is_real or op.element_type.is_integral
    if op is None or not (op.converts or op.decompresses) or not layer.outputs:
        return False
    sources = sources_of(layer)
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
    """Return whether a layer of a decompression makes f32 of f16 or bf16."""
    is_convert = _operator(layer).converts
    return is_convert and layer.inputs[0].element_type in _NARROW and layer.outputs[0].element_type == f32


def _stays_compressed(
    weights: ConstantWeights,
    readers: Collection[Layer],
    keep_compressed: bool | None,
    kept_types: Collection[ElementType],
) -> bool:
    """Return whether weights that take less memory in the file stay as they are there.

    With True that is so for all weights, with False for none. With None it is so for tables that are only gathered
    from, for weights of 16 bits of ``kept_types``, and for codes that only gathers and products read, if they are of
    ``kept_types`` or more than ``LARGE``.
    """
    if keep_compressed is not None:
        return keep_compressed
    operations = [_operation_on_all(weights, reader) for reader in readers]
    if all(isinstance(op, CompressedGather) for op in operations):
        return True
    element_type = main_constant(weights.port).outputs[0].element_type
    if element_type in _NARROW:
        return element_type in kept_types
    return (element_type in kept_types or prod(weights.shape) > LARGE) and all(
        isinstance(op, CompressedGather) or (isinstance(op, CompressedMatMul) and op.form is not None)
        for op in operations
    )


def _is_smaller(layer: Layer) -> bool:
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
    layers: set[Layer] = set()
    to_visit = [layer]
    while to_visit:
        for source in _compressed_sources(to_visit.pop()):
            if source.layer not in layers:
                layers.add(source.layer)
                to_visit.append(source.layer)
    return layers


def _compressed_sources(layer: Layer) -> list[Port]:
    """Return the inputs through which weights enter; other inputs are shapes or orders."""
    sources = sources_of(layer)
    decompresses = layer.operator.decompresses if layer.operator is not None else ()
    return sources if decompresses == ALL else [sources[i] for i in decompresses if i < len(sources)]


# --------------------------------------------------------------------------- layers that read compressed weights


def _replace_reader(decompressions: Decompressions, weights: ConstantWeights, reader: Layer) -> bool:
    """Replace a layer that reads weights by an operation that decompresses a part of them at a time; return whether
    there is such an operation."""
    op = None if reader in decompressions.replacements else _operation_on_all(weights, reader)
    if op is not None:
        decompressions.replacements[reader] = op, (weights.port,)
    return op is not None


def _operation_on_all(weights: ConstantWeights, reader: Layer) -> Compressed[Any] | None:
    """Return the operation in place of that of a layer, if the layer reads the weights once."""
    positions = [port.index for port in reader.inputs if port.source is weights.port]
    return _operation_on(weights, reader, positions[0]) if len(positions) == 1 else None


def _operation_on(weights: ConstantWeights, layer: Layer, position: int) -> Compressed[Any] | None:
    if layer.operator is None or not (weights.has_slices or weights.codes is not None):
        return None
    op, inputs = applied_operator(layer, layer.operator), [port.type for port in layer.inputs]
    classes: tuple[type[Compressed[Any]], ...] = replacements(Compressed, type(op))  # type: ignore[arg-type]  # hashable
    serving = (cls for cls in classes if cls.position == position and cls.serves(op, weights, inputs))
    return next((cls(op, weights) for cls in serving), None)
