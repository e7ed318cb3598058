"""Recipes of pools, convolutions, patches, resampling and detections."""

from __future__ import annotations

import numpy as np

from ovir.core.shapes import Dimension
from ovir.fuzzing.making import Make
from ovir.fuzzing.recipes import recipe
from ovir.ops.base.spatial import output_dim

# --------------------------------------------------------------------------- windows


def _windows(m: Make, axes: int, *, negative: bool = False) -> None:
    low = -1 if negative and m.chance(0.1) else 0
    m.has(strides=[m.pick(1, 1, 2, 3) for _ in range(axes)])
    m.has(pads_begin=m.ints(axes, low, 1), pads_end=m.ints(axes, low, 1))
    m.has(auto_pad=m.pick(None, "explicit", "notset", "valid", "same_upper", "same_lower"))


def _grown(m: Make, kernel: list[int], dilations: list[int]) -> list[int]:
    return [(k - 1) * d + 1 + m.rng.choice((0, 0, 1, 2, 6)) for k, d in zip(kernel, dilations, strict=True)]


@recipe("AvgPool", "MaxPool")
def pool(m: Make) -> None:
    is_max, data = m.kind == "MaxPool", m.existing(3, 5)
    axes = len(data) - 2 if data else m.pick(1, 2, 2, 3)
    kernel = [m.pick(1, 2, 3) for _ in range(axes)]
    dilations = [m.pick(1, 1, 2) for _ in kernel]
    kind = m.pick("f32", "f32", "f16", "bf16", "f64", "i32", "u8", "i8", "i64")
    m.add(data or (*m.shape("N C"), *_grown(m, kernel, dilations)), kind if is_max else m.real)
    _windows(m, axes)
    m.has(kernel=kernel)
    if m.opset >= (8 if is_max else 16):
        m.has(dilations=dilations)
    if is_max and m.opset > 1:
        m.maybe(axis=m.axis(axes + 2))


@recipe("AdaptiveAvgPool", "AdaptiveMaxPool")
def adaptive(m: Make) -> None:
    data = m.existing(3, 5)
    axes = len(data) - 2 if data else m.pick(1, 2, 3)
    m.add(data or (*m.shape("N C"), *(m.pick(1, 2, 3, 7) for _ in range(axes))), m.narrow)
    m.given(m.ints(axes, 1, 5))


@recipe("Convolution", "GroupConvolution", "BinaryConvolution", "DeformableConvolution")
@recipe("ConvolutionBackpropData", "GroupConvolutionBackpropData")
def convolution(m: Make) -> None:
    is_deformable, is_binary = m.kind == "DeformableConvolution", m.kind == "BinaryConvolution"
    is_grouped, backwards = m.kind.startswith("Group"), m.kind.endswith("BackpropData")
    data = m.existing(4, 4) if is_deformable or is_binary else m.existing(3, 5)
    axes = len(data) - 2 if data else 2 if is_deformable or is_binary else m.pick(1, 2, 2, 3)
    groups = m.pick(1, 2, 3) if is_grouped else 1
    kernel = [m.pick(1, 2, 3) for _ in range(axes)]
    dilations = [m.pick(1, 1, 2) for _ in kernel]
    inner, outer, batch = m.pick(1, 2, 3), m.pick(1, 2, 4), m.pick(1, 1, 2)
    spatial = _grown(m, kernel, dilations)
    if data:
        batch, inner, *spatial = data[0], max(data[1] // groups, 1), *data[2:]
    kind = m.type("real", "f32", "f32", "f16", "bf16", "f64")
    m.add((batch, groups * inner, *spatial), kind)
    filters = (inner, outer, *kernel) if backwards else (outer, inner, *kernel)
    if is_grouped:
        filters = (groups, *filters)
    m.has(dilations=dilations)
    _windows(m, axes, negative=True)
    if is_deformable:
        strides, begin, end = (
            [int(x) for x in m.attributes[k].split(",")] for k in ("strides", "pads_begin", "pads_end")
        )
        m.has(group=1, deformable_group=1)
        auto_pad = m.attributes["auto_pad"] or "explicit"
        windows = zip(spatial, kernel, dilations, strides, begin, end, strict=True)
        places = [output_dim(Dimension(n), k, s, d, b, e, "floor", auto_pad).lower for n, k, d, s, b, e in windows]
        m.add((batch, 2 * int(np.prod(kernel)), *places), kind)
    m.add(filters, "u1" if is_binary else kind)
    if is_deformable and m.opset == 8 and m.flag():
        m.add((batch, int(np.prod(kernel)), *places), kind)
    if is_binary:
        m.has(pad_value=m.pick(-1, 0, 1))
    if backwards and m.flag():
        m.given([m.rng.randint(1, 12) for _ in kernel])
    elif backwards:
        m.maybe(output_padding=[0] * axes)


@recipe("Col2Im")
def col2im(m: Make) -> None:
    kernel, output = [m.pick(1, 2, 3) for _ in "ab"], [m.pick(3, 4, 6) for _ in "ab"]
    blocks = int(np.prod([o - k + 1 for o, k in zip(output, kernel, strict=True)]))
    m.add((*m.pick((), (2,)), 2 * int(np.prod(kernel)), blocks), m.number)
    m.given(output)
    m.given(kernel)


@recipe("Interpolate")
def interpolate(m: Make) -> None:
    data = m.existing(3, 5)
    rank = len(data) if data else m.pick(3, 4, 4, 5)
    shape = data or [m.pick(1, 2), m.pick(1, 3), *(m.pick(1, 2, 4, 7) for _ in range(rank - 2))]
    axes = list(range(2, rank))
    modes = ["nearest", "linear", "linear_onnx", "cubic"]
    if m.opset == 11 and rank == 4:
        modes += ["bilinear_pillow", "bicubic_pillow"]
    mode = m.rng.choice(modes)
    m.add(shape, m.narrow if m.chance(0.8) else "u8")
    by_sizes = m.flag() or m.opset == 1
    sizes = np.array([m.rng.randint(1, 9) for _ in axes], np.int64)
    scales = np.array([m.pick(0.5, 1, 1.7, 3) for _ in axes], np.float32)
    if m.opset == 1:
        m.given(sizes)
        m.has(axes=axes, mode=m.pick("nearest", "linear", "linear_onnx", "cubic"))
        return
    if m.opset == 4 or by_sizes:
        m.given(sizes)
    if m.opset == 4 or not by_sizes:
        m.given(scales, "f32")
    m.given(axes)
    m.has(mode=mode, shape_calculation_mode="sizes" if by_sizes else "scales")
    m.maybe(cube_coeff=-0.5)
    if m.chance(0.3) and not mode.endswith("pillow"):
        m.has(pads_begin=[0, 0, *m.ints(len(axes), 0, 1)], pads_end=[0, 0, *m.ints(len(axes), 0, 1)])


@recipe("DetectionOutput")
def detection_output(m: Make) -> None:
    classes, shared = m.pick(2, 3), m.flag()
    m.settle(f"N=1|2 P=1|4 K={classes} L={1 if shared else classes}")
    m.has(share_location=shared, variance_encoded_in_target=m.flag(), num_classes=classes, normalized=m.flag())
    m.settle("keep_top_k=1|5 nms_threshold=0.5 top_k=|-1|2|10 background_label_id=|0")
    m.settle("confidence_threshold=|0.1 code_type=caffe.PriorBoxParameter.CORNER|caffe.PriorBoxParameter.CENTER_SIZE")
    m.take_declared("T half, proposals half")
