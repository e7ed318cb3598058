"""Conversions between NV12, I420 and RGB or BGR.

Images are split into squares of four pixels, [batch, height / 2, 2, width / 2, 2], with which chroma is broadcast.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovir.core.element_types import ElementType, i32, u8
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.parts import real_type
from ovir.export.sizes import LAST, Size, compute, reshaped, size_of, vector
from ovir.ops.color import (
    BGRtoNV12,
    I420toBGR,
    I420toRGB,
    NV12toBGR,
    NV12toRGB,
    RGBtoNV12,
    RgbToNv12Base,
    YuvToRgbBase,
)

# --------------------------------------------------------------------------- YUV to RGB


@exports(NV12toRGB, NV12toBGR, to="Mul, Add, Clip, Concat")
def nv12_to_rgb(graph: Graph, op: YuvToRgbBase, data: Tensor, uv: Tensor | None = None) -> Tensor:
    """Export as arithmetic of the planes, whose U and V are interleaved."""
    batch, height, width = _image_sizes(graph, data, uv is None)
    if uv is None:
        uv = graph.Slice(data, vector(graph, [height]), [LAST], [1])
    chroma = reshaped(graph, uv, [batch, _half(graph, height), 1, _half(graph, width), 1, 2])
    u, v = (graph.Gather(chroma, i, axis=5) for i in range(2))
    return _to_rgb(graph, op, data, u, v, (batch, height, width))


@exports(I420toRGB, I420toBGR, to="Mul, Add, Clip, Concat")
def i420_to_rgb(
    graph: Graph, op: YuvToRgbBase, data: Tensor, u: Tensor | None = None, v: Tensor | None = None
) -> Tensor:
    """Export as arithmetic of the planes."""
    batch, height, width = _image_sizes(graph, data, u is None)
    plane: list[Size] = [batch, _half(graph, height), 1, _half(graph, width), 1]
    if u is None or v is None:
        both = graph.Slice(data, vector(graph, [height]), [LAST], [1])
        pair = reshaped(graph, both, [batch, 2, *plane[1:]])
        u, v = (graph.Gather(pair, i, axis=1) for i in range(2))
    else:
        u, v = reshaped(graph, u, plane), reshaped(graph, v, plane)
    return _to_rgb(graph, op, data, u, v, (batch, height, width))


def _image_sizes(graph: Graph, data: Tensor, has_all_planes: bool) -> tuple[Size, Size, Size]:
    """Return the number of images, their height and their width."""
    batch, height, width = (size_of(graph, data, axis) for axis in range(3))
    if has_all_planes:
        height = compute(graph, "Mul", compute(graph, "Div", height, 3), 2)
    return batch, height, width


def _to_rgb(graph: Graph, op: YuvToRgbBase, data: Tensor, u: Tensor, v: Tensor, sizes: Sequence[Size]) -> Tensor:
    """Return the image of Y, the first rows of data, and of U and V [batch, height / 2, 1, width / 2, 1]."""
    batch, height, width = sizes
    computed = real_type(data)
    y = graph.Slice(data, [0], vector(graph, [height]), [1])
    y = reshaped(graph, y, [batch, _half(graph, height), 2, _half(graph, width), 2])
    luma = graph.Mul(graph.Sub(graph.cast(y, computed), 16), 1.164)
    d, e = (graph.Sub(graph.cast(plane, computed), 128) for plane in (u, v))
    green = graph.Sub(graph.Sub(luma, graph.Mul(d, 0.391)), graph.Mul(e, 0.813))
    colors = {
        "red": graph.Add(luma, graph.Mul(e, 1.596)),
        "green": green,
        "blue": graph.Add(luma, graph.Mul(d, 2.018)),
    }
    order = sorted(colors, key=op.channel)
    stacked = graph.Concat(*(graph.Unsqueeze(colors[color], [5]) for color in order), axis=5)
    return reshaped(graph, _stored(graph, stacked, data.element_type), [batch, height, width, 3])


# --------------------------------------------------------------------------- RGB to NV12


@exports(RGBtoNV12, BGRtoNV12, to="Mul, Add, Clip, ReduceSum, Concat")
def rgb_to_nv12(graph: Graph, op: RgbToNv12Base, data: Tensor) -> Tensor | Sequence[Tensor]:
    """Export as weighted sums of the colors; U and V are the means of four pixels."""
    batch, height, width = (size_of(graph, data, axis) for axis in range(3))
    rows, columns = _half(graph, height), _half(graph, width)
    pixels = reshaped(graph, data, [batch, rows, 2, columns, 2, 3])
    pixels = graph.cast(pixels, real_type(data))
    colors = [graph.Gather(pixels, op.channel(color), axis=5) for color in ("red", "green", "blue")]
    y = _stored(graph, _weighted(graph, colors, (0.257, 0.504, 0.098), 16), data.element_type)
    chroma = [
        graph.Unsqueeze(_mean_of_four(graph, _weighted(graph, colors, weights, 128), data.element_type), [3])
        for weights in ((-0.148, -0.291, 0.439), (0.439, -0.368, -0.071))
    ]
    uv = graph.Concat(*chroma, axis=3)
    if not op.single_plane:
        return reshaped(graph, y, [batch, height, width, 1]), uv
    planes = reshaped(graph, y, [batch, height, width, 1]), reshaped(graph, uv, [batch, rows, width, 1])
    return graph.Concat(*planes, axis=1)


def _weighted(graph: Graph, colors: Sequence[Tensor], weights: Sequence[float], offset: float) -> Tensor:
    total, *others = (graph.Mul(color, weight) for color, weight in zip(colors, weights, strict=True))
    for part in others:
        total = graph.Add(total, part)
    return graph.Add(total, offset)


def _mean_of_four(graph: Graph, values: Tensor, element_type: ElementType) -> Tensor:
    """Return the mean of each four values, which are first stored in the type of the result."""
    stored = _stored(graph, values, element_type)
    if element_type == u8:
        total = graph.ReduceSum(graph.cast(stored, i32), [2, 4], keepdims=0)
        return graph.cast(graph.Div(graph.Add(total, 2), 4), u8)
    total = graph.ReduceSum(graph.cast(stored, values.element_type), [2, 4], keepdims=0)
    return _stored(graph, graph.Div(total, 4), element_type)


# --------------------------------------------------------------------------- numbers


def _half(graph: Graph, size: Size) -> Size:
    return compute(graph, "Div", size, 2)


def _stored(graph: Graph, values: Tensor, element_type: ElementType) -> Tensor:
    """Return values clipped to [0, 255]; integers are rounded to nearest."""
    if element_type == u8:  # adding 0.5 itself would round its predecessor up to 1
        values = graph.Add(values, float(np.nextafter(np.float32(0.5), np.float32(0))))
    return graph.cast(graph.Clip(values, 0, 255), element_type)
