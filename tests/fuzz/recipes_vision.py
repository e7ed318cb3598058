"""Recipes of windows, regions, suppression, images, cells, bodies and state."""

from __future__ import annotations

import numpy as np

from fuzz.making import Make
from fuzz.recipes import RECIPES, recipe, with_size
from fuzz.recipes_indexing import fourier

# --------------------------------------------------------------------------- windows


def _windows(m: Make, axes: int, kernel: list[int], *, negative: bool = False) -> None:
    low = -1 if negative and m.chance(0.1) else 0
    m.has(strides=[m.pick(1, 1, 2, 3) for _ in range(axes)])
    m.has(pads_begin=m.ints(axes, low, 1), pads_end=m.ints(axes, low, 1))
    m.has(auto_pad=m.pick(None, "explicit", "valid", "same_upper", "same_lower"))


def _grown(m: Make, kernel: list[int], dilations: list[int]) -> list[int]:
    return [(k - 1) * d + 1 + m.rng.choice((0, 0, 1, 2, 6)) for k, d in zip(kernel, dilations, strict=True)]


@recipe("AvgPool", "MaxPool")
def pool(m: Make) -> None:
    axes = m.pick(1, 2, 2, 3)
    kernel = [m.pick(1, 2, 3) for _ in range(axes)]
    dilations = [m.pick(1, 1, 2) for _ in kernel]
    kind = m.pick("f32", "f32", "f16", "bf16", "f64", "i32", "u8", "i8", "i64")
    m.add((*m.shape("N C"), *_grown(m, kernel, dilations)), kind if m.sizes.get("max") else m.real)
    _windows(m, axes, kernel)
    m.has(kernel=kernel, rounding_type=m.pick("floor", "ceil", *(["ceil_torch"] if m.opset >= 14 else [])))
    m.attributes["exclude-pad"] = m.pick("true", "false")
    if m.opset >= (8 if m.sizes.get("max") else 16):
        m.has(dilations=dilations)
    if m.sizes.get("max") and m.opset > 1:
        m.maybe(index_element_type=m.index, axis=m.axis(axes + 2))
        m.outputs = 2


@recipe("AdaptiveAvgPool", "AdaptiveMaxPool")
def adaptive(m: Make) -> None:
    axes = m.pick(1, 2, 3)
    m.add((*m.shape("N C"), *(m.pick(1, 2, 3, 7) for _ in range(axes))), m.narrow_real)
    m.given(np.int64(m.ints(axes, 1, 5)))
    if m.sizes.get("max"):
        m.maybe(index_element_type=m.index)
        m.outputs = 2


@recipe(
    "Convolution", "GroupConvolution", "BinaryConvolution", "ConvolutionBackpropData", "GroupConvolutionBackpropData"
)
@recipe("DeformableConvolution")
def convolution(m: Make) -> None:
    axes = 2 if m.sizes.get("two") else m.pick(1, 2, 2, 3)
    groups = m.pick(1, 2, 3) if m.sizes.get("groups") else 1
    kernel = [m.pick(1, 2, 3) for _ in range(axes)]
    dilations = [m.pick(1, 1, 2) for _ in kernel]
    inner, outer, batch = m.pick(1, 2, 3), m.pick(1, 2, 4), m.pick(1, 1, 2)
    spatial = _grown(m, kernel, dilations)
    kind = m.type("real", "f32", "f32", "f16", "bf16", "f64")
    m.add((batch, groups * inner, *spatial), kind)
    backwards = m.sizes.get("backwards")
    filters = (inner, outer, *kernel) if backwards else (outer, inner, *kernel)
    if m.sizes.get("groups"):
        filters = (groups, *filters)
    m.has(dilations=dilations)
    _windows(m, axes, kernel, negative=True)
    if m.sizes.get("deformable"):
        strides, begin, end = (
            [int(x) for x in m.attributes[k].split(",")] for k in ("strides", "pads_begin", "pads_end")
        )
        m.has(auto_pad="explicit", group=1, deformable_group=1)
        windows = zip(spatial, kernel, dilations, strides, begin, end, strict=True)
        places = [max((size + b + e - (k - 1) * d - 1) // s + 1, 0) for size, k, d, s, b, e in windows]
        m.add((batch, 2 * int(np.prod(kernel)), *places), kind)
    m.add(filters, "u1" if m.sizes.get("binary") else kind)
    if m.sizes.get("deformable") and m.opset == 8 and m.flag():
        m.add((batch, int(np.prod(kernel)), *places), kind)
        m.maybe(bilinear_interpolation_pad=m.flag())
    if m.sizes.get("binary"):
        m.has(mode="xnor-popcount", pad_value=m.pick(-1, 0, 1))
    if backwards and m.flag():
        m.given(np.int64([m.rng.randint(1, 12) for _ in kernel]))
    elif backwards:
        m.maybe(output_padding=[0] * axes)


@recipe("ExtractImagePatches")
def patches(m: Make) -> None:
    sizes, rates = [m.pick(1, 2, 3) for _ in "ab"], [m.pick(1, 1, 2) for _ in "ab"]
    m.add((*m.shape("N C"), *_grown(m, sizes, rates)), m.number)
    m.has(sizes=sizes, rates=rates, strides=m.ints(2, 1, 3), auto_pad=m.pick("valid", "same_upper", "same_lower"))


@recipe("Col2Im")
def col2im(m: Make) -> None:
    kernel, output = [m.pick(1, 2, 3) for _ in "ab"], [m.pick(3, 4, 6) for _ in "ab"]
    blocks = int(np.prod([o - k + 1 for o, k in zip(output, kernel, strict=True)]))
    m.add((*m.pick((), (2,)), 2 * int(np.prod(kernel)), blocks), m.number)
    m.given(np.int64(output))
    m.given(np.int64(kernel))


@recipe("Interpolate")
def interpolate(m: Make) -> None:
    rank = m.pick(3, 4, 4, 5)
    shape = [m.pick(1, 2), m.pick(1, 3), *(m.pick(1, 2, 4, 7) for _ in range(rank - 2))]
    axes = list(range(2, rank))
    modes = ["nearest", "linear", "linear_onnx", "cubic"]
    if m.opset == 11 and rank == 4:
        modes += ["bilinear_pillow", "bicubic_pillow"]
    mode = m.rng.choice(modes)
    m.add(shape, m.narrow_real if m.chance(0.8) else "u8")
    by_sizes = m.flag() or m.opset == 1
    sizes, scales = np.int64([m.rng.randint(1, 9) for _ in axes]), np.float32([m.pick(0.5, 1, 1.7, 3) for _ in axes])
    if m.opset == 1:
        m.given(sizes)
        m.has(axes=axes, mode=m.pick("nearest", "linear"), align_corners=m.flag(), antialias=m.flag())
        return
    if m.opset == 4 or by_sizes:
        m.given(sizes)
    if m.opset == 4 or not by_sizes:
        m.given(scales, "f32")
    m.given(np.int64(axes))
    m.has(mode=mode, shape_calculation_mode="sizes" if by_sizes else "scales", antialias=m.flag())
    transform = m.pick("half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners")
    m.maybe(coordinate_transformation_mode=transform, cube_coeff=-0.5)
    m.maybe(nearest_mode=m.pick("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"))
    if m.chance(0.3) and not mode.endswith("pillow"):
        m.has(pads_begin=[0, 0, *m.ints(len(axes), 0, 1)], pads_end=[0, 0, *m.ints(len(axes), 0, 1)])


@recipe("GridSample")
def grid_sample(m: Make) -> None:
    m.set(H=m.pick(1, 3, 7), W=m.pick(1, 2, 5))
    m.add("N C H W", m.real)
    m.add("N Y X 2", "f32" if m.flag() else m.real)
    m.maybe(align_corners=m.flag(), mode=m.pick("bilinear", "bicubic", "nearest"))
    m.maybe(padding_mode=m.pick("zeros", "border", "reflection"))


# --------------------------------------------------------------------------- regions


@recipe("ROIAlign", "ROIAlignRotated")
def roi_align(m: Make) -> None:
    m.set(N=m.pick(1, 2), H=m.pick(1, 3, 8), W=m.pick(1, 2, 8))
    m.add("N C H W", m.narrow_real)
    m.add(f"R {m.sizes.get('coordinates', 4)}", m.narrow_real)
    m.add("R", m.index)
    m.has(
        pooled_h=m.pick(1, 2, 3), pooled_w=m.pick(1, 2), sampling_ratio=m.pick(0, 1, 2), spatial_scale=m.pick(1, 0.25)
    )
    m.has(mode=m.pick("avg", "max"), clockwise_mode=m.flag())
    m.maybe(aligned_mode=m.pick("asymmetric", "half_pixel_for_nn", "half_pixel"))


@recipe("ROIPooling")
def roi_pooling(m: Make) -> None:
    m.set(N=m.pick(1, 2), H=m.pick(1, 3, 8), W=m.pick(1, 2, 8))
    m.add("N C H W", m.narrow_real)
    m.add("R 5", m.narrow_real, _rois(m))
    m.has(spatial_scale=m.pick(1, 0.5), method=m.pick("max", "bilinear"))
    m.has(output_size=[2, 3]) if m.flag() else m.has(pooled_h=2, pooled_w=1)


def _rois(m: Make) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Return boxes of images, [n, 5]."""
    rois = np.sort(np.float32([m.ints(4, 0, 9) for _ in range(m.shape("R")[0])]).reshape(-1, 4), axis=1)[
        :, [0, 2, 1, 3]
    ]
    return np.insert(rois, 0, 0, axis=1).astype(np.float32)


@recipe("PSROIPooling")
def psroi(m: Make) -> None:
    bilinear = m.flag()
    bins, group = (m.pick(1, 2), m.pick(1, 2)), m.pick(1, 2, 3)
    outputs = m.pick(1, 2, 4)
    m.set(
        N=m.pick(1, 2), H=m.pick(3, 8), W=m.pick(2, 8), C=outputs * (bins[0] * bins[1] if bilinear else group * group)
    )
    m.add("N C H W", m.narrow_real)
    m.add("R 5", m.narrow_real, _rois(m))
    m.has(
        output_dim=outputs, group_size=group, spatial_scale=m.pick(1, 0.5), mode="bilinear" if bilinear else "average"
    )
    m.has(spatial_bins_x=bins[0], spatial_bins_y=bins[1])


@recipe("DeformablePSROIPooling")
def deformable_psroi(m: Make) -> None:
    outputs, group, part = m.pick(1, 2), m.pick(1, 2), m.pick(1, 2)
    m.set(N=1, H=m.pick(3, 8), W=m.pick(2, 8), C=outputs * group * group, P=part)
    m.add("N C H W", m.narrow_real)
    m.add("R 5", m.narrow_real, _rois(m))
    if m.flag():
        m.add("R 2 P P", m.narrow_real)
    m.has(
        output_dim=outputs,
        group_size=group,
        part_size=part,
        trans_std=m.pick(0, 0.1),
        spatial_bins_x=2,
        spatial_bins_y=1,
    )


@recipe("ExperimentalDetectronROIFeatureExtractor")
def feature_extractor(m: Make) -> None:
    m.add("R 4", m.narrow_real)
    levels = m.pick(1, 2, 3)
    for level in range(levels):
        m.add((1, *m.shape("C"), 16 >> level, 16 >> level), m.narrow_real)
    m.has(
        output_size=m.pick(1, 3), sampling_ratio=m.pick(0, 1, 2), pyramid_scales=[4, 8, 16][:levels], aligned=m.flag()
    )
    m.outputs = 2


@recipe("ExperimentalDetectronTopKROIs")
def top_k_rois(m: Make) -> None:
    m.add("R 4", m.narrow_real)
    m.add("R", m.narrow_real)
    m.has(max_rois=m.pick(0, 1, 3, 100))


@recipe("ExperimentalDetectronDetectionOutput")
def detectron_output(m: Make) -> None:
    classes = m.pick(1, 2, 4)
    agnostic = m.flag()
    m.add("R 4", m.narrow_real)
    m.add(f"R {4 * classes}", m.narrow_real)
    m.add(f"R {classes}", m.narrow_real)
    m.add((1, 3), m.narrow_real, np.float32([[32, 32, 1]]))
    m.has(
        score_threshold=0.05, nms_threshold=0.5, max_delta_log_wh=4.1, num_classes=classes, post_nms_count=m.pick(1, 10)
    )
    m.has(
        max_detections_per_image=m.pick(1, 5),
        class_agnostic_box_regression=agnostic and False,
        deltas_weights=[10, 10, 5, 5],
    )
    m.outputs = 3


@recipe("ExperimentalDetectronGenerateProposalsSingleImage", "GenerateProposals")
def generate_proposals(m: Make) -> None:
    batched = m.sizes.get("batched")
    m.set(A=m.pick(1, 3), H=m.pick(1, 4), W=m.pick(1, 3))
    m.add(
        (*(m.shape("N") if batched else ()), 3),
        m.narrow_real,
        np.broadcast_to(np.float32([32, 32, 1]), (*(m.shape("N") if batched else ()), 3)),
    )
    m.add("H W A 4" if batched else "H*W*A 4", m.narrow_real)
    m.add("N 4*A H W" if batched else "4*A H W", m.narrow_real)
    m.add("N A H W" if batched else "A H W", m.narrow_real)
    m.has(min_size=m.pick(0, 1), nms_threshold=0.7, post_nms_count=m.pick(1, 10), pre_nms_count=m.pick(5, 100))
    m.maybe(normalized=m.flag(), roi_num_type=m.index)
    m.outputs = 3 if batched else 2


@recipe("ExperimentalDetectronPriorGridGenerator")
def prior_grid(m: Make) -> None:
    m.add("P 4", m.narrow_real)
    m.add("1 C H W", m.narrow_real)
    m.add("1 D I J", m.narrow_real)
    m.has(flatten=m.flag(), stride_x=m.pick(0, 4), stride_y=m.pick(0, 4))


@recipe("PriorBox")
def prior_box(m: Make) -> None:
    for _ in range(2):
        m.given(np.int64(m.ints(2, 1, 12)), constant=True)
    m.has(min_size=[m.pick(2, 16)], offset=0.5, variance=m.pick([0.1], [0.1, 0.1, 0.2, 0.2]), step=m.pick(0, 4))
    m.maybe(max_size=[20], aspect_ratio=[2], clip=m.flag(), flip=m.flag(), scale_all_sizes=m.flag())


@recipe("PriorBoxClustered")
def prior_box_clustered(m: Make) -> None:
    for _ in range(2):
        m.given(np.int64(m.ints(2, 1, 12)), constant=True)
    m.has(width=[2, 5], height=[3, 4], offset=0.5, variance=[0.1], step=m.pick(0, 4), clip=m.flag())


@recipe("Proposal")
def proposal(m: Make) -> None:
    ratios, scales = [1, 2][: m.pick(1, 2)], [4, 8][: m.pick(1, 2)]
    anchors = len(ratios) * len(scales)
    m.set(N=m.pick(1, 2), H=m.pick(1, 4), W=m.pick(1, 3))
    m.add(f"N {2 * anchors} H W", m.narrow_real)
    m.add(f"N {4 * anchors} H W", m.narrow_real)
    m.add((), m.narrow_real, np.float32([32, 32, 1]))
    m.has(
        base_size=8, pre_nms_topn=m.pick(1, 50), post_nms_topn=m.pick(1, 9), nms_thresh=0.7, feat_stride=8, min_size=1
    )
    m.has(ratio=ratios, scale=scales)
    m.outputs = 2 if m.opset == 4 else 1


@recipe("DetectionOutput")
def detection_output(m: Make) -> None:
    classes, shared, encoded = m.pick(2, 3), m.flag(), m.flag()
    m.set(N=m.pick(1, 2), P=m.pick(1, 4))
    m.add(f"N {4 * (1 if shared else classes)}*P", m.type("real", "f32", "f32", "f16"))
    m.add(f"N {classes}*P", m.narrow_real)
    m.add(f"{m.pick(1, m.shape('N')[0])} {1 if encoded else 2} 4*P", m.narrow_real)
    m.has(
        keep_top_k=[m.pick(1, 5)],
        share_location=shared,
        variance_encoded_in_target=encoded,
        nms_threshold=0.5,
        normalized=True,
    )
    m.has(code_type=m.pick("caffe.PriorBoxParameter.CORNER", "caffe.PriorBoxParameter.CENTER_SIZE"))
    m.maybe(
        top_k=m.pick(-1, 2, 10),
        background_label_id=0,
        confidence_threshold=0.1,
        clip_after_nms=m.flag(),
        decrease_label_id=m.flag(),
    )
    if m.opset == 1:
        m.has(num_classes=classes)


@recipe("NonMaxSuppression", "NMSRotated")
def suppression(m: Make) -> None:
    width = m.sizes.get("coordinates", 4)
    kind = m.type("real", "f32", "f32", "f16")
    m.add(f"N P {width}", kind)
    m.add("N C P", kind)
    if m.chance(0.8) or width == 5:
        m.given(m.rng.randint(0, 4))
        for value in (0.5, 0.0, *([0.5] if m.opset in (5, 9) and m.flag() else [])):
            m.given(value, kind)
    m.maybe(sort_result_descending=m.flag(), output_type=m.index)
    m.has(**({"clockwise": m.flag()} if width == 5 else {"box_encoding": m.pick("corner", "center")}))
    m.outputs = 1 if m.opset < 5 and width == 4 else 3


@recipe("MatrixNms", "MulticlassNms")
def image_nms(m: Make) -> None:
    m.set(P=m.pick(1, 4, 7))
    if m.sizes.get("multiclass") and m.opset == 9 and m.chance(0.3):
        m.add("C P 4", m.narrow_real)
        m.add("C P", m.narrow_real)
        m.add("N", m.index)
    else:
        m.add("N P 4", m.narrow_real)
        m.add("N C P", m.narrow_real)
    m.maybe(sort_result_type=m.pick("classid", "score", "none"), sort_result_across_batch=m.flag(), output_type=m.index)
    m.maybe(
        score_threshold=0.1,
        nms_top_k=m.pick(-1, 0, 3),
        keep_top_k=m.pick(-1, 0, 2),
        background_class=m.pick(-1, 0),
        normalized=m.flag(),
    )
    m.maybe(decay_function=m.pick("gaussian", "linear"), iou_threshold=0.4, nms_eta=m.pick(1.0, 0.8))
    m.outputs = 3


# --------------------------------------------------------------------------- images


@recipe("NV12toBGR", "NV12toRGB", "I420toBGR", "I420toRGB")
def planes(m: Make) -> None:
    kind = m.type("pixel", "u8", "f32", "f16")
    height, width = 2 * m.pick(0, 1, 2, 5), 2 * m.pick(1, 2, 3)
    whole = m.flag()
    m.add((*m.shape("N"), height * 3 // 2 if whole else height, width, 1), kind)
    if not whole:
        chroma = (*m.shape("N"), height // 2, width // 2)
        for _ in range(1 if m.sizes.get("pairs") else 2):
            m.add((*chroma, 2 if m.sizes.get("pairs") else 1), kind)


@recipe("BGRtoNV12", "RGBtoNV12")
def to_planes(m: Make) -> None:
    m.add((*m.shape("N"), 2 * m.pick(0, 1, 3), 2 * m.pick(1, 2), 3), m.type("pixel", "u8", "f32"))
    single = m.flag()
    m.has(single_plane=single)
    m.outputs = 1 if single else 2


@recipe("RegionYolo")
def region_yolo(m: Make) -> None:
    regions, classes = m.pick(1, 3), m.pick(1, 4)
    softmax = m.flag()
    m.set(C=regions * (4 + 1 + classes))
    m.add("N C H W", m.narrow_real)
    m.has(axis=1, end_axis=3, coords=4, classes=classes, num=regions, do_softmax=softmax, mask=list(range(regions)))


# --------------------------------------------------------------------------- cells


def _cell(m: Make, gates: int, *, states: int = 1, sequence: bool = False) -> None:
    hidden, directions = m.pick(1, 2, 5), 1
    kind = m.type("real", "f32", "f32", "f16", "f64")
    m.set(H=hidden, I=m.pick(1, 3), B=m.pick(1, 2, 3), T=m.pick(1, 2, 4))
    if sequence:
        direction = m.pick("forward", "reverse", "bidirectional")
        directions = 1 + (direction == "bidirectional")
        m.has(direction=direction)
    before = f"{directions} " if sequence else ""
    m.add("B T I" if sequence else "B I", kind)
    for _ in range(states):
        m.add(f"B {before}H", kind)
    if sequence:
        m.add("B", m.index)
    reset = gates == 3 and m.flag()
    m.add(f"{before}{gates}*H I", kind)
    m.add(f"{before}{gates}*H H", kind)
    if sequence or gates == 1 or m.flag() or reset:
        m.add(f"{before}{gates + reset}*H", kind)
    m.has(hidden_size=hidden, linear_before_reset=reset if gates == 3 else None, clip=m.pick(None, 0.5))
    if m.chance(0.2):
        m.has(activations=[m.pick("sigmoid", "tanh", "relu") for _ in range({1: 1, 3: 2, 4: 3}[gates])])
    m.outputs = states + sequence


for _kind, _gates, _states in (("RNN", 1, 1), ("GRU", 3, 1), ("LSTM", 4, 2)):
    for _name, _sequence in ((f"{_kind}Cell", False), (f"{_kind}Sequence", True)):
        recipe(_name)(lambda m, g=_gates, s=_states, q=_sequence: _cell(m, g, states=s, sequence=q))  # type: ignore[misc]


# --------------------------------------------------------------------------- bodies and state


_BODY = """<layers>
<layer id="0" name="p" type="Parameter" version="opset1"><data shape="{shape}" element_type="{type}"/><output><port id="0"/></output></layer>
<layer id="1" name="f" type="{op}" version="opset1"><input><port id="0"/></input><output><port id="1"/></output></layer>
<layer id="2" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer>{more}</layers>
<edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>{edges}</edges>"""
_TRUE = """<layer id="3" name="c" type="Const" version="opset1"><data element_type="boolean" shape="1" offset="0" size="1"/>
<output><port id="0"/></output></layer><layer id="4" name="s" type="Result" version="opset1"><input><port id="0"/></input></layer>"""


def _body(m: Make, shape: tuple[int, ...], *, loop: bool = False) -> str:
    dims = ",".join("?" if m.chance(0.2) else str(size) for size in shape)
    edge = '<edge from-layer="3" from-port="0" to-layer="4" to-port="0"/>'
    op = m.pick("ReLU", "Sigmoid", "Exp")
    return _BODY.format(shape=dims, type=m.real, op=op, more=_TRUE if loop else "", edges=edge if loop else "")


@recipe("TensorIterator")
def tensor_iterator(m: Make) -> None:
    shape = m.shape("T B C")
    m.add(shape, m.real)
    m.bodies = (
        '<port_map><input external_port_id="0" internal_layer_id="0" axis="0" part_size="1"/>'
        f'<output external_port_id="1" internal_layer_id="2" axis="{m.pick(0, 1, 2)}"/></port_map>'
        f"<body>{_body(m, (1, *shape[1:]))}</body>"
    )


@recipe("Loop")
def loop(m: Make) -> None:
    shape = m.shape("A B")
    m.given(m.rng.randint(0, 4))
    m.given(m.flag(), "boolean")
    m.add(shape, m.real)
    m.bodies = (
        '<port_map><input external_port_id="2" internal_layer_id="0"/>'
        '<output external_port_id="3" internal_layer_id="2"/>'
        '<output external_port_id="-1" internal_layer_id="4" purpose="execution_condition"/></port_map>'
        '<back_edges><edge from-layer="2" to-layer="0"/></back_edges>'
        f"<body>{_body(m, shape, loop=True)}</body>"
    )


@recipe("If")
def if_(m: Make) -> None:
    shape = m.any_shape()
    m.given(m.flag(), "boolean", constant=m.flag())
    m.add(shape, m.real)
    maps = '<input external_port_id="1" internal_layer_id="0"/><output external_port_id="2" internal_layer_id="2"/>'
    m.bodies = "".join(
        f"<{name}_port_map>{maps}</{name}_port_map><{name}_body>{_body(m, shape)}</{name}_body>"
        for name in ("then", "else")
    )


@recipe("ReadValue", "Assign")
def state(m: Make) -> None:
    m.add(m.any_shape(), m.real)
    m.has(variable_id="v")
    if m.opset == 6 and m.sizes.get("read"):
        m.has(variable_type=m.real, variable_shape=m.inputs[0].shape)


RECIPES.update(
    MaxPool=with_size(pool, max=1),
    AdaptiveMaxPool=with_size(adaptive, max=1),
    GroupConvolution=with_size(convolution, groups=1),
    BinaryConvolution=with_size(convolution, two=1, binary=1),
    ConvolutionBackpropData=with_size(convolution, backwards=1),
    GroupConvolutionBackpropData=with_size(convolution, backwards=1, groups=1),
    DeformableConvolution=with_size(convolution, two=1, deformable=1),
    ROIAlignRotated=with_size(roi_align, coordinates=5),
    NMSRotated=with_size(suppression, coordinates=5),
    GenerateProposals=with_size(generate_proposals, batched=1),
    MulticlassNms=with_size(image_nms, multiclass=1),
    NV12toBGR=with_size(planes, pairs=1),
    NV12toRGB=with_size(planes, pairs=1),
    RDFT=with_size(fourier, real=1),
    ReadValue=with_size(state, read=1),
)
