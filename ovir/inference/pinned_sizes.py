"""Constants that fix a size which an input of the model leaves open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from ovir.core.shapes import Dimension
from ovir.diagnostics.codes import PINNED_SIZE
from ovir.diagnostics.diagnostic import Diagnostic, diagnose
from ovir.graph.constant_layers import constant_layers
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port

_RESIZING = ("Reshape", "Broadcast", "Interpolate")
"""Operations with an input of sizes. All but Reshape may have other sizes than their data on purpose, but not another
number of items; so may the others."""
_SLICING = ("Slice", "StridedSlice")
_OPEN = (1 << 31) - 1
"""The end of a slice from which on it is open."""
_MERGING = ("Concat", "MatMul")
"""Operations, besides the elementwise ones, whose inputs have equal sizes: data that was repeated for the items."""


def pinned_sizes(model: LayerGraph) -> Iterator[Diagnostic]:
    """Yield a warning for each layer whose result has the fixed sizes of a constant, whatever size an input has."""
    for layer, data, port, is_batch in pinned_layers(model):
        message = (
            f"a constant fixes the result to {layer.outputs[0].shape}, but its data has the shape "
            f"{data.shape}, as input '{port.any_name}' of shape {port.shape} leaves a size open"
        )
        hint = "`ovir edit --batch ?` lets constants follow the number of items"
        if not is_batch:
            names = " and ".join(f"'{own.source.layer.name}'" for own in layer.inputs[1:] if own.source is not None)
            hint = f"from the shape that {names} is for, `ovir edit --shape ... --adapt` lets constants follow"
        yield diagnose(PINNED_SIZE, message, layer.place, hint=hint)


def pinned_layers(model: LayerGraph) -> Iterator[tuple[Layer, Port, Port, bool]]:
    """Yield these layers, each with the data of open size, the input of the model that the size follows, and whether it
    is the number of items, taken from the first axis of an input."""
    by_symbol: dict[int, Port] = {}
    items: set[int] = set()
    for port in model.inputs:
        for axis, dim in enumerate(port.shape if port.shape.rank is not None else ()):
            if not dim.is_static:
                by_symbol.setdefault(dim.symbol, port)
                items |= {dim.symbol} if axis == 0 else set()
    for layer in model.walk() if by_symbol else ():
        pinned = None if layer.is_dead or not layer.outputs else _pinned(layer, by_symbol, items)
        if pinned is not None:
            data, symbol = pinned
            yield layer, data, by_symbol.get(symbol, next(iter(by_symbol.values()))), symbol in items


def _pinned(layer: Layer, by_symbol: Mapping[int, Port], items: Set[int]) -> tuple[Port, int] | None:
    """Return the input of a layer with an open size that a constant fixes, and the symbol of this size: that of the
    number of items if both are fixed."""
    result = layer.outputs[0].shape
    if result.rank is None or any(dim.symbol in items and not dim.is_static for dim in result):
        return None
    for data in layer.inputs:
        dims = list(enumerate(data.shape if data.shape.rank is not None else ()))
        places = {axis: dim.symbol for axis, dim in dims if not dim.is_static and dim.symbol in by_symbol}
        batch = {axis: symbol for axis, symbol in places.items() if symbol in items}
        if layer.type in _RESIZING:
            is_fixed = data.index == 0 and result.is_static and result.least_size and _has_constants(layer.inputs[1:2])
            if is_fixed and layer.type == "Reshape":  # a size that is computed from open ones has a symbol of its own
                sizes = batch or places or {axis: dim.symbol for axis, dim in dims if dim.upper is None}
            else:
                sizes = batch if is_fixed else {}
        elif layer.type in _SLICING:
            has_items = data.index == 0 and 1 < len(result) == data.shape.rank and _has_constants(layer.inputs[1:])
            pairs = batch.items() if has_items else ()
            sizes = {axis: symbol for axis, symbol in pairs if _is_cut(result[axis], data.shape[axis])}
        elif layer.type in _MERGING or hasattr(layer.operator, "auto_broadcast"):
            others = [other for other in layer.inputs if other is not data]
            sizes = {axis: symbol for axis, symbol in batch.items() if _is_merged(layer, data, axis, others)}
        else:
            sizes = {}
        if sizes:
            return data, next(iter(sizes.values()))
    return None


def _has_constants(ports: Sequence[Port]) -> bool:
    return bool(ports) and all(port.type.constant is not None for port in ports)


def _is_cut(dim: Dimension, whole: Dimension) -> bool:
    """Return whether the size of a slice has a bound that the size of the data does not have."""
    return dim.upper is not None and dim.upper < min(whole.upper or _OPEN, _OPEN)


def _is_merged(layer: Layer, data: Port, axis: int, others: Sequence[Port]) -> bool:
    """Return whether the result has the size of a constant along an axis that is counted from the last one."""
    place, result = axis - len(data.shape), layer.outputs[0].shape
    if len(result) < -place or not (dim := result[place]).is_static:  # a vector's axis is missing in a product
        return False
    aligned = (other for other in others if other.shape.rank is not None and len(other.shape) >= -place)
    equal = (other.source for other in aligned if other.shape[place].is_static and other.shape[place] == dim)
    return any(source is not None and constant_layers(source.layer) is not None for source in equal)
