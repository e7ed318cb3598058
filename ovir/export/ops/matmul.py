"""MatMul, GroupedMatMul, Einsum and Inverse."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

from ovir.core.element_types import f32, i32, i64
from ovir.core.shapes import PartialShape
from ovir.export.block_quantized import in_blocks, product
from ovir.export.exporters import exports
from ovir.export.loops import LoopStep, loop
from ovir.export.onnx_graph import LAST, Graph, Tensor
from ovir.ops.compressed import Codes
from ovir.ops.matmul import Einsum, GroupedMatMul, Inverse, MatMul


@exports(MatMul, to="MatMul, with Transpose where an input is transposed")
def matmul(graph: Graph, op: MatMul, a: Tensor, b: Tensor, *, codes: Sequence[Codes | None] = ()) -> Tensor | None:
    """Export as MatMul; products of integers of at most 8 bits are summed in 32 bits and saturate."""
    if codes:
        return _of_codes(graph, op, a, codes[1])
    element_type = op.output_types[0]
    if element_type.is_integral and element_type.bits < 32:
        wide = i32 if element_type.bits < 16 else i64
        a, b = (graph.shaped(graph.cast(x, wide), x.shape) for x in (a, b))
    result = graph.MatMul(_oriented(graph, a, op.transpose_a), _oriented(graph, b, op.transpose_b))
    if element_type.is_integral and element_type.bits < 16:
        return graph.saturated(result, element_type)
    return result


def _of_codes(graph: Graph, op: MatMul, a: Tensor, codes: Codes | None) -> Tensor | None:
    """Return a product with a compressed matrix by MatMulNBits, where that may be used; for the engine, only where it
    is faster."""
    is_possible = codes is not None and graph.contrib and op.transpose_b and a.element_type.is_real
    blocks = in_blocks(codes) if codes is not None and is_possible else None
    if blocks is None or not a.rank:
        return None
    is_faster = blocks.rows * blocks.columns > _LEAST_CODES and (graph.rounds_products or _rows(op, a) <= _MOST_ROWS)
    if graph.needs_kernels and not is_faster:
        return None
    return product(graph, graph.cast(_oriented(graph, a, op.transpose_a), f32), blocks)


_LEAST_CODES = 1 << 16
"""With fewer codes, a product takes longer from codes. With 16 times as many, a token of a decoder with 8-bit codes
takes 1.4 times as long."""

_MOST_ROWS = 16
"""With more rows, a product takes longer from codes than from weights that are decompressed once."""


def _rows(op: MatMul, a: Tensor) -> int:
    """Return the number of rows that are multiplied, 0 if it is unknown."""
    sizes = list(a.shape)
    sizes.pop(-2 if op.transpose_a and len(sizes) > 1 else -1)
    return prod(size.length for size in sizes) if all(size.is_static for size in sizes) else 0


def _oriented(graph: Graph, x: Tensor, transpose: bool) -> Tensor:
    return graph.swapped(x) if transpose and graph.rank(x) > 1 else x


@exports(
    GroupedMatMul,
    to="MatMul; with offsets: Slice and MatMul per group, and Concat",
    limits="with offsets, the number of groups must be static, and the groups must cover all rows",
)
def grouped_matmul(graph: Graph, op: GroupedMatMul, a: Tensor, b: Tensor, offsets: Tensor | None = None) -> Tensor:
    """Export as MatMul; where offsets divide the rows, as a MatMul for each group."""
    matrices = graph.swapped(b)
    if graph.rank(a, "a") == 3:
        return graph.MatMul(a, matrices)
    assert offsets is not None
    graph.require(b.shape[0].is_static, "the number of groups of b of shape {} is dynamic", b.shape)
    ends = graph.cast(offsets, i64)
    products = []
    start = graph.constant([0])
    for group in range(b.shape[0].length):
        end = graph.Slice(ends, [group], [group + 1])
        rows = graph.Slice(a, start, end, [0])
        products.append(graph.MatMul(rows, graph.Gather(matrices, group, axis=0)))
        start = end
    return graph.Concat(*products, axis=0)


@exports(Einsum, to="Einsum; Pad before it for summed axes that may be empty")
def einsum(graph: Graph, op: Einsum, *inputs: Tensor) -> Tensor:
    """Export as Einsum, with an explicit output, and with equally many dimensions in each ``...``."""
    subscripts, output = op.subscripts(len(inputs))
    if any("." in subscript for subscript in subscripts):
        hidden = [graph.rank(x) - len(s) + 1 for x, s in zip(inputs, subscripts, strict=True) if "." in s]
        arguments = zip(inputs, subscripts, strict=True)
        inputs = tuple(_filled_up(graph, x, subscript, max(hidden)) for x, subscript in arguments)
    if len(inputs) > 1:
        inputs = _with_elements(graph, inputs, subscripts, output)
    equation = f"{','.join(subscripts)}->{output}".replace(".", "...")
    return graph.Einsum(*inputs, equation=equation)


def _with_elements(
    graph: Graph, inputs: tuple[Tensor, ...], subscripts: Sequence[str], output: str
) -> tuple[Tensor, ...]:
    """Return inputs with a zero at the end of each summed axis that may be empty: such an axis ends the process in
    onnxruntime."""
    ranks = [graph.rank(x) if "." in s else len(s) for x, s in zip(inputs, subscripts, strict=True)]
    # As many labels as dimensions: each "..." stands for one dimension or more, or for none.
    labels = [s.replace(".", "." * (rank - len(s) + 1)) for s, rank in zip(subscripts, ranks, strict=True)]
    solid = {
        label
        for x, given in zip(inputs, labels, strict=True)
        for axis, label in enumerate(given)
        if x.rank is not None and not x.shape[axis].contains(0)
    }
    kept = {*solid, *output, "."}
    padded = []
    for x, given in zip(inputs, labels, strict=True):
        ends = [int(label not in kept) for label in given]
        padded.append(graph.Pad(x, [0] * len(ends) + ends) if any(ends) else x)
    return tuple(padded)


def _filled_up(graph: Graph, x: Tensor, subscript: str, hidden: int) -> Tensor:
    """Return an input whose ``...`` has a number of dimensions; those it lacks are added in front, with size 1."""
    start = subscript.find(".")
    missing = 0 if start < 0 else hidden - (graph.rank(x) - len(subscript) + 1)
    if not missing:
        return x
    wider = graph.Unsqueeze(x, list(range(start, start + missing)))
    return graph.shaped(wider, x.shape.slice(0, start) + PartialShape([1] * missing) + x.shape.slice(start))


@exports(Inverse, to="Loop of elimination steps", limits="the result for a singular matrix is infinite or NaN")
def inverse(graph: Graph, op: Inverse, data: Tensor) -> Tensor:
    """Export as a Loop, with the largest element of a column as its pivot; the decomposition needs known sizes."""
    rank = graph.rank(data)
    size = graph.size_of(data, rank - 1)
    sides = graph.Shape(data, start=rank - 2)
    matrices = graph.Reshape(graph.cast(data, f32), graph.Concat([-1], sides, axis=0))
    identity = graph.EyeLike(graph.ConstantOfShape(sides, element_type=f32), element_type=f32)
    beside = graph.Concat(matrices, graph.Expand(identity, graph.Shape(matrices)), axis=2)
    (solved,) = loop(graph, size, [graph.shaped(beside, [-1, -1, -1])], partial(_eliminated, size))
    right = graph.Slice(solved, size, [LAST], [2])
    found = graph.Reshape(right, graph.Shape(data))
    return graph.swapped(graph.shaped(found, data.shape)) if op.adjoint else found


def _eliminated(size: Tensor, body: Graph, step: Tensor, states: Sequence[Tensor]) -> LoopStep:
    """Return matrices of shape [batch, n, 2n] after the row operations that make a column of the identity."""
    (state,) = states
    rows = body.Unsqueeze(body.positions_below(size), [0])
    column = body.Gather(state, step, axis=2)
    candidates = body.Where(body.Less(rows, step), -1, body.Abs(column))
    pivot = body.ArgMax(candidates, axis=1)
    # The rows of the step and of the pivot change places.
    order = body.Where(body.Equal(rows, pivot), step, body.Where(body.Equal(rows, step), pivot, rows))
    wide = body.Expand(body.Unsqueeze(order, [2]), body.Shape(state))
    swapped_rows = body.GatherElements(state, wide, axis=1)
    top = body.Unsqueeze(body.Gather(swapped_rows, step, axis=1), [1])
    scaled = body.Div(top, body.Unsqueeze(body.Gather(top, step, axis=2), [2]))
    factors = body.Unsqueeze(body.Gather(swapped_rows, step, axis=2), [2])
    reduced = body.Sub(swapped_rows, body.Mul(factors, scaled))
    is_step = body.Unsqueeze(body.Equal(rows, step), [2])
    return LoopStep([body.Where(is_step, scaled, reduced)])
