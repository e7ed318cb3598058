"""Rules about layers and tensors that are unused, unnamed or named alike."""

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
from ovir.diagnostics.text import plural
from ovir.graph.layers import Layer, Port
from ovir.graph.names import repeated_names
from ovir.ir.elements import line_of


@rule(DEAD_LAYER, needs_whole_graph=True)
def dead_layer(context: Context) -> Iterator[Diagnostic]:
    """Report the last layers of each dead part; nothing if the model has no result, because then all layers are
    dead."""
    if all(layer.is_dead or layer.type == "Parameter" for layer in context.model.layers):
        return
    for layer in context.layers:
        if layer.is_dead and not any(port.readers for port in layer.outputs):
            yield diagnostic(DEAD_LAYER, "no result and no variable depends on this layer; OpenVINO drops it", layer)


@rule(DUPLICATE_NAME)
def duplicate_name(context: Context) -> Iterator[Diagnostic]:
    """Report layers of one model that share a name; this is legal, but a lookup by name finds only one of them."""
    for model in context.models:
        first: dict[str, Layer] = {}
        for layer in model.layers:
            other = first.setdefault(layer.name, layer)
            if other is not layer:
                yield diagnostic(DUPLICATE_NAME, f"layer {other.id} on line {other.line} has the same name", layer)


@rule(TENSOR_NAME)
def tensor_name(context: Context) -> Iterator[Diagnostic]:
    """Report tensor names that are not unique; inputs and outputs of the model are looked up by them."""
    for model in context.models:
        for name, other, port in repeated_names(model.layers):
            if port.is_output:
                yield diagnostic(TENSOR_NAME, f"{other.layer.title} has the same tensor name '{name}'", port)


@rule(NO_RESULT, needs_whole_graph=True)
def no_result(context: Context) -> Iterator[Diagnostic]:
    """Report a model without a result, even if it assigns a variable."""
    model = context.model
    if not model.outputs and not any(layer.type == "Result" for layer in model.layers):
        message = "the model has no Result: it has no outputs"
        yield diagnostic(NO_RESULT, message, Place(context.file, line_of(context.root)))


@rule(UNUSED_PARAMETER, needs_whole_graph=True)
def unused_parameter(context: Context) -> Iterator[Diagnostic]:
    for model in context.models:
        for port in model.inputs:
            if not port.readers:
                yield diagnostic(UNUSED_PARAMETER, "nothing reads this Parameter", port.layer)


@rule(OUTPUT_COUNT)
def output_count(context: Context) -> Iterator[Diagnostic]:
    """Report unread ports that the operation does not have; inference reports those that are read."""
    for layer in context.layers:
        has = sum(port.inferred is not None for port in layer.outputs)
        if layer.operator is None or not (has or layer.type == "Result"):
            continue
        if len(layer.outputs) > has and not any(port.readers for port in layer.outputs[has:]):
            message = f"the layer declares {plural(len(layer.outputs), 'output')}, but {layer.type} has {has}"
            yield diagnostic(OUTPUT_COUNT, message, layer.outputs[has])


@rule(RESULT_NAME)
def result_name(context: Context) -> Iterator[Diagnostic]:
    """Report a name of two outputs that are different tensors."""
    first: dict[str, Port] = {}
    for port in context.model.outputs:
        for name in sorted(port.names):
            other = first.setdefault(name, port)
            if other.source is None or port.source is None or other.source is port.source:
                continue
            if name not in other.source.names & port.source.names:  # this case is OVIR214
                yield diagnostic(
                    RESULT_NAME, f"'{name}' is also the name of the output at {other.layer.title}", port.layer
                )
