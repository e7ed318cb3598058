"""The functions of opset16. Written by ``python -m ovir.generated_files``."""

from collections.abc import Sequence
from typing import Any

from ovir.building.bodies import IfLayer, IterationLayer, LoopLayer
from ovir.building.values import Info, Shape, Tensor, TensorNames, Type
from ovir.graph.layers import Layer
from ovir.opset1 import (
    abs as abs, absolute as absolute, acos as acos, add as add, asin as asin, atan as atan,
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
    not_equal as not_equal, parameter as parameter, power as power, prelu as prelu,
    prior_box_clustered as prior_box_clustered, psroi_pooling as psroi_pooling,
    reduce_logical_and as reduce_logical_and, reduce_logical_or as reduce_logical_or, reduce_max as reduce_max,
    reduce_mean as reduce_mean, reduce_min as reduce_min, reduce_prod as reduce_prod, reduce_sum as reduce_sum,
    region_yolo as region_yolo, relu as relu, reorg_yolo as reorg_yolo, reshape as reshape, result as result,
    reverse_sequence as reverse_sequence, roi_pooling as roi_pooling, select as select, selu as selu,
    sigmoid as sigmoid, sign as sign, sin as sin, sinh as sinh, space_to_depth as space_to_depth, split as split,
    sqrt as sqrt, squared_difference as squared_difference, strided_slice as strided_slice, subtract as subtract,
    tan as tan, tanh as tanh, tensor_iterator as tensor_iterator, tile as tile, transpose as transpose,
    unsqueeze as unsqueeze, variadic_split as variadic_split,
)
from ovir.opset2 import (
    batch_to_space as batch_to_space, space_to_batch as space_to_batch,
)
from ovir.opset3 import (
    broadcast as broadcast, bucketize as bucketize, cum_sum as cum_sum, cumsum as cumsum,
    embedding_bag_offsets_sum as embedding_bag_offsets_sum, embedding_bag_packed_sum as embedding_bag_packed_sum,
    embedding_segments_sum as embedding_segments_sum, extract_image_patches as extract_image_patches,
    gru_cell as gru_cell, non_zero as non_zero, rnn_cell as rnn_cell, scatter_update as scatter_update,
    shape_of as shape_of, shuffle_channels as shuffle_channels,
)
from ovir.opset4 import (
    acosh as acosh, asinh as asinh, atanh as atanh, ctc_loss as ctc_loss, hswish as hswish, lstm_cell as lstm_cell,
    mish as mish, proposal as proposal, range as range, reduce_l1 as reduce_l1, reduce_l2 as reduce_l2,
    softplus as softplus, swish as swish,
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
    matrix_nms as matrix_nms, nv12_to_bgr as nv12_to_bgr, nv12_to_rgb as nv12_to_rgb, prior_box as prior_box,
    random_uniform as random_uniform, slice as slice, softmax as softmax,
)
from ovir.opset9 import (
    eye as eye, generate_proposals as generate_proposals, grid_sample as grid_sample, irdft as irdft,
    multiclass_nms as multiclass_nms, non_max_suppression as non_max_suppression, rdft as rdft, roi_align as roi_align,
    softsign as softsign,
)
from ovir.opset10 import (
    is_finite as is_finite, is_inf as is_inf, is_nan as is_nan, unique as unique,
)
from ovir.opset11 import (
    interpolate as interpolate, topk as topk,
)
from ovir.opset12 import (
    group_normalization as group_normalization, pad as pad, scatter_elements_update as scatter_elements_update,
)
from ovir.opset13 import (
    bitwise_and as bitwise_and, bitwise_not as bitwise_not, bitwise_or as bitwise_or, bitwise_xor as bitwise_xor,
    fake_convert as fake_convert, multinomial as multinomial, nms_rotated as nms_rotated,
    scaled_dot_product_attention as scaled_dot_product_attention,
)
from ovir.opset14 import (
    convert_promote_types as convert_promote_types, inverse as inverse, max_pool as max_pool,
)
from ovir.opset15 import (
    bitwise_left_shift as bitwise_left_shift, bitwise_right_shift as bitwise_right_shift, col2im as col2im,
    embedding_bag_offsets as embedding_bag_offsets, embedding_bag_packed as embedding_bag_packed,
    roi_align_rotated as roi_align_rotated, scatter_nd_update as scatter_nd_update, search_sorted as search_sorted,
    slice_scatter as slice_scatter, squeeze as squeeze, stft as stft, string_tensor_pack as string_tensor_pack,
    string_tensor_unpack as string_tensor_unpack,
)

def avg_pool(
    data_batch: Tensor,
    strides: Sequence[int],
    pads_begin: Sequence[int],
    pads_end: Sequence[int],
    kernel_shape: Sequence[int],
    exclude_pad: bool,
    rounding_type: str | None = 'floor',
    auto_pad: str | None = 'explicit',
    dilations: Sequence[int] | None = (),
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """AvgPool-14 with ``dilations`` between the taps.

    Create AvgPool of opset16.
    """

def identity(
    data: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The input, of any type, unchanged.

    Create Identity of opset16.
    """

def istft(
    data: Tensor,
    window: Tensor,
    frame_size: Tensor,
    frame_step: Tensor,
    center: bool,
    normalized: bool,
    signal_length: Tensor | None = None,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The inverse of STFT: the signal whose frames have the given transforms. See ShortTimeFourierBase.

    The frames, each multiplied by the window, are added where they overlap and divided by the sum of the squared
    windows there; where this sum is zero, the signal is zero. data is [batch, frame_size // 2 + 1, frames, 2] or the
    same without batch, out is [batch, length] or [length]. The length is (frames - 1) * frame_step + frame_size; with
    ``center`` frame_size // 2 samples are removed at both ends. signal_length cuts the signal at its end, or extends it
    by the samples removed there and then by zeros. ``normalized`` data was divided by sqrt(frame_size).

    Create ISTFT of opset16.
    """

def one_hot(
    indices: Tensor,
    depth: Tensor,
    on_value: Tensor,
    off_value: Tensor,
    axis: int,
    negative_indices_mode: str | None = 'ignore_negative',
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """OneHot-1 with ``negative_indices_mode``: in mode "normalize" the indices -depth to -1 count from the end.

    Create OneHot of opset16.
    """

def segment_max(
    data: Tensor,
    segment_ids: Tensor,
    num_segments: Tensor | None = None,
    fill_mode: str | None = 'zero',
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """out[s] = the largest of data[j] over all j with segment_ids[j] = s, element by element.

    There are ``num_segments`` segments, or by default one more than the last id. An empty segment is 0, or with
    ``fill_mode`` lowest the lowest finite number of the type; the specification calls that attribute
    empty_segment_value. NaN counts only if a segment has nothing else. Ids must be sorted and not negative; ids from
    ``num_segments`` on, which the specification excludes, are ignored and reported.

    Create SegmentMax of opset16.
    """

def sparse_fill_empty_rows(
    values: Tensor,
    dense_shape: Tensor,
    indices: Tensor,
    default_value: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The entries of a sparse matrix, row by row, with ``default_value`` added at [row, 0] of each empty row.

    The matrix of shape ``dense_shape`` has ``values[i]`` at ``indices[i]`` = [row, column]. An index outside the matrix
    is an error; entries at the same position keep their order. The outputs are the indices, the values, and for each
    row whether it was empty. The specification calls the operation FillEmptyRows.

    Create SparseFillEmptyRows of opset16.
    """
