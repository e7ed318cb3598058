"""The layers that diagnostics are about."""

from __future__ import annotations

from collections.abc import Iterable

from ovir.diagnostics.diagnostic import Diagnostic
from ovir.graph.layers import Layer
from ovir.model import Model


def diagnostics_by_layer(model: Model, diagnostics: Iterable[Diagnostic]) -> dict[Layer, list[Diagnostic]]:
    """Return the diagnostics of each layer, also of those in bodies; diagnostics of the file as a whole are left out.

    A layer whose id was changed because another layer has it, too, is found by its line.
    """
    layers = list(model.walk())
    by_title = {layer.title: layer for layer in layers}
    by_line = {layer.line: layer for layer in layers if layer.line is not None}
    found: dict[Layer, list[Diagnostic]] = {}
    for item in diagnostics:
        if item.layer is None:
            continue
        layer = by_title.get(item.layer) or by_line.get(item.line or 0)
        if layer is not None:
            found.setdefault(layer, []).append(item)
    return found
