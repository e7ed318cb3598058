"""Why a dimension is dynamic: the input whose unknown size it comes from, or the layer that makes it depend on data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from ovir.core.tensor_types import TensorType
from ovir.graph.layers import Layer, Port
from ovir.graph.model import Model

DATA_DEPENDENT = frozenset({
    "NonZero", "Unique", "NonMaxSuppression", "MulticlassNms", "MatrixNms", "NMSRotated", "SparseFillEmptyRows",
    "StringTensorUnpack",
})  # fmt: skip
"""Operations with an output whose size only the values of tensors tell."""

SIZES_FROM = {
    "Broadcast": (1,), "EmbeddingSegmentsSum": (3,), "Eye": (0, 1, 3), "Interpolate": (1, 2), "OneHot": (1,),
    "Pad": (1, 2), "RandomUniform": (0,), "Range": (0, 1, 2), "Reshape": (1,), "SegmentMax": (2,),
    "Slice": (1, 2, 3, 4), "StridedSlice": (1, 2, 3), "Tile": (1,), "TopK": (1,), "VariadicSplit": (2,),
}  # fmt: skip
"""The inputs whose values make sizes of the output: where nothing is known of one, the size depends on data."""


class Cause(StrEnum):
    INPUT = "input"
    """The size of an input of the model."""
    COMPUTED = "computed"
    """Computed from other dynamic sizes."""
    DATA = "data"
    """Depends on the values of tensors, not on shapes alone."""
    DECLARED = "declared"
    """An operation whose shapes ovir does not infer: what the file says."""


@dataclass(frozen=True)
class Origin:
    """Where an unknown size first stands."""

    cause: Cause
    layer: Layer
    axis: int
    roots: tuple[str, ...]
    """The sizes it goes back to: of inputs, or of layers that make them from data; as ``image[0]``."""

    @property
    def name(self) -> str:
        return self.layer.outputs[0].any_name

    def __str__(self) -> str:
        return f"{self.name}[{self.axis}]"


def is_only_declared(layer: Layer) -> bool:
    """Whether ovir does not infer the operation: its shapes and types are what the file says."""
    return not hasattr(layer.operator, "infer")


class Origins:
    """The origin of every symbol of a model whose inference has passed."""

    def __init__(self, model: Model) -> None:
        self._by_symbol: dict[int, Origin] = {}
        self._add(model, None)

    def of(self, port: Port) -> Iterator[tuple[int, Origin]]:
        """The dynamic axes of a port, each with its origin."""
        if port.shape.rank is None:
            return
        for axis, dim in enumerate(port.shape):
            origin = self._by_symbol.get(dim.symbol)
            if not dim.is_static and origin is not None:
                yield axis, origin

    def explain(self, port: Port) -> str:
        """Why the dynamic dimensions of a port are so; an empty text for a static shape."""
        port = port.source or port
        if port.shape.rank is None:
            return "the rank is not known"
        alike: dict[tuple[Cause, Layer, tuple[str, ...]], list[tuple[int, int]]] = {}
        for axis, origin in self.of(port):
            roots = origin.roots if origin.cause is Cause.COMPUTED else ()
            alike.setdefault((origin.cause, origin.layer, roots), []).append((axis, origin.axis))
        return "; ".join(f"{_axes(a for a, _ in axes)} {self._reason(port, key, axes)}" for key, axes in alike.items())

    @staticmethod
    def _reason(port: Port, key: tuple[Cause, Layer, tuple[str, ...]], axes: list[tuple[int, int]]) -> str:
        cause, layer, roots = key
        why = {
            Cause.INPUT: "left open by the model" if layer is port.layer else "",
            Cause.COMPUTED: f"from {', '.join(roots) if len(roots) <= 4 else f'{len(roots)} dynamic sizes'}",
            Cause.DATA: "depends on data",
            Cause.DECLARED: "as the file declares",
        }[cause]
        if layer is port.layer:
            return why
        there = f"is {layer.outputs[0].any_name}{_axes(a for _, a in axes)}"
        return f"{there}, {why}" if why else there

    # ----- diagnostic them

    def _add(self, model: Model, outer: Layer | None) -> None:
        for layer in model.layers:
            for body in layer.bodies.values():
                self._add(body, layer)
            for port in layer.outputs:
                for axis, dim in enumerate(port.shape.dims if port.shape.rank is not None else ()):
                    if not dim.is_static and dim.symbol and dim.symbol not in self._by_symbol:
                        self._by_symbol[dim.symbol] = self._origin(layer, axis, outer)

    def _origin(self, layer: Layer, axis: int, outer: Layer | None) -> Origin:
        name = f"{layer.outputs[0].any_name}[{axis}]"
        if layer.type == "Parameter" and outer is None:
            return Origin(Cause.INPUT, layer, axis, (name,))
        if is_only_declared(layer):
            return Origin(Cause.DECLARED, layer, axis, (name,))
        # In a body, a size that is not that of an outer tensor was sliced or changes from one iteration to the next.
        source = outer if layer.type == "Parameter" and outer is not None else layer
        roots = self._roots(source)
        telling = [source.inputs[i] for i in SIZES_FROM.get(source.type, ()) if i < len(source.inputs)]
        if not roots or source.type in DATA_DEPENDENT or any(port.type.value is None for port in telling):
            return Origin(Cause.DATA, layer, axis, (name,))
        return Origin(Cause.COMPUTED, layer, axis, roots)

    def _roots(self, layer: Layer) -> tuple[str, ...]:
        """What the dynamic sizes in a layer's inputs go back to: those in shapes, and those that are values."""
        found: dict[str, None] = {}
        for port in layer.inputs:
            for symbol in _symbols(port.type):
                if symbol in self._by_symbol:
                    found.update(dict.fromkeys(self._by_symbol[symbol].roots))
        return tuple(found)


def _axes(axes: Iterable[int]) -> str:
    return f"[{','.join(map(str, axes))}]"


def _symbols(tensor: TensorType) -> Iterator[int]:
    if tensor.shape.rank is not None:
        yield from (dim.symbol for dim in tensor.shape if not dim.is_static)
    if tensor.value is not None and tensor.value.constant is None:
        yield from (int(symbol) for symbol in tensor.value.symbols.flat if symbol)
