"""``ovir show``: summarize a model: inputs, outputs, operations, parameters, multiply-accumulates, states.

Examples:
  ovir show model.xml
  ovir show model.xml --shape 1,3,224,224 --json
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ovir.analysis.summary import Provenance, Summary, provenance, summarize
from ovir.checks.recovering import Recovered
from ovir.cli.options.command import Command, Options
from ovir.cli.options.model import ModelOptions
from ovir.cli.terminal.output import (
    format_count,
    listed_layers,
    port_as_json,
    print_message,
    say,
    say_json,
    say_table,
    status_of,
)
from ovir.diagnostics.errors import RunError
from ovir.diagnostics.wording import escaped, plural, readable, size_text
from ovir.graph.layers import Port
from ovir.lowering.releases import Need, oldest_release, release_text

if TYPE_CHECKING:
    from ovir.runtime.memory import MemoryUse


def add_to(command: Command) -> None:
    command.add(ModelOptions("no-weights", "shape", "legacy-io"))
    command.option("--memory", "also plan a run, and show how much memory it takes")
    command.shared("json", "html")


def run(options: Options) -> int:
    recovered = options[ModelOptions].recover()
    model = recovered.model
    summary = summarize(model, options[ModelOptions].weights)
    made, needs = provenance(model.rt_info), oldest_release(model)
    memory = _memory(recovered) if options.memory else None
    if options.json:
        say_json({**_as_json(summary), **_origin_as_json(made, needs), **({"memory": vars(memory)} if memory else {})})
    else:
        _print(summary, made, needs)
        if memory is not None:
            say()
            say(f"memory      {_memory_text(memory)}")
    if options.html is not None:
        from ovir.cli.options.report import write_html
        from ovir.reports.show_page import Shown, show_page

        shown = Shown(recovered, summary, made, needs, memory)
        write_html(options.html, lambda: show_page(shown), options.command_line)
    return status_of(recovered.errors)


def _memory(recovered: Recovered) -> MemoryUse | None:
    """Return the memory that a run takes; print a message and return None for a model that cannot be run."""
    from ovir.runtime.compiled import CompiledModel
    from ovir.runtime.memory import memory_use  # these need the runtime

    if recovered.errors or recovered.lacks_weights:
        print_message("the memory of a run is not known: the model has faults, or no weights")
        return None
    try:
        return memory_use(CompiledModel(recovered.model).plan())
    except RunError as error:
        print_message(str(error))
        return None


def _memory_text(memory: MemoryUse) -> str:
    amounts = {"weights": memory.weights, "inputs": memory.inputs, "between layers": memory.activations}
    parts = ", ".join(f"{name} {size_text(amount)}" for name, amount in amounts.items())
    if not memory.unknown:
        return f"{size_text(memory.total)} at most in a run: {parts}"
    unknown = plural(memory.unknown, "tensor")
    return (
        f"{size_text(memory.total)} in a run without {unknown} of unknown size (fix the inputs with --shape): {parts}"
    )


def _origin_as_json(made: Provenance, needs: Need) -> dict[str, Any]:
    release = None if needs.release is None else release_text(needs.release)
    return {"made_by": vars(made), "oldest_release": {"release": release, "for": needs.what}}


def _print(summary: Summary, made: Provenance, needs: Need) -> None:
    say(f"{escaped(summary.name) or '(no name)'}: IR version {summary.ir_version}, {plural(summary.layers, 'layer')}"
        f"{''.join(f', {opset}' for opset in summary.opsets)}")  # fmt: skip
    if text := str(made):
        say(f"made by {readable(text)}")
    say(f"read by {readable(str(needs))}")
    if not summary.layers:
        return
    for title, ports in (("inputs", summary.inputs), ("outputs", summary.outputs)):
        say()
        say_table((f"~{title}", "type", "shape", "…other names"), map(_port_row, ports))
    say()
    say_table(("~operation", ">layers"), summary.operations.items())
    say()
    parameters = summary.parameters.items()
    rows = [(name, format_count(p.tensors), format_count(p.elements), size_text(p.bytes)) for name, p in parameters]
    elements = sum(p.elements for _, p in parameters)
    say_table(("~parameters", ">tensors", ">elements", ">stored as"), rows)
    say()
    say(f"parameters  {format_count(elements)} elements in {plural(sum(p.tensors for _, p in parameters), 'constant')}")
    size = summary.file_bytes
    file = f" of a file of {size_text(size)}" if size is not None else ", but there is no file"
    say(f"weights     {size_text(summary.weights_bytes)}{file if summary.weights_bytes or size else ''}")
    say(f"MACs        {_macs(summary)}")
    if summary.not_run:
        say(f"cannot be run yet: {readable(listed_layers(summary.not_run))}")
    if summary.states:
        say()
        say_table(("~state", "type", "shape"), ((s.name, s.type, s.shape) for s in summary.states))
    if summary.model_info:
        say()
        say_table(("~model_info", "…value"), summary.model_info)


def _macs(summary: Summary) -> str:
    unknown = len(summary.macs_unknown)
    if not unknown:
        return format_count(summary.macs)
    rest = f"unknown for {plural(unknown, 'layer')} of dynamic shape (fix the inputs with --shape)"
    return f"{format_count(summary.macs)}, and {rest}" if summary.macs else rest


def _port_row(port: Port) -> tuple[str, ...]:
    others = sorted(port.names - {port.any_name})
    return port.any_name, str(port.element_type), str(port.shape), ", ".join(others)


def _as_json(summary: Summary) -> dict[str, Any]:
    return {
        **vars(summary),
        "inputs": [port_as_json(port) for port in summary.inputs],
        "outputs": [port_as_json(port) for port in summary.outputs],
        "parameters": {name: vars(p) for name, p in summary.parameters.items()},
        "states": [vars(state) for state in summary.states],
    }
