"""The windows of pooling operations in ONNX."""

from __future__ import annotations

from typing import Any

from ovir.core.shapes import Dimension
from ovir.export.graph import Graph
from ovir.export.tensors import Tensor
from ovir.export.windows import Pads, has_same_pads, padded, same_padded, static_pads, static_sizes, tap
from ovir.kernels.windows import extent
from ovir.ops.base.spatial import SAME, output_size
from ovir.ops.pooling import PoolBase


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
        self.given = static_pads(op, data, dims)
        """The pads that the operation gives, None if they are known in a run only."""
        self.pads = self._rounded_down()
        """The pads for windows that are rounded down, None if they are known in a run only."""
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
        found = same_padded(self.graph, self.op, data, self.kernel, len(self.kernel), fill)
        if self.op.rounding_type != "ceil":
            return found
        return padded(self.graph, found, [(0, stride - 1) for stride in self.strides], fill)

    def cut(self, pooled: Tensor, data: Tensor) -> Tensor:
        """Return the result without the windows of ceil_torch that start in the padding at the end."""
        graph = self.graph
        if self.sizes is not None or self.given is None or not self._drops():
            return pooled
        begins = [begin for begin, _ in self.given]
        reach = graph.Add(graph.Shape(data, start=2), [b + s - 1 for b, s in zip(begins, self.strides, strict=True)])
        axes = list(range(2, 2 + len(begins)))
        return graph.Slice(pooled, [0] * len(axes), graph.Div(reach, self.strides), axes)

    def combined(self, data: Tensor, operator: str) -> Tensor:
        """Return the elements of each window combined by Max or Sum, axis after axis; data has its padding."""
        axes = len(self.kernel)
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
            windows = self.op.windows(self.sizes, self.kernel)
            found = []
            for size, w in zip(self.sizes, windows, strict=True):
                numbers = size, w.kernel, w.stride, w.dilation, w.pad_begin, w.pad_end
                count = output_size(*numbers, self.op.rounding_type)
                reach = (count - 1) * w.stride + extent(w.kernel, w.dilation)
                found.append((w.pad_begin, max(reach - size - w.pad_begin, 0)))
            return found
        if self.given is None or self.op.rounding_type == "floor":
            return self.given
        if self.op.auto_pad in SAME and self.op.rounding_type != "ceil":
            return self.given
        return [(begin, end + stride - 1) for (begin, end), stride in zip(self.given, self.strides, strict=True)]

    def _drops(self) -> bool:
        assert self.given is not None
        axes = zip(self.given, self.strides, self.extents, strict=True)
        return self.op.rounding_type == "ceil_torch" and any(end + s > e for (_, end), s, e in axes)
