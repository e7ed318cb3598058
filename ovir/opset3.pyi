"""The functions of opset3. Written by ``python -m ovir.generated_files``."""

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
    hard_sigmoid as hard_sigmoid, interpolate as interpolate, less as less, less_equal as less_equal, log as log,
    logical_and as logical_and, logical_not as logical_not, logical_or as logical_or, logical_xor as logical_xor,
    lrn as lrn, lstm_cell as lstm_cell, matmul as matmul, max_pool as max_pool, maximum as maximum, minimum as minimum,
    mod as mod, multiply as multiply, mvn as mvn, negative as negative, normalize_l2 as normalize_l2,
    not_equal as not_equal, one_hot as one_hot, pad as pad, parameter as parameter, power as power, prelu as prelu,
    prior_box as prior_box, prior_box_clustered as prior_box_clustered, proposal as proposal,
    psroi_pooling as psroi_pooling, range as range, reduce_logical_and as reduce_logical_and,
    reduce_logical_or as reduce_logical_or, reduce_max as reduce_max, reduce_mean as reduce_mean,
    reduce_min as reduce_min, reduce_prod as reduce_prod, reduce_sum as reduce_sum, region_yolo as region_yolo,
    relu as relu, reorg_yolo as reorg_yolo, reshape as reshape, result as result, reverse_sequence as reverse_sequence,
    roi_pooling as roi_pooling, select as select, selu as selu, sigmoid as sigmoid, sign as sign, sin as sin,
    sinh as sinh, softmax as softmax, space_to_depth as space_to_depth, split as split, sqrt as sqrt,
    squared_difference as squared_difference, squeeze as squeeze, strided_slice as strided_slice, subtract as subtract,
    tan as tan, tanh as tanh, tensor_iterator as tensor_iterator, tile as tile, transpose as transpose,
    unsqueeze as unsqueeze, variadic_split as variadic_split,
)
from ovir.opset2 import (
    batch_to_space as batch_to_space, gelu as gelu, space_to_batch as space_to_batch,
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

    Create Assign of opset3.
    """

def broadcast(
    data: Tensor,
    target_shape: Tensor,
    axes_mapping: Tensor | None = None,
    broadcast_spec: str | None = 'numpy',
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """``data`` with its dimensions of size 1 repeated until it has the shape ``target_shape``.

    mode "numpy": the trailing dimensions are aligned. "bidirectional": likewise, and where the target is 1 the
    dimension of ``data`` is kept. "explicit" (also spelled "none"): dimension i of ``data`` becomes dimension
    ``axes_mapping[i]`` of the result, in ascending order. "pdpd", which the specification lacks: as bidirectional, but
    the dimensions of ``data`` start at ``start_axis``.

    Create Broadcast of opset3.
    """

def bucketize(
    data: Tensor,
    buckets: Tensor,
    output_type: Type | None = 'i64',
    with_right_bound: bool | None = True,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The number of the bucket, between ascending boundaries, that each element of data lies in.

    Bucket i ends at buckets[i]; the boundary belongs to it if ``with_right_bound``, otherwise to the next bucket.

    Create Bucketize of opset3.
    """

def cum_sum(
    arg: Tensor,
    axis: Tensor,
    exclusive: bool | None = False,
    reverse: bool | None = False,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """out[i] is the sum of the elements up to i along ``axis``; with ``exclusive`` the sum of those before i.

    With ``reverse`` the sums start at the end. Integers wrap around.

    Create CumSum of opset3.
    """

def cumsum(
    arg: Tensor,
    axis: Tensor,
    exclusive: bool | None = False,
    reverse: bool | None = False,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """out[i] is the sum of the elements up to i along ``axis``; with ``exclusive`` the sum of those before i.

    With ``reverse`` the sums start at the end. Integers wrap around.

    Create CumSum of opset3.
    """

def embedding_bag_offsets_sum(
    emb_table: Tensor,
    indices: Tensor,
    offsets: Tensor,
    default_index: Tensor | None = None,
    per_sample_weights: Tensor | None = None,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """out[i] = the sum of emb_table[indices[j]] for j from offsets[i] to offsets[i + 1] or the end.

    Each row is multiplied by ``per_sample_weights[j]``. An empty bag is the row ``default_index``, or 0 if that is -1
    or missing. Offsets must not decrease; indices before the first offset belong to no bag.

    Create EmbeddingBagOffsetsSum of opset3.
    """

def embedding_bag_packed_sum(
    emb_table: Tensor,
    indices: Tensor,
    per_sample_weights: Tensor | None = None,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """out[i] = the sum of emb_table[indices[i, j]] * per_sample_weights[i, j] over j.

    Create EmbeddingBagPackedSum of opset3.
    """

def embedding_segments_sum(
    emb_table: Tensor,
    indices: Tensor,
    segment_ids: Tensor,
    num_segments: Tensor | None = None,
    default_index: Tensor | None = None,
    per_sample_weights: Tensor | None = None,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """out[s] = the sum of emb_table[indices[j]] * per_sample_weights[j] over all j with segment_ids[j] = s.

    There are ``num_segments`` segments; an empty one is the row ``default_index``, or 0 without it. The specification
    requires sorted ids below ``num_segments``: other ids are reported, and ids outside the range are ignored.

    Create EmbeddingSegmentsSum of opset3.
    """

def extract_image_patches(
    image: Tensor,
    sizes: Sequence[int],
    strides: Sequence[int],
    rates: Sequence[int],
    auto_pad: str,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """out[n, (k * C + c), p] = data[n, c, p * strides + k * rates - pads], for the positions k of a patch row by row.

    data is [N, C, rows, cols], out [N, sizes[0] * sizes[1] * C, windows...]; data is zero outside its bounds. auto_pad
    same gives ceil(size / stride) windows, valid only those inside of data. Any type is allowed.

    Create ExtractImagePatches of opset3.
    """

def gru_cell(
    X: Tensor,
    initial_hidden_state: Tensor,
    W: Tensor,
    R: Tensor,
    B: Tensor,
    hidden_size: int,
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
    """One step of a network of gated recurrent units. See GruBase and RecurrentBase.

    X is [batch, input], the state [batch, hidden], W [3*hidden, input], R [3*hidden, hidden], B [3*hidden], or
    [4*hidden] with ``linear_before_reset``. The gates are in the order z, r, h, followed by B_r. A missing B counts as
    0; OpenVINO refuses that, although the specification allows it.

    Create GRUCell of opset3.
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
    """NonMaxSuppression-1 with a choice of the output's type.

    Create NonMaxSuppression of opset3.
    """

def non_zero(
    data: Tensor,
    output_type: Type | None = 'i64',
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The indices of the nonzero elements: out[i, j] is the index in dimension i of the j-th, in row-major order.

    A scalar counts as one dimension of one element.

    Create NonZero of opset3.
    """

def read_value(
    init_value: Tensor,
    variable_id: str,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The value last assigned to the variable; before that, and after a reset, `init_value`.

    The output has the type and shape of `init_value`.

    Create ReadValue of opset3.
    """

def rnn_cell(
    X: Tensor,
    initial_hidden_state: Tensor,
    W: Tensor,
    R: Tensor,
    B: Tensor,
    hidden_size: int,
    activations: Sequence[str],
    activations_alpha: Sequence[float],
    activations_beta: Sequence[float],
    clip: float | None = 0.0,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """One step of a recurrent network: H = f(X W^T + H R^T + B). See RecurrentBase.

    X is [batch, input], the state [batch, hidden], W [hidden, input], R [hidden, hidden], B [hidden].

    Create RNNCell of opset1.
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
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Regions of feature maps, resampled to one size. See RoiAlignBase.

    rois are [x1, y1, x2, y2]. A side shorter than a pixel counts as one pixel. In ``mode`` max a bin is the largest of
    its samples and at least 0, as in OpenVINO.

    Create ROIAlign of opset3.
    """

def scatter_elements_update(
    data: Tensor,
    indices: Tensor,
    updates: Tensor,
    axis: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """out[indices[i, j, k], j, k] = updates[i, j, k] for axis 0, and likewise for other axes; the rest is data.

    indices and updates have one shape, not larger than data's except along ``axis``. The specification forbids
    negative indices; devices count them from the end.

    Create ScatterElementsUpdate of opset3.
    """

def scatter_update(
    data: Tensor,
    indices: Tensor,
    updates: Tensor,
    axis: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """out[o, indices[i], k] = updates[o, i, k], with o over the dimensions before ``axis``; the rest is data.

    updates has the shape of data with dimension ``axis`` replaced by the dimensions of indices. A negative index is an
    error.

    Create ScatterUpdate of opset3.
    """

def shape_of(
    data: Tensor,
    output_type: Type | None = 'i64',
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The dimensions of a tensor as a 1-D tensor of ``output_type``; empty for a scalar.

    Create ShapeOf of opset3.
    """

def shuffle_channels(
    data: Tensor,
    axis: int,
    group: int,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """``axis`` of data split into [group, size / group], transposed, and merged again.

    Create ShuffleChannels of opset1.
    """

def topk(
    data: Tensor,
    k: Tensor,
    axis: int,
    mode: str,
    sort: str,
    index_element_type: Type | None = 'i32',
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The ``k`` largest (``mode`` max) or smallest (min) elements along ``axis``, and their indices.

    ``sort`` value orders the results by value, best first; index orders them by index; none leaves the order open, and
    here it is by value. If elements are equal, lower indices are taken and come first. NaN counts as less than
    any number.

    Create TopK of opset3.
    """
