"""Makes models of layers that the functions of an opset have created."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from ovir.building.creation import Call, create, port_of
from ovir.diagnostics.diagnostic import caller
from ovir.diagnostics.errors import InputError, ModelError
from ovir.graph.connections import require_own_bodies, set_scopes
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port, forget_readers, join
from ovir.graph.names import repeated_names, take_name
from ovir.graph.order import trace_back
from ovir.inference.models import infer_shapes
from ovir.ops.infrastructure import Result


def assembled(
    forms: Sequence[Callable[..., object]], arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[list[Layer], str]:
    """Return the layers for the arguments of ``Model``, joined and numbered, and the name of the model.

    ``forms`` are the two signatures of its ``__init__``, without and with sinks in the second place. The layers are
    those that results and sinks depend on.
    """
    bound = _bind(forms, arguments, keywords)
    parameters = _layers(bound["parameters"], "parameter", ("Parameter",))
    ends = [_result(item) for item in _items(bound["results"], "result")]
    others = _reachable([*ends, *_layers(bound["sinks"], "sink", ("Assign",))], parameters)
    layers = [*parameters, *others, *ends]
    for items, kind in ((parameters, "parameter"), (ends, "result")):
        if len(set(items)) < len(items):
            _refuse(f"a {kind} is listed twice")
    for layer in layers:
        if layer.owner is not None:
            hint = "copy that model with clone(), or create the layers again"
            _refuse(f"{layer.title} already belongs to a model", hint)
    require_own_bodies(layers)
    for name, first, port in repeated_names(layers):
        _refuse(f"{port.layer.title} has the tensor name '{name}', which {first.layer.title} has already")
    taken = {layer.name for layer in layers}
    for number, layer in enumerate(layers):
        layer.id = number
        layer.name = layer.name or take_name(f"{layer.type}_{number}", taken)
    for layer in layers:
        for port in layer.inputs:
            assert port.source is not None
            join(port.source, port)
    return layers, bound["name"]


def infer_assembled(graph: LayerGraph) -> None:
    """Infer a graph just made of ``assembled`` layers; if that fails, its layers are free again."""
    for layer in graph.file_order:
        set_scopes(layer)
    try:
        infer_shapes(graph)
    except ModelError:
        for layer in graph.file_order:
            layer.owner = None
            for port in layer.outputs:
                forget_readers(port)
        raise


def _refuse(message: str, hint: str | None = None) -> NoReturn:
    raise InputError.usage(message, caller(), hint=hint)


def _bind(
    forms: Sequence[Callable[..., object]], arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a call of ``Model`` by name; sinks come second if the parameters come third.

    The first of ``arguments`` is the model itself.
    """
    count = len(arguments)
    has_sinks = not isinstance(arguments[3], str) if count > 3 else count == 3 and "parameters" in keywords
    try:
        bound = inspect.signature(forms[has_sinks]).bind(*arguments, **keywords)
    except TypeError as error:
        hint = "Model.of_layers makes a model of exactly the given layers" if count == 2 else None
        _refuse(f"Model(results, parameters, name) or Model(results, sinks, parameters, name): {error}", hint)
    bound.apply_defaults()
    name = bound.arguments["name"]
    if not isinstance(name, str):
        _refuse(f"expected a text for the name of the model, got {name!r}")
    return bound.arguments


def _items(given: Any, kind: str) -> list[Layer | Port]:
    """Return the layers and ports of an argument, which is a list or a single one."""
    items = [given] if isinstance(given, (Layer, Port)) else list(given) if isinstance(given, Iterable) else [given]
    for item in items:
        if not isinstance(item, (Layer, Port)):
            _refuse(f"expected a layer or port for each {kind}, got {item!r}")
    return items


def _layers(given: Any, kind: str, types: Sequence[str]) -> list[Layer]:
    layers = [item.layer if isinstance(item, Port) else item for item in _items(given, kind)]
    for layer in layers:
        if layer.type not in types:
            _refuse(f"expected a {types[0]} for each {kind}, got {layer.title}")
    return layers


def _result(item: Layer | Port) -> Layer:
    if isinstance(item, Layer) and item.type == "Result":
        return item
    call = Call("Model", {"result": item})
    return create(call, Result(), [port_of(call, "results", item)], {})


def _reachable(ends: Sequence[Layer], parameters: Sequence[Layer]) -> list[Layer]:
    """Return the layers that others depend on, in the order of their creation, without ``parameters`` and Results."""
    reached, _ = trace_back(ends, lambda _: True)
    known = set(parameters)
    for layer in reached:
        for port in layer.inputs:
            if port.source is None:
                _refuse(f"input {port.index} of {layer.title} has no source")
        if layer.type == "Parameter" and layer not in known:
            _refuse(f"the results depend on {layer.title}, which is not among the parameters", "add it to their list")
    return sorted((x for x in reached if x not in known and x.type != "Result"), key=lambda layer: layer.id)
