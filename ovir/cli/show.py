"""``ovir show``: a summary of a model."""

from __future__ import annotations

import argparse
from typing import Any

from ovir.analysis.summary import Summary, summarize
from ovir.cli.arguments import add_command, add_json, add_model, add_shape
from ovir.cli.extensions import add_extension, load_extensions
from ovir.cli.output import count, listed_layers, plural, say, say_json, say_table, size
from ovir.cli.recovering import add_no_weights, open_recovering
from ovir.cli.status import status_of
from ovir.diagnostics.text import escaped, readable
from ovir.graph.layers import Port


def add_to(commands: Any) -> None:
    parser = add_command(
        commands,
        "show",
        run,
        "what a model is: inputs, outputs, operations, parameters, multiply-accumulates, states",
        "  ovir show model.xml\n  ovir show model.xml --shape 1,3,224,224 --json\n",
    )
    add_model(parser)
    add_no_weights(parser)
    add_extension(parser)
    add_shape(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    load_extensions(arguments.extension)
    recovered = open_recovering(arguments)
    summary = summarize(recovered.model, arguments.weights)
    if arguments.json:
        say_json(_as_json(summary))
    else:
        _print(summary)
    return status_of(recovered.errors)


def _print(summary: Summary) -> None:
    say(f"{escaped(summary.name) or '(no name)'}: IR version {summary.ir_version}, {plural(summary.layers, 'layer')}, "
        f"{', '.join(summary.opsets)}")  # fmt: skip
    for title, ports in (("inputs", summary.inputs), ("outputs", summary.outputs)):
        say()
        say_table((title, "type", "shape", "other names"), (_port_row(port) for port in ports))
    say()
    say_table(("operation", ">layers"), summary.operations.items())
    say()
    parameters = summary.parameters.items()
    rows = [(name, count(p.tensors), count(p.elements), size(p.bytes)) for name, p in parameters]
    elements = sum(p.elements for _, p in parameters)
    say_table(("parameters", ">tensors", ">elements", ">stored as"), rows)
    say()
    say(f"parameters  {count(elements)} elements in {sum(p.tensors for _, p in parameters)} constants")
    file = f" of a file of {size(summary.file_bytes)}" if summary.file_bytes is not None else ", but there is no file"
    say(f"weights     {size(summary.weights_bytes)}{file if summary.weights_bytes or summary.file_bytes else ''}")
    say(f"MACs        {_macs(summary)}")
    if summary.not_run:
        say(f"cannot be run yet: {readable(listed_layers(summary.not_run))}")
    if summary.states:
        say()
        say_table(("state", "type", "shape"), ((s.name, s.type, s.shape) for s in summary.states))


def _macs(summary: Summary) -> str:
    unknown = len(summary.macs_unknown)
    if not unknown:
        return count(summary.macs)
    rest = f"unknown for {plural(unknown, 'layer')} of dynamic shape (fix the inputs with --shape)"
    return f"{count(summary.macs)}, and {rest}" if summary.macs else rest


def _port_row(port: Port) -> tuple[str, ...]:
    others = sorted(port.names - {port.any_name})
    return port.any_name, str(port.element_type), str(port.shape), ", ".join(others)


def _as_json(summary: Summary) -> dict[str, Any]:
    def described(port: Port) -> dict[str, Any]:
        return {
            "name": port.any_name,
            "names": sorted(port.names),
            "layer": port.layer.name,
            "shape": str(port.shape),
            "type": str(port.element_type),
        }

    return {
        **vars(summary),
        "inputs": [described(port) for port in summary.inputs],
        "outputs": [described(port) for port in summary.outputs],
        "parameters": {name: vars(p) for name, p in summary.parameters.items()},
        "states": [vars(state) for state in summary.states],
    }
