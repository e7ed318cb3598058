"""The functions of opset4. Written by ``python -m ovir.generated_files``."""

from collections.abc import Sequence
from typing import Any

from ovir.building.bodies import IfLayer, IterationLayer, LoopLayer
from ovir.building.values import Info, Shape, Tensor, TensorNames, Type
from ovir.graph.layers import Layer
from ovir.opset1 import (
    abs as abs, absolute as absolute, acos as acos, add as add, asin as asin, atan as atan, avg_pool as avg_pool,
    batch_norm_inference as batch_norm_inference, binary_convolution as binary_convolution, ceil as ceil,
    ceiling as ceiling, clamp as clamp, concat as concat, constant as constant, convert as convert,
    convert_like as convert_like, convolution as convolution, convolution_backprop_data as convolution_backprop_data,
    cos as cos, cosh as cosh, ctc_greedy_decoder as ctc_greedy_decoder,
    deformable_convolution as deformable_convolution, deformable_psroi_pooling as deformable_psroi_pooling,
    depth_to_space as depth_to_space, detection_output as detection_output, divide as divide, elu as elu,
    equal as equal, erf as erf, exp as exp, fake_quantize as fake_quantize, floor as floor, floor_mod as floor_mod,
    gather as gather, gather_tree as gather_tree, greater as greater, greater_equal as greater_equal, grn as grn,
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

def acosh(
    node: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The inverse hyperbolic cosine, NaN below 1.

    Create Acosh of opset4.
    """

def asinh(
    node: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The inverse hyperbolic sine of each element.

    Create Asinh of opset4.
    """

def atanh(
    node: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The inverse hyperbolic tangent, NaN outside of [-1, 1]; nonzero integers give the limits of their type.

    Create Atanh of opset4.
    """

def ctc_loss(
    logits: Tensor,
    logit_length: Tensor,
    labels: Tensor,
    label_length: Tensor,
    blank_index: Tensor | None = None,
    preprocess_collapse_repeated: bool | None = False,
    ctc_merge_repeated: bool | None = True,
    unique: bool | None = False,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """-ln of the probability that a sequence of logits, after SoftMax, decodes to a sequence of labels.

    The probability is the sum over all paths (one class per step) that decode to the labels. A path is decoded by
    merging repetitions if ``ctc_merge_repeated`` and removing blanks. First the labels are reduced: to their first
    occurrences if ``unique``, else, with ``preprocess_collapse_repeated``, to the first of each run. Only the logits
    [batch, time, classes] and labels [batch, time] within the given lengths count. The blank is ``blank_index``, by
    default the last class. The loss is +inf if no path decodes to the labels.

    Create CTCLoss of opset4.
    """

def hswish(
    data: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """x * min(max(x + 3, 0), 6) / 6.

    Create HSwish of opset4.
    """

def interpolate(
    image: Tensor,
    output_shape: Tensor,
    scales: Tensor,
    mode: str,
    shape_calculation_mode: str,
    pads_begin: Sequence[int] | None = (),
    pads_end: Sequence[int] | None = (),
    coordinate_transformation_mode: str | None = 'half_pixel',
    nearest_mode: str | None = 'round_prefer_floor',
    antialias: bool | None = False,
    cube_coeff: float | None = -0.75,
    axes: Tensor | None = None,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The data resized along ``axes`` (by default all) to ``sizes``, or to floor(scale * padded size).

    The data is first padded with zeros. ``coordinate_transformation_mode`` maps an output element to a position in the
    input; an axis that keeps its length keeps its elements. ``nearest`` takes the element at the position rounded by
    ``nearest_mode``. ``linear`` weighs by a triangle around the position; with ``antialias``, if any axis shrinks, the
    triangle is as wide as the pixels that are merged. ``linear_onnx`` combines the two neighbors, ``cubic`` four of
    them with Keys' kernel of parameter ``cube_coeff``. Integers are rounded by ``linear`` and truncated by
    ``linear_onnx`` and ``cubic``.

    Create Interpolate of opset4.
    """

def lstm_cell(
    X: Tensor,
    initial_hidden_state: Tensor,
    initial_cell_state: Tensor,
    W: Tensor,
    R: Tensor,
    B: Tensor,
    hidden_size: int,
    activations: Sequence[str] | None = ('sigmoid', 'tanh', 'tanh'),
    activations_alpha: Sequence[float] | None = (),
    activations_beta: Sequence[float] | None = (),
    clip: float | None = 0.0,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """One step of a network of long short-term memory. See LstmBase and RecurrentBase.

    X is [batch, input], both states [batch, hidden], W [4*hidden, input], R [4*hidden, hidden], B [4*hidden]; the gates
    are in the order f, i, c, o. A missing B counts as 0. The specification of this version is the page of LSTMCell-1.

    Create LSTMCell of opset4.
    """

def mish(
    data: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """x * tanh(ln(1 + e^x)).

    Create Mish of opset4.
    """

def non_max_suppression(
    boxes: Tensor,
    scores: Tensor,
    max_output_boxes_per_class: Tensor | None = None,
    iou_threshold: Tensor | None = None,
    score_threshold: Tensor | None = None,
    box_encoding: str | None = 'corner',
    sort_result_descending: bool | None = True,
    output_type: Type | None = 'i64',
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """NonMaxSuppression-3 with min(boxes, max_output_boxes_per_class) triplets for each class of each batch element.

    Create NonMaxSuppression of opset4.
    """

def proposal(
    class_probs: Tensor,
    bbox_deltas: Tensor,
    image_shape: Tensor,
    attrs: dict[str, Any],
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Proposal-1 with a second output: the score of each region, [rows], 0 for missing regions.

    Create Proposal of opset4.
    """

def range(
    start: Tensor,
    stop: Tensor,
    step: Tensor,
    output_type: Type,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The numbers start, start + step, ... up to but excluding stop, of type ``output_type``.

    There are ceil((stop - start) / step) numbers. The three inputs are scalars of any numeric type; for an integer
    result they are rounded towards zero first. A step of 0 is an error. Real numbers are computed in f64 and rounded
    once.

    Create Range of opset4.
    """

def reduce_l1(
    node: Tensor,
    reduction_axes: Tensor,
    keep_dims: bool | None = False,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The sum of the absolute values along ``axes``.

    Create ReduceL1 of opset4.
    """

def reduce_l2(
    node: Tensor,
    reduction_axes: Tensor,
    keep_dims: bool | None = False,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The square root of the sum of squares along ``axes``, truncated for integers.

    Create ReduceL2 of opset4.
    """

def scatter_nd_update(
    data: Tensor,
    indices: Tensor,
    updates: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """out[indices[i]] = updates[i], where indices[i] is a tuple of ``k`` indices, the last dimension of indices; the
    rest is data.

    If k is less than the rank of data, tuples select slices: updates has shape indices.shape[:-1] + data.shape[k:].
    Negative indices count from the end. The specification describes version 3, which no opset contains.

    Create ScatterNDUpdate of opset4.
    """

def softplus(
    data: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """ln(1 + e^x); equal to x for large x.

    Create SoftPlus of opset4.
    """

def swish(
    data: Tensor,
    beta: Tensor | None = None,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """x / (1 + e^(-beta x)); beta is a scalar of the data's type, 1 if it is missing.

    Create Swish of opset4.
    """
