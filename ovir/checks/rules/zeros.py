"""The rule about weights that are all zero: a file whose bytes never arrived, or tensors that were never filled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ovir.checks.rule import Constant, Context, diagnostic, rule
from ovir.core.element_types import nf4
from ovir.diagnostics.codes import ZERO_WEIGHTS
from ovir.diagnostics.diagnostic import Diagnostic, Place
from ovir.diagnostics.text import plural
from ovir.graph.layers import Layer, Port
from ovir.ir.elements import line_of
from ovir.ops.base.traits import input_names
from ovir.ops.infrastructure import Const

_MOST_LAYERS = 10
"""Layers between a constant and the layer that multiplies with it; exporters write fewer."""


@rule(ZERO_WEIGHTS)
def zero_weights(context: Context) -> Iterator[Diagnostic]:
    """Report products and convolutions with zeros; once for the file if nearly all of its constants are zero.

    Other constants are often zero: biases, states, positions, and what is added where a model needs nothing.
    """
    if context.mostly_zero:
        zeros = sum(constant.is_zero for constant in context.filled)
        message = (
            f"{Path(context.weights.name).name} holds hardly anything but zeros: {zeros} of its "
            f"{plural(len(context.filled), 'constant')} of more than one number are all zero"
        )
        hint = "the file may have been made without its contents, such as by a copy that was interrupted"
        yield diagnostic(ZERO_WEIGHTS, message, Place(context.file, line_of(context.root)), hint=hint)
        return
    for layer in context.layers:
        if layer.operator is None or not layer.operator.multiplied:
            continue
        for name, port in zip(input_names(type(layer.operator)), layer.inputs, strict=False):
            if name in layer.operator.multiplied and (source := _zeros(port)) is not None:
                yield diagnostic(ZERO_WEIGHTS, f"the weights '{name}' are all zero: they are {source.title}", layer)


def _zeros(port: Port) -> Layer | None:
    """Return the constant of zeros that an input is, in another form or type; None for any other input."""
    for _ in range(_MOST_LAYERS):
        if port.source is None or (op := port.source.layer.operator) is None:
            return None
        layer = port.source.layer
        if isinstance(op, Const):
            return layer if op.element_type is not nf4 and Constant(op).is_zero else None  # code 0 of nf4 means -1
        keeps_zeros = op.converts or op.scales or op.quantizes or op.carries == (0,)
        if op.offsets and len(layer.inputs) == 2:
            keeps_zeros = _zeros(layer.inputs[1]) is not None
        if not keeps_zeros or not layer.inputs:
            return None
        port = layer.inputs[0]
    return None
