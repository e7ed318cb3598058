"""Constants that fix a size which an input of the model leaves open."""

from __future__ import annotations

from collections.abc import Iterator

from ovir.diagnostics.codes import PINNED_SIZE
from ovir.diagnostics.diagnostic import Diagnostic, diagnose
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port

RESIZING = ("Broadcast", "Interpolate")
"""Operations whose result may have other sizes than their data on purpose, but not another number of items."""


def pinned_sizes(model: LayerGraph) -> Iterator[Diagnostic]:
    """Yield a warning for each layer whose result has the fixed sizes of a constant, whatever size an input has.

    A Reshape then fails for all sizes but one. The first axis of an input is taken for the number of items.
    """
    by_symbol: dict[int, Port] = {}
    items: set[int] = set()
    for port in model.inputs:
        for axis, dim in enumerate(port.shape if port.shape.rank is not None else ()):
            if not dim.is_static:
                by_symbol.setdefault(dim.symbol, port)
                items |= {dim.symbol} if axis == 0 else set()
    for layer in model.walk() if by_symbol else ():
        found = _open_input(layer, by_symbol, items)
        if found is not None:
            port, is_batch = found
            message = (
                f"a constant fixes the result to {layer.outputs[0].shape}, but its data has the shape "
                f"{layer.inputs[0].shape}, as input '{port.any_name}' of shape {port.shape} leaves a size open"
            )
            hint = "`ovir edit --batch ?` lets constants follow the number of items" if is_batch else None
            yield diagnose(PINNED_SIZE, message, layer.place, hint=hint)


def _open_input(layer: Layer, by_symbol: dict[int, Port], items: set[int]) -> tuple[Port, bool] | None:
    """Return the input of the model whose open size a layer fixes, and whether this is the number of items."""
    if layer.type not in ("Reshape", *RESIZING) or layer.is_dead or len(layer.inputs) < 2:
        return None
    data, sizes = layer.inputs[:2]
    result = layer.outputs[0].shape
    if data.shape.rank is None or not (result.is_static and result.least_size) or sizes.type.constant is None:
        return None
    symbols = [dim.symbol for dim in data.shape if not dim.is_static and dim.symbol in by_symbol]
    batch = [symbol for symbol in symbols if symbol in items]
    relevant = symbols if layer.type == "Reshape" else batch
    return (by_symbol[relevant[0]], bool(batch)) if relevant else None
