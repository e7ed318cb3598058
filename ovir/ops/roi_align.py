"""ROIAlign and ROIAlignRotated: regions of feature maps, resampled to one size by bilinear interpolation."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ovir.core.arrays import Array
from ovir.kernels.precision import stored
from ovir.kernels.roi import SampledRegions, pixel_rows
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import Index, by_input
from ovir.ops.base.regions import RegionBase
from ovir.ops.base.registry import operator


class RoiAlignBase(RegionBase):
    """Base of aligned pooling: a region is cut into pooled_h x pooled_w bins, each the mean (or maximum) of its
    samples.

    Samples are spaced evenly in the bin, ``sampling_ratio`` per axis; 0 means the length of the bin, rounded up. A
    sample is interpolated between the four pixels around it. Up to one pixel outside of data it counts as on the
    border, further outside as 0; a bin without samples is 0. ``spatial_scale`` converts coordinates to pixels.

    batch_indices holds the image of each region; -1 ends the list of regions, and the rest of the output is 0.
    """

    takes = "data T[N, C, H, W]; rois T[R, columns]; batch_indices integer[R]; T real"
    gives = "T[R, C, pooled_h, pooled_w]"
    recipe = "T narrow; N=1|2 H=1|3|8 W=1|2|8 spatial_scale=1|0.25 pooled_h=1|2|3 pooled_w=1|2 sampling_ratio=0|1|2"
    domains = by_input(batch_indices=Index("data", absent=-1))
    pooled_h: int = attribute(default=0, minimum=0, specified=True)
    pooled_w: int = attribute(default=0, minimum=0, specified=True)
    sampling_ratio: int = attribute(default=0, minimum=0, specified=True)
    spatial_scale: float = attribute(default=0.0, specified=True)

    mode: str = "avg"
    columns: ClassVar[int]
    """The count of numbers that describe a region."""

    def positions(self) -> int | None:
        return self.sampling_ratio**2 or None

    def run(self, data: Array, rois: Array, batch_indices: Array) -> Array:
        _, channels, height, width = data.shape
        images = self.images(batch_indices, len(data))
        pixels = pixel_rows(data)
        regions = rois[: len(images)].astype(pixels.dtype, copy=False)
        pooled = np.zeros((len(rois), self.pooled_h * self.pooled_w, channels), pixels.dtype)
        if pixels.size and pooled.size:
            sampled = self.regions(images, regions, self.scale(regions.dtype))
            sampled.pool(pixels, height, width, pooled, largest=self.mode == "max")
        shape = len(rois), channels, self.pooled_h, self.pooled_w
        return stored(pooled.swapaxes(1, 2).reshape(shape), data.dtype)

    def scale(self, dtype: np.dtype[Any]) -> Any:
        """Return ``spatial_scale`` as a number of the type of the regions."""
        return dtype.type(np.float32(self.spatial_scale))

    def regions(self, images: Array, rois: Array, scale: Array) -> SampledRegions:
        """Return the regions in pixels."""
        raise NotImplementedError


@operator("ROIAlign", opset=3)
class ROIAlign3(RoiAlignBase):
    """Regions of feature maps, resampled to one size. See RoiAlignBase.

    rois are [x1, y1, x2, y2]. A side shorter than a pixel counts as one pixel. In ``mode`` max a bin is the largest of
    its samples and at least 0, as in OpenVINO.
    """

    arguments = "data rois batch_indices pooled_h pooled_w sampling_ratio spatial_scale mode"
    mode: str = attribute(default="avg", choices=("avg", "max"), specified=True)

    aligned_mode: str = "asymmetric"
    columns = 4

    def regions(self, images: Array, rois: Array, scale: Array) -> SampledRegions:
        start, size = self.sides(rois, scale)
        return self.sampled(images, start, size, (self.pooled_h, self.pooled_w), self.sampling_ratio)

    def sides(self, rois: Array, scale: Array) -> tuple[Array, Array]:
        """Return where regions start and how long their sides are, in pixels, y before x."""
        before = rois.dtype.type(0.5 if self.aligned_mode == "half_pixel" else 0)
        after = rois.dtype.type(0 if self.aligned_mode == "asymmetric" else 0.5)
        ends = (rois + before) * scale - after
        start = ends[:, 1::-1]
        size = ends[:, :1:-1] - start
        if self.aligned_mode == "asymmetric":
            size = np.maximum(size, 1)
        return start, size


@operator("ROIAlign", opset=9)
class ROIAlign9(ROIAlign3):
    """ROIAlign-3 with ``aligned_mode``, which chooses how coordinates are converted to pixels.

    asymmetric is x * spatial_scale, half_pixel_for_nn x * spatial_scale - 0.5, half_pixel (x + 0.5) * spatial_scale -
    0.5. With the latter two a side may have any length.

    >>> image = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    >>> ops.roi_align(image, np.float32([[0, 0, 4, 4]]), [0], 2, 2, 1, 1.0, "avg")
    [[[[ 5. 7.] [13. 15.]]]]
    """

    arguments = ROIAlign3.arguments + " aligned_mode="
    aligned_mode: str = attribute(default="asymmetric", choices=("asymmetric", "half_pixel_for_nn", "half_pixel"))


@operator("ROIAlignRotated", opset=15)
class ROIAlignRotated(RoiAlignBase):
    """Rotated regions of feature maps, resampled to one size. See RoiAlignBase.

    rois are [center x, center y, width, height, angle in radians], turned about the center, counterclockwise unless
    ``clockwise_mode``. Center and size are scaled by ``spatial_scale``, then the center is moved by -0.5.

    >>> image = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    >>> ops.roi_align_rotated(image, np.float32([[2, 2, 2, 2, 0]]), [0], 1, 1, 1, 1.0, True)
    [[[[7.5]]]]
    """

    unmatched = "pool rotated regions"
    arguments = "data rois batch_indices pooled_h pooled_w sampling_ratio spatial_scale clockwise_mode"
    clockwise_mode: bool = attribute(default=False)

    columns = 5

    def regions(self, images: Array, rois: Array, scale: Array) -> SampledRegions:
        center = rois[:, 1::-1] * scale - rois.dtype.type(0.5)
        size = rois[:, 3:1:-1] * scale
        angle = -rois[:, 4] if self.clockwise_mode else rois[:, 4]
        sine, cosine = np.sin(angle), np.cos(angle)

        def turned(members: Array, y: Array, x: Array) -> tuple[Array, Array]:
            own = (values[members].reshape(-1, 1, 1, 1, 1) for values in (sine, cosine, center[:, 0], center[:, 1]))
            sin, cos, center_y, center_x = own
            return y * cos - x * sin + center_y, y * sin + x * cos + center_x

        bins = self.pooled_h, self.pooled_w
        return self.sampled(images, -size / 2, size, bins, self.sampling_ratio, turned)
