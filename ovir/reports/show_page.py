"""The report of ``ovir show``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ovir.analysis.costs import Cost, by_type
from ovir.analysis.summary import Provenance, Summary
from ovir.checks.recovering import Recovered
from ovir.diagnostics.diagnostic import counts_text
from ovir.diagnostics.wording import count_text, plural, size_text
from ovir.graph.layers import Port
from ovir.lowering.releases import Need
from ovir.reports.charts import Chart, bars
from ovir.reports.page import Cell, Column, Fact, Page, Table
from ovir.reports.tables import add_diagnostics, add_layers, layers_by_title, worst_tone
from ovir.runtime.memory import MemoryUse

MOST_BARS = 20


@dataclass(frozen=True)
class Shown:
    """The findings of the command about a model."""

    recovered: Recovered
    summary: Summary
    made: Provenance
    needs: Need
    memory: MemoryUse | None = None


def show_page(shown: Shown) -> Page:
    """Return the report on a model: its origin, inputs and outputs, operations, parameters and layers."""
    model, summary = shown.recovered.model, shown.summary
    diagnostics = [*shown.recovered.errors, *model.diagnostics]
    verdict = f"{plural(summary.layer_count, 'layer')}, IR version {summary.ir_version}, {', '.join(summary.opsets)}"
    tone = "plain" if not diagnostics else worst_tone(diagnostics)
    page = Page("show", summary.path or summary.name, verdict, tone)
    page.facts += _facts(shown)
    page.layers.add(model)
    layers = list(model.walk())
    if diagnostics:
        page.facts.append(Fact("diagnostics", f"{len(diagnostics):,}", counts_text(diagnostics), tone))
        add_diagnostics(page, diagnostics, layers_by_title(layers))
    page.add("Inputs and outputs", _ports(page, "input", summary.inputs), _ports(page, "output", summary.outputs))
    page.add("Operations", *_operation_charts(summary), _operations(summary))
    page.add("Parameters", _parameters_chart(summary), _parameters(summary))
    if summary.states:
        columns = [Column("state", "name"), Column("tensor", "tensor"), Column("after a call", "tensor")]
        columns += [Column("bytes", "bytes"), Column("bytes for each step", "bytes")]
        rows = [(s.name, str(s.read), str(s.assigned), s.bytes, s.step_bytes) for s in summary.states]
        page.add("States", Table(columns, rows))
    if summary.model_info:
        page.add("Model information", Table([Column("name", "name"), Column("value", width=3)], summary.model_info))
    costs = {row.layer: _cells(row) for row in summary.layers}
    add_layers(page, layers, COST_COLUMNS, lambda layer: costs.get(layer, (None,) * len(COST_COLUMNS)))
    return page


def _facts(shown: Shown) -> list[Fact]:
    summary, memory = shown.summary, shown.memory
    constants = plural(sum(p.tensors for p in summary.constants.values()), "constant")
    unknown = len(summary.macs_unknown)
    known = f"unknown for {plural(unknown, 'layer')}" if unknown else summary.sizes_text
    facts = [
        Fact("layers", f"{summary.layer_count:,}", plural(len(summary.operations), "operation")),
        Fact("parameters", count_text(summary.parameters), f"{summary.parameters:,} in {constants}"),
        Fact("weights", size_text(summary.weights_bytes), _file_note(summary)),
        Fact("multiply-accumulates", count_text(summary.macs) if summary.macs or not unknown else "unknown", known),
    ]
    if memory is not None:
        parts = {"weights": memory.weights, "inputs": memory.inputs, "between layers": memory.activations}
        note = ", ".join(f"{name} {size_text(amount)}" for name, amount in parts.items())
        if memory.unknown:
            note += f"; without {plural(memory.unknown, 'tensor')} of unknown size"
        facts.append(Fact("memory of a run", size_text(memory.total), note))
    if text := str(shown.made):
        facts.append(Fact("made by", shown.made.framework or "a converter", text))
    if summary.not_run:
        names = ", ".join(f"{name} ({count:,})" for name, count in summary.not_run.items())
        facts.append(Fact("cannot be run", plural(sum(summary.not_run.values()), "layer"), names, "warn"))
    return [*facts, Fact("needs", f"IR {summary.ir_version}", str(shown.needs))]


def _file_note(summary: Summary) -> str:
    return "" if summary.file_bytes is None else f"of a file of {size_text(summary.file_bytes)}"


def _ports(page: Page, kind: str, ports: Sequence[Port]) -> Table:
    columns = [Column(kind, "name"), Column("layer", "layer"), Column("type"), Column("shape", "tensor")]
    rows = [
        (port.any_name, page.layers.cell(port.layer), str(port.element_type), str(port.shape), ", ".join(others))
        for port in ports
        for others in [sorted(port.names - {port.any_name})]
    ]
    return Table([*columns, Column("other names", "name")], rows, empty=f"The model has no {kind}s.")


def _operation_charts(summary: Summary) -> list[Chart]:
    charts = [_counted_chart("Layers by operation", summary.operations, "layers")]
    room = min(len(summary.operations), MOST_BARS)
    macs = {group.name: group.macs for group in by_type(summary.layers) if group.macs}
    if macs:
        largest = dict(sorted(macs.items(), key=lambda item: -item[1]))
        charts.append(_counted_chart("Multiply-accumulates by operation", largest, "MACs", room))
    return charts


def _counted_chart(title: str, counts: dict[str, int], axis: str, room: int = 0) -> Chart:
    """Return bars for the largest counts; the others are summed up in the last bar."""
    items = list(counts.items())
    if len(items) > MOST_BARS:
        rest = items[MOST_BARS - 1 :]
        items = [*items[: MOST_BARS - 1], (f"{len(rest)} others", sum(count for _, count in rest))]
    return bars(title, [name for name, _ in items], [count for _, count in items], axis=axis, room=room)


def _operations(summary: Summary) -> Table:
    columns = [Column("operation", "type"), Column("layers", "count"), Column("share", "share"), *COST_COLUMNS]
    costs = {group.name: _cells(group) for group in by_type(summary.layers)}
    rows = [
        (name, count, count / summary.layer_count, *costs.get(name, (None,) * len(COST_COLUMNS)))
        for name, count in summary.operations.items()
    ]
    return Table(columns, rows)


def _parameters(summary: Summary) -> Table:
    columns = [
        Column("element type"),
        Column("tensors", "count"),
        Column("elements", "count"),
        Column("stored", "bytes"),
    ]
    rows = [(name, p.tensors, p.elements, p.bytes) for name, p in summary.constants.items()]
    return Table(columns, rows, empty="The model has no constants.")


def _parameters_chart(summary: Summary) -> Chart | None:
    found = {name: total.bytes for name, total in summary.constants.items() if total.bytes}
    texts = [size_text(amount) for amount in found.values()]
    return (
        bars("Bytes by element type", list(found), list(found.values()), axis="bytes", texts=texts) if found else None
    )


COST_COLUMNS = (
    *(Column("MACs", "count"), Column("operations", "count"), Column("parameters", "count")),
    *(Column("weights", "bytes"), Column("moved", "bytes"), Column("operations for each byte", "real")),
)


def _cells(cost: Cost) -> Sequence[Cell]:
    numbers = (cost.macs, cost.operations, cost.parameters, cost.weight_bytes, cost.bytes)
    return (*(number or None for number in numbers), cost.intensity or None)
