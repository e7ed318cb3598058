"""The functions of opset8. Written by ``python -m ovir.generated_files``."""

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
    ctc_greedy_decoder as ctc_greedy_decoder, deformable_psroi_pooling as deformable_psroi_pooling,
    depth_to_space as depth_to_space, divide as divide, elu as elu, equal as equal, erf as erf, exp as exp,
    fake_quantize as fake_quantize, floor as floor, floor_mod as floor_mod, gather_tree as gather_tree,
    greater as greater, greater_equal as greater_equal, grn as grn, group_convolution as group_convolution,
    group_convolution_backprop_data as group_convolution_backprop_data, hard_sigmoid as hard_sigmoid, less as less,
    less_equal as less_equal, log as log, logical_and as logical_and, logical_not as logical_not,
    logical_or as logical_or, logical_xor as logical_xor, lrn as lrn, matmul as matmul, maximum as maximum,
    minimum as minimum, mod as mod, multiply as multiply, negative as negative, normalize_l2 as normalize_l2,
    not_equal as not_equal, one_hot as one_hot, pad as pad, parameter as parameter, power as power, prelu as prelu,
    prior_box_clustered as prior_box_clustered, psroi_pooling as psroi_pooling,
    reduce_logical_and as reduce_logical_and, reduce_logical_or as reduce_logical_or, reduce_max as reduce_max,
    reduce_mean as reduce_mean, reduce_min as reduce_min, reduce_prod as reduce_prod, reduce_sum as reduce_sum,
    region_yolo as region_yolo, relu as relu, reorg_yolo as reorg_yolo, reshape as reshape, result as result,
    reverse_sequence as reverse_sequence, roi_pooling as roi_pooling, select as select, selu as selu,
    sigmoid as sigmoid, sign as sign, sin as sin, sinh as sinh, space_to_depth as space_to_depth, split as split,
    sqrt as sqrt, squared_difference as squared_difference, squeeze as squeeze, strided_slice as strided_slice,
    subtract as subtract, tan as tan, tanh as tanh, tensor_iterator as tensor_iterator, tile as tile,
    transpose as transpose, unsqueeze as unsqueeze, variadic_split as variadic_split,
)
from ovir.opset2 import (
    batch_to_space as batch_to_space, space_to_batch as space_to_batch,
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
    batch_norm_inference as batch_norm_inference, gru_sequence as gru_sequence, hsigmoid as hsigmoid,
    log_softmax as log_softmax, loop as loop, lstm_sequence as lstm_sequence,
    non_max_suppression as non_max_suppression, rnn_sequence as rnn_sequence, round as round,
)
from ovir.opset6 import (
    assign as assign, ctc_greedy_decoder_seq_len as ctc_greedy_decoder_seq_len,
    experimental_detectron_detection_output as experimental_detectron_detection_output,
    experimental_detectron_generate_proposals_single_image as experimental_detectron_generate_proposals_single_image,
    experimental_detectron_prior_grid_generator as experimental_detectron_prior_grid_generator,
    experimental_detectron_roi_feature_extractor as experimental_detectron_roi_feature_extractor,
    experimental_detectron_topk_rois as experimental_detectron_topk_rois, gather_elements as gather_elements,
    mvn as mvn, read_value as read_value,
)
from ovir.opset7 import (
    dft as dft, einsum as einsum, gelu as gelu, idft as idft, roll as roll,
)

def adaptive_avg_pool(
    data: Tensor,
    output_shape: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The mean of each window.

    Create AdaptiveAvgPool of opset8.
    """

def adaptive_max_pool(
    data: Tensor,
    output_shape: Tensor,
    index_element_type: Type | None = 'i64',
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The largest element of each window, and its index in the flattened spatial axes; the first of equal elements
    wins.

    Create AdaptiveMaxPool of opset8.
    """

def deformable_convolution(
    data: Tensor,
    offsets: Tensor,
    filters: Tensor,
    strides: Sequence[int],
    pads_begin: Sequence[int],
    pads_end: Sequence[int],
    dilations: Sequence[int],
    mask: Tensor | None = None,
    auto_pad: str | None = 'explicit',
    group: int | None = 1,
    deformable_group: int | None = 1,
    bilinear_interpolation_pad: bool | None = False,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """DeformableConvolution-1 with each sample multiplied by an optional mask [N, deformable_group * K, *windows].

    With ``bilinear_interpolation_pad``, positions less than a pixel outside of data are interpolated between data and
    zero.

    Create DeformableConvolution of opset8.
    """

def detection_output(
    box_logits: Tensor,
    class_preds: Tensor,
    proposals: Tensor,
    attrs: dict[str, Any],
    aux_class_preds: Tensor | None = None,
    aux_box_preds: Tensor | None = None,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The detections of a single-shot detector, from its predictions for prior boxes. See DetectionOutputBase.

    The number of classes is the number of class_preds per prior.

    Create DetectionOutput of opset8.
    """

def gather(
    data: Tensor,
    indices: Tensor,
    axis: Tensor,
    batch_dims: int | None = 0,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Slices of ``data`` along ``axis``, picked by ``indices`` for each of ``batch_dims`` batches.

    An index in [-size, -1] counts from the end; an index outside [-size, size-1] gives 0.

    Create Gather of opset8.
    """

def gather_nd(
    data: Tensor,
    indices: Tensor,
    batch_dims: int | None = 0,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """out[b, i] = data[b, *indices[b, i]], with b over the ``batch_dims`` dimensions that data and indices share.

    indices[b, i] is a tuple of k indices along the last dimension of indices. If k is less than the number of other
    dimensions of data, tuples pick slices: the shape is indices.shape[:-1] + data.shape[batch_dims + k:]. Negative
    indices count from the end.

    Create GatherND of opset8.
    """

def i420_to_bgr(
    arg: Tensor,
    arg_u: Tensor | None = None,
    arg_v: Tensor | None = None,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """An I420 image, in one tensor or three, as BGR. See I420ToRgbBase and YuvToRgbBase.

    Create I420toBGR of opset8.
    """

def i420_to_rgb(
    arg: Tensor,
    arg_u: Tensor | None = None,
    arg_v: Tensor | None = None,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """An I420 image, in one tensor or three, as RGB. See I420ToRgbBase and YuvToRgbBase.

    Create I420toRGB of opset8.
    """

def if_op(execution_condition: Tensor, name: str | None = None, *, rt_info: Info | None = None) -> IfLayer:
    """The results of the body `then` if `cond` is true, otherwise of the body `else`.

    The shape of an output covers the shapes of both branches; if `cond` is a constant, it is the shape of one branch. A
    scalar counts as [1] if the other branch gives a tensor of rank 1.

    Create If of opset8.
    """

def matrix_nms(
    boxes: Tensor,
    scores: Tensor,
    sort_result_type: str | None = 'none',
    sort_result_across_batch: bool | None = False,
    output_type: Type | None = 'i64',
    score_threshold: float | None = 0.0,
    nms_top_k: int | None = -1,
    keep_top_k: int | None = -1,
    background_class: int | None = -1,
    decay_function: str | None = 'linear',
    gaussian_sigma: float | None = 2.0,
    post_threshold: float | None = 0.0,
    normalized: bool | None = True,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The best boxes of each image, with scores that decay by overlap with boxes of higher scores. See ImageNmsBase.

    Candidates have a score above score_threshold. Let x[j] be the overlap (intersection over union) with the j-th
    better box, and m[j] the greatest overlap of that box with a box better than itself. The score is multiplied by the
    minimum over j, at most 1, of (1 - x[j]) / (1 - m[j]), or of exp((m[j]**2 - x[j]**2) * ``gaussian_sigma``) if
    ``decay_function`` is gaussian. Boxes whose score then exceeds ``post_threshold`` are selected.

    Create MatrixNms of opset8.
    """

def max_pool(
    data: Tensor,
    strides: Sequence[int],
    dilations: Sequence[int],
    pads_begin: Sequence[int],
    pads_end: Sequence[int],
    kernel_shape: Sequence[int],
    rounding_type: str | None = 'floor',
    auto_pad: str | None = 'explicit',
    index_element_type: Type | None = 'i64',
    axis: int | None = 0,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """out[n, c, p] = max over k of data[n, c, p * strides + k * dilations - pads_begin], and the index of that element.

    The index counts row by row over the dimensions of data from ``axis`` on; the first of equal elements wins.

    Create MaxPool of opset8.
    """

def multiclass_nms(
    boxes: Tensor,
    scores: Tensor,
    sort_result_type: str | None = 'none',
    sort_result_across_batch: bool | None = False,
    output_type: Type | None = 'i64',
    iou_threshold: float | None = 0.0,
    score_threshold: float | None = 0.0,
    nms_top_k: int | None = -1,
    keep_top_k: int | None = -1,
    background_class: int | None = -1,
    nms_eta: float | None = 1.0,
    normalized: bool | None = True,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The best boxes of each image that do not overlap better boxes of their class. See ImageNmsBase.

    Candidates have a score of at least score_threshold. A candidate is selected unless a selected box overlaps it
    (intersection over union) by more than a threshold. The threshold starts at ``iou_threshold``; while it exceeds 0.5,
    each selected box multiplies it by ``nms_eta`` for itself and those that follow.

    Create MulticlassNms of opset8.
    """

def nv12_to_bgr(
    arg: Tensor,
    arg_uv: Tensor | None = None,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """An NV12 image, in one tensor or two, as BGR. See Nv12ToRgbBase and YuvToRgbBase.

    Create NV12toBGR of opset8.
    """

def nv12_to_rgb(
    arg: Tensor,
    arg_uv: Tensor | None = None,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """An NV12 image, in one tensor or two, as RGB. See Nv12ToRgbBase and YuvToRgbBase.

    Create NV12toRGB of opset8.
    """

def prior_box(
    layer_shape: Tensor,
    image_shape: Tensor,
    attrs: dict[str, Any],
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """PriorBox-1; without ``min_max_aspect_ratios_order`` the box between min and max comes last.

    Create PriorBox of opset8.
    """

def random_uniform(
    output_shape: Tensor,
    min_val: Tensor,
    max_val: Tensor,
    output_type: Type,
    global_seed: int | None = 0,
    op_seed: int | None = 0,
    alignment: str | None = 'tensorflow',
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Uniform random numbers in [minval, maxval) of shape ``shape``.

    ``alignment`` "tensorflow": Philox with key ``global_seed`` and counter ``op_seed``; its sequence continues from
    call to call of a compiled model. "pytorch": MT19937 seeded with ``global_seed``, restarted in each call. For real
    types, random bits become the fraction of a number in [0, 1), which is scaled; integers are taken modulo maxval -
    minval. f16 and bf16 are rounded after each step with "tensorflow", and once at the end with "pytorch".

    Create RandomUniform of opset8.
    """

def slice(
    data: Tensor,
    start: Tensor,
    stop: Tensor,
    step: Tensor,
    axes: Tensor | None = None,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """``data[start[i]:stop[i]:step[i]]``, as in Python, along each of ``axes`` or by default along the first ones.

    Positions beyond the ends are clamped. Unlike in Python, this holds for a start before the first element with a
    negative step too.

    Create Slice of opset8.
    """

def softmax(
    data: Tensor,
    axis: int,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """e^x / sum(e^x) along ``axis``, which may be negative; a slice with +inf, or of -inf only, is NaN.

    Create SoftMax of opset8.
    """
