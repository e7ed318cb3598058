"""The functions of opset5. Written by ``python -m ovir.generated_files``."""

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
    max_pool as max_pool, maximum as maximum, minimum as minimum, mod as mod, multiply as multiply, mvn as mvn,
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
    assign as assign, broadcast as broadcast, bucketize as bucketize, cum_sum as cum_sum, cumsum as cumsum,
    embedding_bag_offsets_sum as embedding_bag_offsets_sum, embedding_bag_packed_sum as embedding_bag_packed_sum,
    embedding_segments_sum as embedding_segments_sum, extract_image_patches as extract_image_patches,
    gru_cell as gru_cell, non_zero as non_zero, read_value as read_value, rnn_cell as rnn_cell, roi_align as roi_align,
    scatter_elements_update as scatter_elements_update, scatter_update as scatter_update, shape_of as shape_of,
    shuffle_channels as shuffle_channels, topk as topk,
)
from ovir.opset4 import (
    acosh as acosh, asinh as asinh, atanh as atanh, ctc_loss as ctc_loss, hswish as hswish, interpolate as interpolate,
    lstm_cell as lstm_cell, mish as mish, proposal as proposal, range as range, reduce_l1 as reduce_l1,
    reduce_l2 as reduce_l2, scatter_nd_update as scatter_nd_update, softplus as softplus, swish as swish,
)

def batch_norm_inference(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    mean: Tensor,
    variance: Tensor,
    epsilon: float,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """gamma * (x - mean) / sqrt(variance + epsilon) + beta, with one value of each per channel, the second dimension.

    Create BatchNormInference of opset5.
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
    """GatherND-8 with all batch dimensions of the output merged into one, and without negative indices.

    Create GatherND of opset5.
    """

def gru_sequence(
    X: Tensor,
    initial_hidden_state: Tensor,
    sequence_lengths: Tensor,
    W: Tensor,
    R: Tensor,
    B: Tensor,
    hidden_size: int,
    direction: str,
    activations: Sequence[str] | None = ('sigmoid', 'tanh'),
    activations_alpha: Sequence[float] | None = (),
    activations_beta: Sequence[float] | None = (),
    clip: float | None = 0.0,
    linear_before_reset: bool | None = False,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The steps of GRUCell over a sequence. See SequenceBase, GruBase and RecurrentBase.

    Create GRUSequence of opset5.
    """

def hsigmoid(
    data: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """min(max(x + 3, 0), 6) / 6.

    Create HSigmoid of opset5.
    """

def log_softmax(
    data: Tensor,
    axis: int,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """t - ln(sum(e^t)) with t = x - max(x), along ``axis``.

    Create LogSoftmax of opset5.
    """

def loop(
    trip_count: Tensor,
    execution_condition: Tensor,
    name: str | None = None,
    *,
    rt_info: Info | None = None,
) -> LoopLayer:
    """The results of a body that runs at most `trip_count` times (negative: no limit), as long as a condition is true.

    `condition` decides on the first iteration; the body's result marked ``execution_condition`` decides on each further
    one. A parameter marked ``current_iteration`` holds the number of the iteration, from 0.

    Create Loop of opset5.
    """

def lstm_sequence(
    X: Tensor,
    initial_hidden_state: Tensor,
    initial_cell_state: Tensor,
    sequence_lengths: Tensor,
    W: Tensor,
    R: Tensor,
    B: Tensor,
    hidden_size: int,
    direction: str,
    activations: Sequence[str] | None = ('sigmoid', 'tanh', 'tanh'),
    activations_alpha: Sequence[float] | None = (),
    activations_beta: Sequence[float] | None = (),
    clip: float | None = 0.0,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The steps of LSTMCell over a sequence. See SequenceBase, LstmBase and RecurrentBase.

    The last output is the cell state.

    Create LSTMSequence of opset5.
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
    """NonMaxSuppression-9, except that Soft-NMS also removes boxes that overlap by more than iou_threshold.

    Create NonMaxSuppression of opset5.
    """

def rnn_sequence(
    X: Tensor,
    initial_hidden_state: Tensor,
    sequence_lengths: Tensor,
    W: Tensor,
    R: Tensor,
    B: Tensor,
    hidden_size: int,
    direction: str,
    activations: Sequence[str] | None = ('tanh',),
    activations_alpha: Sequence[float] | None = (),
    activations_beta: Sequence[float] | None = (),
    clip: float | None = 0.0,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The steps of RNNCell over a sequence. See SequenceBase and RecurrentBase.

    Create RNNSequence of opset5.
    """

def round(
    data: Tensor,
    mode: str | None = 'half_to_even',
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The nearest integer; a half is rounded to even, or away from zero in mode half_away_from_zero.

    Create Round of opset5.
    """
