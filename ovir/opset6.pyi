"""The functions of opset6. Written by ``python -m ovir.generated_files``."""

from collections.abc import Sequence
from typing import Any

from ovir.building.bodies import IfLayer, IterationLayer, LoopLayer
from ovir.building.values import Info, Shape, Tensor, TensorNames, Type
from ovir.graph.layers import Layer
from ovir.opset1 import (
    abs as abs, absolute as absolute, acos as acos, add as add, asin as asin, atan as atan, avg_pool as avg_pool,
    binary_convolution as binary_convolution, ceil as ceil, ceiling as ceiling, clamp as clamp, concat as concat,
    constant as constant, convert as convert, convert_like as convert_like, convolution as convolution,
    convolution_backprop_data as convolution_backprop_data, cos as cos, cosh as cosh,
    ctc_greedy_decoder as ctc_greedy_decoder, deformable_convolution as deformable_convolution,
    deformable_psroi_pooling as deformable_psroi_pooling, depth_to_space as depth_to_space,
    detection_output as detection_output, divide as divide, elu as elu, equal as equal, erf as erf, exp as exp,
    fake_quantize as fake_quantize, floor as floor, floor_mod as floor_mod, gather as gather,
    gather_tree as gather_tree, greater as greater, greater_equal as greater_equal, grn as grn,
    group_convolution as group_convolution, group_convolution_backprop_data as group_convolution_backprop_data,
    hard_sigmoid as hard_sigmoid, less as less, less_equal as less_equal, log as log, logical_and as logical_and,
    logical_not as logical_not, logical_or as logical_or, logical_xor as logical_xor, lrn as lrn, matmul as matmul,
    max_pool as max_pool, maximum as maximum, minimum as minimum, mod as mod, multiply as multiply,
    negative as negative, normalize_l2 as normalize_l2, not_equal as not_equal, one_hot as one_hot, pad as pad,
    parameter as parameter, power as power, prelu as prelu, prior_box as prior_box,
    prior_box_clustered as prior_box_clustered, psroi_pooling as psroi_pooling,
    reduce_logical_and as reduce_logical_and, reduce_logical_or as reduce_logical_or, reduce_max as reduce_max,
    reduce_mean as reduce_mean, reduce_min as reduce_min, reduce_prod as reduce_prod, reduce_sum as reduce_sum,
    region_yolo as region_yolo, relu as relu, reorg_yolo as reorg_yolo, reshape as reshape, result as result,
    reverse_sequence as reverse_sequence, roi_pooling as roi_pooling, select as select, selu as selu,
    sigmoid as sigmoid, sign as sign, sin as sin, sinh as sinh, softmax as softmax, space_to_depth as space_to_depth,
    split as split, sqrt as sqrt, squared_difference as squared_difference, squeeze as squeeze,
    strided_slice as strided_slice, subtract as subtract, tan as tan, tanh as tanh, tensor_iterator as tensor_iterator,
    tile as tile, transpose as transpose, unsqueeze as unsqueeze, variadic_split as variadic_split,
)
from ovir.opset2 import (
    batch_to_space as batch_to_space, gelu as gelu, space_to_batch as space_to_batch,
)
from ovir.opset3 import (
    broadcast as broadcast, bucketize as bucketize, cum_sum as cum_sum, cumsum as cumsum,
    embedding_bag_offsets_sum as embedding_bag_offsets_sum, embedding_bag_packed_sum as embedding_bag_packed_sum,
    embedding_segments_sum as embedding_segments_sum, extract_image_patches as extract_image_patches,
    gru_cell as gru_cell, non_zero as non_zero, rnn_cell as rnn_cell, roi_align as roi_align,
    scatter_elements_update as scatter_elements_update, scatter_update as scatter_update, shape_of as shape_of,
    shuffle_channels as shuffle_channels, topk as topk,
)
from ovir.opset4 import (
    acosh as acosh, asinh as asinh, atanh as atanh, ctc_loss as ctc_loss, hswish as hswish, interpolate as interpolate,
    lstm_cell as lstm_cell, mish as mish, proposal as proposal, range as range, reduce_l1 as reduce_l1,
    reduce_l2 as reduce_l2, scatter_nd_update as scatter_nd_update, softplus as softplus, swish as swish,
)
from ovir.opset5 import (
    batch_norm_inference as batch_norm_inference, gather_nd as gather_nd, gru_sequence as gru_sequence,
    hsigmoid as hsigmoid, log_softmax as log_softmax, loop as loop, lstm_sequence as lstm_sequence,
    non_max_suppression as non_max_suppression, rnn_sequence as rnn_sequence, round as round,
)

def assign(
    new_value: Tensor,
    variable_id: str,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """`new_value`, passed on unchanged; ReadValue returns it in the next call.

    Create Assign of opset6.
    """

def ctc_greedy_decoder_seq_len(
    data: Tensor,
    sequence_length: Tensor,
    blank_index: Tensor | None = None,
    merge_repeated: bool | None = True,
    classes_index_type: Type | None = 'i32',
    sequence_length_type: Type | None = 'i32',
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The most probable class of each step, with repetitions merged if ``merge_repeated`` and without blanks.

    A repetition is a class equal to the class of the previous step. data is [batch, time, classes]; ``sequence_length``
    is the number of steps of each sequence. The blank is ``blank_index``, by default the last class. The outputs are
    the classes [batch, time], padded with -1, and the number of classes of each sequence.

    Create CTCGreedyDecoderSeqLen of opset6.
    """

def experimental_detectron_detection_output(
    rois: Tensor,
    deltas: Tensor,
    scores: Tensor,
    im_info: Tensor,
    num_classes: int,
    score_threshold: float | None = 0.0,
    nms_threshold: float | None = 0.0,
    max_delta_log_wh: float | None = 0.0,
    post_nms_count: int | None = 0,
    max_detections_per_image: int | None = 0,
    class_agnostic_box_regression: bool | None = False,
    deltas_weights: Sequence[float] | None = (),
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Boxes, classes and scores detected in one image, padded with zeros to ``max_detections_per_image``.

    rois are [regions, 4], deltas [regions, num_classes * 4], scores [regions, num_classes]; im_info [1, 3] and
    ``class_agnostic_box_regression`` have no effect, as in OpenVINO. The outputs are boxes [most, 4], classes i32
    [most] and scores [most].

    For each class, a region [x0, y0, x1, y1], whose last pixel belongs to it, is moved by its deltas [dx, dy, dw, dh]
    divided by ``deltas_weights``: (dx * width, dy * height) is added to the center, and (exp dw, exp dh) multiplies the
    size, with dw and dh at most ``max_delta_log_wh``. Negative coordinates become 0. For each class except the
    background 0, boxes with scores above ``score_threshold`` are kept unless they overlap a kept box of a higher score
    by more than ``nms_threshold``; at most ``post_nms_count`` (-1: all) remain. Detections are ordered by class and
    descending score; if there are too many for the image, the best of all are ordered by descending score. Equal scores
    are ordered by region. Everything is computed in f32.

    Create ExperimentalDetectronDetectionOutput of opset6.
    """

def experimental_detectron_generate_proposals_single_image(
    im_info: Tensor,
    anchors: Tensor,
    deltas: Tensor,
    scores: Tensor,
    min_size: float | None = 0.0,
    nms_threshold: float | None = 0.0,
    post_nms_count: int | None = 0,
    pre_nms_count: int | None = 0,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The proposals of a two-stage detector for one image, from predictions for anchors. See GenerateProposalsBase.

    im_info is [height, width, scale], anchors are [H * W * A, 4], deltas [4 * A, H, W], scores [A, H, W]. The last
    pixel belongs to a box but is not counted when overlaps are measured. Short boxes are dropped before the highest
    scores are selected. The outputs are the boxes [post_nms_count, 4] and their scores [post_nms_count], both padded
    with zeros.

    Create ExperimentalDetectronGenerateProposalsSingleImage of opset6.
    """

def experimental_detectron_prior_grid_generator(
    priors: Tensor,
    feature_map: Tensor,
    im_data: Tensor,
    flatten: bool | None = True,
    h: int | None = 0,
    w: int | None = 0,
    stride_x: float | None = 0.0,
    stride_y: float | None = 0.0,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Every prior box at the center of every cell of a grid, ordered by row, cell and prior.

    priors are [priors, 4] as x0, y0, x1, y1. The grid has ``h`` x ``w`` cells; 0 means the size of the feature map [N,
    C, rows, columns]. A cell has the size ``stride_y`` x ``stride_x``; 0 means the size of im_data [N, C, height,
    width] divided by the number of cells. The output is [rows, columns, priors, 4], or [boxes, 4] with ``flatten``; if
    the grid is smaller than the feature map, the rest is 0.

    Create ExperimentalDetectronPriorGridGenerator of opset6.
    """

def experimental_detectron_roi_feature_extractor(
    rois: Tensor,
    inputs: Sequence[Tensor],
    output_size: int | None = 0,
    sampling_ratio: int | None = 0,
    pyramid_scales: Sequence[int] | None = (),
    aligned: bool | None = False,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """ROIAlign of each region in one level of a pyramid of feature maps; the regions are the second output.

    rois are [regions, 4], each feature map is [1, C, rows, columns]; the outputs are [regions, C, output_size,
    output_size] and rois. A region [x0, y0, x1, y1] uses level floor(2 + log2(sqrt(area) / 224 + 1e-6)), or the nearest
    existing level. Its coordinates are divided by the level's ``pyramid_scales`` and moved by -0.5 if ``aligned``.
    Sides are at least one pixel long. Each output is the mean of ``sampling_ratio`` samples per axis; 0 means the
    length of the bin, rounded up. A region without area has features of 0.

    Create ExperimentalDetectronROIFeatureExtractor of opset6.
    """

def experimental_detectron_topk_rois(
    rois: Tensor,
    probabilities: Tensor,
    max_rois: int | None = 0,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The ``max_rois`` regions with the highest probabilities, in descending order; the first of equal ones wins.

    rois are [regions, 4], probabilities [regions]; the output is [max_rois, 4], padded with 0. A probability of NaN is
    less than any other.

    Create ExperimentalDetectronTopKROIs of opset6.
    """

def gather_elements(
    data: Tensor,
    indices: Tensor,
    axis: int | None = 0,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """out[i, j, k] = data[indices[i, j, k], j, k] for axis 0, and likewise for other axes.

    Data and indices have equal dimensions except along ``axis``. A negative index counts from the end; an index outside
    [-size, size-1] is an error.

    Create GatherElements of opset6.
    """

def mvn(
    data: Tensor,
    axes: Tensor,
    normalize_variance: bool,
    eps: float,
    eps_mode: str,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """MVN-2 with the axes as a 1-D input; eps is added to the variance or, with ``outside_sqrt``, to its root.

    Without axes each element is a slice of its own.

    Create MVN of opset6.
    """

def read_value(
    init_value: Tensor | None = None,
    variable_id: str | None = None,
    variable_type: Type | None = 'dynamic',
    variable_shape: Shape | None = '[...]',
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The value last assigned to the variable; before that, and after a reset, `init_value`, or zeros without one.

    The declared type and shape must include the type and shape of `init_value`, which hold if neither is declared.

    Create ReadValue of opset6.
    """
