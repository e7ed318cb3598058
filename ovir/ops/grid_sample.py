"""GridSample: sample an image at the positions of a grid, between its pixels and beyond its border."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ovir.core import float16
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, boolean, nf4, string
from ovir.core.tensor_types import TensorType
from ovir.kernels.precision import as_computed, compute_dtype, fill_saturated
from ovir.kernels.resample import keys_weights
from ovir.kernels.rounding import as_index
from ovir.ops.base.attributes import attribute
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator


@dataclass(frozen=True)
class _Taps:
    """The pixels that make up samples, [taps, positions]: their indices and weights.

    ``weight`` None means 1. ``outside`` marks positions without a pixel, which count as zero; None means none.
    """

    index: NDArray[np.int64]
    weight: Array | None
    outside: NDArray[np.bool_] | None


@operator("GridSample", opset=9)
class GridSample(Operator):
    """An image sampled at the positions of a grid, between its pixels and beyond its border.

    out[n, :, i, j] = data[n, :, y, x], where grid[n, i, j] = (x, y) is scaled from [-1, 1] to pixels.

    With ``align_corners``, -1 and 1 are the centers of the first and last pixel, otherwise their outer edges; all
    implementations agree on this, while the specification's text says the opposite. ``mode`` nearest takes the nearest
    pixel, ties to even; bilinear weighs 4 pixels; bicubic weighs 16 with Keys' kernel of -0.75. ``padding_mode``
    chooses what lies beyond the border: zeros, the border pixel, or the reflected image (at the centers of the
    outermost pixels with align_corners, else at their edges).

    Weighted 8-bit integers are rounded, ties to even; wider integers are truncated. Both saturate.

    >>> image = np.float32([[[[1, 2], [3, 4]]]])
    >>> ops.grid_sample(image, np.float32([[[[-1, -1], [0, 0]]]]), {"align_corners": True})
    [[[[1. 2.5]]]]
    """

    takes = "data T[N, C, H, W]; grid real[N, Rows, Columns, 2]; T any"
    gives = "T[N, C, Rows, Columns]"
    recipe = "T real, grid f32|real; H=1|3|7 W=1|2|5"
    arguments = "data grid attributes:**"
    align_corners: bool = attribute(default=False)
    mode: str = attribute(default="bilinear", choices=("bilinear", "bicubic", "nearest"))
    padding_mode: str = attribute(default="zeros", choices=("zeros", "border", "reflection"))

    def temporary_bytes(self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> float:
        """Count the pixels of each sample, and their indices and weights."""
        taps = {"nearest": 1, "bilinear": 4, "bicubic": 16}[self.mode]
        channels, places = inputs[0].shape[1].lower, inputs[1].shape.slice(0, 3).size().lower
        sample = channels * max(inputs[0].element_type.bits // 8, 4)
        return super().temporary_bytes(inputs, outputs) + places * ((taps + 1) * sample + 24 * taps + 64)

    def run(self, data: Array, grid: Array) -> Array:
        images, channels, height, width = data.shape
        shape = (images, channels, *grid.shape[1:3])
        if not height * width:
            fits = self.padding_mode == "zeros" or 0 in shape
            self.require(fits, "data {} has no pixels to sample", data.shape)
            return np.zeros(shape, data.dtype)
        element_type = self._element_type(data)
        # The code 0 of nf4 is not the number 0.
        self.require(
            element_type not in (nf4, string)
            or (self.mode == "nearest" and (element_type == string or self.padding_mode != "zeros")),
            "mode {} with {} data and padding_mode {} is not supported",
            self.mode,
            element_type,
            self.padding_mode,
        )
        pixels = data.swapaxes(0, 1).reshape(channels, images * height * width)
        first_pixels = np.repeat(np.arange(images) * height * width, grid.shape[1] * grid.shape[2])
        taps = self._taps(grid.reshape(-1, 2), height, width, first_pixels, compute_dtype(data.dtype))
        samples = self._samples(pixels, taps)
        return samples.reshape(channels, images, *grid.shape[1:3]).swapaxes(0, 1)

    # ----- the places

    def _taps(
        self, places: Array, height: int, width: int, first_pixels: NDArray[np.int64], dtype: np.dtype[Any]
    ) -> _Taps:
        """Return the pixels that make up the samples; ``dtype`` is the type of their weights.

        ``first_pixels`` has the index of the first pixel of the image of each place.
        """
        places = np.ascontiguousarray(as_computed(places).T[::-1])  # y, x
        sizes = np.array([[height], [width]])
        index, weight = self._axis_taps(places, sizes.astype(places.dtype), dtype)
        outside = index.view(np.uint64) >= sizes
        has_outside = outside.any()
        if has_outside:
            is_mirrored = self.padding_mode == "reflection"
            index = self._reflected(index, sizes) if is_mirrored else np.clip(index, 0, sizes - 1)
        rows, columns = index[:, np.newaxis, 0] * width + first_pixels, index[np.newaxis, :, 1]
        crossed = (rows + columns).reshape(len(index) ** 2, places.shape[1])
        if weight is not None:
            weight = (weight[:, np.newaxis, 0] * weight[np.newaxis, :, 1]).reshape(crossed.shape)
        if not has_outside or self.padding_mode != "zeros":
            return _Taps(crossed, weight, None)
        outside = outside[:, np.newaxis, 0] | outside[np.newaxis, :, 1]
        return _Taps(crossed, weight, outside.reshape(crossed.shape))

    def _axis_taps(
        self, places: Array, sizes: Array, dtype: np.dtype[Any]
    ) -> tuple[NDArray[np.int64], NDArray[Any] | None]:
        """Return indices and weights of the taps on both axes, [taps, axis, positions]."""
        position = (places + 1) * (sizes - 1) / 2 if self.align_corners else ((places + 1) * sizes - 1) / 2
        if self.mode == "nearest":
            return as_index(np.rint(position))[np.newaxis], None
        low = np.floor(position)
        share = (position - low).astype(dtype, copy=False)
        if self.mode == "bilinear":
            first, weights = 0, np.array([1 - share, share])
        else:
            first, weights = -1, keys_weights(share, -0.75)
        steps = np.arange(first, first + len(weights)).reshape(-1, 1, 1)
        return as_index(low) + steps, weights

    def _reflected(self, index: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        period = np.maximum(2 * (sizes - 1), 1) if self.align_corners else 2 * sizes
        index = index % period
        mirrored = period - index if self.align_corners else period - 1 - index
        return np.where(index >= sizes, mirrored, index)

    # ----- the pixels

    def _samples(self, pixels: Array, taps: _Taps) -> Array:
        """Return out[c, p] = the sum over the taps of pixels[c, index[p]] * weight[p]."""
        taken = pixels.take(taps.index, 1, mode="clip")
        if taps.outside is not None:
            taken[:, taps.outside] = np.zeros((), pixels.dtype)
        if taps.weight is None:
            return taken[:, 0]
        total = np.einsum("ctp,tp->cp", float16.converted(taken, taps.weight.dtype), taps.weight)
        element_type = self._element_type(pixels)
        if not element_type.is_real:
            _make_integral(total, element_type)
        if element_type.is_real or element_type == boolean:
            return float16.converted(total, pixels.dtype)
        samples = np.empty(total.shape, pixels.dtype)
        fill_saturated(total, samples)
        return samples

    def _element_type(self, data: Array) -> ElementType:
        return self.output_types[0] if self.output_types else ElementType.from_dtype(data.dtype)


def _make_integral(values: NDArray[Any], element_type: ElementType) -> None:
    """Round or truncate to integers in the range of the type."""
    if element_type.bits <= 8:
        np.rint(values, out=values)
    else:
        # A sum of weights may miss a whole number by a rounding error; in f32, in which devices compute, it is that
        # number.
        np.trunc(values.astype(np.float32), out=values)
    signed, bits = element_type.kind == "signed", 1 if element_type.kind == "boolean" else element_type.bits
    lowest, highest = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    np.clip(values, lowest, highest, out=values)
