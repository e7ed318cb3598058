"""Emulation of int8: the inputs of products and convolutions have the 256 values of 8 bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovir.core.arrays import Array
from ovir.graph.layers import Layer
from ovir.runtime.emulation import Emulation

_WEIGHT_AXES = {
    "Convolution": (0,),
    "GroupConvolution": (0, 1),
    "ConvolutionBackpropData": (1,),
    "GroupConvolutionBackpropData": (0, 2),
}
"""The axes of the output channels, along which weights have a scale for each index."""
QUANTIZED = {*_WEIGHT_AXES, "MatMul"}
"""The operations whose inputs quantizers such as NNCF quantize, because devices compute them in int8."""

Range = tuple[float, float]


class Ranges:
    """A listener that collects the ranges of what quantized layers read."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, int], Range] = {}

    def will_run(self, layer: Layer, inputs: Sequence[Array]) -> None:
        if layer.type not in QUANTIZED:
            return
        for position, array in enumerate(inputs[:2]):
            if array.dtype.kind == "f" and array.size:
                low, high = self.found.get((layer.key, position), (0.0, 0.0))
                found = float(np.fmin.reduce(array, None)), float(np.fmax.reduce(array, None))
                self.found[layer.key, position] = min(low, found[0]), max(high, found[1])

    def did_run(self, layer: Layer, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Do nothing after a layer."""


class Int8(Emulation):
    """Rounds the inputs of products and convolutions as quantized models do.

    Weights have a symmetric scale for each output channel, other tensors a scale and a zero point for their range in
    the samples. Results, and all other layers, stay in f32.
    """

    rounds_outputs = False

    def __init__(self, ranges: dict[tuple[str, int], Range], keep: Sequence[str] = ()) -> None:
        self.element_type = "int8"
        self.keep = frozenset(keep)
        self.ranges = ranges

    def covers(self, layer: Layer) -> bool:
        return layer.type in QUANTIZED and super().covers(layer)

    def constant(self, layer: Layer, position: int, array: Array) -> Array:
        if position > 1 or not array.size:
            return array
        axes = _channels(layer, position, array.ndim)
        others = tuple(axis for axis in range(array.ndim) if axis not in axes)
        scale = np.abs(array).max(axis=others, keepdims=True) / np.float32(127)
        scale = np.where((scale == 0) | ~np.isfinite(scale), np.float32(1), scale)
        rounded: Array = np.clip(np.rint(array / scale), -127, 127) * scale
        return rounded

    def input(self, layer: Layer, position: int, array: Array) -> Array:
        low, high = self.ranges.get((layer.key, position), (0.0, 0.0))
        if position > 1 or not (np.isfinite(low) and np.isfinite(high) and low < high):
            return array
        scale = (high - low) / 255
        zero = round(-low / scale)
        rounded: Array = np.clip(np.rint(array / array.dtype.type(scale)) + zero, 0, 255) - zero
        rounded *= scale
        return rounded

    def output(self, layer: Layer, array: Array, out: Array | None) -> Array:
        return array if out is None else out


def _channels(layer: Layer, position: int, rank: int) -> tuple[int, ...]:
    """Return the axes along which the scales of a constant differ."""
    if layer.type in _WEIGHT_AXES:
        return _WEIGHT_AXES[layer.type] if position == 1 else ()
    if rank < 2:
        return ()
    is_transposed = bool(getattr(layer.operator, "transpose_b" if position else "transpose_a", False))
    return ((rank - 2 if is_transposed else rank - 1) if position else (rank - 1 if is_transposed else rank - 2),)
