"""ROIPooling, PSROIPooling and DeformablePSROIPooling: regions of feature maps, pooled to one size."""

from __future__ import annotations

from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import Outputs, TensorType
from ovir.diagnostics.kernel_warnings import report
from ovir.kernels.precision import as_computed, compute_dtype, stored
from ovir.kernels.roi import Neighbors, lines_of_bins, neighbors, pixel_rows, pool_boxes, pool_places
from ovir.kernels.rounding import as_index, round_half_away
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import Checked, by_input
from ovir.ops.base.regions import RegionBase
from ovir.ops.base.registry import operator

# Corners are limited to this distance, so that integers can be multiplied.
_FAR = 2**40


class RoiPoolingBase(RegionBase):
    """Base of pooling of regions [image, x1, y1, x2, y2]; image -1 ends their list, and the rest of the output is 0."""

    domains = by_input(rois=Checked())

    spatial_scale: float

    def require_scale(self) -> None:
        scale = np.float32(self.spatial_scale)
        usable = np.isfinite(scale) and scale >= np.finfo(np.float32).tiny
        self.require(usable, "spatial_scale must be a positive number, got {}", self.spatial_scale)

    def regions(self, data: Array, rois: Array) -> tuple[Array, Array]:
        """Return the images of the regions up to the end of the list, and their corners [regions, 2, y and x]."""
        images = self.images(rois[:, 0], len(data))
        boxes = rois[: len(images), 1:].astype(compute_dtype(data.dtype), copy=False)
        return images, boxes.reshape(-1, 2, 2)[..., ::-1]

    def scaled(self, values: Array) -> Array:
        scaled: Array = values * values.dtype.type(np.float32(self.spatial_scale))
        return scaled

    def pool_inside(
        self, y: Array, x: Array, size: tuple[int, ...], planes: Array, taps: int, pixels: Array, pooled: Array
    ) -> None:
        """Compute pooled[region, row, column] = the sum of the positions of each bin; positions outside of data count
        as 0."""
        height, width = size

        def places(members: Array) -> Neighbors:
            rows, columns = y[members], x[members]
            return neighbors(rows, columns, height, width, planes[members], beyond=0)

        pool_places(places, taps, pixels, pooled)


def _one_more(corners: Array) -> Array:
    """Return what adds a pixel to the second corners."""
    return np.array([[0], [1]], corners.dtype)


# --------------------------------------------------------------------------- ROIPooling


@operator("ROIPooling", opset=2, since=1)
class ROIPooling(RoiPoolingBase):
    """Regions of feature maps, each pooled to [C, pooled_h, pooled_w]. See RoiPoolingBase.

    ``method`` max: corners times ``spatial_scale`` are rounded to pixels, which both belong to the region; a region is
    at least one pixel long. Bin i of n on a side of length s covers floor(i * s / n) to ceil((i + 1) * s / n) and is
    its largest pixel inside of data, or 0 if there is none.

    ``method`` bilinear: corners are relative to data's size less one. Bins are single positions spaced evenly from
    corner to corner (a single bin lies in the middle), interpolated between the surrounding pixels, and 0 outside of
    data. There are ``pooled_h`` x ``pooled_w`` bins; older writers give ``output_roi`` or ``output_size`` instead.

    >>> image = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    >>> ops.roi_pooling(image, np.float32([[0, 0, 0, 3, 3]]), [2, 2], 1.0)
    [[[[ 5. 7.] [13. 15.]]]]

    Source: ROIPooling-1
    """

    takes = "data T[N, C, H, W]; rois T[R, 5]; T real"
    gives = "T[R, C, bins...]"
    recipe = "T narrow, rois = rois; N=1|2 H=1|3|8 W=1|2|8 spatial_scale=1|0.25 output_size=|2,3 pooled_h=2 pooled_w=1"
    arguments = "input:data coords:rois output_roi= spatial_scale=None method="
    output_size: tuple[int, ...] = attribute(default=(), minimum=1)
    output_roi: tuple[int, ...] = attribute(default=(), minimum=1)
    pooled_h: int = attribute(default=0, minimum=1, specified=True)
    pooled_w: int = attribute(default=0, minimum=1, specified=True)
    spatial_scale: float = attribute()
    method: str = attribute(default="max", choices=("max", "bilinear"))

    def infer(self, *inputs: TensorType) -> Outputs:
        self.require_scale()
        return super().infer(*inputs)

    @property
    def bins(self) -> tuple[int, int]:
        """Return the number of rows and columns of bins."""
        sizes = self.output_roi or self.output_size or (0, 0)
        self.require(len(sizes) == 2, "output_size must be two numbers, got {}", sizes)
        height, width = self.pooled_h or sizes[0], self.pooled_w or sizes[1]
        self.require(height and width, "pooled_h and pooled_w must be positive, got {} and {}", height, width)
        return height, width

    def positions(self) -> int | None:
        return 1 if self.method == "bilinear" else None

    def run(self, data: Array, rois: Array) -> Array:
        images, corners = self.regions(data, rois)
        pixels = pixel_rows(data)
        pooled = np.zeros((len(rois), *self.bins, data.shape[1]), pixels.dtype)
        if pixels.size:
            pool = self._pool_largest if self.method == "max" else self._pool_places
            pool(pixels, data.shape[2:], images, corners, pooled[: len(images)])
        return stored(pooled.transpose(0, 3, 1, 2), data.dtype)

    def _pool_largest(self, pixels: Array, size: tuple[int, ...], images: Array, corners: Array, pooled: Array) -> None:
        lines = lines_of_bins(*self.bins)
        corners = as_index(round_half_away(self.scaled(corners)), _FAR)
        first = corners[:, 0].take(lines.axis, axis=1)
        side = np.maximum(corners[:, 1].take(lines.axis, axis=1) - first + 1, 1)
        count = np.array(self.bins).take(lines.axis)
        ends = np.stack([lines.number * side // count, -(-(lines.number + 1) * side // count)])
        ends += first
        pool_boxes(images.reshape(-1, 1) * prod(size), ends, size, pixels, pooled, mean=False)

    def _pool_places(self, pixels: Array, size: tuple[int, ...], images: Array, corners: Array, pooled: Array) -> None:
        start, end, number, axes = corners[:, 0], corners[:, 1], corners.dtype.type, []
        for axis, count in enumerate(self.bins):
            first, last, most = start[:, axis, np.newaxis], end[:, axis, np.newaxis], number(size[axis] - 1)
            if count == 1:
                axes.append(number(0.5) * (first + last) * most)
                continue
            places = np.arange(count, dtype=start.dtype) * ((last - first) * most / number(count - 1)) + first * most
            places[:, -1:] = last * most  # rounding must not move them outside
            axes.append(places)
        y, x = axes[0][:, :, np.newaxis], axes[1][:, np.newaxis, :]
        self.pool_inside(y, x, size, images.reshape(-1, 1, 1) * (size[0] * size[1]), 1, pixels, pooled)


# --------------------------------------------------------------------------- PSROIPooling


@operator("PSROIPooling", opset=1)
class PSROIPooling(RoiPoolingBase):
    """Regions of feature maps, each pooled to [output_dim, group_size, group_size] with separate channels for each bin.

    ``mode`` average: corners are rounded, the second ones plus one pixel, and scaled by ``spatial_scale``; sides are at
    least 0.1. Bin [i, j] of channel c is the mean of the pixels that it touches in channel (c * group_size + i) *
    group_size + j, or 0 if there are none.

    ``mode`` bilinear: corners times ``spatial_scale`` are relative to data's size less one. The region is cut into
    ``spatial_bins_y`` x ``spatial_bins_x`` parts; part b reads channel b * output_dim + c. The bins are positions
    spaced evenly from corner to corner of a part, averaged over the parts; positions outside of data are 0.

    >>> maps = np.arange(16, dtype=np.float32).reshape(1, 4, 2, 2)
    >>> ops.psroi_pooling(maps, np.float32([[0, 0, 0, 1, 1]]), 1, 2, 1.0, 1, 1, "average")
    [[[[ 0. 5.] [10. 15.]]]]
    """

    takes = "data T[N, output_dim*parts, H, W]; rois U[R, 5]; T real; U real"
    gives = "T[R, output_dim, group_size, group_size]"
    recipe = (
        "T narrow, U narrow, rois = rois; N=1|2 H=1|3|8 W=1|2|8 spatial_scale=1|0.25 output_dim=1|2|4 "
        "group_size=1|2|3 spatial_bins_x=1|2|3 spatial_bins_y=1|2 mode=average|bilinear"
    )
    arguments = "input:data coords:rois output_dim group_size spatial_scale spatial_bins_x spatial_bins_y mode"
    output_dim: int = attribute(minimum=1)
    group_size: int = attribute(minimum=1)
    spatial_scale: float = attribute()
    mode: str = attribute(choices=("average", "bilinear"))
    spatial_bins_x: int = attribute(default=1, misread="0")
    spatial_bins_y: int = attribute(default=1, misread="0")

    @property
    def parts(self) -> int:
        """Return the number of parts of a region, each of which has channels of its own."""
        return self.spatial_bins_x * self.spatial_bins_y if self.mode == "bilinear" else self.group_size**2

    def infer(self, *inputs: TensorType) -> Outputs:
        self.require_scale()
        for name in ("spatial_bins_x", "spatial_bins_y") if self.mode == "bilinear" else ():
            self.require(getattr(self, name) > 0, "{} must be positive, got {}", name, getattr(self, name))
        return super().infer(*inputs)

    def positions(self) -> int | None:
        return self.spatial_bins_x * self.spatial_bins_y if self.mode == "bilinear" else None

    def run(self, data: Array, rois: Array) -> Array:
        images, corners = self.regions(data, rois)
        pooled = np.zeros((len(rois), self.group_size, self.group_size, self.output_dim), compute_dtype(data.dtype))
        if data.size:
            pool = self._pool_average if self.mode == "average" else self._pool_bilinear
            pool(data, images, corners, pooled[: len(images)])
        return stored(pooled.transpose(0, 3, 1, 2), data.dtype)

    def _pool_average(self, data: Array, images: Array, corners: Array, pooled: Array) -> None:
        count, _, height, width = data.shape
        group, number = self.group_size, corners.dtype.type
        # [image, bin, bin, channel, y, x]
        planes = data.reshape(count, self.output_dim, group, group, height, width).transpose(0, 2, 3, 1, 4, 5)
        start, end = self.scaled(round_half_away(corners + _one_more(corners))).swapaxes(0, 1)
        step = np.maximum(end - start, number(0.1)) / number(group)
        lines = lines_of_bins(group, group)
        low, length = (values.take(lines.axis, axis=1) for values in (start, step))
        bins = lines.number.astype(corners.dtype)
        ends = np.stack([np.floor(bins * length + low), np.ceil((bins + number(1)) * length + low)])
        first = (images.reshape(-1, 1) * group**2 + np.arange(group**2)) * (height * width)
        pool_boxes(first, ends, (height, width), pixel_rows(planes), pooled, mean=True)

    def _pool_bilinear(self, data: Array, images: Array, corners: Array, pooled: Array) -> None:
        count, _, height, width = data.shape
        group, number, parts = self.group_size, corners.dtype.type, (self.spatial_bins_y, self.spatial_bins_x)
        taps = parts[0] * parts[1]
        start, end = self.scaled(corners).swapaxes(0, 1)
        side = end - start
        axes = []
        for axis, size in enumerate((height, width)):
            numbers = np.arange(parts[axis] + 1, dtype=start.dtype)
            cuts = start[:, axis, np.newaxis] + numbers * (side[:, axis, np.newaxis] / number(parts[axis]))
            low, high = cuts[:, np.newaxis, :-1], cuts[:, np.newaxis, 1:]
            if group == 1:
                axes.append(number(0.5) * (low + high) * number(size - 1))
            else:
                step = (high - low) * number(size - 1) / number(group - 1)
                bins = np.arange(group, dtype=start.dtype)[:, np.newaxis]
                axes.append(bins * step + low * number(size - 1))
        y = axes[0][:, :, np.newaxis, :, np.newaxis]
        x = axes[1][:, np.newaxis, :, np.newaxis, :]
        planes = images.reshape(-1, 1, 1, 1, 1) * taps + np.arange(taps).reshape(parts)
        pixels = pixel_rows(data.reshape(count, taps, self.output_dim, height, width))
        self.pool_inside(y, x, (height, width), planes * (height * width), taps, pixels, pooled)
        pooled /= taps


# --------------------------------------------------------------------------- DeformablePSROIPooling


@operator("DeformablePSROIPooling", opset=1)
class DeformablePSROIPooling(RoiPoolingBase):
    """PSROIPooling whose bins are means of interpolated positions and may be moved by offsets.

    Corners are rounded, the second ones plus one pixel, scaled by ``spatial_scale`` and moved by -0.5; sides are at
    least 0.1. A bin is the mean of ``spatial_bins_y`` x ``spatial_bins_x`` positions, the first at its start. A
    position is interpolated between the surrounding pixels; up to half a pixel outside of data it counts as on the
    border, further outside it is ignored, and a bin without positions is 0. There are ``group_size`` x ``group_size``
    bins, with the channels of PSROIPooling's mode average, and ``output_dim`` channels in the output.

    offsets [R, 2 * classes, part_size, part_size] move bins along x, then y, relative to the region's sides times
    ``trans_std``; each class moves its share of the channels.

    >>> maps = np.arange(16, dtype=np.float32).reshape(1, 4, 2, 2)
    >>> ops.deformable_psroi_pooling(maps, np.float32([[0, 0, 0, 1, 1]]), 1, 1.0, group_size=2)
    [[[[ 0. 4.5] [ 9. 13.5]]]]
    """

    takes = "data T[N, output_dim*group_size*group_size.., H, W]; rois T[R, 5]; ?offsets T[?, ?, ?, ?]; T real"
    gives = "T[R, output_dim, group_size, group_size]"
    recipe = (
        "T narrow, rois = rois, offsets T R 2 P P; H=3|8 W=2|8 P=1|2 part_size=P output_dim=1|2 group_size=1|2 "
        "spatial_bins_x=2 spatial_bins_y=1 trans_std=0|0.1 spatial_scale=1|0.25"
    )
    unmatched = "pool moved regions"
    arguments = (
        "feature_maps:data coords:rois output_dim spatial_scale group_size= mode= spatial_bins_x= "
        "spatial_bins_y= trans_std= part_size= offsets="
    )
    output_dim: int = attribute(minimum=1)
    spatial_scale: float = attribute(default=0.0, specified=True)
    group_size: int = attribute(default=1, minimum=1)
    mode: str = attribute(default="bilinear_deformable", choices=("bilinear_deformable",))
    spatial_bins_x: int = attribute(default=1, minimum=1)
    spatial_bins_y: int = attribute(default=1, minimum=1)
    trans_std: float = attribute(default=1.0)
    part_size: int = attribute(default=1, minimum=1)

    def positions(self) -> int | None:
        return self.spatial_bins_x * self.spatial_bins_y

    def run(self, data: Array, rois: Array, offsets: Array | None = None) -> Array:
        images, corners = self.regions(data, rois)
        moves = self._moves(len(rois), offsets)[: len(images)].astype(corners.dtype)
        group, classes = self.group_size, moves.shape[1]
        pooled = np.zeros((len(rois), classes, group, group, self.output_dim // classes), compute_dtype(data.dtype))
        if data.size:
            self._pool(data, images, corners, moves, pooled[: len(images)])
        shape = len(rois), self.output_dim, group, group
        return stored(np.moveaxis(pooled, -1, 2).reshape(shape), data.dtype)

    def _moves(self, regions: int, offsets: Array | None) -> Array:
        """Return the moves of bins relative to the region, [regions, classes, y and x, bin, bin]."""
        group, part = self.group_size, self.part_size
        if offsets is None:
            return np.zeros((regions, 1, 2, group, group))
        classes = offsets.shape[1] // 2
        fits = classes > 0 and self.output_dim % classes == 0 and offsets.size >= regions * classes * 2 * part**2
        message = "offsets {} do not match {:region} with output_dim {} and part_size {}"
        self.require(fits, message, offsets.shape, regions, self.output_dim, part)
        if offsets.shape != (regions, classes * 2, part, part):
            shape, wanted = PartialShape(offsets.shape), PartialShape([regions, classes * 2, part, part])
            report(f"offsets have shape {shape}; their first numbers are read as {wanted}")
        flat = offsets.reshape(-1)[: regions * classes * 2 * part**2]
        bins = np.arange(group) * part // group
        moves = flat.reshape(regions, classes, 2, part, part)[:, :, ::-1, bins[:, np.newaxis], bins]
        return as_computed(moves) * np.float32(self.trans_std)

    def _pool(self, data: Array, images: Array, corners: Array, moves: Array, pooled: Array) -> None:
        count, _, height, width = data.shape
        group, classes, number = self.group_size, moves.shape[1], corners.dtype.type
        channels = self.output_dim * group**2
        # [image, class, bin, bin, channel, y, x]
        planes = data[:, :channels].reshape(count, classes, -1, group, group, height, width)
        pixels = pixel_rows(np.moveaxis(planes, 2, 4))
        start, end = self.scaled(round_half_away(corners) + _one_more(corners)).swapaxes(0, 1) - number(0.5)
        sides = np.maximum(end - start, number(0.1))
        bins, taps = np.arange(group, dtype=start.dtype), (self.spatial_bins_y, self.spatial_bins_x)
        axes = []
        for axis, along in enumerate(((-1, 1), (1, -1))):
            low, side = (values[:, axis].reshape(-1, 1, 1, 1) for values in (start, sides))
            step = side / number(group)
            first = bins.reshape(along) * step + low + moves[:, :, axis] * side
            within = np.arange(taps[axis], dtype=start.dtype) * (step / number(taps[axis]))[..., np.newaxis]
            axes.append(first[..., np.newaxis] + within)
        y, x = axes[0][..., np.newaxis], axes[1][..., np.newaxis, :]
        numbers = np.arange(classes * group**2).reshape(classes, group, group)
        first = (images.reshape(-1, 1, 1, 1) * numbers.size + numbers)[..., np.newaxis, np.newaxis] * (height * width)

        def places(members: Array) -> Neighbors:
            rows, columns = y[members], x[members]
            valid = (rows >= -0.5) & (rows <= height - 0.5) & (columns >= -0.5) & (columns <= width - 0.5)
            around = neighbors(rows, columns, height, width, first[members], beyond=0.5)
            number_valid = valid.sum(axis=(-2, -1), keepdims=True)[..., np.newaxis]
            return Neighbors(around.index, around.weight / np.maximum(number_valid, 1).astype(rows.dtype))

        pool_places(places, taps[0] * taps[1], pixels, pooled)
