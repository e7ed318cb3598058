"""``ovir infer``: the shapes and types of every layer, and why they are dynamic."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from ovir.analysis.dynamic_dimensions import Origins, is_only_declared, name_of
from ovir.cli.arguments import add_command, add_json, add_model, add_shape, open_model
from ovir.cli.extensions import add_extension, load_extensions
from ovir.cli.output import complain_of, plural, say, say_json, say_table
from ovir.graph.layers import Layer, Port
from ovir.graph.model import Model
from ovir.runtime.listeners import all_layers


def add_to(commands: Any) -> None:
    parser = add_command(
        commands,
        "infer",
        run,
        "infer every layer's shapes and types, and say what is dynamic and why",
        "  ovir infer model.xml\n  ovir infer model.xml --shape data=1,?,224 --json\n",
    )
    add_model(parser)
    add_extension(parser)
    add_shape(parser)
    add_json(parser)
    parser.add_argument(
        "--legacy-io",
        action="store_true",
        help="read an IR of version 10 as OpenVINO does: inputs and outputs become f32 or i32",
    )


def run(arguments: argparse.Namespace) -> int:
    load_extensions(arguments.extension)
    model = open_model(arguments, legacy_io=arguments.legacy_io)
    complain_of(model.diagnostics)
    origins = Origins(model)
    if arguments.json:
        say_json(_as_json(model, origins))
    else:
        rows = (row for layer in all_layers(model) for row in _rows(layer, origins))
        say_table((">id", "layer", "type", "output", "why it is dynamic"), rows)
        say()
        say(_summary(model))
    return 0


def _rows(layer: Layer, origins: Origins) -> Iterator[tuple[str, ...]]:
    ports = layer.inputs if layer.type == "Result" else layer.outputs
    if not ports:
        yield str(layer.id), layer.scope + layer.name, layer.type, "", ""
    mark = " (only declared)" if is_only_declared(layer) else ""
    for port in ports:
        number, kind = ("", "") if port.index else (str(layer.id), layer.type)
        yield number, name_of(port), kind, f"{port.type}{mark}", origins.explain(port)


def _summary(model: Model) -> str:
    layers = list(all_layers(model))
    dynamic = sum(any(not port.shape.is_static for port in layer.outputs) for layer in layers)
    declared = sum(map(is_only_declared, layers))
    rest = f", {declared} with shapes that only the file declares, for ovir does not infer them" if declared else ""
    return f"{plural(len(layers), 'layer')}, {dynamic} of them with dynamic shapes{rest}"


def _as_json(model: Model, origins: Origins) -> dict[str, Any]:
    return {
        "name": model.name,
        "version": model.version,
        "inputs": [_port(port, origins) for port in model.inputs],
        "outputs": [_port(port, origins) for port in model.outputs],
        "layers": [_layer(layer, origins) for layer in all_layers(model)],
        "diagnostics": [found.to_dict() for found in model.diagnostics],
    }


def _layer(layer: Layer, origins: Origins) -> dict[str, Any]:
    return {
        "id": layer.id,
        "name": layer.name,
        **({"scope": layer.scope.rstrip("/")} if layer.scope else {}),
        "type": layer.type,
        "version": layer.version,
        "line": layer.line,
        "inferred": not is_only_declared(layer),
        "inputs": [{"shape": str(port.shape), "type": str(port.element_type)} for port in layer.inputs],
        "outputs": [_port(port, origins) for port in layer.outputs],
    }


def _port(port: Port, origins: Origins) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": port.any_name,
        "shape": str(port.shape),
        "type": str(port.element_type),
        "names": sorted(port.names),
    }
    dynamic = [
        {"axis": axis, "size": str(port.shape[axis]), "cause": o.cause, "origin": str(o), "from": o.roots}
        for axis, o in origins.of(port)
    ]
    if dynamic:
        entry["dynamic"] = dynamic
    return entry
