"""Layers and tensors that are idle, nameless or named alike."""

from __future__ import annotations

from collections.abc import Iterator

from ovir.checks.rule import Context, diagnostic, rule
from ovir.diagnostics.codes import (
    DEAD_LAYER,
    DUPLICATE_NAME,
    NO_RESULT,
    OUTPUT_COUNT,
    RESULT_NAME,
    TENSOR_NAME,
    UNUSED_PARAMETER,
)
from ovir.diagnostics.diagnostic import Diagnostic, Place
from ovir.graph.layers import Layer, Port
from ovir.ir.elements import line_of


@rule(DEAD_LAYER, whole_graph=True)
def dead_layer(context: Context) -> Iterator[Diagnostic]:
    """Only the last layers of what is dead are told: the others follow. So do all where there is no result."""
    if all(layer.is_dead or layer.type == "Parameter" for layer in context.model.layers):
        return
    for layer in context.layers:
        if layer.is_dead and not any(port.readers for port in layer.outputs):
            yield diagnostic(DEAD_LAYER, "no result and no state depends on this layer; OpenVINO drops it", layer)


@rule(DUPLICATE_NAME)
def duplicate_name(context: Context) -> Iterator[Diagnostic]:
    """Legal, but whoever asks for a layer by name gets one of them; within each model."""
    for model in context.models:
        first: dict[str, Layer] = {}
        for layer in model.layers:
            other = first.setdefault(layer.name, layer)
            if other is not layer:
                yield diagnostic(
                    DUPLICATE_NAME, f"the name is also that of layer {other.id} on line {other.line}", layer
                )


@rule(TENSOR_NAME)
def tensor_name(context: Context) -> Iterator[Diagnostic]:
    """A tensor name finds an input or output of the model, so it must stand for one tensor."""
    for model in context.models:
        first: dict[str, Port] = {}
        for layer in model.layers:
            for port in layer.outputs:
                for name in port.names if len(port.names) < 2 else sorted(port.names):
                    other = first.setdefault(name, port)
                    if other is not port:
                        message = f"tensor name '{name}' is also that of {other.layer.title}"
                        yield diagnostic(TENSOR_NAME, message, port)


@rule(NO_RESULT, whole_graph=True)
def no_result(context: Context) -> Iterator[Diagnostic]:
    """A model that gives nothing; one that only assigns a state is told, too."""
    model = context.model
    if not model.outputs and not any(layer.type == "Result" for layer in model.layers):
        message = "the model has no Result: it gives nothing"
        yield diagnostic(NO_RESULT, message, Place(context.file, line_of(context.root)))


@rule(UNUSED_PARAMETER, whole_graph=True)
def unused_parameter(context: Context) -> Iterator[Diagnostic]:
    for model in context.models:
        for port in model.inputs:
            if not port.readers:
                yield diagnostic(UNUSED_PARAMETER, "nothing reads this Parameter", port.layer)


@rule(OUTPUT_COUNT)
def output_count(context: Context) -> Iterator[Diagnostic]:
    """Ports that the operation does not have. Inference tells of those that are read."""
    for layer in context.layers:
        has = sum(port.inferred is not None for port in layer.outputs)
        if layer.operator is None or not (has or layer.type == "Result"):
            continue
        if len(layer.outputs) > has and not any(port.readers for port in layer.outputs[has:]):
            message = f"the layer declares {len(layer.outputs)} outputs, {layer.type} has {has} here"
            yield diagnostic(OUTPUT_COUNT, message, layer.outputs[has])


@rule(RESULT_NAME)
def result_name(context: Context) -> Iterator[Diagnostic]:
    """Two outputs of different tensors that can both be meant by one name."""
    first: dict[str, Port] = {}
    for port in context.model.outputs:
        for name in sorted(port.names):
            other = first.setdefault(name, port)
            if other.source is None or port.source is None or other.source is port.source:
                continue
            if name not in other.source.names & port.source.names:  # for that OVIR214 is told
                yield diagnostic(RESULT_NAME, f"'{name}' also names the output at {other.layer.title}", port.layer)
