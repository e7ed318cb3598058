"""PriorBox and PriorBoxClustered: the boxes that a detector's predictions refer to, around each point of a grid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

import numpy as np

from ovir.core.arrays import Array
from ovir.core.shapes import UNKNOWN
from ovir.core.tensor_types import Outputs, TensorType
from ovir.diagnostics.kernel_warnings import report
from ovir.kernels.rounding import round_half_away
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import SMALL, Between, by_input
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator

_DEFAULT_VARIANCE = (0.1,)


class PriorBoxBase(Operator):
    """Base of the boxes that a detector's predictions refer to, around each point of a grid.

    output_size and image_size are height and width of the grid and of the image. The first row of the output holds
    boxes [xmin, ymin, xmax, ymax] relative to the image, point by point, clipped to [0, 1] if ``clip``; the second row
    holds ``variance``, one number for all or four per box, 0.1 if empty. ``offset`` is the distance of the first point
    from the image's border, in steps.
    """

    takes = "output_size integer[2]; image_size integer[2]"
    gives = "f32[2, Numbers]"
    domains = by_input(output_size=SMALL, image_size=Between(32, 64))
    offset: float = attribute(default=0.0, specified=True)
    variance: tuple[float, ...] = attribute(default=())
    clip: bool

    value_inputs = (0,)

    def boxes_per_point(self) -> int:
        """Return the number of boxes per point in the output."""
        raise NotImplementedError

    def edges(self, grid: tuple[int, int], image: tuple[int, int]) -> tuple[tuple[Array, Array], ...]:
        """Return the lower and upper edges [points, boxes] on the y axis and on the x axis, relative to the image."""
        raise NotImplementedError

    def infer(self, output_size: TensorType, image_size: TensorType) -> Outputs:
        found = self.solved(output_size, image_size)
        count = len(self.variance)
        self.require(count in (0, 1, 4), "variance must have 0, 1 or 4 numbers, got {}: {}", count, list(self.variance))
        known = output_size.value
        height, width = known.dimensions() if known is not None else (UNKNOWN, UNKNOWN)
        found.sizes["Numbers"] = height * width * (4 * self.boxes_per_point())
        return found.outputs()

    def run(self, output_size: Array, image_size: Array) -> Array:
        height, width = (max(int(size), 0) for size in output_size)
        image = int(image_size[0]), int(image_size[1])
        wanted = self.boxes_per_point()
        out = np.empty((2, 4 * height * width * wanted), np.float32)
        if not out.size:
            return out
        (y_low, y_high), (x_low, x_high) = self.edges((height, width), image)
        given = x_low.shape[1]
        boxes = out[0] if given == wanted else np.empty(4 * height * width * given, np.float32)
        of_points = boxes.reshape(height, width, given, 4)
        of_points[..., 0], of_points[..., 1] = x_low, y_low[:, np.newaxis]
        of_points[..., 2], of_points[..., 3] = x_high, y_high[:, np.newaxis]
        if given != wanted:
            # As in OpenVINO, boxes are written one after the other regardless of the points, and those that exceed the
            # output are lost.
            fitting = min(boxes.size, out.shape[1])
            out[0, :fitting], out[0, fitting:] = boxes[:fitting], 0
        if given < wanted:
            report(
                f"the output has {wanted} boxes per point, but the attributes describe {given}; "
                f"the remaining boxes are 0"
            )
        if self.clip:
            np.clip(out[0], 0, 1, out=out[0])
        out[1].reshape(-1, 4)[:] = self.variance or _DEFAULT_VARIANCE
        return out


# --------------------------------------------------------------------------- PriorBox


@dataclass(frozen=True)
class _Box:
    """A box of each point: half its size, the steps from the point to its center, and whether it is cut at the image's
    border."""

    half_width: np.float32
    half_height: np.float32
    x_steps: tuple[float, float, float] = (0, 0, 0)
    y_steps: tuple[float, float, float] = (0, 0, 0)
    bounded: bool = False


@operator("PriorBox", opset=1)
class PriorBox1(PriorBoxBase):
    """Boxes of given sizes and aspect ratios around each point of a grid. See PriorBoxBase.

    The centers are (offset + w, offset + h) * step; with ``step`` 0 the points cover the image and offset is 0.5. The
    ratios (width to height) are 1, the items of ``aspect_ratio`` and, with ``flip``, their inverses. First come, for
    each ``fixed_size`` and each of ``fixed_ratio`` (or all ratios), ``density`` by ``density`` boxes that together fill
    the square of that size; these are cut at the image's border. Then come, for each ``min_size``, a square of that
    size, a square of sqrt(min * max) with the corresponding ``max_size``, and a box of the same area for each other
    ratio. Without ``scale_all_sizes``, sizes and step are relative to the image's height (a step of -1 means height /
    points), and the other ratios apply to the first size only.
    """

    recipe = (
        "output_size = 1..12, image_size = 1..12; min_size=2|16 offset=0.5 variance=0.1|0.1,0.1,0.2,0.2 step=0|4 "
        "max_size=|20 aspect_ratio=|2"
    )
    leftovers = frozenset(("img_h", "img_size", "img_w", "step_h", "step_w"))

    arguments = "layer_shape:output_size image_shape:image_size attrs:**"
    min_size: tuple[float, ...] = attribute(default=())
    max_size: tuple[float, ...] = attribute(default=())
    aspect_ratio: tuple[float, ...] = attribute(default=())
    density: tuple[float, ...] = attribute(default=())
    fixed_ratio: tuple[float, ...] = attribute(default=())
    fixed_size: tuple[float, ...] = attribute(default=())
    clip: bool = attribute(default=False)
    flip: bool = attribute(default=False)
    step: float = attribute(default=0.0)
    scale_all_sizes: bool = attribute(default=True)
    min_max_aspect_ratios_order = True

    def infer(self, output_size: TensorType, image_size: TensorType) -> Outputs:
        for name in ("aspect_ratio", "fixed_ratio", "fixed_size", "density"):
            numbers = getattr(self, name)
            fits = all(0 < n < inf for n in numbers)
            self.require(fits, "{} must hold positive, finite numbers, got {}", name, list(numbers))
        return super().infer(output_size, image_size)

    def boxes_per_point(self) -> int:
        # The shape follows this count, which inconsistent attributes make different from the number of boxes.
        ratios = len(self._distinct_ratios())
        count = ratios * len(self.min_size) + len(self.max_size)
        if not self.scale_all_sizes:
            count = ratios + len(self.min_size) - 1
        if self.fixed_size:
            count = ratios * len(self.fixed_size)
        for density in self.density:
            count += (int(density) ** 2 - 1) * (len(self.fixed_ratio) or ratios)
        return max(count, 0)

    def _distinct_ratios(self) -> set[float]:
        """Return the ratios rounded to six digits, without repetitions."""
        ratios = np.array(self.aspect_ratio, np.float32)
        if self.flip:
            ratios = np.concatenate([ratios, 1 / ratios])
        million = np.float32(1e6)
        rounded = round_half_away(ratios * million) / million
        return {1.0, *rounded.tolist()}

    def _other_ratios(self) -> list[np.float32]:
        """Return the distinct ratios other than 1, in order."""
        ratios = [np.float32(1)]
        for ratio in map(np.float32, self.aspect_ratio):
            if all(abs(ratio - other) >= 1e-6 for other in ratios):
                ratios += [ratio, 1 / ratio] if self.flip else [ratio]
        return [ratio for ratio in ratios if abs(ratio - 1) >= 1e-6]

    def edges(self, grid: tuple[int, int], image: tuple[int, int]) -> tuple[tuple[Array, Array], ...]:
        step, min_sizes = np.float32(self.step), np.array(self.min_size, np.float32)
        if not self.scale_all_sizes:
            scale = np.float32(image[0])
            step = scale / np.float32(grid[0]) if step == -1 else step * scale
            min_sizes = min_sizes * scale
        boxes = [*self._dense_boxes(), *self._boxes(min_sizes)]
        halves = [box.half_height for box in boxes], [box.half_width for box in boxes]
        steps = [box.y_steps for box in boxes], [box.x_steps for box in boxes]
        bounded = np.array([box.bounded for box in boxes], bool)
        edges = []
        for points, size, half, shifts in zip(grid, map(np.float32, image), halves, steps, strict=True):
            places = np.arange(points, dtype=np.float32)
            if step == 0:
                centers = (places + np.float32(0.5)) * (size / np.float32(points))
            else:
                centers = (np.float32(self.offset) + places) * step
            at, sides, part = centers[:, np.newaxis], np.array(half, np.float32), 1 / size
            for shift in np.array(shifts, np.float32).reshape(-1, 3).T:
                at = at + shift
            low, high = (at - sides) * part, (at + sides) * part
            edges.append((np.where(bounded, np.maximum(low, 0), low), np.where(bounded, np.minimum(high, 1), high)))
        return tuple(edges)

    def _dense_boxes(self) -> Iterator[_Box]:
        """Return the boxes of ``fixed_size``."""
        for i, size in enumerate(map(np.float32, self.fixed_size)):
            halves: list[tuple[np.float32, np.float32]] = []
            if not self.fixed_ratio and self.density:
                halves.append((np.float32(int(size)) * np.float32(0.5),) * 2)
            ratios = [np.float32(ratio) for ratio in self.fixed_ratio] or self._other_ratios()
            halves += [_halves(size, ratio) for ratio in ratios]
            if not halves:
                continue
            self.require(i < len(self.density), "fixed_size has {} items, but density has {}", len(self.fixed_size), i)
            side = int(self.density[i])
            shift = int(size / np.float32(side)) if side else 0
            for half_width, half_height in halves:
                for row in range(side):
                    for column in range(side):
                        start = -(int(size) // 2), shift / 2
                        x_steps, y_steps = (*start, column * shift), (*start, row * shift)
                        yield _Box(half_width, half_height, x_steps, y_steps, bounded=True)

    def _boxes(self, min_sizes: Array) -> Iterator[_Box]:
        """Return the boxes of ``min_size`` and ``max_size``."""
        for i, size in enumerate(min_sizes):
            half = size * np.float32(0.5)
            yield _Box(half, half)
            between = [
                _Box(side, side)
                for largest in self.max_size[i : i + 1]
                for side in [np.sqrt(size * np.float32(largest)) * np.float32(0.5)]
            ]
            others: list[_Box] = []
            if self.scale_all_sizes or i == len(min_sizes) - 1:
                of = size if self.scale_all_sizes else min_sizes[0]
                others = [_Box(*_halves(of, ratio)) for ratio in self._other_ratios()]
            yield from between + others if self.min_max_aspect_ratios_order else others + between


def _halves(size: np.float32, ratio: np.float32) -> tuple[np.float32, np.float32]:
    """Return half the width and height of a box with a square's area."""
    root = np.sqrt(ratio)
    half = size * np.float32(0.5)
    return half * root, half / root


@operator("PriorBox", opset=8)
class PriorBox8(PriorBox1):
    """PriorBox-1; without ``min_max_aspect_ratios_order`` the box between min and max comes last.

    >>> settings = {"min_size": [4.0], "aspect_ratio": [2.0], "offset": 0.5, "step": 8.0}
    >>> ops.prior_box([1, 1], [8, 8], settings)
    [[0.25 0.25 0.75 0.75 0.14644662 0.3232233 0.8535534 0.6767767 ] [0.1 0.1 0.1 0.1 0.1 0.1 0.1 0.1 ]]
    """

    min_max_aspect_ratios_order: bool = attribute(default=True)


# --------------------------------------------------------------------------- PriorBoxClustered


@operator("PriorBoxClustered", opset=1)
class PriorBoxClustered(PriorBoxBase):
    """Boxes of the sizes ``width`` and ``height``, one for each pair, around each point of a grid. See PriorBoxBase.

    The centers are ((w + offset) * ``step_w``, (h + offset) * ``step_h``). A step of 0 is replaced by ``step``; if both
    are 0, the points cover the image.

    >>> settings = {"width": [4.0], "height": [2.0], "offset": 0.5, "step": 8.0}
    >>> ops.prior_box_clustered([1, 1], [8, 8], settings)
    [[0.25 0.375 0.75 0.625] [0.1 0.1 0.1 0.1 ]]
    """

    recipe = "output_size = 1..12, image_size = 1..12; width=2,5 height=3,4 offset=0.5 variance=0.1 step=0|4"
    leftovers = frozenset(("flip", "img_h", "img_size", "img_w"))

    arguments = "output_size image_size attrs:**"
    step: float = attribute(default=0.0)
    step_w: float = attribute(default=0.0)
    step_h: float = attribute(default=0.0)
    width: tuple[float, ...] = attribute(default=(1.0,))
    height: tuple[float, ...] = attribute(default=(1.0,))
    clip: bool = attribute(default=True)

    def infer(self, output_size: TensorType, image_size: TensorType) -> Outputs:
        widths, heights = list(self.width), list(self.height)
        message = "width and height must have the same number of items, got {}: {} and {}: {}"
        self.require(len(widths) == len(heights), message, len(widths), widths, len(heights), heights)
        return super().infer(output_size, image_size)

    def boxes_per_point(self) -> int:
        return len(self.width)

    def edges(self, grid: tuple[int, int], image: tuple[int, int]) -> tuple[tuple[Array, Array], ...]:
        steps = [self.step_h or self.step, self.step_w or self.step]
        edges = []
        for points, size, step, boxes in zip(grid, image, steps, (self.height, self.width), strict=True):
            scale = np.float32(size)
            distance = np.float32(step) if any(steps) else scale / np.float32(points)
            centers = (np.arange(points, dtype=np.float32) + np.float32(self.offset)) * distance
            half = np.array(boxes, np.float32) / np.float32(2)
            at = centers[:, np.newaxis]
            edges.append(((at - half) / scale, (at + half) / scale))
        return tuple(edges)
