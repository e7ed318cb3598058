"""Color conversion between the YUV formats NV12 and I420, with subsampled chroma, and RGB or BGR images.

Images are [batch, height, width, channels] with even height and width; four pixels share their U and V. A tensor with
all planes has one channel and 3 / 2 of the image's height: the rows of Y, then U and V.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import bf16, f16, f32, f64, nf4, u8
from ovir.core.shapes import Dimension, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.kernels import half
from ovir.kernels.blocked import BLOCK, compute_dtype
from ovir.kernels.parallel import run_blocks
from ovir.ops.base.attributes import attribute
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator

# A thread with fewer pixels costs more than it gains.
_LEAST_PER_THREAD = 1 << 15
_SMALL = 1 << 14  # pixels; the images of a batch that have fewer are converted together


class ColorBase(Operator):
    """Base of conversions between images of three colors and images of luma and chroma, in both directions."""

    first: ClassVar[str] = "red"
    """The first of the three channels, "red" or "blue"; the last channel is the other one."""

    def channel(self, color: str) -> int:
        """Return the position of a color among the three channels."""
        return 1 if color == "green" else 0 if color == self.first else 2

    def _even(self, name: str, dim: Dimension, shape: PartialShape) -> Dimension:
        """Return the dimension restricted to even sizes; raise if it is odd."""
        half_sizes = dim.exact_div(2)
        if half_sizes is None:
            self.fail("the {} of an image must be even, got {} of {}", name, dim, shape)
        return dim.merged_with(half_sizes * 2) or dim

    def _require_channels(self, name: str, shape: PartialShape, channels: int) -> None:
        self.require_rank(name, shape, 4)
        self.require(shape[-1].contains(channels), "{} must have {:channel}, got {}", name, channels, shape)


def _computed(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.float32) if dtype == np.uint8 else compute_dtype(dtype)


def _store(values: Array, target: Array) -> None:
    """Clip values in place and store them in the target; integers are rounded to nearest."""
    if target.dtype == np.uint8:
        np.copyto(target, _whole(values), casting="unsafe")
    else:
        np.clip(values, 0, 255, out=values)
        half.copy(values, target)


def _whole(values: Array) -> Array:
    """Round values to the nearest integers in [0, 255] in place, and return them as int16."""
    # Adding 0.5 itself would round its predecessor up to 1.
    np.add(values, np.nextafter(values.dtype.type(0.5), values.dtype.type(0)), out=values)
    whole: Array = values.astype(np.int16)
    return np.clip(whole, 0, 255, out=whole)


def _run_row_pairs(convert: Callable[[slice], None], pairs: int, _: int, width: int) -> None:
    """Call ``convert`` on blocks of pairs of rows of an image."""
    count = max(BLOCK // max(2 * width, 1), 1)

    def run(start: int, stop: int) -> None:
        with np.errstate(all="ignore"):
            for first in range(start, stop, count):
                convert(slice(first, min(first + count, stop)))

    run_blocks(run, pairs, -(-_LEAST_PER_THREAD // max(2 * width, 1)))


# --------------------------------------------------------------------------- YUV to RGB


class YuvToRgbBase(ColorBase):
    """Base of conversions from luma and chroma, where four pixels share U and V, to an image of three colors.

    R = 1.164 (Y - 16) + 1.596 (V - 128), G = 1.164 (Y - 16) - 0.391 (U - 128) - 0.813 (V - 128) and B = 1.164 (Y - 16)
    + 2.018 (U - 128), each clipped to [0, 255]. The type is the same as of the inputs, u8 or a floating-point type. The
    output is [batch, height, width, 3].
    """

    def infer_outputs(self, planes: list[TensorType], names: tuple[str, ...], channels: tuple[int, ...]) -> TensorType:
        """Return the type of the image; ``names`` and ``channels`` describe the inputs, Y first."""
        element_type = self.merge_types(*(plane.element_type for plane in planes), names=names)
        allowed = "u8 or of a floating-point type"
        self.require_type("data", element_type, lambda t: t == u8 or (t.is_real and t != nf4), allowed)
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
            message = "{} {} does not match an image of {} (batch, height, width): expected half its height and width"
            self.fail(message, name, chroma, image)
        return merged

    def run_outputs(self, y: Array, u: Array, v: Array, out: Array | None) -> Array:
        """Return the images of y [batch, height, width] and of u and v, which are half as high and wide."""
        batch, height, width = y.shape
        if out is None:
            out = np.empty((batch, height, width, 3), y.dtype)
        pairs = y.reshape(batch, height // 2, 2, width)
        pixels = out.reshape(batch, height // 2, 2, width, 3)
        # Small images are processed as one, because row pairs do not depend on each other.
        if height * width < _SMALL and out.flags.c_contiguous:
            rows = batch * (height // 2)
            y, u, v = pairs.reshape(rows, 2, width), u.reshape(rows, width // 2), v.reshape(rows, width // 2)
            self._convert_image(y, u, v, out.reshape(rows, 2, width, 3))
            return out
        for planes in zip(pairs, u, v, pixels, strict=True):
            self._convert_image(*planes)
        return out

    def _convert_image(self, y: Array, u: Array, v: Array, pixels: Array) -> None:
        """Fill pixels [row pair, 2, width, 3] from y [row pair, 2, width], u and v [row pair, width / 2]."""
        computed = _computed(y.dtype)
        red, green, blue = map(self.channel, ("red", "green", "blue"))

        def run(block: slice) -> None:
            luma = half.converted(y[block], computed) - 16
            np.multiply(luma, 1.164, out=luma)
            d, e = (half.converted(plane[block], computed) - 128 for plane in (u, v))
            values = luma + _twice(d * 2.018)
            _store(values, pixels[block, ..., blue])
            np.subtract(luma, _twice(d * 0.391), out=values)
            np.subtract(values, _twice(e * 0.813), out=values)
            _store(values, pixels[block, ..., green])
            np.add(luma, _twice(e * 1.596), out=luma)
            _store(luma, pixels[block, ..., red])

        _run_row_pairs(run, *y.shape)


def _twice(chroma: Array) -> Array:
    """Repeat each element of a row of chroma, one row for each pair of image rows."""
    rows, width = chroma.shape
    result = np.empty((rows, 1, width, 2), chroma.dtype)
    for i in range(2):  # many times faster than both at once
        result[:, 0, :, i] = chroma
    return result.reshape(rows, 1, 2 * width)


class Nv12ToRgbBase(YuvToRgbBase):
    """Base of conversions from interleaved U and V, below Y in the same tensor or in a separate plane of two channels.

    One input is [batch, height * 3 / 2, width, 1]; two are [batch, height, width, 1] and [batch, height / 2, width / 2,
    2].
    """

    def infer(self, data: TensorType, uv: TensorType | None = None) -> TensorType:
        planes = [data] if uv is None else [data, uv]
        return self.infer_outputs(planes, ("Y", "UV"), (1, 2))

    def run(self, data: Array, uv: Array | None = None, *, out: Array | None = None) -> Array:
        batch, height, width, _ = data.shape
        if uv is None:
            flat = data.reshape(batch, height * width)
            height = height // 3 * 2
            data, uv = np.split(flat, [height * width], axis=1)
        chroma = uv.reshape(batch, height // 2, width // 2, 2)
        return self.run_outputs(data.reshape(batch, height, width), chroma[..., 0], chroma[..., 1], out)


@operator("NV12toRGB", opset=8)
class NV12toRGB(Nv12ToRgbBase):
    """An NV12 image, in one tensor or two, as RGB. See Nv12ToRgbBase and YuvToRgbBase.

    Source: NV12toRGB-8
    """


@operator("NV12toBGR", opset=8)
class NV12toBGR(Nv12ToRgbBase):
    """An NV12 image, in one tensor or two, as BGR. See Nv12ToRgbBase and YuvToRgbBase.

    Source: NV12toBGR-8
    """

    first = "blue"


class I420ToRgbBase(YuvToRgbBase):
    """Base of conversions from planar U and V, below Y in the same tensor or in separate tensors.

    One input is [batch, height * 3 / 2, width, 1]; three are [batch, height, width, 1] and twice [batch, height / 2,
    width / 2, 1].
    """

    def infer(self, data: TensorType, u: TensorType | None = None, v: TensorType | None = None) -> TensorType:
        planes = [plane for plane in (data, u, v) if plane is not None]
        self.require(len(planes) != 2, "expected 1 input with all planes or 3 with Y, U and V, got 2")
        return self.infer_outputs(planes, ("Y", "U", "V"), (1, 1, 1))

    def run(self, data: Array, u: Array | None = None, v: Array | None = None, *, out: Array | None = None) -> Array:
        batch, height, width, _ = data.shape
        if u is None or v is None:
            flat = data.reshape(batch, height * width)
            height = height // 3 * 2
            pixels = height * width
            data, u, v = np.split(flat, [pixels, pixels + pixels // 4], axis=1)
        chroma = batch, height // 2, width // 2
        return self.run_outputs(data.reshape(batch, height, width), u.reshape(chroma), v.reshape(chroma), out)


@operator("I420toRGB", opset=8)
class I420toRGB(I420ToRgbBase):
    """An I420 image, in one tensor or three, as RGB. See I420ToRgbBase and YuvToRgbBase.

    Source: I420toRGB-8
    """


@operator("I420toBGR", opset=8)
class I420toBGR(I420ToRgbBase):
    """An I420 image, in one tensor or three, as BGR. See I420ToRgbBase and YuvToRgbBase.

    Source: I420toBGR-8
    """

    first = "blue"


# --------------------------------------------------------------------------- RGB to NV12


class RgbToNv12Base(ColorBase):
    """Base of conversions from an image of three colors, [batch, height, width, 3], to luma and chroma.

    Y = 16 + 0.257 R + 0.504 G + 0.098 B, U = 128 - 0.148 R - 0.291 G + 0.439 B and V = 128 + 0.439 R - 0.368 G - 0.071
    B, each clipped to [0, 255]. U and V are then averaged over four pixels and interleaved. The output is one tensor
    with all planes, [batch, height * 3 / 2, width, 1]; without ``single_plane`` it is two, Y [batch, height, width, 1]
    and UV [batch, height / 2, width / 2, 2].
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
        if height * width < _SMALL and batch > 1:
            rows = batch * (height // 2)
            brightness = np.empty((rows, 2, width), data.dtype)
            color = np.empty((rows, width // 2, 2), data.dtype)
            self._convert(pixels.reshape(rows, 2, width, 3), brightness, color)
            luma[...], uv[...] = brightness.reshape(luma.shape), color.reshape(uv.shape)
            return result
        for planes in zip(pixels, luma, uv.reshape(batch, height // 2, width // 2, 2), strict=True):
            self._convert(*planes)
        return result

    def _convert(self, data: Array, luma: Array, chroma: Array) -> None:
        """Fill luma [row pair, 2, width] and chroma [row pair, width / 2, 2] from data [row pair, 2, width, 3]."""
        computed = _computed(data.dtype)
        channels = [self.channel(color) for color in ("red", "green", "blue")]

        def run(block: slice) -> None:
            colors = [half.converted(data[block, ..., i], computed) for i in channels]
            _store(_weighted(colors, (0.257, 0.504, 0.098), 16), luma[block])
            for i, weights in enumerate(((-0.148, -0.291, 0.439), (0.439, -0.368, -0.071))):
                _store_mean_of_four(_weighted(colors, weights, 128), chroma[block, :, i])

        _run_row_pairs(run, *luma.shape)


def _weighted(colors: Sequence[Array], weights: Sequence[float], offset: float) -> Array:
    """Return the weighted sum of the colors plus the offset."""
    total: Array = colors[0] * weights[0]
    part = np.empty_like(total)
    for color, weight in zip(colors[1:], weights[1:], strict=True):
        np.add(total, np.multiply(color, weight, out=part), out=total)
    return np.add(total, offset, out=total)


def _store_mean_of_four(values: Array, target: Array) -> None:
    """Store the mean of each two by two values of [row pair, 2, width], each first converted to the target's type."""
    if target.dtype == np.uint8:
        total = _sum_of_four(_whole(values))
        np.add(total, 2, out=total)
        np.copyto(target, np.right_shift(total, 2, out=total), casting="unsafe")
        return
    stored = np.empty(values.shape, target.dtype)
    _store(values, stored)
    total = _sum_of_four(half.converted(stored, values.dtype))
    _store(np.divide(total, 4, out=total), target)


def _sum_of_four(values: Array) -> Array:
    # Pixels are added in the order of the reference.
    total: Array = values[:, 0, 0::2] + values[:, 0, 1::2]
    np.add(total, values[:, 1, 0::2], out=total)
    return np.add(total, values[:, 1, 1::2], out=total)


@operator("RGBtoNV12", opset=17)
class RGBtoNV12(RgbToNv12Base):
    """An RGB image as NV12, in one tensor or two. See RgbToNv12Base.

    Source: RGBtoNV12-17
    """


@operator("BGRtoNV12", opset=17)
class BGRtoNV12(RgbToNv12Base):
    """A BGR image as NV12, in one tensor or two. See RgbToNv12Base.

    Source: BGRtoNV12-17
    """

    first = "blue"
