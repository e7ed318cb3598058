"""Geometry of windows that slide over spatial axes, for pooling and convolution.

On one axis a window has ``kernel`` taps, ``dilation`` apart; it covers ``(kernel - 1) * dilation + 1`` positions of the
padded data and moves by ``stride``. The number of windows follows pooling_shape_rules of the specification.
"""

from __future__ import annotations

from collections.abc import Sequence

from ovir.core.shapes import Dimension, PartialShape, as_dimension
from ovir.kernels.windows import Window, extent
from ovir.ops.base.attributes import attribute
from ovir.ops.base.operator import Operator

SAME = ("same_upper", "same_lower")


def padded_window(auto_pad: str, size: int, kernel: int, stride: int, dilation: int, *pads: int) -> Window:
    """Return the window on an axis of ``size`` with the pads that ``auto_pad`` means.

    Those of ``same`` give ceil(size / stride) windows, and an odd pad is at the end for ``same_upper``; ``valid`` has
    none. Otherwise the pads at the beginning and the end are given.
    """
    if auto_pad == "valid":
        pads = 0, 0
    if auto_pad in SAME:
        windows = -(-size // stride)
        total = max((windows - 1) * stride + extent(kernel, dilation) - size, 0)
        less, more = total // 2, total - total // 2
        pads = (less, more) if auto_pad == "same_upper" else (more, less)
    return Window(kernel, stride, dilation, *pads)


def output_dim(
    dim: Dimension,
    kernel: Dimension | int,
    stride: int,
    dilation: int,
    pad_begin: int,
    pad_end: int,
    rounding: str = "floor",
    auto_pad: str = "explicit",
) -> Dimension:
    """Return the interval of ``Window.count`` over the sizes of ``dim`` and ``kernel`` for which a window fits.

    The pads are those that ``auto_pad`` means for each size. The symbol is kept if every size is.
    """
    kernel = as_dimension(kernel)
    if auto_pad in SAME:
        if rounding != "ceil":
            return dim.ceil_div(stride)
        axis = kernel.length, stride, dilation
        return dim.map(lambda size: padded_window(auto_pad, size, *axis).count(size, rounding))
    if auto_pad == "valid":
        pad_begin = pad_end = 0
    if kernel.is_static and stride == 1 and pad_begin + pad_end == extent(kernel.lower, dilation) - 1:
        return dim if dim.lower else Dimension(1, dim.upper, dim.symbol)

    def windows(size: int, kernel_size: int) -> int:
        window = Window(max(kernel_size, 1), stride, dilation, pad_begin, pad_end)
        return max(window.count(size, rounding), 1)

    lower = 1 if kernel.upper is None else windows(dim.lower, kernel.upper)
    upper = None if dim.upper is None else windows(dim.upper, kernel.lower)
    return Dimension(lower, upper)


class UndilatedWindowBase(Operator):
    """Base of operations with windows, whose attributes have one item for each spatial axis; missing strides are 1,
    missing pads 0."""

    bounded = False
    strides: tuple[int, ...] = attribute(default=(), minimum=1, specified=True, assumed="1 for each axis")
    dilations: tuple[int, ...] = ()
    pads_begin: tuple[int, ...] = attribute(default=(), specified=True, assumed="0 for each axis")
    pads_end: tuple[int, ...] = attribute(default=(), specified=True, assumed="0 for each axis")
    auto_pad: str = attribute(default="explicit", choices=("explicit", "notset", "valid", *SAME))

    def per_axis(self, axes: int) -> tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int]]:
        """Return ``strides``, ``dilations``, ``pads_begin`` and ``pads_end`` for a number of spatial axes."""
        filled: list[Sequence[int]] = []
        for name, default in (("strides", 1), ("dilations", 1), ("pads_begin", 0), ("pads_end", 0)):
            given: tuple[int, ...] = getattr(self, name)
            self.require(
                len(given) in (0, axes), "{} {} must have {} items, one for each spatial axis", name, list(given), axes
            )
            filled.append(given or (default,) * axes)
        strides, dilations, begin, end = filled
        return strides, dilations, begin, end

    def window_sizes(self, kernel: Sequence[int]) -> dict[int, int]:
        """Return the result of ``least_sizes`` for windows of a kernel: they cover no more than the data."""
        strides, dilations, _, _ = self.per_axis(len(kernel))
        axes = enumerate(zip(kernel, strides, dilations, strict=True), 2)
        return {axis: max(extent(taps, dilation), stride) for axis, (taps, stride, dilation) in axes}

    def output_dims(
        self, spatial: PartialShape, kernel: Sequence[Dimension | int], rounding: str = "floor"
    ) -> list[Dimension]:
        """Return the spatial sizes of the output; raise if a window is larger than the padded data."""
        strides, dilations, begins, ends = self.per_axis(len(kernel))
        result = []
        for axis, item in enumerate(zip(kernel, strides, dilations, begins, ends, strict=True)):
            dim, taps = spatial[axis], as_dimension(item[0])
            _, stride, dilation, begin, end = item
            if dim.is_static and taps.is_static and self.auto_pad not in SAME:
                pads = (0, 0) if self.auto_pad == "valid" else (begin, end)
                covered = extent(taps.length, dilation)
                message = (
                    "the window is too large on spatial axis {}: it covers {} (kernel {}, "
                    "dilation {}), but data has {} with pads {} and {}"
                )
                fits = covered <= dim.length + sum(pads)
                self.require(fits, message, axis, covered, taps, dilation, dim, *pads)
            result.append(output_dim(dim, taps, stride, dilation, begin, end, rounding, self.auto_pad))
        return result

    def windows(
        self, sizes: Sequence[int], kernel: Sequence[int], rounding: str = "floor"
    ) -> tuple[list[Window], list[int]]:
        """Return the window with its pads for each spatial axis of data of these sizes, and the number of windows.

        A window that is larger than the padded data is an error.
        """
        counts = [dim.length for dim in self.output_dims(PartialShape(sizes), kernel, rounding)]
        axes = zip(sizes, kernel, *self.per_axis(len(kernel)), strict=True)
        return [padded_window(self.auto_pad, *axis) for axis in axes], counts


class SlidingWindowBase(UndilatedWindowBase):
    """Base of operations with windows whose taps may be more than 1 apart; missing ``dilations`` are 1."""

    dilations: tuple[int, ...] = attribute(default=(), minimum=1, specified=True, assumed="1 for each axis")
