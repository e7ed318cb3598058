"""SoftMax, LogSoftmax, MVN, GroupNormalization, NormalizeL2, GRN, LRN and BatchNormInference."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
import onnx_ir as ir

from ovir.core.element_types import f32, f64
from ovir.core.shapes import PartialShape
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.ops import normalization as ops

# --------------------------------------------------------------------------- exponentials


@exports(ops.SoftMax1, ops.SoftMax8, to="Softmax", of_reals=True)
@exports(ops.LogSoftmax, to="LogSoftmax", limits="slices with +inf are -inf instead of NaN", of_reals=True)
def softmax(graph: Graph, op: ops.SoftMax1 | ops.SoftMax8 | ops.LogSoftmax, x: Tensor) -> Tensor:
    """Export as Softmax or LogSoftmax; a scalar gets an axis for it."""
    operator = graph.LogSoftmax if isinstance(op, ops.LogSoftmax) else graph.Softmax
    if x.shape == PartialShape([]):
        return graph.Reshape(operator(graph.Reshape(x, [1]), axis=0), [])
    return operator(x, axis=op.axis)


# --------------------------------------------------------------------------- mean, variance and norm


Axes = Sequence[int] | Tensor
_LONGEST = 1 << 16
"""The number of elements up to which LayerNormalization gets a scale of ones."""


@exports(
    ops.MVN2,
    ops.MVN6,
    to="LayerNormalization, InstanceNormalization, or ReduceMean, Sub, Mul, Sqrt and Div",
    of_reals=True,
)
def mvn(graph: Graph, op: ops.MVN2 | ops.MVN6, x: Tensor, *axes: Tensor) -> Tensor:
    along: Axes = op.along(graph.rank(x)) if isinstance(op, ops.MVN2) else _along(op, x, *axes)
    inside = op.eps_mode == "inside_sqrt"
    if not isinstance(along, Tensor) and op.normalize_variance and inside and x.element_type == f32:
        found = _in_one_node(graph, x, along, op.eps)
        if found is not None:
            return found

    def mean(y: Tensor) -> Tensor:
        return graph.reduced("ReduceMean", y, along) if isinstance(along, Tensor) or along else y

    centered = graph.Sub(x, mean(x))
    if not op.normalize_variance:
        return centered
    square = mean(graph.Mul(centered, centered))
    if inside:
        return graph.Div(centered, graph.Sqrt(graph.Add(square, op.eps)))
    return graph.Div(centered, graph.Add(graph.Sqrt(square), op.eps))


def _along(op: ops.MVN6 | ops.NormalizeL2, x: Tensor, axes: Tensor) -> Axes:
    return axes if axes.constant is None or x.rank is None else op.axes(axes.constant, x.rank)


def _in_one_node(graph: Graph, x: Tensor, axes: Sequence[int], eps: float) -> Tensor | None:
    """Return the normalization along the last axes, or of the channels; None for other axes."""
    rank = graph.rank(x)
    if not axes or list(axes) != list(range(axes[0], rank)):
        return None
    sizes = x.shape.slice(axes[0])
    if sizes.is_static and 0 < sizes.size().length <= _LONGEST and (axes[0] != 2 or rank == 3):
        return graph.LayerNormalization(x, np.ones(sizes.to_tuple(), np.float32), axis=axes[0], epsilon=eps)
    if axes[0] == 2 and x.shape[1].is_static:
        count = x.shape[1].length
        return graph.InstanceNormalization(x, np.ones(count, np.float32), np.zeros(count, np.float32), epsilon=eps)
    return None


@exports(ops.GroupNormalization, to="InstanceNormalization of the groups, Mul and Add; f64: its formula", of_reals=True)
def group_normalization(
    graph: Graph, op: ops.GroupNormalization, x: Tensor, scale: Tensor, bias: Tensor
) -> Tensor | None:
    """Export as InstanceNormalization; the decomposition's MVN, a LayerNormalization, takes 1.3 times as long."""
    if x.element_type == f64:
        return None  # onnxruntime normalizes in f32 only
    count = op.num_groups
    shape = list(x.shape.to_tuple()) if x.shape.is_static else graph.Shape(x)
    groups = graph.Reshape(x, [0, count, -1])
    ones, zeros = np.ones(count, np.float32), np.zeros(count, np.float32)
    normal = graph.InstanceNormalization(groups, ones, zeros, epsilon=op.epsilon)
    factor, shift = (graph.cast(graph.per_channel(p, x), f32) for p in (scale, bias))
    return graph.Add(graph.Mul(graph.Reshape(normal, shape), factor), shift)


@exports(ops.NormalizeL2, to="ReduceSumSquare, Add or Max, Sqrt and Div", of_reals=True)
def normalize_l2(graph: Graph, op: ops.NormalizeL2, x: Tensor, axes: Tensor) -> Tensor:
    along = _along(op, x, axes)
    if not isinstance(along, Tensor) and not along:
        return graph.Div(x, graph.Where(graph.Equal(x, 0), 1, x))
    if op.eps_mode == "max" or op.eps == 0:
        norm = graph.reduced("ReduceL2", x, along)
        return graph.Div(x, graph.Max(norm, sqrt(op.eps)) if op.eps > 0 else norm)
    return _over_norm(graph, x, along, op.eps)


@exports(ops.GRN, to="ReduceSumSquare, Add, Sqrt and Div", of_reals=True)
def grn(graph: Graph, op: ops.GRN, x: Tensor) -> Tensor:
    return _over_norm(graph, x, [1], op.bias)


def _over_norm(graph: Graph, x: Tensor, axes: Axes, added: float) -> Tensor:
    return graph.Div(x, graph.Sqrt(graph.Add(graph.reduced("ReduceSumSquare", x, axes), added)))


# --------------------------------------------------------------------------- neighboring elements


@exports(
    ops.LRN,
    to="LRN along the channels with positive alpha and beta; else Mul, AveragePool, Pow and Div",
    of_reals=True,
)
def lrn(graph: Graph, op: ops.LRN, x: Tensor, axes: Tensor) -> Tensor:
    """Export as LRN along the second of four dimensions; other windows are summed by AveragePool.

    onnxruntime rejects an LRN whose alpha or beta is not positive.
    """
    rank = graph.rank(x)
    along = op.axes(graph.known(axes, "axes"), rank)
    window = (op.size - 1) // 2 * 2 + 1  # the sizes of windows are odd
    factor = op.alpha / float(op.size) ** len(along) * float(window) ** len(along)
    is_plain = along == [1] and rank == 4 and x.element_type == f32 and factor > 0 and op.beta > 0
    if is_plain and graph.needs_kernels and x.shape[1].is_static and x.shape[1].length <= _MOST_CHANNELS:
        return _normalized_by_products(graph, x, x.shape[1].length, window, factor, op)
    if is_plain:
        return graph.LRN(x, alpha=factor, beta=op.beta, bias=op.bias, size=window)
    square = graph.Mul(x, x)
    for axis in along:
        square = _averages(graph, square, axis, rank, window)
    return graph.Div(x, graph.Pow(graph.Add(graph.Mul(square, factor), op.bias), op.beta))


_MOST_CHANNELS = 512
"""The number of channels up to which a product of all channels takes less time than onnxruntime's LRN."""


def _normalized_by_products(graph: Graph, x: Tensor, channels: int, window: int, factor: float, op: ops.LRN) -> Tensor:
    """Return the LRN along the channels in a tenth of the time of onnxruntime's: windows are summed by a Conv."""
    distance = np.abs(np.subtract.outer(np.arange(channels), np.arange(channels)))
    filters = np.where(distance <= window // 2, np.float32(factor / window), np.float32(0))
    sums = graph.Conv(graph.Mul(x, x), filters.reshape(channels, channels, 1, 1))
    return graph.Mul(x, graph.Exp(graph.Mul(graph.Log(graph.Add(sums, op.bias)), -op.beta)))


def _averages(graph: Graph, x: Tensor, axis: int, rank: int, window: int) -> Tensor:
    """Return the averages of the elements in the windows along an axis; beyond the ends there are zeros."""
    if window == 1:
        return x
    order = [*(i for i in range(rank) if i != axis), axis]
    moved = graph.Transpose(x, perm=order)
    shape = graph.Shape(moved)
    length = graph.Gather(shape, [rank - 1])
    rows = graph.Reshape(moved, graph.Concat(graph.constant([-1, 1]), length, axis=0))
    reach = window // 2
    pooled = graph.AveragePool(rows, kernel_shape=[window], pads=[reach, reach], count_include_pad=1)
    return graph.Transpose(graph.Reshape(pooled, shape), perm=[order.index(i) for i in range(rank)])


# --------------------------------------------------------------------------- scale and bias after a normalization

SCALE, BIAS = 1, 2
"""The positions of the inputs of LayerNormalization."""
_TAKES = {SCALE: ("LayerNormalization", "RMSNormalization"), BIAS: ("LayerNormalization",)}


def with_parameter(graph: Graph, a: Tensor, b: Tensor, position: int) -> Tensor | None:
    """Return a LayerNormalization with one more input: one tensor is its result, the other its scale or bias.

    Return None where neither is such a result, or where the node has that input already.
    """
    for normal, parameter in ((a, b), (b, a)):
        node = normal.value.producer()
        if node is None or node.op_type not in _TAKES[position] or normal.element_type != f32:
            continue
        data, scale, *rest = node.inputs
        if rest or data is None or scale is None:
            continue
        if position == SCALE and not (scale.const_value is not None and np.all(scale.const_value.numpy() == 1)):
            continue
        if not graph.is_fixed(parameter) or not _fits(parameter, normal, scale):
            continue
        sizes = parameter.shape.to_tuple()[-len(scale.shape or ()) :]
        shaped = parameter if parameter.rank == len(sizes) else graph.reshaped(parameter, sizes)
        inputs = [Tensor(data, f32), shaped] if position == SCALE else [Tensor(data, f32), Tensor(scale, f32), shaped]
        attributes = {name: node.attributes[name].value for name in ("axis", "epsilon")}
        return graph.node(node.op_type, *inputs, **attributes)[0]
    return None


def root_mean_square(graph: Graph, a: Tensor, b: Tensor) -> Tensor | None:
    """Return the RMSNormalization that the product of x and 1 / sqrt(mean(x^2) + eps) is, None for other products."""
    if not graph.has("RMSNormalization"):
        return None
    for x, factor in ((a, b), (b, a)):
        one, root = _inputs(factor.value, "Div")
        mean, eps = _inputs(*_inputs(root, "Sqrt")[:1], "Add")
        power, axes = _inputs(mean, "ReduceMean")
        base, exponent = _inputs(power, "Pow")
        numbers = [_number(value) for value in (one, eps, axes, exponent)]
        if base is not x.value or None in numbers or x.element_type != f32 or x.rank is None:
            continue
        if numbers[0] == 1 and numbers[3] == 2 and numbers[2] == x.rank - 1 and x.shape[-1].is_static:
            ones = np.ones(x.shape[-1].length, np.float32)
            return graph.RMSNormalization(x, ones, axis=-1, epsilon=numbers[1])
    return None


def _inputs(value: ir.Value | None, op_type: str) -> tuple[ir.Value | None, ir.Value | None]:
    """Return the first two inputs of the node that computes a tensor; None if that is another operator."""
    node = None if value is None else value.producer()
    if node is None or node.op_type != op_type:
        return None, None
    first, second = (*node.inputs, None)[:2]
    return first, second


def _number(value: ir.Value | None) -> float | None:
    """Return the number in a constant of one element, which may be converted from another type, else None."""
    node = None if value is None else value.producer()
    if node is not None and node.op_type == "Cast":
        value = node.inputs[0]
    if value is None or value.const_value is None or value.const_value.size != 1:
        return None
    return float(value.const_value.numpy().item())


def _fits(parameter: Tensor, normal: Tensor, scale: ir.Value) -> bool:
    """Return whether a parameter has the shape of the scale, apart from sizes of 1 before it, and no higher rank than
    the result that it is broadcast to."""
    if not parameter.shape.is_static or scale.shape is None:
        return False
    sizes, wanted = parameter.shape.to_tuple(), tuple(scale.shape)
    extra = len(sizes) - len(wanted)
    is_broadcast = extra >= 0 and len(sizes) <= (normal.rank or 0)
    return is_broadcast and sizes[extra:] == wanted and set(sizes[:extra]) <= {1}


# --------------------------------------------------------------------------- given statistics


@exports(ops.BatchNormInference1, ops.BatchNormInference5, to="BatchNormalization")
def batch_norm(graph: Graph, op: ops.BatchNormInference1 | ops.BatchNormInference5, *inputs: Tensor) -> Tensor:
    """Export as BatchNormalization; in version 1, data comes third."""
    if isinstance(op, ops.BatchNormInference1):
        gamma, beta, data, mean, variance = inputs
    else:
        data, gamma, beta, mean, variance = inputs
    return graph.BatchNormalization(data, gamma, beta, mean, variance, epsilon=op.epsilon)
