"""The report of ``ovir show``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ovir.analysis.costs import LayerCost, by_type
from ovir.analysis.summary import Provenance, Summary, ports_table
from ovir.checks.recovering import Recovered
from ovir.diagnostics.diagnostic import counts_text
from ovir.diagnostics.wording import count_text, plural, size_text
from ovir.lowering.releases import Need
from ovir.reports.charts import Chart, bars
from ovir.reports.page import Figure, Page
from ovir.reports.tables import add_diagnostics, add_layers, worst_tone
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
    page.figures += _figures(shown)
    page.layers.add(model)
    if diagnostics:
        page.figures.append(Figure("diagnostics", f"{len(diagnostics):,}", counts_text(diagnostics), tone))
        add_diagnostics(page, diagnostics)
    page.add("Inputs and outputs", ports_table("inputs", summary.inputs), ports_table("outputs", summary.outputs))
    page.add("Operations", *_operation_charts(summary), summary.operations_table())
    page.add("Parameters", _parameters_chart(summary), summary.constants_table())
    if summary.states:
        page.add("States", summary.states_table())
    if summary.model_info:
        page.add("Model information", summary.info_table())
    costs = {row.layer: row.cells for row in summary.layers}
    add_layers(page, LayerCost.cost_columns, lambda layer: costs.get(layer, (None,) * len(LayerCost.cost_columns)))
    return page


def _figures(shown: Shown) -> Iterator[Figure]:
    summary, memory = shown.summary, shown.memory
    constants = plural(sum(p.tensors for p in summary.constants.values()), "constant")
    unknown = len(summary.macs_unknown)
    known = f"unknown for {plural(unknown, 'layer')}" if unknown else summary.sizes_text
    of_file = "" if summary.file_bytes is None else f"of a file of {size_text(summary.file_bytes)}"
    macs = count_text(summary.macs) if summary.macs or not unknown else "unknown"
    yield Figure("layers", f"{summary.layer_count:,}", plural(len(summary.operations), "operation"))
    yield Figure("parameters", count_text(summary.parameters), f"{summary.parameters:,} in {constants}")
    yield Figure("weights", size_text(summary.weights_bytes), of_file)
    yield Figure("multiply-accumulates", macs, known)
    if memory is not None:
        without = f"; without {plural(memory.unknown, 'tensor')} of unknown size" if memory.unknown else ""
        yield Figure("memory of a run", size_text(memory.total), f"{memory}{without}")
    if text := str(shown.made):
        yield Figure("made by", shown.made.framework or "a converter", text)
    if summary.not_run:
        names = ", ".join(f"{name} ({count:,})" for name, count in summary.not_run.items())
        yield Figure("cannot be run", plural(sum(summary.not_run.values()), "layer"), names, "warn")
    yield Figure("needs", f"IR {summary.ir_version}", str(shown.needs))


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


def _parameters_chart(summary: Summary) -> Chart | None:
    sizes = {name: total.bytes for name, total in summary.constants.items() if total.bytes}
    texts = [size_text(amount) for amount in sizes.values()]
    return bars("Bytes by element type", [*sizes], [*sizes.values()], axis="bytes", texts=texts) if sizes else None
