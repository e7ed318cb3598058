"""Weights of products as integers of 4 or 8 bits with scales, as NNCF compresses the weights of language models."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ovir import opset8 as ops
from ovir.core.arrays import Array
from ovir.core.element_types import i4, i8, u4, u8
from ovir.diagnostics.diagnostic import in_place_of
from ovir.editing.constant_edits import remove_unread
from ovir.editing.layer_edits import NewLayers
from ovir.editing.transaction import owner_of
from ovir.graph.layer_graph import LayerGraph
from ovir.inference.layer_weights import Weights, weights_of
from ovir.ops.matmul import MatMul

GROUP = 128
"""The numbers of a row that share a scale in 4 bits, unless the type says otherwise."""
LEAST_GROUP = 16
"""Groups that do not divide a row become smaller, but not below this; then the whole row is one group."""


@dataclass(frozen=True)
class WeightType:
    """How weights are stored: as integers, with a scale for each row, or for each group of neighbors in a row.

    A row is what a product adds up for one channel of its result.
    """

    bits: int
    """4 or 8."""
    is_symmetric: bool
    """Whether the integers are signed; otherwise they are unsigned, with a zero point for each scale."""
    group: int | None
    """The largest number of neighbors that share a scale; None for the whole row."""

    @classmethod
    def of(cls, text: str) -> WeightType | None:
        """Return the type for ``int4[:sym|asym][:GROUP]`` or the same with int8; None for another text.

        The default is symmetric, in groups of 128 for int4 and with one scale for each row for int8.
        """
        match = re.fullmatch(r"int([48])(?::(sym|asym))?(?::([1-9]\d*))?", text)
        if match is None:
            return None
        size = int(match[3]) if match[3] else GROUP if match[1] == "4" else None
        return cls(int(match[1]), match[2] != "asym", size)


BACKUP = WeightType(8, False, None)
"""What weights are compressed to that cannot take 4 bits."""


class CompressedWeights(NamedTuple):
    """The parts of compressed weights: ``(codes - zero_point) * scale``, in the shape of the weights."""

    codes: Array
    """Integers, as f32. An axis that has several groups stands as two: the groups, and the numbers of a group."""
    scale: Array
    """In f16; of size 1 along the axes that share a scale."""
    zero_point: Array | None
    """None for symmetric types."""
    shape: tuple[int, ...]
    kind: WeightType

    @property
    def array(self) -> Array:
        """Return the weights that a product reads, in f32."""
        codes = self.codes if self.zero_point is None else self.codes - self.zero_point
        found: Array = (codes * self.scale.astype(np.float32)).reshape(self.shape)
        return found

    @property
    def bytes(self) -> int:
        """Return the bytes of all parts in a file."""
        bits = self.codes.size * self.kind.bits + self.scale.size * 16
        return -(-(bits + (0 if self.zero_point is None else self.zero_point.size * self.kind.bits)) // 8)


def compressible(model: LayerGraph) -> list[Weights]:
    """Return the weights of products and convolutions that can be compressed: finite real numbers in two axes or more,
    which the layer alone reads or shares."""
    return [weights for weights in weights_of(model) if _scale_axes(weights) and np.isfinite(weights.array).all()]


def takes_4_bits(weights: Weights) -> bool:
    """Return whether weights may have 4 bits: those of a MatMul; convolutions are less robust, and have 8."""
    return isinstance(weights.layer.operator, MatMul)


def compress(weights: Weights, kind: WeightType) -> CompressedWeights:
    """Return weights in a type.

    A symmetric scale maps the number of the largest size, with its sign, to the least integer, so that all integers are
    used. Scales are rounded to f16 before the weights are divided by them.
    """
    array = weights.array.astype(np.float32, copy=False)
    channels = _scale_axes(weights)
    shared = tuple(axis for axis in range(array.ndim) if axis not in channels)
    shared = shared[-1:] if isinstance(weights.layer.operator, MatMul) else shared
    shape = array.shape
    axis = shared[-1]
    if len(shared) == 1 and kind.group is not None and (group := _group(shape[axis], kind.group)) < shape[axis]:
        shape, shared = (*shape[:axis], shape[axis] // group, group, *shape[axis + 1 :]), (axis + 1,)
    grouped = array.reshape(shape)
    low = np.minimum(grouped.min(shared, keepdims=True), 0)
    high = np.maximum(grouped.max(shared, keepdims=True), 0)
    steps, least = 2**kind.bits - 1, -(2 ** (kind.bits - 1)) if kind.is_symmetric else 0
    scale = np.where(high > -low, high, low) / least if kind.is_symmetric else (high - low) / steps
    scale = np.clip(scale, -65504, 65504).astype(np.float16)
    scale = np.where(scale == 0, np.float16(1), scale)
    exact = scale.astype(np.float32)
    zero = None if kind.is_symmetric else np.clip(np.rint(-low / exact), 0, steps)
    codes = np.rint(grouped / exact) + (0 if zero is None else zero)
    return CompressedWeights(np.clip(codes, least, least + steps), scale, zero, array.shape, kind)


def compress_weights(model: LayerGraph, kinds: Mapping[tuple[str, int], WeightType]) -> None:
    """Compress the weights of inputs, by the key of the layer and the index, as OpenVINO reads them: Convert, Subtract,
    Multiply and Reshape stand behind a Const of integers."""
    for weights in weights_of(model):
        port = weights.input
        kind = kinds.get((port.layer.key, port.index))
        if kind is None:
            continue
        narrow, source = compress(weights, kind), port.source
        with in_place_of(port.layer.place):
            integers = {4: (u4, i4), 8: (u8, i8)}[kind.bits][kind.is_symmetric]
            new = ops.convert(ops.constant(narrow.codes.astype(np.int16), integers), "f16")
            if narrow.zero_point is not None:
                new = ops.subtract(new, ops.convert(ops.constant(narrow.zero_point.astype(np.int16), integers), "f16"))
            new = ops.multiply(new, ops.constant(narrow.scale), name=f"{port.layer.name}/fq_weights_{port.index}")
            if narrow.codes.shape != narrow.shape:
                new = ops.reshape(new, list(narrow.shape), False)
            new = ops.convert(new, port.element_type)
        graph = owner_of(port.layer)
        graph.add_layer(new, NewLayers(graph, new).include(()))
        graph.connect(new.outputs[0], port)
        remove_unread(graph, [source] if source is not None else [])


def _scale_axes(weights: Weights) -> tuple[int, ...]:
    """Return the axes of the channels of a product's result; none if the weights are not compressed."""
    op, port = weights.layer.operator, weights.input
    if op is None or not port.element_type.is_real or not port.shape.is_static or len(port.shape.dims) < 2:
        return ()
    if 0 in port.shape.to_tuple():
        return ()
    return op.scale_axes(port.index, len(port.shape.dims)) or ()


def _group(size: int, most: int) -> int:
    """Return the size of the groups of a row: the largest power of two that divides it, up to ``most``, or the row."""
    if size % most == 0:
        return most
    powers = [1 << n for n in range(most.bit_length()) if LEAST_GROUP <= 1 << n <= most and size % (1 << n) == 0]
    return max(powers, default=size)
