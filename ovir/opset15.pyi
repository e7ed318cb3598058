"""The functions of opset15. Written by ``python -m ovir.generated_files``."""

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
    not_equal as not_equal, one_hot as one_hot, parameter as parameter, power as power, prelu as prelu,
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
    avg_pool as avg_pool, convert_promote_types as convert_promote_types, inverse as inverse, max_pool as max_pool,
)

def bitwise_left_shift(
    arg0: Tensor,
    arg1: Tensor,
    auto_broadcast: str | None = 'numpy',
    name: str | None = None,
    *,
    axis: int | None = -1,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """a * 2^b; bits beyond the type's width are lost.

    Create BitwiseLeftShift of opset15.
    """

def bitwise_right_shift(
    arg0: Tensor,
    arg1: Tensor,
    auto_broadcast: str | None = 'numpy',
    name: str | None = None,
    *,
    axis: int | None = -1,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """a / 2^b, rounded down.

    Create BitwiseRightShift of opset15.
    """

def col2im(
    data: Tensor,
    output_size: Tensor,
    kernel_size: Tensor,
    strides: Sequence[int] | None = (1, 1),
    dilations: Sequence[int] | None = (1, 1),
    pads_begin: Sequence[int] | None = (0, 0),
    pads_end: Sequence[int] | None = (0, 0),
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """out[n, c, p * strides + k * dilations - pads_begin] += data[n, (c * K + k), p], starting from zero; k has K
    positions.

    data is [N, C * K, L] or [C * K, L]; L counts, row by row, the windows of ``kernel_size`` in a padded image of
    ``output_size``. out is [N, C, *output_size]. Any type is allowed; f16 and bf16 are summed in f32.

    Create Col2Im of opset15.
    """

def embedding_bag_offsets(
    emb_table: Tensor,
    indices: Tensor,
    offsets: Tensor,
    default_index: Tensor | None = None,
    per_sample_weights: Tensor | None = None,
    reduction: str | None = 'sum',
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """out[i] = the sum or the mean of emb_table[indices[j]] for j from offsets[i] to offsets[i + 1] or the end.

    Otherwise as EmbeddingBagOffsetsSum-3; only the rows of a sum can be weighted.

    Create EmbeddingBagOffsets of opset15.
    """

def embedding_bag_packed(
    emb_table: Tensor,
    indices: Tensor,
    per_sample_weights: Tensor | None = None,
    reduction: str | None = 'sum',
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """out[i] = the sum or the mean of emb_table[indices[i, j]] over j.

    The rows of a sum can be weighted by ``per_sample_weights[i, j]``.

    Create EmbeddingBagPacked of opset15.
    """

def roi_align_rotated(
    data: Tensor,
    rois: Tensor,
    batch_indices: Tensor,
    pooled_h: int,
    pooled_w: int,
    sampling_ratio: int,
    spatial_scale: float,
    clockwise_mode: bool,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Rotated regions of feature maps, resampled to one size. See RoiAlignBase.

    rois are [center x, center y, width, height, angle in radians], turned about the center, counterclockwise unless
    ``clockwise_mode``. Center and size are scaled by ``spatial_scale``, then the center is moved by -0.5.

    Create ROIAlignRotated of opset15.
    """

def scatter_nd_update(
    data: Tensor,
    indices: Tensor,
    updates: Tensor,
    reduction: str | None = 'none',
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """ScatterNDUpdate-4 with a reduction of the element of data and all its updates.

    For booleans sum and max are "or", sub is "exclusive or", prod and min are "and".

    Create ScatterNDUpdate of opset15.
    """

def search_sorted(
    sorted_sequence: Tensor,
    values: Tensor,
    right_mode: bool | None = False,
    name: str | None = None,
    *,
    output_type: Type | None = 'i64',
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The position in a sorted sequence at which inserting each of values keeps the order.

    Among equal elements it is the first position, or with ``right_mode`` the one after the last. sorted is 1-D, or has
    the dimensions of values except the last; then each row of values is searched in its own row.

    Create SearchSorted of opset15.
    """

def slice_scatter(
    data: Tensor,
    updates: Tensor,
    start: Tensor,
    stop: Tensor,
    step: Tensor,
    axes: Tensor | None = None,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """A copy of ``data`` in which the elements that Slice would return are replaced by ``updates``.

    Create SliceScatter of opset15.
    """

def squeeze(
    data: Tensor,
    axes: Tensor | None = None,
    allow_axis_skip: bool | None = False,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Squeeze-1 with ``allow_axis_skip``: inference then leaves the rank open if one of ``axes`` may or may not be 1.

    Create Squeeze of opset15.
    """

def stft(
    data: Tensor,
    window: Tensor,
    frame_size: Tensor,
    frame_step: Tensor,
    transpose_frames: bool,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The Fourier transforms of all short frames that fit in a signal. See ShortTimeFourierBase.

    out[b, f] = RDFT of signal[b, f * frame_step : f * frame_step + frame_size] * window. signal is [batch, length] or
    [length], out is [batch, frames, frame_size // 2 + 1, 2] or the same without batch; ``transpose_frames`` swaps the
    frames with the numbers of the transform.

    Create STFT of opset15.
    """

def string_tensor_pack(
    begins: Tensor,
    ends: Tensor,
    symbols: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Strings made of the UTF-8 bytes [begins[i], ends[i]) of ``symbols``, in the shape of ``begins``.

    They may overlap, and bytes may belong to none. U+FFFD stands for bytes that are not UTF-8.

    Create StringTensorPack of opset15.
    """

def string_tensor_unpack(
    data: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The UTF-8 bytes of all strings of ``data``, joined in row-major order; string i is bytes [begins[i], ends[i]).

    The outputs are begins and ends (i32, in the shape of ``data``) and the bytes (u8).

    Create StringTensorUnpack of opset15.
    """
