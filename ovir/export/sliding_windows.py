"""Sliding windows in ONNX: pads, taps, and sums over them, for convolutions and pooling."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from math import prod
from typing import Any

from ovir.core.element_types import i32, i64
from ovir.core.shapes import Dimension, PartialShape
from ovir.export.onnx_graph import LAST, Graph, Operand, Tensor
from ovir.kernels.windows import extent
from ovir.ops.base.spatial import SAME, UndilatedWindowBase
from ovir.ops.pooling import PoolBase

Pads = list[tuple[int, int]]
"""The pads at the beginning and end of each spatial axis; negative ones crop."""


def static_sizes(dims: Iterable[Dimension]) -> list[int] | None:
    """Return the lengths of dimensions, None if some are unknown."""
    known = list(dims)
    return [dim.length for dim in known] if all(dim.is_static for dim in known) else None


def padded(graph: Graph, data: Tensor, pads: Pads | tuple[Tensor, Tensor], value: Any = None) -> Tensor:
    """Return data [N, C, *spatial] padded with zeros or a value on its spatial axes; the data itself for zero pads."""
    begin, end = pads if isinstance(pads, tuple) else (graph.constant([pad[side] for pad in pads]) for side in (0, 1))
    if begin.constant is not None and end.constant is not None and not (begin.constant.any() or end.constant.any()):
        return data
    none = graph.constant([0, 0])
    made = graph.Pad(data, graph.Concat(none, begin, none, end, axis=0), value)
    return graph.shaped(made, PartialShape(None if data.rank is None else [-1] * data.rank))


def spatial_pads(graph: Graph, op: UndilatedWindowBase, data: Tensor, taps: Tensor, axes: int) -> tuple[Tensor, Tensor]:
    """Return the pads at the beginning and end of the spatial axes; ``taps`` are the sizes of a window."""
    strides, dilations, begins, ends = (list(items) for items in op.per_axis(axes))
    if op.auto_pad == "valid":
        begins = ends = [0] * axes
    if op.auto_pad not in SAME:
        return graph.constant(begins), graph.constant(ends)
    # With steps of 1 the pads are the same for every size.
    known = static_sizes(Dimension(1, 1) if step == 1 else data.shape[2 + axis] for axis, step in enumerate(strides))
    size = graph.Shape(data, start=2) if known is None else graph.constant(known)
    return same_pads(graph, op.auto_pad, size, graph.Add(graph.Mul(graph.Sub(taps, 1), dilations), 1), strides)


def same_pads(
    graph: Graph, auto_pad: str, size: Tensor, extents: Operand, strides: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """Return the pads that same_upper or same_lower means for these sizes, extents of windows and strides."""
    # Division of positive numbers rounds down: (size - 1) // stride is the number of windows less one.
    steps = graph.Mul(graph.Div(graph.Sub(size, 1), strides), strides)
    total = graph.Max(graph.Sub(graph.Add(steps, extents), size), 0)
    less = graph.Div(total, 2)
    more = graph.Sub(total, less)
    return (less, more) if auto_pad == "same_upper" else (more, less)


def known_pads(pads: tuple[Tensor, Tensor]) -> Pads | None:
    """Return the pads of each axis, None if they are known only in a run."""
    begin, end = (tensor.constant for tensor in pads)
    return None if begin is None or end is None else list(zip(begin.tolist(), end.tolist(), strict=True))


def has_same_pads(op: UndilatedWindowBase, kernel: Sequence[Dimension]) -> bool:
    """Return whether SAME_UPPER and SAME_LOWER of ONNX choose the pads of auto_pad for every size.

    onnxruntime refuses dilations, and crops where the stride is larger than the window.
    """
    strides, dilations, _, _ = op.per_axis(len(kernel))
    reaches = all(dim.lower >= stride for dim, stride in zip(kernel, strides, strict=True))
    return op.auto_pad in SAME and reaches and set(dilations) == {1}


def tap(
    graph: Graph,
    data: Tensor,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    at: Sequence[int],
) -> Tensor:
    """Return the elements that one tap reads in all windows over padded data, [N, C, *windows]."""
    starts = [t * d for t, d in zip(at, dilations, strict=True)]
    # The last window ends at or before the end of the data, so the tap's last position is as far before it.
    rest = [extent(k, d) - 1 - start for k, d, start in zip(kernel, dilations, starts, strict=True)]
    ends = [-r or LAST for r in rest]
    axes = range(2, 2 + len(starts))
    return graph.Slice(data, starts, ends, list(axes), list(strides))


def summed_products(
    graph: Graph, data: Tensor, filters: Tensor, strides: Sequence[int], dilations: Sequence[int]
) -> Tensor:
    """Return the convolution of padded data with filters [groups, outputs, inputs, *kernel], as matrix products.

    This is for element types that Conv does not take. Integers wrap around.
    """
    groups, outputs, depth, *kernel = graph.sizes(filters, "filters")
    own = data.element_type
    held = own if not own.is_integral else i64 if own.bits > 32 else i32  # in which sums wrap around as in their own
    data, filters = (graph.cast(t, held) for t in (data, filters))
    weights = graph.Reshape(filters, [groups, outputs, depth, prod(kernel)])
    terms, part = [], None
    for number, at in enumerate(product(*map(range, kernel))):
        part = tap(graph, data, kernel, strides, dilations, at)
        columns = graph.Reshape(part, [0, groups, depth, -1])
        terms.append(graph.MatMul(graph.Gather(weights, graph.constant(number), axis=3), columns))
    assert part is not None
    total = terms[0]
    for term in terms[1:]:
        total = graph.Add(total, term)
    shape = graph.Concat(graph.constant([0, groups * outputs]), graph.Shape(part, start=2), axis=0)
    return graph.cast(graph.Reshape(total, shape), own)


# --------------------------------------------------------------------------- windows of pooling operations


_MOST_TAPS = 4096
"""Each tap of a window whose elements are combined one by one is a node."""


class PoolWindows:
    """The windows of a pooling operation over data, as windows that are rounded down.

    With ceil_mode, ONNX drops windows that start in the end padding, and counts the elements of windows beyond it in
    another way; so larger pads at the end stand for rounding up.
    """

    def __init__(self, graph: Graph, op: PoolBase, data: Tensor) -> None:
        self.graph, self.op = graph, op
        self.kernel = list(op.kernel)
        axes = len(self.kernel)
        strides, dilations, _, _ = op.per_axis(axes)
        self.strides, self.dilations = list(strides), list(dilations)
        self.extents = [extent(k, d) for k, d in zip(self.kernel, self.dilations, strict=True)]
        dims = [Dimension(k, k) for k in self.kernel]
        self.sizes = static_sizes([data.shape[2 + axis] for axis in range(axes)])
        self.amounts = spatial_pads(graph, op, data, graph.constant(self.kernel), axes)
        """The pads that the operation gives at the beginning and end of its axes, as tensors."""
        self.given = known_pads(self.amounts)
        """The same as numbers, None if they are known only in a run."""
        self.pads = self._rounded_down()
        """The pads for windows that are rounded down, None if they are known only in a run."""
        is_same = self.pads is None and has_same_pads(op, dims)
        self.auto_pad = op.auto_pad.upper() if is_same else None

    @property
    def are_plain(self) -> bool:
        """Return whether attributes of ONNX's pooling express the pads. onnxruntime wants them smaller than the
        kernel."""
        if self.pads is None:
            return self.auto_pad is not None
        return all(max(pads) < k for pads, k in zip(self.pads, self.kernel, strict=True))

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of MaxPool and AveragePool; without pads unless they are plain."""
        found: dict[str, Any] = {"kernel_shape": self.kernel, "strides": self.strides}
        if set(self.dilations) != {1}:
            found["dilations"] = self.dilations
        if not self.are_plain:
            return found
        if self.pads is None:
            return found | {"auto_pad": self.auto_pad}
        return found | {"pads": [begin for begin, _ in self.pads] + [end for _, end in self.pads]}

    def around(self, data: Tensor, fill: Tensor | None = None) -> Tensor:
        """Return data within its padding of zeros or ``fill``."""
        if self.pads is not None:
            return padded(self.graph, data, self.pads, fill)
        found = padded(self.graph, data, self.amounts, fill)
        if self.op.rounding_type != "ceil":
            return found
        return padded(self.graph, found, [(0, stride - 1) for stride in self.strides], fill)

    def cut(self, pooled: Tensor, data: Tensor) -> Tensor:
        """Return the result without the windows of ceil_torch that start in the padding at the end."""
        graph = self.graph
        if self.sizes is not None or self.given is None or self.op.rounding_type != "ceil_torch":
            return pooled
        axes_of_windows = zip(self.given, self.strides, self.extents, strict=True)
        if all(end + stride <= extent for (_, end), stride, extent in axes_of_windows):
            return pooled
        begins = [begin for begin, _ in self.given]
        reach = graph.Add(graph.Shape(data, start=2), [b + s - 1 for b, s in zip(begins, self.strides, strict=True)])
        axes = list(range(2, 2 + len(begins)))
        return graph.Slice(pooled, [0] * len(axes), graph.Div(reach, self.strides), axes)

    def combined(self, data: Tensor, operator: str) -> Tensor:
        """Return the elements of each window combined by Max or Sum, axis after axis; data has its padding."""
        axes = len(self.kernel)
        message = "windows of {} would be more than {} nodes"
        self.graph.require(sum(self.kernel) <= _MOST_TAPS, message, list(self.kernel), _MOST_TAPS)
        for axis, taps in enumerate(self.kernel):
            ones = [1] * axes
            kernel, strides, dilations = (
                [*ones[:axis], items[axis], *ones[axis + 1 :]] for items in (self.kernel, self.strides, self.dilations)
            )
            parts = [
                tap(self.graph, data, kernel, strides, dilations, [0] * axis + [at] + [0] * (axes - axis - 1))
                for at in range(taps)
            ]
            data = parts[0]
            for part in parts[1:]:
                data = getattr(self.graph, operator)(data, part)
        return data

    def _rounded_down(self) -> Pads | None:
        if self.sizes is not None:
            windows, counts = self.op.windows(self.sizes, self.kernel, self.op.rounding_type)
            found = []
            for size, w, count in zip(self.sizes, windows, counts, strict=True):
                reach = (count - 1) * w.stride + extent(w.kernel, w.dilation)
                found.append((w.pad_begin, max(reach - size - w.pad_begin, 0)))
            return found
        if self.given is None or self.op.rounding_type == "floor":
            return self.given
        if self.op.auto_pad in SAME and self.op.rounding_type != "ceil":
            return self.given
        return [(begin, end + stride - 1) for (begin, end), stride in zip(self.given, self.strides, strict=True)]
