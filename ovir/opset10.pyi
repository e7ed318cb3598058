"""The functions of opset10. Written by ``python -m ovir.generated_files``."""

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
from ovir.opset9 import (
    eye as eye, generate_proposals as generate_proposals, grid_sample as grid_sample, irdft as irdft,
    multiclass_nms as multiclass_nms, non_max_suppression as non_max_suppression, rdft as rdft, roi_align as roi_align,
    softsign as softsign,
)

def is_finite(
    data: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Whether each number is neither infinite nor NaN.

    Create IsFinite of opset10.
    """

def is_inf(
    data: Tensor,
    attributes: dict[str, Any] | None = None,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Whether each number is infinite; ``detect_negative`` and ``detect_positive`` restrict the test to one sign.

    Create IsInf of opset10.
    """

def is_nan(
    data: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Whether each number is NaN.

    Create IsNaN of opset10.
    """

def unique(
    data: Tensor,
    axis: Tensor | None = None,
    sorted: bool | None = True,
    index_element_type: Type | None = 'i64',
    count_element_type: Type | None = 'i64',
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The distinct elements of data, or with ``axis`` its distinct slices along that axis.

    Further outputs are the index in data of the first occurrence of each distinct element (or slice), the index in the
    first output of each element of data, and the number of occurrences of each distinct element. If ``sorted``, the
    elements are in ascending order and slices in lexicographic order; otherwise both are in the order of their first
    occurrence. Each NaN is distinct, and comes after all numbers if the elements are sorted.

    Create Unique of opset10.
    """
