"""The functions of opset2. Written by ``python -m ovir.generated_files``."""

from collections.abc import Sequence
from typing import Any

from ovir.building.bodies import IfLayer, IterationLayer, LoopLayer
from ovir.building.values import Info, Shape, Tensor, TensorNames, Type
from ovir.graph.layers import Layer
from ovir.opset1 import (
    abs as abs, absolute as absolute, acos as acos, add as add, asin as asin, atan as atan, avg_pool as avg_pool,
    batch_norm_inference as batch_norm_inference, binary_convolution as binary_convolution, broadcast as broadcast,
    ceil as ceil, ceiling as ceiling, clamp as clamp, concat as concat, constant as constant, convert as convert,
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
    mod as mod, multiply as multiply, mvn as mvn, negative as negative, non_max_suppression as non_max_suppression,
    normalize_l2 as normalize_l2, not_equal as not_equal, one_hot as one_hot, pad as pad, parameter as parameter,
    power as power, prelu as prelu, prior_box as prior_box, prior_box_clustered as prior_box_clustered,
    proposal as proposal, psroi_pooling as psroi_pooling, range as range, reduce_logical_and as reduce_logical_and,
    reduce_logical_or as reduce_logical_or, reduce_max as reduce_max, reduce_mean as reduce_mean,
    reduce_min as reduce_min, reduce_prod as reduce_prod, reduce_sum as reduce_sum, region_yolo as region_yolo,
    relu as relu, reorg_yolo as reorg_yolo, reshape as reshape, result as result, reverse_sequence as reverse_sequence,
    roi_pooling as roi_pooling, select as select, selu as selu, shape_of as shape_of, sigmoid as sigmoid, sign as sign,
    sin as sin, sinh as sinh, softmax as softmax, space_to_depth as space_to_depth, split as split, sqrt as sqrt,
    squared_difference as squared_difference, squeeze as squeeze, strided_slice as strided_slice, subtract as subtract,
    tan as tan, tanh as tanh, tensor_iterator as tensor_iterator, tile as tile, topk as topk, transpose as transpose,
    unsqueeze as unsqueeze, variadic_split as variadic_split,
)

def batch_to_space(
    data: Tensor,
    block_shape: Tensor,
    crops_begin: Tensor,
    crops_end: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """data [batch, D1, D2, ...] with blocks of its batch moved into space: [batch / prod(B), D1 * B1, D2 * B2, ...].

    B is block_shape; the result is then cropped by crops_begin and crops_end.

    Create BatchToSpace of opset2.
    """

def gelu(
    node: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """x / 2 * (1 + erf(x / sqrt(2))).

    Create Gelu of opset2.
    """

def space_to_batch(
    data: Tensor,
    block_shape: Tensor,
    pads_begin: Tensor,
    pads_end: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """data [batch, D1, D2, ...], padded with zeros, with blocks of its space moved into the batch.

    The result is [batch * prod(B), (D1 + P1) / B1, ...], where B is block_shape and P is pads_begin + pads_end.
    BatchToSpace is the inverse.

    Create SpaceToBatch of opset2.
    """
