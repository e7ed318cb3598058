"""Conversions between NV12, I420 and RGB or BGR.

Images are split into squares of four pixels, [batch, height / 2, 2, width / 2, 2], with which chroma is broadcast.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovir import opset7 as ops
from ovir.core.element_types import ElementType, f32, f64, i32, u8
from ovir.graph.layers import Layer, LayerOrPort, Port
from ovir.lowering.registry import Tensors, lowers
from ovir.lowering.sizes import joined, part, reshaped, scalar, size
from ovir.ops.color import RGBtoNV12, YuvToRgbBase

# --------------------------------------------------------------------------- YUV to RGB


@lowers("NV12toRGB", 8)
@lowers("NV12toBGR", 8)
def nv12_to_rgb(op: YuvToRgbBase, data: Port, uv: Port | None = None) -> Layer:
    height, width = _image_sizes(data, is_whole=uv is None)
    chroma = part(data, 1, height) if uv is None else uv
    pairs = _shaped(chroma, _half(height), 1, _half(width), 1, 2)
    return _to_rgb(op, data, ops.gather(pairs, 0, 5), ops.gather(pairs, 1, 5), height, width)


@lowers("I420toRGB", 8)
@lowers("I420toBGR", 8)
def i420_to_rgb(op: YuvToRgbBase, data: Port, *chroma: Port) -> Layer:
    height, width = _image_sizes(data, is_whole=not chroma)
    plane = _half(height), 1, _half(width), 1
    if chroma:
        first, second = (_shaped(port, *plane) for port in chroma)
    else:
        both = _shaped(part(data, 1, height), 2, *plane)
        first, second = (ops.gather(both, index, 1) for index in (0, 1))
    return _to_rgb(op, data, first, second, height, width)


def _image_sizes(data: Port, *, is_whole: bool) -> tuple[Layer, Layer]:
    """Return height and width of an image, in a tensor with all planes or with luma alone."""
    height = size(data, 1)
    if is_whole:
        height = ops.divide(ops.multiply(height, [2]), [3])
    return height, size(data, 2)


def _half(length: Layer) -> Layer:
    return ops.divide(length, [2])


def _shaped(item: LayerOrPort, *lengths: LayerOrPort | int) -> Layer:
    """Return a tensor in a shape that begins with the batch."""
    return reshaped(item, joined(size(item, 0), *lengths))


def _to_rgb(op: YuvToRgbBase, data: Port, u: Layer, v: Layer, height: Layer, width: Layer) -> Layer:
    computed = _computed(data.element_type)

    def weighted(item: LayerOrPort, offset: float, weight: float) -> Layer:
        centered = ops.subtract(ops.convert(item, computed), scalar(offset, computed))
        return ops.multiply(centered, scalar(weight, computed))

    luma = weighted(_shaped(part(data, 1, 0, height), _half(height), 2, _half(width), 2), 16, 1.164)
    red = ops.add(luma, weighted(v, 128, 1.596))
    green = ops.subtract(ops.subtract(luma, weighted(u, 128, 0.391)), weighted(v, 128, 0.813))
    blue = ops.add(luma, weighted(u, 128, 2.018))
    colors = (red, green, blue) if op.first == "red" else (blue, green, red)
    image = ops.concat([ops.unsqueeze(color, [5]) for color in colors], axis=5)
    return _shaped(_stored(image, data.element_type), height, width, 3)


# --------------------------------------------------------------------------- RGB to NV12


@lowers("RGBtoNV12", 17)
@lowers("BGRtoNV12", 17)
def rgb_to_nv12(op: RGBtoNV12, data: Port) -> Tensors:
    """Weigh the colors; U and V are the means of four pixels."""
    height, width = (size(data, axis) for axis in (1, 2))
    computed = _computed(data.element_type)
    pixels = ops.convert(_shaped(data, _half(height), 2, _half(width), 2, 3), computed)
    colors = [ops.gather(pixels, op.channel(color), 5) for color in ("red", "green", "blue")]

    def plane(weights: Sequence[float], offset: float) -> Layer:
        parts = [ops.multiply(c, scalar(w, computed)) for c, w in zip(colors, weights, strict=True)]
        total = ops.add(ops.add(ops.add(parts[0], parts[1]), parts[2]), scalar(offset, computed))
        return _stored(total, data.element_type)

    luma = _shaped(plane((0.257, 0.504, 0.098), 16), height, width, 1)
    planes = [plane(weights, 128) for weights in ((-0.148, -0.291, 0.439), (0.439, -0.368, -0.071))]
    chroma = ops.concat([ops.unsqueeze(_mean_of_four(p, computed, data.element_type), [3]) for p in planes], axis=3)
    if not op.single_plane:
        return [luma, chroma]
    return ops.concat([luma, _shaped(chroma, _half(height), width, 1)], axis=1)


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
