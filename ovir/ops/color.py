"""Color conversion between the YUV formats NV12 and I420, with subsampled chroma, and RGB or BGR images.

Images are [batch, height, width, channels] with even height and width; four pixels share their U and V. A tensor with
all planes has one channel and 3 / 2 of the image's height: the rows of Y, then U and V.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ovir.core.arrays import Array
from ovir.core.tensor_types import Outputs, TensorType
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


_ALL_PLANES = "data T[N, 3*H, 2*W, 1]; T u8|real"


class YuvToRgbBase(ColorBase):
    """Base of conversions from luma and chroma, where four pixels share U and V, to an image of three colors.

    R = 1.164 (Y - 16) + 1.596 (V - 128), G = 1.164 (Y - 16) - 0.391 (U - 128) - 0.813 (V - 128) and B = 1.164 (Y - 16)
    + 2.018 (U - 128), each clipped to [0, 255].
    """

    gives = "T[N, 2*H, 2*W, 3]"
    recipe = "T u8|f32|f16; H=0|1|2|5 W=1|2|3"

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


@operator("NV12toRGB", opset=8)
class NV12toRGB(YuvToRgbBase):
    """An NV12 image, in one tensor or two, as RGB. See YuvToRgbBase.

    U and V are interleaved, below Y in the same tensor or in a plane of two channels.

    >>> ops.nv12_to_rgb(np.full((1, 3, 2, 1), 128, np.uint8))
    [[[[130 130 130] [130 130 130]] [[130 130 130] [130 130 130]]]]
    """

    takes = (_ALL_PLANES, "data T[N, 2*H, 2*W, 1]; uv T[N, H, W, 2]; T u8|real")
    arguments = "arg:data arg_uv:uv="

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


@operator("NV12toBGR", opset=8)
class NV12toBGR(NV12toRGB):
    """An NV12 image, in one tensor or two, as BGR. See NV12toRGB.

    >>> ops.nv12_to_bgr(np.full((1, 3, 2, 1), 128, np.uint8))
    [[[[130 130 130] [130 130 130]] [[130 130 130] [130 130 130]]]]
    """

    first = "blue"


@operator("I420toRGB", opset=8)
class I420toRGB(YuvToRgbBase):
    """An I420 image, in one tensor or three, as RGB. See YuvToRgbBase.

    U and V are planes of their own, below Y in the same tensor or in separate tensors.

    >>> ops.i420_to_rgb(np.full((1, 3, 2, 1), 128, np.uint8))
    [[[[130 130 130] [130 130 130]] [[130 130 130] [130 130 130]]]]
    """

    takes = (_ALL_PLANES, "data T[N, 2*H, 2*W, 1]; u T[N, H, W, 1]; v T[N, H, W, 1]; T u8|real")
    arguments = "arg:data arg_u:u= arg_v:v="

    def planes(self, *inputs: Array) -> tuple[Array, Array, Array]:
        y, u, v = inputs if len(inputs) == 3 else _split(inputs[0], 2)
        batch, height, width = y.shape[:3]
        half = batch, height // 2, width // 2
        return y.reshape(batch, height, width), u.reshape(half), v.reshape(half)


@operator("I420toBGR", opset=8)
class I420toBGR(I420toRGB):
    """An I420 image, in one tensor or three, as BGR. See I420toRGB.

    >>> ops.i420_to_bgr(np.full((1, 3, 2, 1), 128, np.uint8))
    [[[[130 130 130] [130 130 130]] [[130 130 130] [130 130 130]]]]
    """

    first = "blue"


# --------------------------------------------------------------------------- RGB to NV12


@operator("RGBtoNV12", opset=17)
class RGBtoNV12(ColorBase):
    """An RGB image [batch, height, width, 3] as NV12, in one tensor or two.

    Y = 16 + 0.257 R + 0.504 G + 0.098 B, U = 128 - 0.148 R - 0.291 G + 0.439 B and V = 128 + 0.439 R - 0.368 G - 0.071
    B, each clipped to [0, 255]. U and V are then averaged over four pixels and interleaved. With ``single_plane``
    the output is all planes in one tensor, [N, 3*H, 2*W, 1], else Y [N, 2*H, 2*W, 1] and UV [N, H, W, 2].

    >>> ops.rgb_to_nv12(np.full((1, 2, 2, 3), [255, 0, 0], np.uint8))
    [[[[ 82] [ 82]] [[ 82] [ 82]] [[ 90] [240]]]]
    """

    takes = "data T[N, 2*H, 2*W, 3]; T u8|f16|bf16|f32|f64"
    recipe = "T u8|f32; H=0|1|3 W=1|2"
    single_plane: bool = attribute(default=True)

    def infer(self, data: TensorType) -> Outputs:
        gives = "T[N, 3*H, 2*W, 1]" if self.single_plane else "y T[N, 2*H, 2*W, 1]; uv T[N, H, W, 2]"
        return self.solved(data).outputs(gives)

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


@operator("BGRtoNV12", opset=17)
class BGRtoNV12(RGBtoNV12):
    """A BGR image as NV12, in one tensor or two. See RGBtoNV12.

    >>> ops.bgr_to_nv12(np.full((1, 2, 2, 3), [255, 0, 0], np.uint8))
    [[[[ 41] [ 41]] [[ 41] [ 41]] [[240] [110]]]]
    """

    first = "blue"
