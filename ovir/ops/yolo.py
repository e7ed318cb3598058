"""RegionYolo and ReorgYolo: the last layer of YOLO networks, and the layer that moves area into channels."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.core.shapes import UNKNOWN, PartialShape, product
from ovir.core.tensor_types import Outputs, TensorType
from ovir.ops.activation import Sigmoid
from ovir.ops.base.attributes import attribute
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator
from ovir.ops.normalization import SoftMax8


@operator("RegionYolo", opset=1)
class RegionYolo(Operator):
    """The last layer of YOLO networks: turns the scores of each region at each point into probabilities.

    The channels of data hold regions of ``coords`` coordinates, one objectness and ``classes`` scores. The first two
    coordinates and the objectness go through a sigmoid. With ``do_softmax`` (YOLO v2) there are ``num`` regions, the
    scores go through a softmax, and the dimensions ``axis`` to ``end_axis`` are merged. Without it (YOLO v3) there are
    as many regions as items in ``mask``, the scores go through a sigmoid, and only the channels of regions remain.
    Channels beyond the regions are copied. ``anchors`` have no effect: they serve to decode the boxes.

    >>> scores = np.zeros((1, 6, 1, 1), np.float32)
    >>> ops.region_yolo(scores, 4, 1, 1, True, [0], 1, 3)
    [[0.5 0.5 0. 0. 0.5 1. ]]
    """

    recipe = "narrow N 15+3*K H W; K=1|4 classes=K num=1|3 mask=0|0,1,2 axis=1 end_axis=3 coords=4"
    arguments = "input:data coords classes num do_softmax mask axis end_axis anchors="
    anchors: tuple[float, ...] = attribute(default=())
    axis: int = attribute(default=0, specified=True)
    coords: int = attribute(default=0, minimum=0, specified=True)
    classes: int = attribute(default=0, minimum=0, specified=True)
    end_axis: int = attribute(default=0, specified=True)
    num: int = attribute(default=0, minimum=0, specified=True)
    do_softmax: bool = attribute(default=True, misread="false")
    mask: tuple[int, ...] = attribute(default=())

    @property
    def entries(self) -> int:
        """Return the number of channels per region."""
        return self.coords + self.classes + 1

    @property
    def regions(self) -> int:
        return self.num if self.do_softmax else len(self.mask)

    def infer(self, data: TensorType) -> TensorType:
        self.require_real("data", data)
        return TensorType(data.element_type, self._shape(data.shape))

    def _shape(self, data: PartialShape) -> PartialShape:
        self.require_rank("data", data, 4)
        dims = list(data if data.rank is not None else [UNKNOWN] * 4)
        channels = self.regions * self.entries
        message = "data {} has {:channel}, but {:region} of {:coordinate}, 1 objectness and {:class} need {}"
        fits = dims[1].upper is None or dims[1].upper >= channels
        self.require(fits, message, data, dims[1], self.regions, self.coords, self.classes, channels)
        if not self.do_softmax:
            return PartialShape([dims[0], channels, *dims[2:]])
        first = self.normalize_axis(self.axis, 4)
        stop = max(self.normalize_axis(self.end_axis, 4, "end_axis"), first) + 1
        return PartialShape([*dims[:first], product(dims[first:stop]), *dims[stop:]])

    def run(self, data: Array) -> Array:
        shape = self._shape(PartialShape(data.shape)).to_tuple()
        out = np.empty(shape, data.dtype)
        # As on devices, regions are stored one after the other regardless of the batch, which matters if there are more
        # channels.
        source, target = data.ravel(), out.reshape(-1)
        np.copyto(target, source[: target.size])
        batch, _, height, width = data.shape
        blocks = batch * self.regions, self.entries, height * width
        x, y = (flat[: blocks[0] * blocks[1] * blocks[2]].reshape(blocks) for flat in (source, target))
        scores = self.coords + 1
        sigmoid = Sigmoid().run
        for part in slice(0, 2), slice(self.coords, scores if self.do_softmax else None):
            y[:, part] = sigmoid(y[:, part])
        if self.do_softmax:
            y[:, scores:] = SoftMax8(axis=1).run(x[:, scores:])
        return out


@operator("ReorgYolo", opset=2, since=1)
class ReorgYolo(Operator):
    """Area moved into channels: [N, C, H, W] to [N, C * s * s, H / s, W / s], where s is ``stride``.

    As in darknet, data is read as [N, C / (s * s), H * s, W * s], and its blocks of s by s points are moved into
    channels, block by block; the result [N, C, H, W] is then given the shape above.

    >>> ops.reorg_yolo(np.arange(16).reshape(1, 4, 2, 2), [2])
    [[[[ 0]] [[ 2]] [[ 8]] [[10]] [[ 1]] [[ 3]] [[ 9]] [[11]] [[ 4]] [[ 6]] [[12]] [[14]] [[ 5]] [[ 7]] [[13]] [[15]]]]

    Source: ReorgYolo-1
    """

    takes = "data T[N, C, step*H, step*W]; T any"
    gives = "T[N, C*step*step, H, W]"
    recipe = "C=9|10|18 stride=1|2|3"
    arguments = "input:data stride"
    # The specification has one number; OpenVINO keeps one for each axis, writes both and reads the first.
    stride: tuple[int, ...] = attribute(minimum=1)
    moves_elements = (0,)

    @property
    def step(self) -> int:
        return self.stride[0]

    def infer(self, data: TensorType) -> Outputs:
        self.require(self.stride, "stride must be a number, got an empty list")
        result, least = super().infer(data), self.step**2
        channels = data.shape[1].upper
        if channels is not None and channels < least:
            message = "data {} has {:channel}, but at least stride * stride = {} are needed"
            self.fail(message, data.shape, data.shape[1], least)
        return result

    def run(self, data: Array) -> Array:
        s = self.step
        n, c, h, w = data.shape
        shape = n, c * s * s, h // s, w // s
        if not data.size:
            return np.empty(shape, data.dtype)
        return data.ravel()[_places(data.shape, s)].reshape(shape)


def _places(shape: tuple[int, ...], stride: int) -> Array:
    """Return the position in data of each element of the result; any number of channels is allowed, as in darknet."""
    n, c, h, w = np.ogrid[tuple(map(slice, shape))]
    planes = shape[1] // (stride * stride)
    block, plane = c // planes, c % planes
    row, column = h * stride + block // stride, w * stride + block % stride
    places: Array = ((n * planes + plane) * shape[2] * stride + row) * shape[3] * stride + column
    return places
