"""Conversions between NV12, I420 and RGB or BGR.

Images are split into squares of four pixels, [batch, height / 2, 2, width / 2, 2], with which chroma is broadcast.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovir import opset7 as ops
from ovir.core.element_types import ElementType, f32, f64, i32, u8
from ovir.graph.layers import Layer, LayerOrPort, Port
from ovir.lowering.parts import known_sizes, scalar
from ovir.lowering.registry import Tensors, lowers
from ovir.ops.color import RgbToNv12Base, YuvToRgbBase

# --------------------------------------------------------------------------- YUV to RGB


@lowers("NV12toRGB", 8)
@lowers("NV12toBGR", 8)
def nv12_to_rgb(op: YuvToRgbBase, data: Port, uv: Port | None = None) -> Layer:
    height, width = known_sizes(op.output_shapes[0].slice(1, 3))
    chroma: LayerOrPort = uv if uv is not None else _rows(data, height, height // 2 * 3)
    pairs = ops.reshape(chroma, [0, height // 2, 1, width // 2, 1, 2], special_zero=True)
    return _to_rgb(op, data, ops.gather(pairs, 0, 5), ops.gather(pairs, 1, 5), height, width)


@lowers("I420toRGB", 8)
@lowers("I420toBGR", 8)
def i420_to_rgb(op: YuvToRgbBase, data: Port, u: Port | None = None, v: Port | None = None) -> Layer:
    height, width = known_sizes(op.output_shapes[0].slice(1, 3))
    plane = [height // 2, 1, width // 2, 1]
    if u is None or v is None:
        both = ops.reshape(_rows(data, height, height // 2 * 3), [0, 2, *plane], special_zero=True)
        first, second = (ops.gather(both, index, 1) for index in (0, 1))
    else:
        first, second = (ops.reshape(port, [0, *plane], special_zero=True) for port in (u, v))
    return _to_rgb(op, data, first, second, height, width)


def _rows(data: Port, start: int, stop: int) -> Layer:
    return ops.strided_slice(data, [0, start], [0, stop], [1, 1], [1, 0], [1, 0])


def _to_rgb(op: YuvToRgbBase, data: Port, u: Layer, v: Layer, height: int, width: int) -> Layer:
    computed = _computed(data.element_type)

    def weighted(item: LayerOrPort, offset: float, weight: float) -> Layer:
        centered = ops.subtract(ops.convert(item, computed), scalar(offset, computed))
        return ops.multiply(centered, scalar(weight, computed))

    squares = [0, height // 2, 2, width // 2, 2]
    luma = weighted(ops.reshape(_rows(data, 0, height), squares, special_zero=True), 16, 1.164)
    red = ops.add(luma, weighted(v, 128, 1.596))
    green = ops.subtract(ops.subtract(luma, weighted(u, 128, 0.391)), weighted(v, 128, 0.813))
    blue = ops.add(luma, weighted(u, 128, 2.018))
    colors = (red, green, blue) if op.first == "red" else (blue, green, red)
    image = ops.concat([ops.unsqueeze(color, [5]) for color in colors], axis=5)
    return ops.reshape(_stored(image, data.element_type), [0, height, width, 3], special_zero=True)


# --------------------------------------------------------------------------- RGB to NV12


@lowers("RGBtoNV12", 17)
@lowers("BGRtoNV12", 17)
def rgb_to_nv12(op: RgbToNv12Base, data: Port) -> Tensors:
    """Weigh the colors; U and V are the means of four pixels."""
    height, width = known_sizes(data.shape.slice(1, 3))
    computed = _computed(data.element_type)
    squares = ops.reshape(data, [0, height // 2, 2, width // 2, 2, 3], special_zero=True)
    pixels = ops.convert(squares, computed)
    colors = [ops.gather(pixels, op.channel(color), 5) for color in ("red", "green", "blue")]

    def plane(weights: Sequence[float], offset: float) -> Layer:
        parts = [ops.multiply(c, scalar(w, computed)) for c, w in zip(colors, weights, strict=True)]
        total = ops.add(ops.add(ops.add(parts[0], parts[1]), parts[2]), scalar(offset, computed))
        return _stored(total, data.element_type)

    luma = ops.reshape(plane((0.257, 0.504, 0.098), 16), [0, height, width, 1], special_zero=True)
    planes = [plane(weights, 128) for weights in ((-0.148, -0.291, 0.439), (0.439, -0.368, -0.071))]
    chroma = ops.concat([ops.unsqueeze(_mean_of_four(p, computed, data.element_type), [3]) for p in planes], axis=3)
    if not op.single_plane:
        return [luma, chroma]
    return ops.concat([luma, ops.reshape(chroma, [0, height // 2, width, 1], special_zero=True)], axis=1)


def _mean_of_four(plane: Layer, computed: ElementType, element_type: ElementType) -> Layer:
    if element_type == u8:
        total = ops.reduce_sum(ops.convert(plane, i32), [2, 4], keep_dims=False)
        return ops.convert(ops.divide(ops.add(total, scalar(2, i32)), scalar(4, i32)), u8)
    total = ops.reduce_sum(ops.convert(plane, computed), [2, 4], keep_dims=False)
    return _stored(ops.divide(total, scalar(4, computed)), element_type)


# --------------------------------------------------------------------------- numbers


def _computed(element_type: ElementType) -> ElementType:
    return f64 if element_type == f64 else f32


def _stored(values: Layer, element_type: ElementType) -> Layer:
    """Return values clipped to [0, 255]; integers are rounded to nearest."""
    clipped = ops.clamp(values, 0, 255)
    if element_type == u8:  # adding 0.5 itself would round its predecessor up to 1
        clipped = ops.add(clipped, scalar(float(np.nextafter(np.float32(0.5), np.float32(0))), values.element_type))
    return ops.convert(clipped, element_type)
