"""Rules about valid models that could be better."""

from __future__ import annotations

from collections.abc import Iterator

from ovir.checks.rule import Context, diagnostic, rule
from ovir.core.element_types import f64
from ovir.diagnostics.codes import CANCELLED, DOUBLE, NO_OP, UNKNOWN_RANK
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.graph.layers import Layer
from ovir.ops.base.traits import method_signature


@rule(NO_OP)
def no_op(context: Context) -> Iterator[Diagnostic]:
    for layer in context.layers:
        if layer.operator is None or len(layer.outputs) != 1 or not _has_its_inputs(layer):
            continue
        why = layer.operator.why_unchanged([port.type for port in layer.inputs], layer.outputs[0].type)
        if why is not None:
            yield diagnostic(NO_OP, f"the layer returns its input unchanged: {why}", layer)


@rule(CANCELLED)
def cancelled(context: Context) -> Iterator[Diagnostic]:
    """Report a permutation of axes that undoes the previous one."""
    for layer in context.layers:
        second = _permutation(layer)
        source = layer.inputs[0].source if second is not None else None
        first = _permutation(source.layer) if source is not None else None
        if first is None or second is None or len(first) != len(second) or first == sorted(first):
            continue
        if source is not None and [first[axis] for axis in second] == list(range(len(first))):
            yield diagnostic(CANCELLED, f"the layer undoes {source.layer.title}", layer)


def _permutation(layer: Layer) -> list[int] | None:
    if layer.operator is None or not _has_its_inputs(layer):
        return None
    return layer.operator.permutation([port.type for port in layer.inputs])


def _has_its_inputs(layer: Layer) -> bool:
    """Return whether the layer has inputs, and all that its operation requires."""
    operator = layer.operator
    if operator is None or not layer.inputs:
        return False
    return len(layer.inputs) >= method_signature(type(operator).infer).required


@rule(DOUBLE)
def double(context: Context) -> Iterator[Diagnostic]:
    """Report layers that return f64 but do not read it; later layers only follow."""
    for layer in context.layers:
        for port in layer.outputs:
            if (
                port.inferred is not None
                and port.inferred.element_type is f64
                and not any(p.element_type is f64 for p in layer.inputs)
            ):
                yield diagnostic(DOUBLE, "the layer returns f64, which CPU and GPU plugins compute in f32", layer)


@rule(UNKNOWN_RANK)
def unknown_rank(context: Context) -> Iterator[Diagnostic]:
    for port in context.model.inputs:
        if port.shape.rank is None:
            message = f"input '{port.any_name}' has an unknown rank: most devices cannot compile such a model"
            yield diagnostic(UNKNOWN_RANK, message, port.layer, hint="give it a shape with `model.reshape`")
