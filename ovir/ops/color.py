"""Color conversion between the YUV formats NV12 and I420, with subsampled chroma, and RGB or BGR images.

Images are [batch, height, width, channels] with even height and width; four pixels share their U and V. A tensor with
all planes has one channel and 3 / 2 of the image's height: the rows of Y, then U and V.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import bf16, f16, f32, f64, nf4, u8
from ovir.core.shapes import Dimension, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.kernels.precision import compute_dtype
from ovir.ops.base.attributes import attribute
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator


class ColorBase(Operator):
    """Base of conversions between images of three colors and images of luma and chroma, in both directions."""

    first: ClassVar[str] = "red"
    """The first of the three channels, "red" or "blue"; the last channel is the other one."""

    def channel(self, color: str) -> int:
        """Return the position of a color among the three channels."""
        return 1 if color == "green" else 0 if color == self.first else 2

    def _even(self, name: str, dim: Dimension, shape: PartialShape) -> Dimension:
        """Return the dimension restricted to even sizes; raise if it is odd."""
        message = "the {} of an image must be even, got {} of {}"
        half_sizes = self.require_known(dim.exact_div(2), message, name, dim, shape)
        return dim.merged_with(half_sizes * 2) or dim

    def _require_channels(self, name: str, shape: PartialShape, channels: int) -> None:
        self.require_rank(name, shape, 4)
        self.require(shape[-1].contains(channels), "{} must have {:channel}, got {}", name, channels, shape)


def _computed(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.float32) if dtype == np.uint8 else compute_dtype(dtype)


def _stored(values: Array, dtype: np.dtype[Any]) -> Array:
    """Clip values to [0, 255] in place, and return them in a type; integers are rounded to nearest, halves up."""
    np.clip(values, 0, 255, out=values)
    if dtype.kind == "u":
        # Adding 0.5 itself would round its predecessor up to 1.
        values += np.nextafter(values.dtype.type(0.5), values.dtype.type(0))
    return values.astype(dtype, copy=False)


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
        message = "the height of all planes in one tensor must be a multiple of 3, got {} of {}"
        thirds = self.require_known(luma[1].exact_div(3), message, luma[1], luma)
        return thirds * 2

    def _merged(self, image: PartialShape, name: str, chroma: PartialShape) -> PartialShape:
        doubled = PartialShape(None)
        if chroma.rank is not None:
            doubled = PartialShape([chroma[0], chroma[1] * 2, chroma[2] * 2])
        message = "{} {} does not match an image of {} (batch, height, width): expected half its height and width"
        return self.require_known(image.merged_with(doubled), message, name, chroma, image)

    def planes(self, *inputs: Array) -> tuple[Array, Array, Array]:
        """Return Y [batch, height, width], and U and V, which are half as high and wide."""
        raise NotImplementedError

    def run(self, *inputs: Array) -> Array:
        y, u, v = self.planes(*inputs)
        dtype = _computed(y.dtype)
        luma = 1.164 * (y.astype(dtype) - 16)
        d, e = (plane.astype(dtype) - 128 for plane in (u, v))
        image = np.empty((*y.shape, 3), y.dtype)
        image[..., self.channel("red")] = _stored(_plus_shared(luma, 1.596 * e), y.dtype)
        green = _plus_shared(_plus_shared(luma, -0.391 * d), -0.813 * e)
        image[..., self.channel("green")] = _stored(green, y.dtype)
        image[..., self.channel("blue")] = _stored(_plus_shared(luma, 2.018 * d), y.dtype)
        return image


def _plus_shared(luma: Array, chroma: Array) -> Array:
    """Return luma plus chroma, each element of which four pixels share."""
    batch, height, width = luma.shape
    rows = luma.reshape(batch, height // 2, 2, width)
    return (rows + chroma.repeat(2, axis=2)[:, :, np.newaxis]).reshape(luma.shape)


class Nv12ToRgbBase(YuvToRgbBase):
    """Base of conversions from interleaved U and V, below Y in the same tensor or in a separate plane of two channels.

    One input is [batch, height * 3 / 2, width, 1]; two are [batch, height, width, 1] and [batch, height / 2, width / 2,
    2].
    """

    arguments = "arg:data arg_uv:uv="

    def infer(self, data: TensorType, uv: TensorType | None = None) -> TensorType:
        planes = [data] if uv is None else [data, uv]
        return self.infer_outputs(planes, ("Y", "UV"), (1, 2))

    def planes(self, *inputs: Array) -> tuple[Array, Array, Array]:
        y, uv = inputs if len(inputs) == 2 else _split(inputs[0], 1)
        batch, height, width = y.shape[:3]
        chroma = uv.reshape(batch, height // 2, width // 2, 2)
        return y.reshape(batch, height, width), chroma[..., 0], chroma[..., 1]


def _split(data: Array, count: int) -> list[Array]:
    """Return the plane of luma, and ``count`` planes of chroma, of a tensor with all of them."""
    batch, height, width, _ = data.shape
    height = height // 3 * 2
    pixels = height * width
    flat = data.reshape(batch, height // 2 * 3 * width)
    y, *chroma = np.split(flat, [pixels + pixels // 2 // count * i for i in range(count)], axis=1)
    return [y.reshape(batch, height, width), *chroma]


@operator("NV12toRGB", opset=8)
class NV12toRGB(Nv12ToRgbBase):
    """An NV12 image, in one tensor or two, as RGB. See Nv12ToRgbBase and YuvToRgbBase.

    >>> ops.nv12_to_rgb(np.full((1, 3, 2, 1), 128, np.uint8))
    [[[[130 130 130] [130 130 130]] [[130 130 130] [130 130 130]]]]
    """


@operator("NV12toBGR", opset=8)
class NV12toBGR(Nv12ToRgbBase):
    """An NV12 image, in one tensor or two, as BGR. See Nv12ToRgbBase and YuvToRgbBase.

    >>> ops.nv12_to_bgr(np.full((1, 3, 2, 1), 128, np.uint8))
    [[[[130 130 130] [130 130 130]] [[130 130 130] [130 130 130]]]]
    """

    first = "blue"


class I420ToRgbBase(YuvToRgbBase):
    """Base of conversions from planar U and V, below Y in the same tensor or in separate tensors.

    One input is [batch, height * 3 / 2, width, 1]; three are [batch, height, width, 1] and twice [batch, height / 2,
    width / 2, 1].
    """

    arguments = "arg:data arg_u:u= arg_v:v="

    def infer(self, data: TensorType, u: TensorType | None = None, v: TensorType | None = None) -> TensorType:
        planes = [plane for plane in (data, u, v) if plane is not None]
        self.require(len(planes) != 2, "expected 1 input with all planes or 3 with Y, U and V, got 2")
        return self.infer_outputs(planes, ("Y", "U", "V"), (1, 1, 1))

    def planes(self, *inputs: Array) -> tuple[Array, Array, Array]:
        y, u, v = inputs if len(inputs) == 3 else _split(inputs[0], 2)
        batch, height, width = y.shape[:3]
        half = batch, height // 2, width // 2
        return y.reshape(batch, height, width), u.reshape(half), v.reshape(half)


@operator("I420toRGB", opset=8)
class I420toRGB(I420ToRgbBase):
    """An I420 image, in one tensor or three, as RGB. See I420ToRgbBase and YuvToRgbBase.

    >>> ops.i420_to_rgb(np.full((1, 3, 2, 1), 128, np.uint8))
    [[[[130 130 130] [130 130 130]] [[130 130 130] [130 130 130]]]]
    """


@operator("I420toBGR", opset=8)
class I420toBGR(I420ToRgbBase):
    """An I420 image, in one tensor or three, as BGR. See I420ToRgbBase and YuvToRgbBase.

    >>> ops.i420_to_bgr(np.full((1, 3, 2, 1), 128, np.uint8))
    [[[[130 130 130] [130 130 130]] [[130 130 130] [130 130 130]]]]
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
        self.require_type("data", data, lambda t: t in allowed, "u8, f16, bf16, f32 or f64")
        self._require_channels("data", data.shape, 3)
        batch, height, width = data.shape[0], data.shape[1], data.shape[2]
        height, width = self._even("height", height, data.shape), self._even("width", width, data.shape)
        halves = [dim.exact_div(2) or dim for dim in (height, width)]
        luma, chroma = PartialShape([batch, height, width, 1]), PartialShape([batch, *halves, 2])
        if self.single_plane:
            return TensorType(data.element_type, luma.with_dim(1, halves[0] * 3))
        return TensorType(data.element_type, luma), TensorType(data.element_type, chroma)

    def run(self, data: Array) -> Array | tuple[Array, ...]:
        batch, height, width, _ = data.shape
        y, uv = self.planes(data)
        if not self.single_plane:
            return y[..., np.newaxis], uv
        planes = np.concatenate([y.reshape(batch, height * width), uv.reshape(batch, height * width // 2)], axis=1)
        return planes.reshape(batch, height // 2 * 3, width, 1)

    def planes(self, image: Array) -> tuple[Array, Array]:
        """Return Y [batch, height, width] and UV [batch, height / 2, width / 2, 2] of an image."""
        dtype = image.dtype
        red, green, blue = (image[..., self.channel(c)].astype(_computed(dtype)) for c in ("red", "green", "blue"))
        y = 0.257 * red + 0.504 * green + 0.098 * blue + 16
        u = -0.148 * red - 0.291 * green + 0.439 * blue + 128
        v = 0.439 * red - 0.368 * green - 0.071 * blue + 128
        return _stored(y, dtype), np.stack([_mean_of_four(u, dtype), _mean_of_four(v, dtype)], axis=-1)


def _mean_of_four(values: Array, dtype: np.dtype[Any]) -> Array:
    """Return the mean of each two by two pixels, each first converted to the image's type."""
    x = _stored(values, dtype).astype(values.dtype)
    # Pixels are added in the order of the reference.
    total = x[:, 0::2, 0::2] + x[:, 0::2, 1::2] + x[:, 1::2, 0::2] + x[:, 1::2, 1::2]
    return _stored(total / 4, dtype)


@operator("RGBtoNV12", opset=17)
class RGBtoNV12(RgbToNv12Base):
    """An RGB image as NV12, in one tensor or two. See RgbToNv12Base.

    >>> ops.rgb_to_nv12(np.full((1, 2, 2, 3), [255, 0, 0], np.uint8))
    [[[[ 82] [ 82]] [[ 82] [ 82]] [[ 90] [240]]]]
    """


@operator("BGRtoNV12", opset=17)
class BGRtoNV12(RgbToNv12Base):
    """A BGR image as NV12, in one tensor or two. See RgbToNv12Base.

    >>> ops.bgr_to_nv12(np.full((1, 2, 2, 3), [255, 0, 0], np.uint8))
    [[[[ 41] [ 41]] [[ 41] [ 41]] [[240] [110]]]]
    """

    first = "blue"
