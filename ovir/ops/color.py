"""Color conversion between the YUV formats NV12 and I420, with a quarter of the chroma, and RGB or BGR images.

Images are [batch, height, width, channels], with even height and width: four pixels share their U and V. All planes in
one tensor have one channel and 3 / 2 of the image's height: the rows of Y, then U and V.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from ovir.arrays import Array
from ovir.element_types import ElementType, bf16, f16, f32, f64, nf4, u8
from ovir.kernels import half
from ovir.kernels.blocked import BLOCK, compute_dtype
from ovir.kernels.parallel import run_blocks
from ovir.ops.attributes import attribute
from ovir.ops.operator import Operator, operator
from ovir.types import Dimension, PartialShape
from ovir.values import TensorType

# Pixels that a thread must have at least.
_LEAST = 1 << 15


class _ColorConversion(Operator):
    """What both directions share."""

    first: ClassVar[str] = "red"
    """The first of the three channels; the last is the other one of red and blue."""

    def _channel(self, color: str) -> int:
        return 1 if color == "green" else 0 if color == self.first else 2

    def _even(self, name: str, dim: Dimension, shape: PartialShape) -> Dimension:
        """The even sizes of the dimension."""
        half_sizes = dim.exact_div(2)
        if half_sizes is None:
            self.fail("the {} of an image must be even, got {} of {}", name, dim, shape)
        return dim.merged_with(half_sizes * 2) or dim

    def _require_channels(self, name: str, shape: PartialShape, channels: int) -> None:
        self.require_rank(name, shape, 4)
        self.require(shape[-1].contains(channels), "{} must have {} channels, got {}", name, channels, shape)


def _computed(dtype: np.dtype[np.generic]) -> np.dtype[np.generic]:
    return np.dtype(np.float32) if dtype == np.uint8 else compute_dtype(dtype)


def _store(values: Array, target: Array) -> None:
    """Put values, which may be overwritten, into their range and into the target; an integer is the nearest one."""
    np.clip(values, 0, 255, out=values)
    if target.dtype == np.uint8:
        # 0.5 itself would carry its predecessor to 1.
        np.add(values, np.nextafter(values.dtype.type(0.5), values.dtype.type(0)), out=values)
    half.copy(values, target)


def _run_row_pairs(convert: Callable[[slice], None], pairs: int, _: int, width: int) -> None:
    """Call ``convert`` on blocks of the pairs of rows of an image."""
    count = max(BLOCK // max(2 * width, 1), 1)

    def run(start: int, stop: int) -> None:
        with np.errstate(all="ignore"):
            for first in range(start, stop, count):
                convert(slice(first, min(first + count, stop)))

    run_blocks(run, pairs, -(-_LEAST // max(2 * width, 1)))


# --------------------------------------------------------------------------- YUV to RGB


class _FromYuv(_ColorConversion):
    """R = 1.164 (Y - 16) + 1.596 (V - 128), G = 1.164 (Y - 16) - 0.391 (U - 128) - 0.813 (V - 128),
    B = 1.164 (Y - 16) + 2.018 (U - 128), each in [0, 255]."""

    def _infer(self, planes: list[TensorType], names: tuple[str, ...], channels: tuple[int, ...]) -> TensorType:
        """The image of planes; ``names`` and ``channels`` are those of Y and of the chroma planes."""
        element_type = self.merge_types(*(plane.element_type for plane in planes), names=names)
        self.require_type("data", element_type, _is_yuv_type, "u8 or of a floating-point type")
        for plane, name, count in zip(planes, names, channels, strict=False):
            self._require_channels(name, plane.shape, count)
        luma = planes[0].shape
        image = PartialShape([luma[0], self._image_height(luma), luma[2]]) if len(planes) == 1 else luma.slice(0, 3)
        for plane, name in zip(planes[1:], names[1:], strict=False):
            image = self._merged(image, name, plane.shape)
        height, width = self._even("height", image[1], image), self._even("width", image[2], image)
        return TensorType(element_type, PartialShape([image[0], height, width, 3]))

    def _image_height(self, luma: PartialShape) -> Dimension:
        thirds = luma[1].exact_div(3)
        if thirds is None:
            self.fail("the height of all planes in one tensor must be a multiple of 3, got {} of {}", luma[1], luma)
        return thirds * 2

    def _merged(self, image: PartialShape, name: str, chroma: PartialShape) -> PartialShape:
        doubled = PartialShape(None)
        if chroma.rank is not None:
            doubled = PartialShape([chroma[0], chroma[1] * 2, chroma[2] * 2])
        merged = image.merged_with(doubled)
        if merged is None:
            message = "{} {} does not fit to an image of {} (batch, height, width): half of height and width is needed"
            self.fail(message, name, chroma, image)
        return merged

    def _convert(self, y: Array, u: Array, v: Array, out: Array | None) -> Array:
        """The images of y [batch, height, width] and of u and v, half as high and wide."""
        batch, height, width = y.shape
        if out is None:
            out = np.empty((batch, height, width, 3), y.dtype)
        pairs = y.reshape(batch, height // 2, 2, width)
        pixels = out.reshape(batch, height // 2, 2, width, 3)
        for planes in zip(pairs, u, v, pixels, strict=True):
            self._convert_image(*planes)
        return out

    def _convert_image(self, y: Array, u: Array, v: Array, pixels: Array) -> None:
        """Fill pixels [row pair, 2, width, 3] from y [row pair, 2, width], u and v [row pair, width / 2]."""
        computed = _computed(y.dtype)
        red, green, blue = map(self._channel, ("red", "green", "blue"))

        def run(block: slice) -> None:
            luma = half.converted(y[block], computed) - 16
            np.multiply(luma, 1.164, out=luma)
            d, e = (half.converted(plane[block], computed) - 128 for plane in (u, v))
            values = luma + _widened(d * 2.018)
            _store(values, pixels[block, ..., blue])
            np.subtract(luma, _widened(d * 0.391), out=values)
            np.subtract(values, _widened(e * 0.813), out=values)
            _store(values, pixels[block, ..., green])
            np.add(luma, _widened(e * 1.596), out=luma)
            _store(luma, pixels[block, ..., red])

        _run_row_pairs(run, *y.shape)


def _is_yuv_type(element_type: ElementType) -> bool:
    return element_type == u8 or (element_type.is_real and element_type != nf4)


def _widened(chroma: Array) -> Array:
    """For each pair of rows one row of chroma, each element of which stands twice."""
    rows, width = chroma.shape
    result = np.empty((rows, 1, width, 2), chroma.dtype)
    result[...] = chroma[:, np.newaxis, :, np.newaxis]
    return result.reshape(rows, 1, 2 * width)


class _FromNV12(_FromYuv):
    """U and V stand in turns: in the rows below Y, or in a plane of their own of two channels."""

    def infer(self, data: TensorType, uv: TensorType | None = None) -> TensorType:
        planes = [data] if uv is None else [data, uv]
        return self._infer(planes, ("Y", "UV"), (1, 2))

    def run(self, data: Array, uv: Array | None = None, *, out: Array | None = None) -> Array:
        batch, height, width, _ = data.shape
        if uv is None:
            flat = data.reshape(batch, height * width)
            height = height // 3 * 2
            data, uv = np.split(flat, [height * width], axis=1)
        chroma = uv.reshape(batch, height // 2, width // 2, 2)
        return self._convert(data.reshape(batch, height, width), chroma[..., 0], chroma[..., 1], out)


@operator("NV12toRGB", opset=8)
class NV12toRGB(_FromNV12):
    """An NV12 image, in one tensor or two, as RGB. Formulas: see _FromYuv. Source: NV12toRGB-8."""


@operator("NV12toBGR", opset=8)
class NV12toBGR(_FromNV12):
    """An NV12 image, in one tensor or two, as BGR. Formulas: see _FromYuv. Source: NV12toBGR-8."""

    first = "blue"


class _FromI420(_FromYuv):
    """U and V are planes: one after the other below Y, or tensors of their own."""

    def infer(self, data: TensorType, u: TensorType | None = None, v: TensorType | None = None) -> TensorType:
        planes = [plane for plane in (data, u, v) if plane is not None]
        self.require(len(planes) != 2, "takes 1 input with all planes or 3 with Y, U and V, got 2")
        return self._infer(planes, ("Y", "U", "V"), (1, 1, 1))

    def run(self, data: Array, u: Array | None = None, v: Array | None = None, *, out: Array | None = None) -> Array:
        batch, height, width, _ = data.shape
        if u is None or v is None:
            flat = data.reshape(batch, height * width)
            height = height // 3 * 2
            pixels = height * width
            data, u, v = np.split(flat, [pixels, pixels + pixels // 4], axis=1)
        chroma = batch, height // 2, width // 2
        return self._convert(data.reshape(batch, height, width), u.reshape(chroma), v.reshape(chroma), out)


@operator("I420toRGB", opset=8)
class I420toRGB(_FromI420):
    """An I420 image, in one tensor or three, as RGB. Formulas: see _FromYuv. Source: I420toRGB-8."""


@operator("I420toBGR", opset=8)
class I420toBGR(_FromI420):
    """An I420 image, in one tensor or three, as BGR. Formulas: see _FromYuv. Source: I420toBGR-8."""

    first = "blue"


# --------------------------------------------------------------------------- RGB to NV12


class _ToNV12(_ColorConversion):
    """Y = 16 + 0.257 R + 0.504 G + 0.098 B, U = 128 - 0.148 R - 0.291 G + 0.439 B and
    V = 128 + 0.439 R - 0.368 G - 0.071 B, each in [0, 255]; then U and V are the means of four pixels.

    The output is one tensor with all planes, or without ``single_plane`` two, Y and UV.
    """

    single_plane: bool = attribute(default=True)

    def infer(self, data: TensorType) -> TensorType | tuple[TensorType, ...]:
        allowed = (u8, f16, bf16, f32, f64)
        self.require_type("data", data.element_type, lambda t: t in allowed, "u8, f16, bf16, f32 or f64")
        self._require_channels("data", data.shape, 3)
        batch, height, width = data.shape[0], data.shape[1], data.shape[2]
        height, width = self._even("height", height, data.shape), self._even("width", width, data.shape)
        halves = [dim.exact_div(2) or dim for dim in (height, width)]
        luma, chroma = PartialShape([batch, height, width, 1]), PartialShape([batch, *halves, 2])
        if self.single_plane:
            return TensorType(data.element_type, luma.with_dim(1, halves[0] * 3))
        return TensorType(data.element_type, luma), TensorType(data.element_type, chroma)

    def run(self, data: Array, *, out: Array | tuple[Array, ...] | None = None) -> Array | tuple[Array, ...]:
        batch, height, width, _ = data.shape
        if self.single_plane:
            whole = out if isinstance(out, np.ndarray) else np.empty((batch, height // 2 * 3, width, 1), data.dtype)
            y, uv = np.split(whole.reshape(batch, height // 2 * 3 * width), [height * width], axis=1)
            result: Array | tuple[Array, ...] = whole
        else:
            shapes = (batch, height, width, 1), (batch, height // 2, width // 2, 2)
            y, uv = result = out if isinstance(out, tuple) else tuple(np.empty(shape, data.dtype) for shape in shapes)
        pixels = data.reshape(batch, height // 2, 2, width, 3)
        luma = y.reshape(batch, height // 2, 2, width)
        for planes in zip(pixels, luma, uv.reshape(batch, height // 2, width // 2, 2), strict=True):
            self._convert(*planes)
        return result

    def _convert(self, data: Array, luma: Array, chroma: Array) -> None:
        """Fill luma [row pair, 2, width] and chroma [row pair, width / 2, 2] from data [row pair, 2, width, 3]."""
        computed = _computed(data.dtype)
        channels = [self._channel(color) for color in ("red", "green", "blue")]

        def run(block: slice) -> None:
            r, g, b = (half.converted(data[block, ..., i], computed) for i in channels)
            _store(0.257 * r + 0.504 * g + 0.098 * b + 16, luma[block])
            u = -0.148 * r - 0.291 * g + 0.439 * b + 128
            v = 0.439 * r - 0.368 * g - 0.071 * b + 128
            for i, values in enumerate((u, v)):
                _store(_mean_of_four(values, data.dtype), chroma[block, :, i])

        _run_row_pairs(run, *luma.shape)


def _mean_of_four(values: Array, dtype: np.dtype[np.generic]) -> Array:
    """The means of two by two values [row pair, 2, width], each of which is first brought into the output's type."""
    stored = np.empty(values.shape, dtype)
    _store(values, stored)
    stored = half.converted(stored, values.dtype)
    # Pixel by pixel, as the reference adds them.
    total = stored[:, 0, 0::2] + stored[:, 0, 1::2]
    np.add(total, stored[:, 1, 0::2], out=total)
    np.add(total, stored[:, 1, 1::2], out=total)
    np.divide(total, 4, out=total)
    return total


@operator("RGBtoNV12", opset=17)
class RGBtoNV12(_ToNV12):
    """An RGB image as NV12, in one tensor or two. Formulas: see _ToNV12. Source: RGBtoNV12-17."""


@operator("BGRtoNV12", opset=17)
class BGRtoNV12(_ToNV12):
    """A BGR image as NV12, in one tensor or two. Formulas: see _ToNV12. Source: BGRtoNV12-17."""

    first = "blue"
