"""What is right, and could be better."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ovir.checks.rule import Context, diagnostic, rule
from ovir.core.element_types import f64
from ovir.diagnostics.codes import CANCELLED, DOUBLE, NO_OP, UNKNOWN_RANK
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.graph.layers import Layer


@rule(NO_OP)
def no_op(context: Context) -> Iterator[Diagnostic]:
    for layer in (layer for kind in ("Convert", "Reshape", "Transpose") for layer in context.by_type.get(kind, ())):
        if (why := _why_no_op(layer)) is not None:
            yield diagnostic(NO_OP, f"the layer hands on its input unchanged: {why}", layer)


def _why_no_op(layer: Layer) -> str | None:
    if len(layer.outputs) != 1 or not layer.inputs:
        return None
    data, output = layer.inputs[0], layer.outputs[0]
    if layer.type == "Convert" and data.element_type == output.element_type and not data.element_type.is_dynamic:
        return f"it converts {data.element_type} to {output.element_type}"
    if layer.type == "Reshape" and data.shape.is_static and data.shape == output.shape:
        return f"it reshapes {data.shape} to {output.shape}"
    if layer.type == "Transpose" and (order := _order(layer)) is not None and order == sorted(order):
        return f"it transposes by {order}"
    return None


@rule(CANCELLED)
def cancelled(context: Context) -> Iterator[Diagnostic]:
    """A Transpose that undoes the one before it."""
    for layer in context.by_type.get("Transpose", ()):
        source = layer.inputs[0].source if layer.inputs else None
        if source is None or source.layer.type != "Transpose":
            continue
        first, second = _order(source.layer), _order(layer)
        if first is None or second is None or len(first) != len(second) or first == sorted(first):
            continue
        if [first[axis] for axis in second] == list(range(len(first))):
            yield diagnostic(CANCELLED, f"the layer undoes {source.layer.title}", layer)


def _order(layer: Layer) -> list[int] | None:
    """The constant order of a Transpose."""
    order = layer.inputs[1].type.constant if len(layer.inputs) > 1 else None
    if order is None or not order.size:
        return None
    axes: list[int] = order.astype(np.int64, copy=False).ravel().tolist()
    return axes if sorted(axes) == list(range(len(axes))) else None


@rule(DOUBLE)
def double(context: Context) -> Iterator[Diagnostic]:
    """The first layer that has f64 from something else; those after it follow."""
    for layer in context.layers:
        for port in layer.outputs:
            if (
                port.inferred is not None
                and port.inferred.element_type is f64
                and not any(p.element_type is f64 for p in layer.inputs)
            ):
                yield diagnostic(DOUBLE, "f64 here; CPU and GPU plugins compute it in f32", layer)


@rule(UNKNOWN_RANK)
def unknown_rank(context: Context) -> Iterator[Diagnostic]:
    for port in context.model.inputs:
        if port.shape.rank is None:
            message = f"input '{port.any_name}' is of unknown rank: most devices cannot compile the model as it is"
            yield diagnostic(UNKNOWN_RANK, message, port.layer, hint="give it a shape with `model.reshape`")
