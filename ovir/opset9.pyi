"""The functions of opset9. Written by ``python -m ovir.generated_files``."""

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
    gru_cell as gru_cell, non_zero as non_zero, rnn_cell as rnn_cell,
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
    log_softmax as log_softmax, loop as loop, lstm_sequence as lstm_sequence, rnn_sequence as rnn_sequence,
    round as round,
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
from ovir.opset8 import (
    adaptive_avg_pool as adaptive_avg_pool, adaptive_max_pool as adaptive_max_pool,
    deformable_convolution as deformable_convolution, detection_output as detection_output, gather as gather,
    gather_nd as gather_nd, i420_to_bgr as i420_to_bgr, i420_to_rgb as i420_to_rgb, if_op as if_op,
    matrix_nms as matrix_nms, max_pool as max_pool, nv12_to_bgr as nv12_to_bgr, nv12_to_rgb as nv12_to_rgb,
    prior_box as prior_box, random_uniform as random_uniform, slice as slice, softmax as softmax,
)

def eye(
    num_rows: Tensor,
    num_columns: Tensor,
    diagonal_index: Tensor,
    output_type: Type,
    batch_shape: Tensor | None = None,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Matrices with ones at [i, i + ``diagonal_index``] and zeros elsewhere.

    The shape is ``batch_shape`` (none by default) followed by ``num_rows`` and ``num_columns``.

    Create Eye of opset9.
    """

def generate_proposals(
    im_info: Tensor,
    anchors: Tensor,
    deltas: Tensor,
    scores: Tensor,
    min_size: float,
    nms_threshold: float,
    pre_nms_count: int,
    post_nms_count: int,
    normalized: bool | None = True,
    nms_eta: float | None = 1.0,
    roi_num_type: Type | None = 'i64',
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The proposals of a two-stage detector for each image, from predictions for anchors. See GenerateProposalsBase.

    im_info [N, 3 or 4] is height, width and scale (or scales of height and width), by which min_size is multiplied.
    anchors are [H, W, A, 4], deltas [N, 4 * A, H, W], scores [N, A, H, W]. Unless ``normalized``, the last pixel
    belongs to a box. Short boxes are dropped after the highest scores are selected. ``nms_eta``, which would lower the
    threshold with each box, must be 1 as in OpenVINO. The outputs are the boxes [n, 4] of all images, their scores [n],
    and the number of boxes of each image, [N], of type ``roi_num_type`` (i32 or i64).

    Create GenerateProposals of opset9.
    """

def grid_sample(
    data: Tensor,
    grid: Tensor,
    attributes: dict[str, Any],
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """An image sampled at the positions of a grid, between its pixels and beyond its border.

    out[n, :, i, j] = data[n, :, y, x], where grid[n, i, j] = (x, y) is scaled from [-1, 1] to pixels. data is [N, C, H,
    W], grid [N, rows, columns, 2], out [N, C, rows, columns].

    With ``align_corners``, -1 and 1 are the centers of the first and last pixel, otherwise their outer edges; all
    implementations agree on this, while the specification's text says the opposite. ``mode`` nearest takes the nearest
    pixel, ties to even; bilinear weighs 4 pixels; bicubic weighs 16 with Keys' kernel of -0.75. ``padding_mode``
    chooses what lies beyond the border: zeros, the border pixel, or the reflected image (at the centers of the
    outermost pixels with align_corners, else at their edges).

    Weighted 8-bit integers are rounded, ties to even; wider integers are truncated. Both saturate.

    Create GridSample of opset9.
    """

def irdft(
    data: Tensor,
    axes: Tensor,
    signal_size: Tensor | None = None,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The inverse of RDFT: complex numbers [..., 2] to real ones [...].

    Along the last of the axes data holds the first length // 2 + 1 numbers; extra ones are cut off, and missing ones
    are zero. The length is 2 * (dimension - 1) unless signal_size gives it. For axes and signal_size see FourierBase.

    Create IRDFT of opset9.
    """

def multiclass_nms(
    boxes: Tensor,
    scores: Tensor,
    roisnum: Tensor | None = None,
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
    """MulticlassNms-8, or with ``roisnum`` [images] boxes that belong to one class each.

    boxes are then [classes, boxes, 4] and scores [classes, boxes]: first the boxes of the first image, then of the
    second, and so on, as many as roisnum says. The index of a box in the output is its index times classes, plus the
    class.

    Create MulticlassNms of opset9.
    """

def non_max_suppression(
    boxes: Tensor,
    scores: Tensor,
    max_output_boxes_per_class: Tensor | None = None,
    iou_threshold: Tensor | None = None,
    score_threshold: Tensor | None = None,
    soft_nms_sigma: Tensor | None = None,
    box_encoding: str | None = 'corner',
    sort_result_descending: bool | None = True,
    output_type: Type | None = 'i64',
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The boxes with the highest scores among overlapping ones, class by class, or Soft-NMS. See SuppressionBase.

    The outputs are one triplet for each selected box; triplets of batch, class and score; and their number, [1]. With
    soft_nms_sigma above 0 (Soft-NMS), a box that overlaps a selected one is not removed; its score is multiplied by
    exp(-iou**2 / (2 * sigma)).

    Create NonMaxSuppression of opset9.
    """

def rdft(
    data: Tensor,
    axes: Tensor,
    signal_size: Tensor | None = None,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """DFT of real data [...] to complex numbers [..., 2]; the last of the axes keeps length // 2 + 1 numbers.

    For axes and signal_size see FourierBase. An axis of length 0 stays 0, as in OpenVINO.

    Create RDFT of opset9.
    """

def roi_align(
    data: Tensor,
    rois: Tensor,
    batch_indices: Tensor,
    pooled_h: int,
    pooled_w: int,
    sampling_ratio: int,
    spatial_scale: float,
    mode: str,
    aligned_mode: str | None = 'asymmetric',
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """ROIAlign-3 with ``aligned_mode``, which chooses how coordinates are converted to pixels.

    asymmetric is x * spatial_scale, half_pixel_for_nn x * spatial_scale - 0.5, half_pixel (x + 0.5) * spatial_scale -
    0.5. With the latter two a side may have any length.

    Create ROIAlign of opset9.
    """

def softsign(
    node: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """x / (1 + |x|).

    Create SoftSign of opset9.
    """
