"""``ovir infer``: infer every layer's shapes and types, and explain which are dynamic.

Examples:
  ovir infer model.xml
  ovir infer model.xml --shape data=1,?,224 --json
  ovir infer model.xml --no-weights
  ovir infer model.xml --dynamic --filter encoder

If a layer is at fault, the types that the file declares are shown, marked as (only declared).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from ovir.analysis.dynamic_dimensions import SizeOrigins, is_only_declared, name_of
from ovir.checks.recovering import Recovered
from ovir.cli.options.command import Command, Options
from ovir.cli.options.model import ModelOptions
from ovir.cli.options.values import pattern
from ovir.cli.terminal.output import say, say_filled, say_json, say_table, status_of
from ovir.core.json_fields import json_fields
from ovir.core.tables import Table, columns
from ovir.diagnostics.wording import plural
from ovir.graph.constant_layers import all_constant_layers
from ovir.graph.layers import Layer, Port
from ovir.model import Model


def add_to(command: Command) -> None:
    command.add(ModelOptions("no-weights", "shape", "legacy-io"))
    command.option("--filter REGEX", "show the layers whose names match", pattern)
    command.option("--no-constants", "leave out constants, and what is computed from constants alone")
    command.option("--dynamic", "show only layers with outputs of dynamic shapes")
    command.shared("json")


def run(options: Options) -> int:
    recovered = options[ModelOptions].recover()
    model = recovered.model
    origins = SizeOrigins(model)
    layers = list(_chosen(model, options.filter, options.no_constants, options.dynamic))
    if options.json:
        say_json(_as_json(recovered, origins, layers))
    else:
        rows = [row for layer in layers for row in _rows(layer, origins, recovered.declared)]
        heads = columns("id: count; layer: name; type: type; output: tensor; why it is dynamic: sentence")
        if rows:
            say_table(Table(heads, list(_without_repetition(rows))))
        else:
            say("no layer matches")
        say()
        say_filled(_summary(recovered))
        if example := next(filter(None, map(_open_ended, model.walk())), None):
            say(f"{example} is a size of {example.removesuffix('..')} or more")
    return status_of(recovered.errors)


def _chosen(model: Model, regex: str | None, no_constants: bool, dynamic: bool) -> Iterator[Layer]:
    constant = {layer for graph in model.graphs() for layer in all_constant_layers(graph)} if no_constants else ()
    for layer in model.walk():
        ports = layer.inputs if layer.type == "Result" else layer.outputs
        matches = regex is None or re.search(regex, layer.scope + layer.name)
        if matches and layer not in constant and not (dynamic and all(port.shape.is_static for port in ports)):
            yield layer


def _without_repetition(rows: Iterable[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Yield the rows; a reason that an earlier row has in full is replaced by the id of its layer."""
    first: dict[str, str] = {}
    number = ""
    for *cells, reason in rows:
        number = cells[0] or number
        seen = first.setdefault(reason, number)
        reference = f"as layer {seen}"
        yield *cells, reference if seen != number and len(reference) < len(reason) else reason


def _rows(layer: Layer, origins: SizeOrigins, declared: Collection[Port]) -> Iterator[tuple[str, ...]]:
    ports = layer.inputs if layer.type == "Result" else layer.outputs
    if not ports:
        yield str(layer.id), layer.scope + layer.name, layer.type, "", ""
    for port in ports:
        number, kind = ("", "") if port.index else (str(layer.id), layer.type)
        is_declared = port.is_output and (port in declared or is_only_declared(layer))
        mark = " (only declared)" if is_declared else ""
        yield number, name_of(port), kind, f"{port.type}{mark}", origins.explain(port)


def _open_ended(layer: Layer) -> str | None:
    """Return a size without an upper bound, such as ``21..``, of the outputs of a layer."""
    sizes = (size for port in layer.outputs if port.shape.rank is not None for size in port.shape)
    return next((str(size) for size in sizes if size.upper is None and size.lower), None)


def _summary(recovered: Recovered) -> str:
    layers = list(recovered.model.walk())
    dynamic = sum(any(not port.shape.is_static for port in layer.outputs) for layer in layers)
    unknown = [layer for layer in layers if is_only_declared(layer)]
    open_layers = {port.layer for port in recovered.declared}.difference(unknown)
    text = f"{plural(len(layers), 'layer')}, {dynamic} of them with dynamic shapes"
    if unknown:
        text += f", {len(unknown)} whose shapes are only declared, because ovir cannot infer them"
    if open_layers:
        text += f", {len(open_layers)} whose shapes are only declared, because inference does not find them"
    return text


def _as_json(recovered: Recovered, origins: SizeOrigins, layers: Iterable[Layer]) -> dict[str, Any]:
    model = recovered.model
    return {
        "name": model.name,
        "version": model.version,
        "inputs": [_port(port, origins) for port in model.inputs],
        "outputs": [_port(port, origins) for port in model.outputs],
        "layers": [_layer(layer, origins, recovered.declared) for layer in layers],
        "diagnostics": [found.to_dict() for found in (*recovered.errors, *model.diagnostics)],
    }


def _layer(layer: Layer, origins: SizeOrigins, declared: Collection[Port]) -> dict[str, Any]:
    return {
        **json_fields(layer, "id", "name"),
        **({"scope": layer.scope.rstrip("/")} if layer.scope else {}),
        **json_fields(layer, "type", "version", "line"),
        "inferred": not (is_only_declared(layer) or any(port in declared for port in layer.outputs)),
        "inputs": [json_fields(port, "shape", "type=element_type") for port in layer.inputs],
        "outputs": [_port(port, origins) for port in layer.outputs],
    }


def _port(port: Port, origins: SizeOrigins) -> dict[str, Any]:
    entry = {**json_fields(port, "name=any_name", "shape", "type=element_type"), "names": sorted(port.names)}
    dynamic = [
        {"axis": axis, "size": str(port.shape[axis]), "cause": o.cause, "origin": str(o), "from": o.roots}
        for axis, o in origins.of(port)
    ]
    if dynamic:
        entry["dynamic"] = dynamic
    return entry
