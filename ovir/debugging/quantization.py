"""Emulation of int8: the inputs of products and convolutions have the 256 values of 8 bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovir.core.arrays import Array
from ovir.graph.layers import Layer
from ovir.runtime.emulation import Emulation

Range = tuple[float, float]


class Ranges:
    """A listener that collects the ranges of what quantized layers read."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, int], Range] = {}

    def will_run(self, layer: Layer, inputs: Sequence[Array]) -> None:
        if layer.operator is None:
            return
        for position, array in enumerate(inputs):
            if layer.operator.scale_axes(position, array.ndim) is None:
                continue
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

    rounds_outputs = rounds_steps = False

    def __init__(self, ranges: dict[tuple[str, int], Range], keep: Sequence[str] = ()) -> None:
        self.element_type = "int8"
        self.keep = frozenset(keep)
        self.ranges = ranges

    def covers(self, layer: Layer) -> bool:
        return _is_quantized(layer) and super().covers(layer)

    def constant(self, layer: Layer, position: int, array: Array) -> Array:
        assert layer.operator is not None
        axes = layer.operator.scale_axes(position, array.ndim)
        if axes is None or not array.size:
            return array
        others = tuple(axis for axis in range(array.ndim) if axis not in axes)
        scale = np.abs(array).max(axis=others, keepdims=True) / np.float32(127)
        scale = np.where((scale == 0) | ~np.isfinite(scale), np.float32(1), scale)
        rounded: Array = np.clip(np.rint(array / scale), -127, 127) * scale
        return rounded

    def input(self, layer: Layer, position: int, array: Array) -> Array:
        low, high = self.ranges.get((layer.key, position), (0.0, 0.0))
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            return array
        scale = (high - low) / 255
        zero = round(-low / scale)
        rounded: Array = np.clip(np.rint(array / array.dtype.type(scale)) + zero, 0, 255) - zero
        rounded *= scale
        return rounded

    def output(self, layer: Layer, array: Array, out: Array | None) -> Array:
        return array if out is None else out


def _is_quantized(layer: Layer) -> bool:
    """Return whether quantizers such as NNCF quantize what a layer reads, because devices compute it in int8."""
    return layer.operator is not None and layer.operator.scale_axes(0, 0) is not None
