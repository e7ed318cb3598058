"""Groups of ONNX nodes that many exporters need: rounding, saturation, real functions of integers, aligned inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from ovir.core.element_types import ElementType, boolean, f32, f64, i4, i32, u1, u2, u3, u4, u6
from ovir.core.shapes import PartialShape
from ovir.export.onnx_graph import Graph, Tensor
from ovir.kernels.precision import integer_range
from ovir.ops.base.elementwise import ElementwiseBase

NARROW = (u1, u2, u3, u4, u6)
"""Unsigned types whose elements are held in a wider type, of which only the low bits count."""

Function = Callable[[Tensor], Tensor]


# ----- integers and real numbers


def of_reals(graph: Graph, data: Tensor, function: Function) -> Tensor:
    """Return a real function of data: integers are computed in f64 and rounded, and narrow real numbers in f32."""
    element_type = data.element_type
    if not element_type.is_real:
        return graph.cast(graph.Round(function(graph.cast(data, f64))), element_type)
    if element_type in (f32, f64):
        return function(data)
    return graph.cast(function(graph.cast(data, f32)), element_type)


def real_type(tensor: Tensor) -> ElementType:
    """Return the type in which the real numbers of a tensor are computed: f64 stays, all others become f32."""
    return f64 if tensor.element_type == f64 else f32


def summed_in(tensor: Tensor) -> ElementType:
    """Return the type in which numbers are summed: narrow ones are rounded or wrap around once, at the end."""
    if tensor.element_type.is_real:
        return real_type(tensor)
    return i32 if tensor.element_type.bits < 8 or tensor.element_type == boolean else tensor.element_type


def saturated(graph: Graph, data: Tensor, element_type: ElementType) -> Tensor:
    """Return numbers of a wider type clipped to the range of an integer type, and converted to it."""
    low, high = integer_range(element_type.to_dtype())
    if element_type.bits == 64:  # NumPy would round 2^63 - 1 to 2^63
        return graph.cast(data, element_type)
    return graph.cast(graph.Clip(data, low, high), element_type)


def wrapped(graph: Graph, data: Tensor, element_type: ElementType) -> Tensor:
    """Return the low bits of integers, as many as their type has, where a wider type holds its elements."""
    if data.element_type.bits <= element_type.bits:
        return data
    if element_type == i4:
        return graph.Sub(graph.Mod(graph.Add(data, 8), 16), 8)
    if element_type not in NARROW:
        return data
    return graph.Mod(data, 1 << element_type.bits)


def truncated(graph: Graph, data: Tensor) -> Tensor:
    """Return real numbers rounded towards 0."""
    return graph.Mul(graph.Sign(data), graph.Floor(graph.Abs(data)))


def rounded_away(graph: Graph, data: Tensor) -> Tensor:
    """Return real numbers rounded to the nearest integer, and halves away from 0."""
    # Adding 0.5 itself would round its predecessor up to 1.
    half = 0.5 - float(ml_dtypes.finfo(data.element_type.to_dtype()).eps) / 4  # type: ignore[no-untyped-call]
    return graph.Mul(graph.Sign(data), graph.Floor(graph.Add(graph.Abs(data), half)))


# ----- inputs beside each other


def aligned(graph: Graph, op: ElementwiseBase, a: Tensor, b: Tensor) -> Tensor:
    """Return ``b`` in a shape that ONNX broadcasts to the shape of ``a``, by the mode of the operation."""
    if op.auto_broadcast != "pdpd" or op.axis == -1:
        return b
    rank, count = graph.rank(a, "a"), graph.rank(b, "b")
    extra = rank - op.axis - count
    if extra >= 0:
        return with_trailing(graph, b, extra)
    beyond = list(range(max(count + extra, 0), count))  # sizes of 1 beyond the rank of a
    return graph.Squeeze(b, beyond) if beyond else b


def with_trailing(graph: Graph, data: Tensor, count: int) -> Tensor:
    """Return the tensor with a number of further dimensions of size 1 at its end."""
    if count == 0:
        return data
    if data.constant is not None:
        return graph.constant(data.constant.reshape(*data.constant.shape, *[1] * count), data.element_type)
    rank = graph.rank(data)
    shaped = graph.Unsqueeze(data, list(range(rank, rank + count)))
    return graph.shaped(shaped, data.shape + PartialShape([1] * count))


def per_channel(graph: Graph, parameter: Tensor, data: Tensor) -> Tensor:
    """Return one number per channel, shaped to be broadcast to data, whose second dimension is the channels."""
    return with_trailing(graph, parameter, graph.rank(data) - 2)


def scalar(tensor: Tensor) -> float | None:
    """Return the number in a constant of one element, None for other tensors."""
    if tensor.constant is None or tensor.constant.size != 1:
        return None
    return float(tensor.constant.reshape(()).astype(np.float64))


def swapped(graph: Graph, data: Tensor) -> Tensor:
    """Return matrices transposed: the last two dimensions are swapped."""
    rank = graph.rank(data)
    order = [*range(rank - 2), rank - 1, rank - 2]
    shape = PartialShape([data.shape[axis] for axis in order])
    return graph.shaped(graph.Transpose(data, perm=order), shape)


def split_evenly(graph: Graph, data: Tensor, count: int, axis: int) -> list[Tensor]:
    """Return equal parts of data along an axis."""
    given: dict[str, Any] = {"num_outputs": count} if graph.has("Split", 18) else {}
    return graph.node("Split", data, outputs=count, axis=axis, **given)


def reduced(graph: Graph, op_type: str, data: Tensor, axes: Sequence[int] | Tensor, *, keep: bool = True) -> Tensor:
    """Return a reduction along axes, which are an input in newer opsets, and an attribute before."""
    since = 13 if op_type == "ReduceSum" else 18
    if graph.opset >= since:
        listed: Tensor | list[int] = axes if isinstance(axes, Tensor) else list(axes)
        return graph.node(op_type, data, listed, keepdims=int(keep), noop_with_empty_axes=1)[0]
    if isinstance(axes, Tensor):
        graph.fail("{} with computed axes needs opset {} of ONNX", op_type, since)
    return graph.node(op_type, data, axes=list(axes), keepdims=int(keep))[0] if axes else data
