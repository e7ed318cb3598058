"""The functions of opset1. Written by ``python -m ovir.generated_files``."""

from collections.abc import Sequence
from typing import Any

from ovir.building.bodies import IfLayer, IterationLayer, LoopLayer
from ovir.building.values import Info, Shape, Tensor, TensorNames, Type
from ovir.graph.layers import Layer

def abs(
    node: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The magnitude of each element; 127 for the smallest i8.

    Create Abs of opset1.
    """

def absolute(
    node: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The magnitude of each element; 127 for the smallest i8.

    Create Abs of opset1.
    """

def acos(
    node: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The inverse cosine, from 0 to pi; NaN outside of [-1, 1].

    Create Acos of opset1.
    """

def add(
    left_node: Tensor,
    right_node: Tensor,
    auto_broadcast: str | None = 'numpy',
    name: str | None = None,
    *,
    axis: int | None = -1,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The sum a + b, element by element.

    Create Add of opset1.
    """

def asin(
    node: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The inverse sine, from -pi/2 to pi/2; NaN outside of [-1, 1].

    Create Asin of opset1.
    """

def atan(
    node: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The inverse tangent, from -pi/2 to pi/2.

    Create Atan of opset1.
    """

def avg_pool(
    data_batch: Tensor,
    strides: Sequence[int],
    pads_begin: Sequence[int],
    pads_end: Sequence[int],
    kernel_shape: Sequence[int],
    exclude_pad: bool,
    rounding_type: str | None = 'floor',
    auto_pad: str | None = 'explicit',
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The mean of each window, whose taps are adjacent.

    Create AvgPool of opset1.
    """

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
    """BatchNormInference-5 with the data as third input.

    Create BatchNormInference of opset1.
    """

def binary_convolution(
    data: Tensor,
    filters: Tensor,
    strides: Sequence[int],
    pads_begin: Sequence[int],
    pads_end: Sequence[int],
    dilations: Sequence[int],
    mode: str,
    pad_value: float,
    auto_pad: str | None = 'explicit',
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """A 2-D Convolution of bits that represent -1 and 1; mode xnor-popcount computes it as 2 * popcount(xnor) - bits.

    Data above zero is 1, all other data is -1; pad_value is the value of data outside its bounds. filters are u1; the
    result has data's type.

    Create BinaryConvolution of opset1.
    """

def broadcast(
    data: Tensor,
    target_shape: Tensor,
    axes_mapping: Tensor | None = None,
    mode: str | None = 'numpy',
    name: str | None = None,
    *,
    start_axis: int | None = 0,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Broadcast-3 without mode bidirectional; modes other than explicit ignore ``axes_mapping``.

    Create Broadcast of opset1.
    """

def ceil(
    node: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The least integer not below x.

    Create Ceiling of opset1.
    """

def ceiling(
    node: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The least integer not below x.

    Create Ceiling of opset1.
    """

def clamp(
    data: Tensor,
    min_value: float,
    max_value: float,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """min(max(x, min), max); NaN stays NaN.

    For integers ``min`` is rounded up, ``max`` is rounded down, and both are clipped to the type's range.

    Create Clamp of opset1.
    """

def concat(
    nodes: Sequence[Tensor],
    axis: int,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The inputs one after the other along ``axis``; their ranks, types and other dimensions must be equal.

    Create Concat of opset1.
    """

def constant(
    value: Any,
    dtype: Type | None = None,
    name: str | None = None,
    *,
    shared_memory: bool = False,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Data from the weights: ``size`` bytes at ``offset`` of the .bin.

    Create Const of opset1.
    """

def convert(
    data: Tensor,
    destination_type: Type,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Every element converted to the type ``destination_type``.

    Real numbers are truncated to integers, and an integer that is too large keeps its low bits. Real numbers beyond i32
    (i64 for u32 and 64-bit types) and NaN have no defined integer: they become the least number of these 32 or 64 bits,
    of which the low bits are kept. u64 also holds what lies between 2^63 and 2^64; larger numbers become 0. Converted
    to boolean, everything except 0 is true, including NaN. Real numbers are rounded to nearest, ties to even; beyond
    the range they become infinite, NaN in f8e4m3, and the largest number in f4e2m1 and nf4.

    Create Convert of opset1.
    """

def convert_like(
    data: Tensor,
    like: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """``data`` converted to the type of ``like``, as by Convert.

    Create ConvertLike of opset1.
    """

def convolution(
    data: Tensor,
    filters: Tensor,
    strides: Sequence[int],
    pads_begin: Sequence[int],
    pads_end: Sequence[int],
    dilations: Sequence[int],
    auto_pad: str | None = 'explicit',
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """out[n, o, p] = sum over c and k of filters[o, c, k] * data[n, c, p * strides + k * dilations - pads_begin].

    data is [N, C_IN, *spatial], filters [C_OUT, C_IN, *kernel], out [N, C_OUT, *windows]; data counts as zero outside
    its bounds. auto_pad same_upper and same_lower choose pads that give ceil(size / stride) windows, and valid means no
    pads; pads_begin and pads_end are then ignored. Any numeric type is allowed; f16 and bf16 are summed in f32,
    integers wrap around.

    Create Convolution of opset1.
    """

def convolution_backprop_data(
    data: Tensor,
    filters: Tensor,
    strides: Sequence[int],
    output_shape: Tensor | None = None,
    pads_begin: Sequence[int] | None = (),
    pads_end: Sequence[int] | None = (),
    dilations: Sequence[int] | None = (),
    auto_pad: str | None = 'explicit',
    output_padding: Sequence[int] | None = (),
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """out[n, o, i * strides + k * dilations - pads_begin] += filters[c, o, k] * data[n, c, i], starting from zero.

    data is [N, C_IN, *spatial], filters [C_IN, C_OUT, *kernel], out [N, C_OUT, *sizes]. ``output_shape`` gives the
    sizes; without it a size is stride * (size - 1) + dilation * (kernel - 1) + 1 - pads_begin - pads_end +
    output_padding, with pads of zero for auto_pad valid and same. With ``output_shape``, auto_pad same computes the
    pads; same_upper puts the extra one of an odd total at the beginning. Any numeric type is allowed; f16 and bf16 are
    summed in f32.

    Create ConvolutionBackpropData of opset1.
    """

def cos(
    node: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The cosine of each element, x in radians.

    Create Cos of opset1.
    """

def cosh(
    node: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The hyperbolic cosine of each element.

    Create Cosh of opset1.
    """

def ctc_greedy_decoder(
    data: Tensor,
    sequence_mask: Tensor,
    merge_repeated: bool | None = True,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The most probable class of each step, with repetitions merged if ``ctc_merge_repeated`` and without blanks.

    A repetition is a class equal to the class of the previous step. data is [time, batch, classes]; the last class is
    the blank. A sequence ends before the first 0 in ``sequence_mask`` [time, batch]. The output is [batch, time, 1, 1]
    of the type of data, padded with -1.

    Create CTCGreedyDecoder of opset1.
    """

def deformable_convolution(
    data: Tensor,
    deformable_values: Tensor,
    filters: Tensor,
    strides: Sequence[int],
    pads_begin: Sequence[int],
    pads_end: Sequence[int],
    dilations: Sequence[int],
    auto_pad: str | None = 'explicit',
    group: int | None = 1,
    deformable_group: int | None = 1,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """A 2-D convolution whose taps are moved, for each output, by offsets from an input. See DeformableBase.

    Create DeformableConvolution of opset1.
    """

def deformable_psroi_pooling(
    feature_maps: Tensor,
    coords: Tensor,
    output_dim: int,
    spatial_scale: float,
    group_size: int | None = 1,
    mode: str | None = 'bilinear_deformable',
    spatial_bins_x: int | None = 1,
    spatial_bins_y: int | None = 1,
    trans_std: float | None = 1.0,
    part_size: int | None = 1,
    offsets: Tensor | None = None,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """PSROIPooling whose bins are means of interpolated positions and may be moved by offsets.

    The inputs are as in RoiPoolingBase. Corners are rounded, the second ones plus one pixel, scaled by
    ``spatial_scale`` and moved by -0.5; sides are at least 0.1. A bin is the mean of ``spatial_bins_y`` x
    ``spatial_bins_x`` positions, the first at its start. A position is interpolated between the surrounding pixels; up
    to half a pixel outside of data it counts as on the border, further outside it is ignored, and a bin without
    positions is 0. There are ``group_size`` x ``group_size`` bins, with the channels of PSROIPooling's mode average,
    and ``output_dim`` channels in the output.

    offsets [regions, 2 * classes, part_size, part_size] move bins along x, then y, relative to the region's sides times
    ``trans_std``; each class moves its share of the channels.

    Create DeformablePSROIPooling of opset1.
    """

def depth_to_space(
    node: Tensor,
    mode: str,
    block_size: int | None = 1,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Parts of the depth C moved into space, in blocks of ``block_size`` b: [N, C / b**K, D1 * b, ..., DK * b].

    In mode blocks_first C is split into [b, ..., b, C / b**K], in mode depth_first into [C / b**K, b, ..., b].

    Create DepthToSpace of opset1.
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
    """DetectionOutput-8 with the number of classes as an attribute, ``num_classes``.

    Create DetectionOutput of opset1.
    """

def divide(
    left_node: Tensor,
    right_node: Tensor,
    auto_broadcast: str | None = 'numpy',
    name: str | None = None,
    *,
    axis: int | None = -1,
    m_pythondiv: bool | None = True,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The quotient a / b, element by element; integers round down, or towards 0 if ``m_pythondiv`` is false.

    Dividing an integer by 0 is undefined; the result is 0, and a warning is reported.

    Create Divide of opset1.
    """

def elu(
    data: Tensor,
    alpha: float,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """x for x > 0, else alpha * (e^x - 1).

    Create Elu of opset1.
    """

def equal(
    left_node: Tensor,
    right_node: Tensor,
    auto_broadcast: str | None = 'numpy',
    name: str | None = None,
    *,
    axis: int | None = -1,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Whether a = b, element by element.

    Create Equal of opset1.
    """

def erf(
    node: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The Gauss error function of each element.

    Create Erf of opset1.
    """

def exp(
    node: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The exponential of each element, e^x.

    Create Exp of opset1.
    """

def fake_quantize(
    data: Tensor,
    input_low: Tensor,
    input_high: Tensor,
    output_low: Tensor,
    output_high: Tensor,
    levels: int,
    auto_broadcast: str | None = 'numpy',
    name: str | None = None,
    *,
    axis: int | None = -1,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """x between input_low and input_high rounded to the nearest of ``levels`` steps, and mapped to the output range.

    The result is output_low where x <= min(input_low, input_high), output_high where x > max(input_low, input_high),
    and otherwise, ties to the even step,

        round((x - input_low) / (input_high - input_low) * (levels - 1)) / (levels - 1) * (output_high - output_low)
        + output_low

    The ranges are broadcast to x by the rules of ``auto_broadcast``; x is never broadcast. All five inputs have one
    floating-point type; f16 and bf16 are computed in f32 and rounded once.

    Create FakeQuantize of opset1.
    """

def floor(
    node: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The greatest integer not above x.

    Create Floor of opset1.
    """

def floor_mod(
    left_node: Tensor,
    right_node: Tensor,
    auto_broadcast: str | None = 'numpy',
    name: str | None = None,
    *,
    axis: int | None = -1,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """a - b * floor(a / b), which has the sign of b. Floats are computed in f64. Modulo 0 is undefined; for integers it
    is 0.

    Create FloorMod of opset1.
    """

def gather(
    data: Tensor,
    indices: Tensor,
    axis: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Slices of ``data`` along ``axis``, picked by ``indices`` in [0, size-1].

    Create Gather of opset1.
    """

def gather_tree(
    step_ids: Tensor,
    parent_idx: Tensor,
    max_seq_len: Tensor,
    end_token: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The beams of a search, each followed back from its last step through its parents.

    step_ids and parent_ids are [time, batch, beam]. out[t, b, i] is step_ids[t, b, p], where p is i at the last of the
    max_seq_len[b] steps of a batch, and at earlier steps the parent of step t + 1's p. After the first end_token of a
    beam, and after the last step, the output is end_token.

    Create GatherTree of opset1.
    """

def greater(
    left_node: Tensor,
    right_node: Tensor,
    auto_broadcast: str | None = 'numpy',
    name: str | None = None,
    *,
    axis: int | None = -1,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Whether a > b, element by element.

    Create Greater of opset1.
    """

def greater_equal(
    left_node: Tensor,
    right_node: Tensor,
    auto_broadcast: str | None = 'numpy',
    name: str | None = None,
    *,
    axis: int | None = -1,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Whether a >= b, element by element.

    Create GreaterEqual of opset1.
    """

def grn(
    data: Tensor,
    bias: float,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """x / sqrt(s + bias), where s is the sum of squares over the channels, the second of 2 to 4 dimensions.

    Create GRN of opset1.
    """

def group_convolution(
    data: Tensor,
    filters: Tensor,
    strides: Sequence[int],
    pads_begin: Sequence[int],
    pads_end: Sequence[int],
    dilations: Sequence[int],
    auto_pad: str | None = 'explicit',
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """A Convolution for each group of channels, with concatenated results.

    data is [N, GROUPS * C_IN, *spatial], filters [GROUPS, C_OUT, C_IN, *kernel], out [N, GROUPS * C_OUT, *windows].
    Attributes and types are as in Convolution.

    Create GroupConvolution of opset1.
    """

def group_convolution_backprop_data(
    data: Tensor,
    filters: Tensor,
    strides: Sequence[int],
    output_shape: Tensor | None = None,
    pads_begin: Sequence[int] | None = (),
    pads_end: Sequence[int] | None = (),
    dilations: Sequence[int] | None = (),
    auto_pad: str | None = 'explicit',
    output_padding: Sequence[int] | None = (),
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """A ConvolutionBackpropData for each group of channels, with concatenated results.

    data is [N, GROUPS * C_IN, *spatial], filters [GROUPS, C_IN, C_OUT, *kernel], out [N, GROUPS * C_OUT, *sizes].

    Create GroupConvolutionBackpropData of opset1.
    """

def hard_sigmoid(
    data: Tensor,
    alpha: Tensor,
    beta: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """max(0, min(1, alpha * x + beta)), which is 1 for NaN; alpha and beta are scalars of the data's type.

    Create HardSigmoid of opset1.
    """

def interpolate(
    image: Tensor,
    output_shape: Tensor,
    attrs: dict[str, Any],
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The data resized along ``axes`` to ``target_spatial_shape``.

    The specification assigns the target sizes in the order of ``axes``; every implementation assigns them in ascending
    order of axes. The specification has no formulas; OpenVINO replaces the operation by Interpolate-4: ``nearest``
    rounds as ``simple``, ``linear`` is ``linear_onnx`` up to four dimensions. Positions are ``align_corners`` or
    ``asymmetric``; linear modes without pads use ``half_pixel``, except along axes 2 and 3 of four. A single pad
    applies to each of the axes. ``area`` is named but not defined.

    Create Interpolate of opset1.
    """

def less(
    left_node: Tensor,
    right_node: Tensor,
    auto_broadcast: str | None = 'numpy',
    name: str | None = None,
    *,
    axis: int | None = -1,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Whether a < b, element by element.

    Create Less of opset1.
    """

def less_equal(
    left_node: Tensor,
    right_node: Tensor,
    auto_broadcast: str | None = 'numpy',
    name: str | None = None,
    *,
    axis: int | None = -1,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Whether a <= b, element by element.

    Create LessEqual of opset1.
    """

def log(
    node: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The natural logarithm of each element, NaN below 0.

    Create Log of opset1.
    """

def logical_and(
    left_node: Tensor,
    right_node: Tensor,
    auto_broadcast: str | None = 'numpy',
    name: str | None = None,
    *,
    axis: int | None = -1,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Whether both elements are true.

    Create LogicalAnd of opset1.
    """

def logical_not(
    node: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Whether each element is false.

    Create LogicalNot of opset1.
    """

def logical_or(
    left_node: Tensor,
    right_node: Tensor,
    auto_broadcast: str | None = 'numpy',
    name: str | None = None,
    *,
    axis: int | None = -1,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Whether at least one element is true.

    Create LogicalOr of opset1.
    """

def logical_xor(
    left_node: Tensor,
    right_node: Tensor,
    auto_broadcast: str | None = 'numpy',
    name: str | None = None,
    *,
    axis: int | None = -1,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Whether exactly one element is true.

    Create LogicalXor of opset2.
    """

def lrn(
    data: Tensor,
    axes: Tensor,
    alpha: float | None = 1.0,
    beta: float | None = 0.5,
    bias: float | None = 1.0,
    size: int | None = 5,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """x / (bias + alpha / size^n * s)^beta, where s is the sum of squares in a window of ``size`` along each of n axes.

    The window reaches (size - 1) / 2, rounded down, to either side and is cut at the borders of the data.

    Create LRN of opset1.
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
    p: Tensor | None = None,
    input_forget: bool | None = False,
    weights_format: str | None = 'fico',
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """LSTMCell-4 with a seventh input P, peepholes [3*hidden], and the attributes ``input_forget`` and
    ``weights_format``.

    The specification has none of the three, and OpenVINO's CPU plugin ignores them; so does this operation, with a
    warning where they would make a difference.

    Create LSTMCell of opset1.
    """

def matmul(
    data_a: Tensor,
    data_b: Tensor,
    transpose_a: bool,
    transpose_b: bool,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The matrix product of the last two axes; the axes before them are a batch and are broadcast.

    ``transpose_a`` and ``transpose_b`` swap the last two axes of an input that has at least two. A 1-D first input is a
    row and a 1-D second input a column; that axis of length 1 does not appear in the output.

    f16 and bf16 are summed in f32. 8-bit integers, which OpenVINO's reference does not execute, saturate; wider
    integers wrap around.

    Create MatMul of opset1.
    """

def max_pool(
    data: Tensor,
    strides: Sequence[int],
    pads_begin: Sequence[int],
    pads_end: Sequence[int],
    kernel_shape: Sequence[int],
    rounding_type: str | None = 'floor',
    auto_pad: str | None = 'explicit',
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """out[n, c, p] = max over k of data[n, c, p * strides + k - pads_begin].

    Create MaxPool of opset1.
    """

def maximum(
    left_node: Tensor,
    right_node: Tensor,
    auto_broadcast: str | None = 'numpy',
    name: str | None = None,
    *,
    axis: int | None = -1,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The greater of a and b; a where b is NaN.

    Create Maximum of opset1.
    """

def minimum(
    left_node: Tensor,
    right_node: Tensor,
    auto_broadcast: str | None = 'numpy',
    name: str | None = None,
    *,
    axis: int | None = -1,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The lesser of a and b; a where b is NaN.

    Create Minimum of opset1.
    """

def mod(
    left_node: Tensor,
    right_node: Tensor,
    auto_broadcast: str | None = 'numpy',
    name: str | None = None,
    *,
    axis: int | None = -1,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """a - b * trunc(a / b), which has the sign of a. Modulo 0 is undefined; for integers it is 0.

    Create Mod of opset1.
    """

def multiply(
    left_node: Tensor,
    right_node: Tensor,
    auto_broadcast: str | None = 'numpy',
    name: str | None = None,
    *,
    axis: int | None = -1,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The product a * b, element by element; 8-bit integers saturate, as on the only device that multiplies them.

    Create Multiply of opset1.
    """

def mvn(
    data: Tensor,
    across_channels: bool | None = False,
    normalize_variance: bool | None = False,
    eps: float | None = 1e-09,
    name: str | None = None,
    *,
    reduction_axes: Sequence[int] | None = (),
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """(x - mean) / sqrt(variance + eps); x - mean if ``normalize_variance`` is false.

    Mean and variance are taken of the slices along ``reduction_axes``; without it, along all axes except the batch and,
    unless ``across_channels``, the channels.

    Create MVN of opset2.
    """

def negative(
    node: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The negative of each element, -x; 127 for the smallest i8, as on devices, which saturate.

    Create Negative of opset1.
    """

def non_max_suppression(
    boxes: Tensor,
    scores: Tensor,
    max_output_boxes_per_class: Tensor | None = None,
    iou_threshold: Tensor | None = None,
    score_threshold: Tensor | None = None,
    box_encoding: str | None = 'corner',
    sort_result_descending: bool | None = True,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The boxes with the highest scores among overlapping ones, class by class. See SuppressionBase.

    The output always has min(boxes, max_output_boxes_per_class * classes) triplets: excess ones are dropped, missing
    ones are -1.

    Create NonMaxSuppression of opset1.
    """

def normalize_l2(
    data: Tensor,
    axes: Tensor,
    eps: float,
    eps_mode: str,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """x / sqrt(s + eps), or x / sqrt(max(s, eps)), where s is the sum of squares along ``axes`` (a scalar or 1-D).

    ``eps_mode`` add or max chooses the formula. Without axes each element is divided by itself, which gives 1 for
    everything except 0.

    Create NormalizeL2 of opset1.
    """

def not_equal(
    left_node: Tensor,
    right_node: Tensor,
    auto_broadcast: str | None = 'numpy',
    name: str | None = None,
    *,
    axis: int | None = -1,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Whether a != b, element by element.

    Create NotEqual of opset1.
    """

def one_hot(
    indices: Tensor,
    depth: Tensor,
    on_value: Tensor,
    off_value: Tensor,
    axis: int,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """A new dimension ``axis`` of size ``depth``: ``on_value`` at the position given by the index, ``off_value``
    elsewhere.

    result[..., d, ...] = on_value if indices[...] == d else off_value. An index that is negative or at least ``depth``
    sets nothing.

    Create OneHot of opset1.
    """

def pad(
    arg: Tensor,
    pads_begin: Tensor,
    pads_end: Tensor,
    pad_mode: str,
    arg_pad_value: Tensor | None = None,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """``data`` with ``pads_begin[i]`` elements before and ``pads_end[i]`` elements after it along each axis i.

    A negative pad removes elements. ``pad_mode`` chooses the added elements: "constant" adds ``pad_value`` (default 0),
    "edge" the outermost element, "reflect" and "symmetric" the mirrored data without and with its outermost element,
    for which a pad may be at most size - 1 and size. Elements removed at one end do not change what is added at the
    other.

    Create Pad of opset1.
    """

def parameter(
    shape: Shape,
    dtype: Type = 'f32',
    name: str | None = None,
    *,
    layout: str | None = None,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """An input of the model.

    ``shape`` may hold unknown sizes or intervals, or be of unknown rank.

    Create Parameter of opset1.
    """

def power(
    left_node: Tensor,
    right_node: Tensor,
    auto_broadcast: str | None = 'numpy',
    name: str | None = None,
    *,
    axis: int | None = -1,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """a to the power of b. Integers wrap around; with a negative exponent the result is truncated to an integer, and is
    that of infinity for 0 (see Convert).

    Create Power of opset1.
    """

def prelu(
    data: Tensor,
    slope: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """x for x >= 0, else slope * x.

    A 1-D slope with the length of the data's second dimension is one slope per channel; any other slope is broadcast to
    the data as in NumPy.

    Create PReLU of opset1.
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
    """Boxes of given sizes and aspect ratios around each point of a grid. See PriorBoxBase.

    The centers are (offset + w, offset + h) * step; with ``step`` 0 the points cover the image and offset is 0.5. The
    ratios (width to height) are 1, the items of ``aspect_ratio`` and, with ``flip``, their inverses. First come, for
    each ``fixed_size`` and each of ``fixed_ratio`` (or all ratios), ``density`` by ``density`` boxes that together fill
    the square of that size; these are cut at the image's border. Then come, for each ``min_size``, a square of that
    size, a square of sqrt(min * max) with the corresponding ``max_size``, and a box of the same area for each other
    ratio. Without ``scale_all_sizes``, sizes and step are relative to the image's height (a step of -1 means height /
    points), and the other ratios apply to the first size only.

    Create PriorBox of opset1.
    """

def prior_box_clustered(
    output_size: Tensor,
    image_size: Tensor,
    attrs: dict[str, Any],
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Boxes of the sizes ``width`` and ``height``, one for each pair, around each point of a grid. See PriorBoxBase.

    The centers are ((w + offset) * ``step_w``, (h + offset) * ``step_h``). A step of 0 is replaced by ``step``; if both
    are 0, the points cover the image.

    Create PriorBoxClustered of opset1.
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
    """The regions in which a two-stage detector looks for objects, from predictions for anchors. See ProposalBase.

    Create Proposal of opset1.
    """

def psroi_pooling(
    input: Tensor,
    coords: Tensor,
    output_dim: int,
    group_size: int,
    spatial_scale: float,
    spatial_bins_x: int,
    spatial_bins_y: int,
    mode: str,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Regions of feature maps, each pooled to [output_dim, group_size, group_size] with separate channels for each bin.

    The inputs are as in RoiPoolingBase, except that rois may have another floating-point type than data. ``mode``
    average: corners are rounded, the second ones plus one pixel, and scaled by ``spatial_scale``; sides are at least
    0.1. Bin [i, j] of channel c is the mean of the pixels that it touches in channel (c * group_size + i) * group_size
    + j, or 0 if there are none.

    ``mode`` bilinear: corners times ``spatial_scale`` are relative to data's size less one. The region is cut into
    ``spatial_bins_y`` x ``spatial_bins_x`` parts; part b reads channel b * output_dim + c. The bins are positions
    spaced evenly from corner to corner of a part, averaged over the parts; positions outside of data are 0.

    Create PSROIPooling of opset1.
    """

def range(
    start: Tensor,
    stop: Tensor,
    step: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The numbers start, start + step, ... up to but excluding stop; all inputs have one type.

    There are ceil((stop - start) / step) numbers. A step of 0 is an error. Real numbers are computed in f64 and rounded
    once.

    Create Range of opset1.
    """

def reduce_logical_and(
    node: Tensor,
    reduction_axes: Tensor,
    keep_dims: bool | None = False,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Whether all elements along ``axes`` are true; true for no elements.

    Create ReduceLogicalAnd of opset1.
    """

def reduce_logical_or(
    node: Tensor,
    reduction_axes: Tensor,
    keep_dims: bool | None = False,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Whether any element along ``axes`` is true; false for no elements.

    Create ReduceLogicalOr of opset1.
    """

def reduce_max(
    node: Tensor,
    reduction_axes: Tensor,
    keep_dims: bool | None = False,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The largest element along ``axes``; NaN counts only if there is nothing else.

    For no elements it is the lowest finite value of the type.

    Create ReduceMax of opset1.
    """

def reduce_mean(
    node: Tensor,
    reduction_axes: Tensor,
    keep_dims: bool | None = False,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The arithmetic mean of the elements along ``axes``, truncated for integers; 0 for no elements.

    Create ReduceMean of opset1.
    """

def reduce_min(
    node: Tensor,
    reduction_axes: Tensor,
    keep_dims: bool | None = False,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The smallest element along ``axes``; NaN counts only if there is nothing else.

    For no elements it is infinity, or the highest value of an integer type.

    Create ReduceMin of opset1.
    """

def reduce_prod(
    node: Tensor,
    reduction_axes: Tensor,
    keep_dims: bool | None = False,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The product of the elements along ``axes``; 1 for no elements.

    Create ReduceProd of opset1.
    """

def reduce_sum(
    node: Tensor,
    reduction_axes: Tensor,
    keep_dims: bool | None = False,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The sum of the elements along ``axes``; 0 for no elements.

    Create ReduceSum of opset1.
    """

def region_yolo(
    input: Tensor,
    coords: int,
    classes: int,
    num: int,
    do_softmax: bool,
    mask: Sequence[int],
    axis: int,
    end_axis: int,
    anchors: Sequence[float] | None = (),
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The last layer of YOLO networks: turns the scores of each region at each point into probabilities.

    The channels of data [N, C, H, W] hold regions of ``coords`` coordinates, one objectness and ``classes`` scores. The
    first two coordinates and the objectness go through a sigmoid. With ``do_softmax`` (YOLO v2) there are ``num``
    regions, the scores go through a softmax, and the dimensions ``axis`` to ``end_axis`` are merged. Without it (YOLO
    v3) there are as many regions as items in ``mask``, the scores go through a sigmoid, and only the channels of
    regions remain. Channels beyond the regions are copied. ``anchors`` have no effect: they serve to decode the boxes.

    Create RegionYolo of opset1.
    """

def relu(
    node: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """max(0, x); NaN stays NaN.

    Create ReLU of opset1.
    """

def reorg_yolo(
    input: Tensor,
    stride: Sequence[int],
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Area moved into channels: [N, C, H, W] to [N, C * s * s, H / s, W / s], where s is ``stride``.

    As in darknet, data is read as [N, C / (s * s), H * s, W * s], and its blocks of s by s points are moved into
    channels, block by block; the result [N, C, H, W] is then given the shape above.

    Create ReorgYolo of opset2.
    """

def reshape(
    node: Tensor,
    output_shape: Tensor,
    special_zero: bool,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The elements of ``data``, in row-major order, with the dimensions given by ``shape``.

    One -1 in ``shape`` stands for the size that keeps the number of elements. With ``special_zero`` a 0 at position i
    copies dimension i of ``data``; otherwise it is a dimension of size 0.

    If the tensors are empty and any size would fit for -1, equal numbers of zeros in ``data`` and ``shape`` are left
    out before it is computed, so that [N, -1] makes of [N, 4] what it makes for every other N: [N, 4]. If no size
    results from that, it is 1.

    Create Reshape of opset1.
    """

def result(
    data: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """An output of the model; it passes its input on and has no output port.

    Create Result of opset1.
    """

def reverse(
    data: Tensor,
    axes: Tensor,
    mode: str | None = 'index',
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """data with the order of its elements reversed along some axes.

    ``mode`` index: the axes are given by number; mask: by a boolean for each dimension.

    Create Reverse of opset1.
    """

def reverse_sequence(
    input: Tensor,
    seq_lengths: Tensor,
    batch_axis: int,
    seq_axis: int,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """data with the first seq_lengths[i] elements along ``seq_axis`` reversed in each slice i along ``batch_axis``.

    Create ReverseSequence of opset1.
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

def roi_pooling(
    input: Tensor,
    coords: Tensor,
    output_roi: Sequence[int] | None = (),
    spatial_scale: float | None = None,
    method: str | None = 'max',
    name: str | None = None,
    *,
    output_size: Sequence[int] | None = (),
    pooled_h: int | None = 0,
    pooled_w: int | None = 0,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Regions of feature maps, each pooled to [C, pooled_h, pooled_w]. See RoiPoolingBase.

    ``method`` max: corners times ``spatial_scale`` are rounded to pixels, which both belong to the region; a region is
    at least one pixel long. Bin i of n on a side of length s covers floor(i * s / n) to ceil((i + 1) * s / n) and is
    its largest pixel inside of data, or 0 if there is none.

    ``method`` bilinear: corners are relative to data's size less one. Bins are single positions spaced evenly from
    corner to corner (a single bin lies in the middle), interpolated between the surrounding pixels, and 0 outside of
    data. There are ``pooled_h`` x ``pooled_w`` bins; older writers give ``output_roi`` or ``output_size`` instead.

    Create ROIPooling of opset2.
    """

def select(
    cond: Tensor,
    then_node: Tensor,
    else_node: Tensor,
    auto_broadcast: str | None = 'numpy',
    name: str | None = None,
    *,
    axis: int | None = -1,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The element of ``then`` where ``cond`` is true, else the element of ``other``.

    ``then`` and ``other`` have one type and are broadcast to each other, and ``cond`` to both (OpenVINO also broadcasts
    them to ``cond``). In mode pdpd ``other`` and ``cond`` are broadcast to ``then``.

    Create Select of opset1.
    """

def selu(
    data: Tensor,
    alpha: Tensor,
    lambda_value: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """lambda * (x for x > 0, else alpha * (e^x - 1)); alpha and lambda hold one element each.

    Create Selu of opset1.
    """

def shape_of(
    data: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The dimensions of a tensor as a 1-D tensor of i64; empty for a scalar.

    Create ShapeOf of opset1.
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

def sigmoid(
    data: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """1 / (1 + e^-x).

    Create Sigmoid of opset1.
    """

def sign(
    node: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The sign of each element: -1, 0 or 1; NaN for NaN.

    Create Sign of opset1.
    """

def sin(
    node: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The sine of each element, x in radians.

    Create Sin of opset1.
    """

def sinh(
    node: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The hyperbolic sine of each element.

    Create Sinh of opset1.
    """

def softmax(
    data: Tensor,
    axis: int,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """e^x / sum(e^x) along ``axis``; a slice with +inf, or of -inf only, is NaN.

    Create SoftMax of opset1.
    """

def space_to_depth(
    data: Tensor,
    mode: str,
    block_size: int | None = 1,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Blocks of ``block_size`` b in space moved into the depth: [N, C * b**K, D1 / b, ..., DK / b].

    The new depth is [b, ..., b, C] in mode blocks_first and [C, b, ..., b] in mode depth_first.

    Create SpaceToDepth of opset1.
    """

def split(
    data: Tensor,
    axis: Tensor,
    num_splits: int,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """``num_splits`` parts of ``data`` of equal length along the scalar ``axis``.

    Create Split of opset1.
    """

def sqrt(
    node: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The square root of each element, NaN below 0.

    Create Sqrt of opset1.
    """

def squared_difference(
    x1: Tensor,
    x2: Tensor,
    auto_broadcast: str | None = 'numpy',
    name: str | None = None,
    *,
    axis: int | None = -1,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The square of the difference, (a - b)^2, element by element.

    Create SquaredDifference of opset1.
    """

def squeeze(
    data: Tensor,
    axes: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """``data`` without those dimensions ``axes`` that are 1; without any dimension of 1 if there are no axes.

    Inference assumes that an unknown dimension among ``axes`` is 1 if it can be; without axes the rank is unknown.

    Create Squeeze of opset1.
    """

def strided_slice(
    data: Tensor,
    begin: Tensor,
    end: Tensor,
    strides: Tensor,
    begin_mask: Sequence[int],
    end_mask: Sequence[int],
    new_axis_mask: Sequence[int] | None = (),
    shrink_axis_mask: Sequence[int] | None = (),
    ellipsis_mask: Sequence[int] | None = (),
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """``data[begin[i]:end[i]:stride[i]]`` along successive axes, modified by masks, each a list of 0 and 1.

    A 1 at position i of a mask has the following effect. ``begin_mask`` and ``end_mask``: the slice starts at the
    beginning, or stops at the end, of the dimension. ``new_axis_mask``: a dimension of 1 is inserted and nothing is
    sliced. ``shrink_axis_mask``: the element at ``begin[i]`` is taken and the dimension dropped. ``ellipsis_mask``:
    position i stands for all dimensions that the other positions leave. If several of the last three are set, ellipsis
    prevails over new axis, and new axis over shrink. Masks that are too short are continued with 0.

    Create StridedSlice of opset1.
    """

def subtract(
    left_node: Tensor,
    right_node: Tensor,
    auto_broadcast: str | None = 'numpy',
    name: str | None = None,
    *,
    axis: int | None = -1,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The difference a - b, element by element.

    Create Subtract of opset1.
    """

def tan(
    node: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The tangent of each element, x in radians.

    Create Tan of opset1.
    """

def tanh(
    node: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The hyperbolic tangent of each element.

    Create Tanh of opset1.
    """

def tensor_iterator(name: str | None = None, *, rt_info: Info | None = None) -> IterationLayer:
    """The results of a body that runs once for each part of its sliced inputs.

    Parts begin at `start` and proceed by `stride` up to and including `end` (both count from the end if negative); each
    is `part_size` long. All sliced inputs must have the same number of parts.

    Create TensorIterator of opset1.
    """

def tile(
    data: Tensor,
    repeats: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """``data`` repeated ``repeats[i]`` times along dimension i.

    The shorter of the shape of ``data`` and ``repeats`` is extended by 1 at the front. A negative number counts as 0.

    Create Tile of opset1.
    """

def topk(
    data: Tensor,
    k: Tensor,
    axis: int,
    mode: str,
    sort: str,
    name: str | None = None,
    *,
    index_element_type: Type | None = 'i32',
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """The ``k`` largest or smallest elements along ``axis``, and their indices. See TopK-3.

    Create TopK of opset1.
    """

def transpose(
    data: Tensor,
    input_order: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Dimension i of the result is dimension ``order[i]`` of ``data``; an empty order reverses all.

    Create Transpose of opset1.
    """

def unsqueeze(
    data: Tensor,
    axes: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """``data`` with a dimension of 1 inserted at each of ``axes``, which refer to the result.

    Create Unsqueeze of opset1.
    """

def variadic_split(
    data: Tensor,
    axis: Tensor,
    split_lengths: Tensor,
    name: str | None = None,
    *,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Parts of ``data`` along ``axis`` with the lengths ``split_lengths``.

    A single -1 stands for the rest.

    Create VariadicSplit of opset1.
    """

def xor(
    left_node: Tensor,
    right_node: Tensor,
    auto_broadcast: str | None = 'numpy',
    name: str | None = None,
    *,
    axis: int | None = -1,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Whether exactly one element is true: the name of LogicalXor in opset1.

    Create Xor of opset1.
    """
