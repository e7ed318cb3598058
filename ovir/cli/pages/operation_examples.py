"""A short example of each operation, which ``ovir ops OPERATION`` and the documentation show with what it prints."""

from __future__ import annotations

import ast
import io
import re
from contextlib import redirect_stdout

from ovir.ops.base.opsets import OPERATIONS


def example_of(name: str) -> str:
    """Return the code of the example of an operation, which runs as it is; an empty text if there is none."""
    if name not in _LAYERS:
        return ""
    lines = [line.removeprefix("    ") for line in _LAYERS[name].splitlines()]
    if "layer = " not in _LAYERS[name]:
        start = ast.parse("\n".join(lines)).body[-1].lineno - 1
        lines[start] = f"layer = {lines[start]}"
    imports = ["import ovir", f"from ovir import opset{_newest_opset(name)} as ops"]
    if "np." in _LAYERS[name]:
        imports.insert(0, "import numpy as np")
    return "\n".join([*imports, "", *lines, *_PRINTED.get(name, _VALUES), ""])


def output_of(code: str) -> str:
    """Return what an example prints."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(code, {})
    return printed.getvalue()


def _newest_opset(name: str) -> int:
    """Return the newest opset that has an operation."""
    return max(version.ranges[-1][1] for version in OPERATIONS[name].values())


_VALUES = ("for value in ovir.compile_model(ovir.Model(layer.outputs, []))({}).values():", "    print(value)")
_PRINTED = {
    "Parameter": ("print(layer.outputs[0])",),
    "Result": ("print(ovir.compile_model(ovir.Model([layer], []))({})[0])",),
}
"""What follows the layer, where it is not ``_VALUES``."""

_LAYERS = dict(re.findall(r"^(\w+):\s+(.*(?:\n    .*)*)$", """
Abs: ops.abs([-2.0, 0.0, 3.0])
Acos: ops.acos([-1.0, 0.0, 1.0])
Acosh: ops.acosh([1.0, 2.0])
AdaptiveAvgPool: ops.adaptive_avg_pool([[[1.0, 2.0, 3.0, 4.0]]], [2])
AdaptiveMaxPool: ops.adaptive_max_pool([[[1.0, 5.0, 3.0, 4.0]]], [2])
Add: ops.add([1, 2, 3], [10])
Asin: ops.asin([-1.0, 0.0, 1.0])
Asinh: ops.asinh([-1.0, 0.0, 1.0])
Assign:
    total = ops.read_value([1.0], "total")
    ops.assign(ops.add(total, [2.0]), "total")
Atan: ops.atan([-1.0, 0.0, 1.0])
Atanh: ops.atanh([-0.5, 0.0, 0.5])
AvgPool: ops.avg_pool([[[1.0, 2.0, 3.0, 4.0]]], [2], [0], [0], [2], exclude_pad=True)
BGRtoNV12: ops.bgr_to_nv12(np.full((1, 2, 2, 3), [255, 0, 0], np.uint8))
BatchNormInference: ops.batch_norm_inference([[1.0, 2.0]], [1.0, 1.0], [0.0, 0.0], [0.0, 1.0], [1.0, 4.0], 0.0)
BatchToSpace: ops.batch_to_space([[1], [2]], [1, 2], [0, 0], [0, 0])
BinaryConvolution:
    image = np.float32([1, 0, 1, 0, 1, 1, 1, 1]).reshape(1, 8, 1, 1)
    filters = ops.constant(np.ones((1, 8, 1, 1), np.uint8), "u1")
    ops.binary_convolution(image, filters, [1, 1], [0, 0], [0, 0], [1, 1], "xnor-popcount", 0.0)
BitwiseAnd: ops.bitwise_and([0b1100], [0b1010])
BitwiseLeftShift: ops.bitwise_left_shift([1, 3], [4, 1])
BitwiseNot: ops.bitwise_not([0, 5])
BitwiseOr: ops.bitwise_or([0b1100], [0b1010])
BitwiseRightShift: ops.bitwise_right_shift([16, 7], [4, 1])
BitwiseXor: ops.bitwise_xor([0b1100], [0b1010])
Broadcast: ops.broadcast([[1], [2]], [2, 3])
Bucketize: ops.bucketize([0, 5, 10, 20], [5, 10])
CTCGreedyDecoder:
    scores = np.eye(3, dtype=np.float32)[[0, 0, 2, 1]].reshape(4, 1, 3)
    ops.ctc_greedy_decoder(scores, np.ones((4, 1), np.float32))
CTCGreedyDecoderSeqLen:
    scores = np.eye(3, dtype=np.float32)[[0, 0, 2, 1]].reshape(1, 4, 3)
    ops.ctc_greedy_decoder_seq_len(scores, [4])
CTCLoss: ops.ctc_loss(np.zeros((1, 3, 2), np.float32), [3], [[0, 0, 0]], [1], 1)
Ceiling: ops.ceil([-1.5, 0.2, 2.0])
Clamp: ops.clamp([-3.0, 0.5, 9.0], 0.0, 6.0)
Col2Im: ops.col2im(np.ones((1, 4, 4), np.float32), [3, 3], [2, 2])
Concat: ops.concat([[[1, 2]], [[3, 4]]], 0)
Const: ops.constant([[1.0, 2.0]])
Convert: ops.convert([1.9, -1.9], "i32")
ConvertLike: ops.convert_like([1, 2], np.float32([0]))
ConvertPromoteTypes: ops.convert_promote_types(np.int8([1]), np.int32([70000]))
Convolution: ops.convolution([[[1.0, 2.0, 3.0]]], [[[1.0, -1.0]]], [1], [0], [0], [1])
ConvolutionBackpropData: ops.convolution_backprop_data([[[1.0, 2.0]]], [[[1.0, 10.0]]], [2])
Cos: ops.cos([0.0, 1.0])
Cosh: ops.cosh([0.0, 1.0])
CumSum: ops.cum_sum([1, 2, 3, 4], 0)
DFT:
    wave = np.stack([np.float32([1, 0, -1, 0]), np.zeros(4, np.float32)], axis=-1)
    ops.dft(wave, [0])
DeformableConvolution:
    image = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
    moves = np.full((1, 2, 3, 3), 0.5, np.float32)
    ops.deformable_convolution(image, moves, np.ones((1, 1, 1, 1), np.float32), [1, 1], [0, 0], [0, 0], [1, 1])
DeformablePSROIPooling:
    maps = np.arange(16, dtype=np.float32).reshape(1, 4, 2, 2)
    ops.deformable_psroi_pooling(maps, np.float32([[0, 0, 0, 1, 1]]), 1, 1.0, group_size=2)
DepthToSpace: ops.depth_to_space(np.arange(8).reshape(1, 4, 1, 2), "blocks_first", 2)
DetectionOutput:
    boxes = np.zeros((1, 8), np.float32)
    scores = np.float32([[0.1, 0.9, 0.8, 0.2]])
    priors = np.float32([[[0, 0, 0.4, 0.4, 0.5, 0.5, 1, 1], [1] * 8]])
    settings = {"keep_top_k": [2], "nms_threshold": 0.5, "confidence_threshold": 0.3, "normalized": True}
    ops.detection_output(boxes, scores, priors, settings)
Divide: ops.divide([7.0, 8.0], [2.0])
Einsum: ops.einsum([[[1, 2], [3, 4]], [1, 10]], "ij,j->i")
Elu: ops.elu([-1.0, 0.0, 2.0], 1.0)
EmbeddingBagOffsets: ops.embedding_bag_offsets([[1.0], [10.0], [100.0]], [0, 2, 1], [0, 2])
EmbeddingBagOffsetsSum: ops.embedding_bag_offsets_sum([[1.0], [10.0], [100.0]], [0, 2, 1], [0, 2])
EmbeddingBagPacked: ops.embedding_bag_packed([[1.0], [10.0], [100.0]], [[0, 2], [1, 1]])
EmbeddingBagPackedSum: ops.embedding_bag_packed_sum([[1.0], [10.0], [100.0]], [[0, 2], [1, 1]])
EmbeddingSegmentsSum: ops.embedding_segments_sum([[1.0], [10.0], [100.0]], [0, 2, 1], [0, 0, 1], 2)
Equal: ops.equal([1, 2, 3], [1, 0, 3])
Erf: ops.erf([-1.0, 0.0, 1.0])
ErfInv: ops.erfinv([-0.5, 0.0, 0.5])
Exp: ops.exp([0.0, 1.0])
ExperimentalDetectronDetectionOutput:
    boxes = np.float32([[0, 0, 10, 10], [20, 20, 40, 40]])
    scores = np.float32([[0.1, 0.9], [0.3, 0.7]])
    ops.experimental_detectron_detection_output(
        boxes, np.zeros((2, 8), np.float32), scores, np.float32([[64, 64, 1]]),
        num_classes=2, score_threshold=0.05, nms_threshold=0.5, max_delta_log_wh=4.0, post_nms_count=10,
        max_detections_per_image=2, deltas_weights=(10.0, 10.0, 5.0, 5.0),
    )
ExperimentalDetectronGenerateProposalsSingleImage:
    anchors = np.float32([[0, 0, 10, 10], [5, 5, 30, 30]])
    ops.experimental_detectron_generate_proposals_single_image(
        np.float32([64, 64, 1]), anchors, np.zeros((8, 1, 1), np.float32), np.float32([[[0.3]], [[0.9]]]),
        nms_threshold=0.7, post_nms_count=2, pre_nms_count=2,
    )
ExperimentalDetectronPriorGridGenerator:
    maps, image = np.zeros((1, 8, 1, 2), np.float32), np.zeros((1, 3, 8, 16), np.float32)
    ops.experimental_detectron_prior_grid_generator([[-4.0, -4.0, 4.0, 4.0]], maps, image)
ExperimentalDetectronROIFeatureExtractor:
    maps = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    ops.experimental_detectron_roi_feature_extractor(
        np.float32([[0, 0, 4, 4]]), [maps], output_size=2, sampling_ratio=1, pyramid_scales=(1,)
    )
ExperimentalDetectronTopKROIs:
    boxes = np.float32([[0, 0, 1, 1], [0, 0, 2, 2], [0, 0, 3, 3]])
    ops.experimental_detectron_topk_rois(boxes, [0.2, 0.9, 0.5], max_rois=2)
ExtractImagePatches:
    image = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
    ops.extract_image_patches(image, [2, 2], [1, 1], [1, 1], "valid")
Eye: ops.eye(2, 3, 1, "i32")
FakeConvert: ops.fake_convert([0.1, 1.0, 3.3], [1.0])
FakeQuantize: ops.fake_quantize([-1.0, 0.2, 0.6, 5.0], 0.0, 1.0, 0.0, 1.0, 3)
Floor: ops.floor([-1.5, 0.2, 2.0])
FloorMod: ops.floor_mod([-7, 7], [3])
GRN: ops.grn([[3.0, 4.0]], 1e-6)
GRUCell:
    weights = np.full((3, 1), 0.5, np.float32)
    ops.gru_cell([[1.0]], [[0.0]], weights, weights, np.zeros(3, np.float32), 1)
GRUSequence:
    weights = np.full((1, 3, 1), 0.5, np.float32)
    bias = np.zeros((1, 3), np.float32)
    ops.gru_sequence([[[1.0], [2.0]]], [[[0.0]]], [2], weights, weights, bias, 1, "forward")
Gather: ops.gather([10, 20, 30, 40], [3, 0], 0)
GatherElements: ops.gather_elements([[1, 2], [3, 4]], [[0, 0], [1, 0]], 1)
GatherND: ops.gather_nd([[1, 2], [3, 4]], [[0, 1], [1, 0]])
GatherTree:
    steps = np.float32([[[1, 2]], [[3, 4]]])
    parents = np.float32([[[0, 0]], [[1, 0]]])
    ops.gather_tree(steps, parents, np.float32([2]), np.float32(9))
Gelu: ops.gelu([-1.0, 0.0, 1.0], "erf")
GenerateProposals:
    anchors = np.float32([[0, 0, 10, 10], [5, 5, 30, 30]]).reshape(1, 1, 2, 4)
    ops.generate_proposals(
        np.float32([[64, 64, 1]]), anchors, np.zeros((1, 8, 1, 1), np.float32),
        np.float32([0.3, 0.9]).reshape(1, 2, 1, 1), 0.0, 0.7, 2, 2,
    )
Greater: ops.greater([1, 2, 3], [2])
GreaterEqual: ops.greater_equal([1, 2, 3], [2])
GridSample:
    image = np.float32([[[[1, 2], [3, 4]]]])
    ops.grid_sample(image, np.float32([[[[-1, -1], [0, 0]]]]), {"align_corners": True})
GroupConvolution:
    filters = np.float32([[[[1]]], [[[10]]]])
    ops.group_convolution([[[1.0, 2.0], [3.0, 4.0]]], filters, [1], [0], [0], [1])
GroupConvolutionBackpropData:
    filters = np.float32([[[[1, 1]]], [[[10, 10]]]])
    ops.group_convolution_backprop_data([[[1.0], [2.0]]], filters, [1])
GroupNormalization: ops.group_normalization([[[1.0, 3.0], [5.0, 7.0]]], [1.0, 1.0], [0.0, 0.0], 1, 0.0)
GroupedMatMul:
    rows = np.float32([[1], [2], [3]])
    matrices = np.float32([[[1], [1]], [[10], [10]]])
    ops.grouped_matmul(rows, matrices, np.int32([1, 3]))
HSigmoid: ops.hsigmoid([-3.0, 0.0, 3.0])
HSwish: ops.hswish([-3.0, 0.0, 3.0])
HardSigmoid: ops.hard_sigmoid([-3.0, 0.0, 3.0], 0.2, 0.5)
I420toBGR: ops.i420_to_bgr(np.full((1, 3, 2, 1), 128, np.uint8))
I420toRGB: ops.i420_to_rgb(np.full((1, 3, 2, 1), 128, np.uint8))
IDFT: ops.idft(np.float32([[2, 0], [0, 0]]), [0])
IRDFT: ops.irdft(np.float32([[2, 0], [0, 0]]), [0])
ISTFT:
    signal = np.float32([1, 2, 3, 4])
    window = np.ones(2, np.float32)
    spectrum = ops.stft(signal, window, 2, 1, transpose_frames=True)
    ops.istft(spectrum, window, 2, 1, center=False, normalized=False)
Identity: ops.identity([[1.0, 2.0]])
If:
    x = ops.parameter([2], "f32")
    doubled = ovir.Model([ops.result(ops.add(x, x))], [x])
    y = ops.parameter([2], "f32")
    same = ovir.Model([ops.result(y)], [y])
    layer = ops.if_op(True)
    layer.set_then_body(doubled)
    layer.set_else_body(same)
    layer.set_input(np.float32([1, 2]), x, y)
    layer.set_output(doubled.results[0], same.results[0])
Interpolate: ops.interpolate([[[1.0, 3.0]]], [4], "linear", "sizes", axes=[2])
Inverse: ops.inverse([[2.0, 0.0], [0.0, 4.0]])
IsFinite: ops.is_finite([1.0, np.inf, np.nan])
IsInf: ops.is_inf([1.0, np.inf, np.nan])
IsNaN: ops.is_nan([1.0, np.inf, np.nan])
LRN: ops.lrn([[1.0, 2.0, 3.0]], [1], alpha=1.0, beta=0.5, bias=1.0, size=3)
LSTMCell:
    weights = np.full((4, 1), 0.5, np.float32)
    ops.lstm_cell([[1.0]], [[0.0]], [[0.0]], weights, weights, np.zeros(4, np.float32), 1)
LSTMSequence:
    weights = np.full((1, 4, 1), 0.5, np.float32)
    bias = np.zeros((1, 4), np.float32)
    ops.lstm_sequence([[[1.0], [2.0]]], [[[0.0]]], [[[0.0]]], [2], weights, weights, bias, 1, "forward")
Less: ops.less([1, 2, 3], [2])
LessEqual: ops.less_equal([1, 2, 3], [2])
Log: ops.log([1.0, 10.0])
LogSoftmax: ops.log_softmax([1.0, 2.0, 3.0], 0)
LogicalAnd: ops.logical_and([True, True, False], [True, False, False])
LogicalNot: ops.logical_not([True, False])
LogicalOr: ops.logical_or([True, True, False], [True, False, False])
LogicalXor: ops.logical_xor([True, True, False], [True, False, False])
Loop:
    x = ops.parameter([1], "f32")
    doubled = ops.result(ops.add(x, x))
    go_on = ops.result(ops.constant(True))
    layer = ops.loop(3, True)
    layer.set_function(ovir.Model([doubled, go_on], [x]))
    layer.set_special_body_ports([-1, 1])
    layer.set_merged_input(x, np.float32([1]), doubled)
    layer.get_iter_value(doubled, -1)
MVN: ops.mvn([[1.0, 2.0, 3.0]], [1], True, 1e-6, "inside_sqrt")
MatMul: ops.matmul([[1, 2], [3, 4]], [[1], [10]], False, False)
MatrixNms:
    boxes = np.float32([[[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]]])
    ops.matrix_nms(boxes, np.float32([[[0.9, 0.8, 0.7]]]))
MaxPool: ops.max_pool([[[1.0, 5.0, 3.0, 4.0]]], [2], [1], [0], [0], [2])
Maximum: ops.maximum([1, 5], [3])
Minimum: ops.minimum([1, 5], [3])
Mish: ops.mish([-1.0, 0.0, 1.0])
Mod: ops.mod([-7, 7], [3])
MulticlassNms:
    boxes = np.float32([[[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]]])
    ops.multiclass_nms(boxes, np.float32([[[0.9, 0.8, 0.7]]]), iou_threshold=0.5)
Multinomial: ops.multinomial([[0.0, 1.0, 0.0]], [4], "i32", True, False, 1, 2)
Multiply: ops.multiply([1, 2, 3], [10])
NMSRotated:
    boxes = np.float32([[[5, 5, 4, 2, 0], [5, 5, 4, 2, 0.1], [20, 20, 4, 2, 0]]])
    ops.nms_rotated(boxes, np.float32([[[0.9, 0.8, 0.7]]]), 3, 0.5, 0.0)
NV12toBGR: ops.nv12_to_bgr(np.full((1, 3, 2, 1), 128, np.uint8))
NV12toRGB: ops.nv12_to_rgb(np.full((1, 3, 2, 1), 128, np.uint8))
Negative: ops.negative([1.0, -2.0])
NonMaxSuppression:
    boxes = np.float32([[[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]]])
    ops.non_max_suppression(boxes, np.float32([[[0.9, 0.8, 0.7]]]), 3, np.float32(0.5))
NonZero: ops.non_zero([[0, 5], [7, 0]])
NormalizeL2: ops.normalize_l2([[3.0, 4.0]], [1], 1e-6, "add")
NotEqual: ops.not_equal([1, 2, 3], [1, 0, 3])
OneHot: ops.one_hot([2, 0], 3, 1.0, 0.0, -1)
PReLU: ops.prelu([-2.0, 3.0], 0.1)
PSROIPooling:
    maps = np.arange(16, dtype=np.float32).reshape(1, 4, 2, 2)
    ops.psroi_pooling(maps, np.float32([[0, 0, 0, 1, 1]]), 1, 2, 1.0, 1, 1, "average")
Pad: ops.pad([1, 2, 3], [1], [2], "constant", 0)
Parameter: ops.parameter([-1, 3], "f32", name="x")
Power: ops.power([1.0, 2.0, 3.0], [2.0])
PriorBox:
    settings = {"min_size": [4.0], "aspect_ratio": [2.0], "offset": 0.5, "step": 8.0}
    ops.prior_box([1, 1], [8, 8], settings)
PriorBoxClustered:
    settings = {"width": [4.0], "height": [2.0], "offset": 0.5, "step": 8.0}
    ops.prior_box_clustered([1, 1], [8, 8], settings)
Proposal:
    scores = np.float32([0.1, 0.9]).reshape(1, 2, 1, 1)
    settings = {
        "base_size": 16, "pre_nms_topn": 2, "post_nms_topn": 2, "nms_thresh": 0.7, "feat_stride": 16,
        "min_size": 1, "ratio": [1.0], "scale": [1.0],
    }
    ops.proposal(scores, np.zeros((1, 4, 1, 1), np.float32), [64.0, 64.0, 1.0], settings)
RDFT: ops.rdft([1.0, 0.0, -1.0, 0.0], [0])
RGBtoNV12: ops.rgb_to_nv12(np.full((1, 2, 2, 3), [255, 0, 0], np.uint8))
RNNCell: ops.rnn_cell([[1.0]], [[0.5]], [[1.0]], [[1.0]], [0.0], 1, ["tanh"], [], [])
RNNSequence: ops.rnn_sequence([[[1.0], [2.0]]], [[[0.0]]], [2], [[[1.0]]], [[[1.0]]], [[0.0]], 1, "forward")
ROIAlign:
    image = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    ops.roi_align(image, np.float32([[0, 0, 4, 4]]), [0], 2, 2, 1, 1.0, "avg")
ROIAlignRotated:
    image = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    ops.roi_align_rotated(image, np.float32([[2, 2, 2, 2, 0]]), [0], 1, 1, 1, 1.0, True)
ROIPooling:
    image = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    ops.roi_pooling(image, np.float32([[0, 0, 0, 3, 3]]), [2, 2], 1.0)
RandomUniform: ops.random_uniform([3], np.float32(0), np.float32(1), "f32", 1, 2)
Range: ops.range(0, 10, 3, "i32")
ReLU: ops.relu([-2.0, 0.0, 3.0])
ReadValue: ops.read_value([1.0, 2.0], "state")
ReduceL1: ops.reduce_l1([[3.0, -4.0]], [1])
ReduceL2: ops.reduce_l2([[3.0, -4.0]], [1])
ReduceLogicalAnd: ops.reduce_logical_and([[True, False]], [1])
ReduceLogicalOr: ops.reduce_logical_or([[True, False]], [1])
ReduceMax: ops.reduce_max([[1, 5], [3, 2]], [1])
ReduceMean: ops.reduce_mean([[1.0, 5.0], [3.0, 2.0]], [1])
ReduceMin: ops.reduce_min([[1, 5], [3, 2]], [1])
ReduceProd: ops.reduce_prod([[1, 5], [3, 2]], [1])
ReduceSum: ops.reduce_sum([[1, 5], [3, 2]], [1], keep_dims=True)
RegionYolo:
    scores = np.zeros((1, 6, 1, 1), np.float32)
    ops.region_yolo(scores, 4, 1, 1, True, [0], 1, 3)
ReorgYolo: ops.reorg_yolo(np.arange(16).reshape(1, 4, 2, 2), [2])
Reshape: ops.reshape([[1, 2, 3], [4, 5, 6]], [3, -1], False)
Result: ops.result([1.0, 2.0])
Reverse: ops.reverse([[1, 2], [3, 4]], [1])
ReverseSequence: ops.reverse_sequence([[1, 2, 3], [4, 5, 6]], [2, 3], 0, 1)
Roll: ops.roll([1, 2, 3, 4], [1], [0])
Round: ops.round([0.5, 1.5, -2.4])
STFT: ops.stft([1.0, 2.0, 3.0, 4.0], [1.0, 1.0], 2, 2, transpose_frames=False)
ScaledDotProductAttention:
    query = np.float32([[[1, 0]]])
    key = np.float32([[[1, 0], [0, 1]]])
    ops.scaled_dot_product_attention(query, key, np.float32([[[10], [20]]]))
ScatterElementsUpdate: ops.scatter_elements_update([1, 2, 3, 4], [3, 0], [40, 10], 0)
ScatterNDUpdate: ops.scatter_nd_update([[1, 2], [3, 4]], [[0, 1]], [20])
ScatterUpdate: ops.scatter_update([[1, 2], [3, 4]], [1], [[30, 40]], 0)
SearchSorted: ops.search_sorted([1, 3, 5], [3, 4])
SegmentMax: ops.segment_max([1, 5, 3, 2], [0, 0, 1, 1])
Select: ops.select([True, False], [1, 2], [10, 20])
Selu: ops.selu([-1.0, 1.0], [1.6733], [1.0507])
ShapeOf: ops.shape_of(np.zeros((2, 3, 4), np.float32))
ShuffleChannels: ops.shuffle_channels([[1, 2, 3, 4]], 1, 2)
Sigmoid: ops.sigmoid([-1.0, 0.0, 1.0])
Sign: ops.sign([-2.0, 0.0, 3.0])
Sin: ops.sin([0.0, 1.0])
Sinh: ops.sinh([0.0, 1.0])
Slice: ops.slice([0, 1, 2, 3, 4, 5], [1], [5], [2])
SliceScatter: ops.slice_scatter([0, 1, 2, 3], [10, 30], [1], [4], [2])
SoftMax: ops.softmax([1.0, 2.0, 3.0], 0)
SoftPlus: ops.softplus([-1.0, 0.0, 1.0])
SoftSign: ops.softsign([-1.0, 0.0, 1.0])
SpaceToBatch: ops.space_to_batch([[1, 2, 3, 4]], [1, 2], [0, 0], [0, 0])
SpaceToDepth: ops.space_to_depth(np.arange(8).reshape(1, 1, 2, 4), "blocks_first", 2)
SparseFillEmptyRows: ops.sparse_fill_empty_rows([5.0, 7.0], [3, 4], [[0, 1], [2, 3]], 0.0)
Split: ops.split([1, 2, 3, 4], 0, 2)
Sqrt: ops.sqrt([4.0, 9.0])
SquaredDifference: ops.squared_difference([1, 5], [3])
Squeeze: ops.squeeze([[[1], [2]]], [0, 2])
StridedSlice: ops.strided_slice([0, 1, 2, 3, 4, 5], [1], [5], [2], [0], [0])
StringTensorPack: ops.string_tensor_pack([0, 2], [2, 5], np.frombuffer(b"hiyou", np.uint8))
StringTensorUnpack: ops.string_tensor_unpack(["hi", "you"])
Subtract: ops.subtract([5, 7], [2])
Swish: ops.swish([-1.0, 0.0, 1.0])
Tan: ops.tan([0.0, 1.0])
Tanh: ops.tanh([-1.0, 0.0, 1.0])
TensorIterator:
    part = ops.parameter([1], "f32")
    total = ops.parameter([1], "f32")
    added = ops.result(ops.add(part, total))
    layer = ops.tensor_iterator()
    layer.set_body(ovir.Model([added], [part, total]))
    layer.set_sliced_input(part, np.float32([1, 2, 3]), start=0, stride=1, part_size=1, end=-1, axis=0)
    layer.set_merged_input(total, np.float32([0]), added)
    layer.get_concatenated_slices(added, start=0, stride=1, part_size=1, end=-1, axis=0)
Tile: ops.tile([[1, 2]], [2, 2])
TopK: ops.topk([3, 1, 2], 2, 0, "max", "value")
Transpose: ops.transpose([[1, 2, 3], [4, 5, 6]], [1, 0])
Unique: ops.unique([3, 1, 3, 2])
Unsqueeze: ops.unsqueeze([1, 2], [0])
VariadicSplit: ops.variadic_split([1, 2, 3, 4], 0, [1, 3])
Xor: ops.xor([True, True, False], [True, False, False])
""", re.MULTILINE))  # fmt: skip
"""The lines that create a layer of each operation from constants, in the newest opset that has the operation."""
