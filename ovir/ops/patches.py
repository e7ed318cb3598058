"""ExtractImagePatches and Col2Im: split images into the patches under a window, and put them together again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.shapes import UNKNOWN, PartialShape
from ovir.core.tensor_types import Outputs, TensorType, constant_type
from ovir.kernels.precision import native_dtype
from ovir.kernels.windows import Window, box_taps, extent
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import ONE, Domain, Inputs, by_input, size_of
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator
from ovir.ops.base.spatial import SAME, padded_window


def _require_pairs(op: Operator, *names: str) -> None:
    for name in names:
        given: tuple[int, ...] = getattr(op, name)
        message = "{} must have an item for rows and one for columns, got {}"
        op.require(len(given) == 2, message, name, list(given))


@operator("ExtractImagePatches", opset=3)
class ExtractImagePatches(Operator):
    """out[n, (k * C + c), p] = data[n, c, p * strides + k * rates - pads], for the positions k of a patch row by row.

    data is [N, C, rows, cols], out [N, sizes[0] * sizes[1] * C, windows...]; data is zero outside its bounds. auto_pad
    same gives ceil(size / stride) windows, valid only those inside of data. Any type is allowed.

    >>> image = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
    >>> ops.extract_image_patches(image, [2, 2], [1, 1], [1, 1], "valid")
    [[[[0. 1.] [3. 4.]] [[1. 2.] [4. 5.]] [[3. 4.] [6. 7.]] [[4. 5.] [7. 8.]]]]
    """

    recipe = "number N C H+4 W+4; sizes=1,2|2,1|3,3 rates=1,1|1,2|2,1 strides=1,1|2,3|3,1"
    arguments = "image:data sizes strides rates auto_pad"
    bounded = False
    sizes: tuple[int, ...] = attribute(minimum=1)
    strides: tuple[int, ...] = attribute(minimum=1)
    rates: tuple[int, ...] = attribute(minimum=1)
    auto_pad: str = attribute(choices=("valid", *SAME))

    moves_elements = (0,)

    def infer(self, data: TensorType) -> TensorType:
        _require_pairs(self, "sizes", "strides", "rates")
        shape = data.shape
        self.require_rank("data", shape, 4)
        windows = [shape[2 + axis].map(partial(self._windows, axis=axis)) for axis in (0, 1)]
        channels = shape[1] * (self.sizes[0] * self.sizes[1])
        return TensorType(data.element_type, PartialShape([shape[0], channels, *windows]))

    def least_sizes(self, inputs: Sequence[TensorType]) -> Mapping[int, int]:
        axes = enumerate(zip(self.sizes, self.strides, self.rates, strict=True), 2)
        return {axis: max(extent(size, rate), stride) for axis, (size, stride, rate) in axes}

    def _windows(self, size: int, axis: int) -> int:
        covered = extent(self.sizes[axis], self.rates[axis]) if self.auto_pad == "valid" else 1
        return max((size - covered) // self.strides[axis] + 1, 0)

    def run(self, data: Array) -> Array:
        images, channels, *sizes = data.shape
        counts = [self._windows(size, axis) for axis, size in enumerate(sizes)]
        axes = zip(sizes, self.sizes, self.strides, self.rates, strict=True)
        windows = [padded_window(self.auto_pad, *axis) for axis in axes]
        patches = np.zeros((images, *self.sizes, channels, *counts), data.dtype)
        for tap, chosen, positions in box_taps(windows, sizes, counts):
            patches[:, *tap][..., *chosen] = data[..., *positions]
        return patches.reshape(images, prod(self.sizes) * channels, *counts)


def _image_side(op: Any, inputs: Inputs) -> Domain | None:
    """Return the side of a square image that has as many windows as ``data`` has blocks; None if there is none."""
    blocks, kernel = size_of(op, inputs, "data", -1), inputs["kernel_size"].constant
    sides = [1, 1] if kernel is None else kernel.tolist()
    windows = op.windows(sides)
    fitting = (side for side in range(1, 257) if prod(max(window.count(side), 0) for window in windows) == blocks)
    return next((Domain(side, side) for side in fitting), None)


@operator("Col2Im", opset=15)
class Col2Im(Operator):
    """out[n, c, p * strides + k * dilations - pads_begin] += data[n, c * K + k, p], starting from zero, for the K
    positions k in a window.

    The blocks p of data are, row by row, the windows of ``kernel_size`` in a padded image of ``output_size``. f16 and
    bf16 are summed in f32.

    >>> ops.col2im(np.ones((1, 4, 4), np.float32), [3, 3], [2, 2])
    [[[[1. 2. 1.] [2. 4. 2.] [1. 2. 1.]]]]
    """

    takes = "data T[K, Blocks]|[N, K, Blocks]; output_size I[2]; kernel_size I[2]; T any; I index"
    gives = "T[C, Rows, Columns]|[N, C, Rows, Columns]"
    domains = by_input(output_size=_image_side, kernel_size=ONE)
    strides: tuple[int, ...] = attribute(default=(1, 1), minimum=1)
    dilations: tuple[int, ...] = attribute(default=(1, 1), minimum=1)
    pads_begin: tuple[int, ...] = attribute(default=(0, 0), minimum=0)
    pads_end: tuple[int, ...] = attribute(default=(0, 0), minimum=0)

    value_inputs = (1, 2)

    def infer(self, data: TensorType, output_size: TensorType, kernel_size: TensorType) -> Outputs:
        _require_pairs(self, "strides", "dilations", "pads_begin", "pads_end")
        found = self.solved(data, output_size, kernel_size)
        sizes = [UNKNOWN, UNKNOWN] if output_size.value is None else output_size.value.dimensions()
        found.sizes.update(Rows=sizes[0], Columns=sizes[1])
        if kernel_size.constant is not None:
            kernel = [int(size) for size in kernel_size.constant]
            self.require(min(kernel) >= 1, "kernel_size {} must be positive", kernel)
            message = "data {} has {:channel}, which is not a multiple of the size of kernel {}"
            channels = found["K"].exact_div(kernel[0] * kernel[1])
            found.sizes["C"] = self.require_known(channels, message, data.shape, found["K"], kernel)
            if all(size.is_static for size in sizes):
                image = [size.length for size in sizes]
                counts = [window.count(side) for window, side in zip(self.windows(kernel), image, strict=True)]
                message = "an image of {} has {} windows of kernel {}, but data has {} blocks"
                fits = min(counts) >= 0 and found["Blocks"].contains(prod(counts))
                self.require(fits, message, image, counts, kernel, found["Blocks"])
        return found.outputs()

    def windows(self, kernel: Sequence[int]) -> list[Window]:
        """Return the windows on both axes of an image."""
        axes = zip(kernel, self.strides, self.dilations, self.pads_begin, self.pads_end, strict=True)
        return [Window(*axis) for axis in axes]

    def run(self, data: Array, output_size: Array, kernel_size: Array) -> Array:
        sizes, kernel = [int(size) for size in output_size], [int(size) for size in kernel_size]
        self.infer(*map(constant_type, (data, output_size, kernel_size)))  # which checks the sizes
        *batch, blocks, _ = data.shape
        windows = self.windows(kernel)
        counts = [window.count(size) for window, size in zip(windows, sizes, strict=True)]
        channels = blocks // prod(kernel)
        parts = data.reshape(*batch, channels, *kernel, *counts)
        images = np.zeros((*batch, channels, *sizes), native_dtype(data.dtype))
        for tap, chosen, positions in box_taps(windows, sizes, counts):
            images[..., *positions] += parts[..., *tap, :, :][..., *chosen]
        return images.astype(data.dtype, copy=False)
