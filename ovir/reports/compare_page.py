"""The report of ``ovir compare``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ovir.core.tables import Table, columns
from ovir.debugging.comparison import Comparison, LayerDifference, OutputDifference, TensorDifference
from ovir.diagnostics.wording import plural, shown
from ovir.graph.layer_graph import LayerGraph
from ovir.reports.charts import Chart, bars, element_errors, error_curve, layer_errors
from ovir.reports.page import Detail, Fact, Page, Pairs, Text
from ovir.reports.tables import add_diagnostics

MOST_BARS = 12
MOST_HISTOGRAMS = 6
"""Histograms on the page itself; the details of every output have its own."""


def compare_page(found: Comparison, model: LayerGraph, conclusion: Sequence[str] = ()) -> Page:
    """Return the report on a comparison: conclusions, errors of outputs, and errors of layers along the graph."""
    page = Page("compare", found.model, f"{found.verdict}, against {found.against}", "good" if found else "bad")
    page.conclusion = conclusion
    page.layers.add(model)
    page.facts += _facts(found, page)
    if found.outputs:
        histograms = [chart for output in found.outputs[:MOST_HISTOGRAMS] for chart in _elements(output)]
        page.add("Outputs", _outputs(found, page, model), *histograms)
    if found.varying:
        note = "Repeated runs with other bits than the first, and how far apart all runs are."
        page.add("Varying", found.varying_table(), note=note)
    add_diagnostics(page, found.diagnostics)
    if found.layers:
        most = _contributions(found, page)
        errors = layer_errors(found, most.height if most is not None else 260)
        page.add("Errors", error_curve(found, page.layers), most, errors)
        note = "Layers in the order of the noise that they add; those beyond tolerance come first."
        page.add("Layers", _layers(found, page), note=note)
    if found.not_compared:
        rows = [(layer.id, layer.name, layer.type, layer.reason) for layer in found.not_compared]
        page.add("Not compared", Table(columns("id: count; layer: layer 2; operation: type; reason: text 3"), rows))
    return page


def _facts(found: Comparison, page: Page) -> list[Fact]:
    precision = "" if found.precision is None else f"; the device computes in {found.precision}"
    facts = [Fact("compared", found.compared, f"{plural(found.sets, 'set')} of inputs{precision}")]
    facts.append(Fact("tolerance", *_tolerance_text(found)))
    beyond = sum(not layer.within for layer in found.layers)
    if found.layers:
        note = f"of {plural(len(found.layers), 'layer')} compared"
        facts.append(Fact("layers beyond", f"{beyond:,}", note, "bad" if beyond else "good"))
    if found.repeat is not None:
        text = "the same bits" if found.varies is None else "other bits"
        facts.append(Fact("repeated", text, f"in 3 x {found.repeat} runs", "bad" if found.varies else "good"))
    for title, layer in (("first layer beyond", found.first), ("largest contributor", found.largest)):
        if layer is not None:
            facts.append(Fact(title, layer.name, layer.type, "bad", page.layers.find(layer.name)))
    if not found.layers and found.outputs:
        beyond = sum(not output.within for output in found.outputs)
        facts.append(Fact("outputs beyond", f"{beyond:,} of {len(found.outputs):,}", "", "bad" if beyond else "good"))
    return facts


def _tolerance_text(found: Comparison) -> tuple[str, str]:
    criterion = found.criterion
    if criterion.metric is not None:
        return f"{criterion.metric} {criterion.limit:g}", "for each tensor"
    if criterion.rtol is None and criterion.atol is None:
        return "by element type", "and by how many numbers are summed up"
    return f"rtol {criterion.rtol or 0:g}, atol {criterion.atol or 0:g}", "for each element"


# --------------------------------------------------------------------------- tables


def _outputs(found: Comparison, page: Page, model: LayerGraph) -> Table:
    details = [
        Detail(
            item.name,
            [*_numbers(found, item.tensor), *_elements(item)],
            page.layers.number(model.outputs[item.index].layer),
            found.mark(item),
        )
        for item in found.outputs
    ]
    return replace(found.outputs_table(found.outputs), details=details)


def _layers(found: Comparison, page: Page) -> Table:
    ranked = found.ranked()
    details = [
        None if x.within else Detail(x.name, _about(found, x), page.layers.find(x.name), found.mark(x)) for x in ranked
    ]
    return replace(found.layers_table(ranked), details=details)


def _about(found: Comparison, layer: LayerDifference) -> list[Text | Pairs]:
    other = [] if layer.other is None else [Text(layer.other, "In the other model")]
    executed = [] if layer.execution is None else [Text(str(layer.execution), "On the device")]
    known = [] if layer.known is None else [Text(str(layer.known), "Known divergence")]
    return [*other, *executed, *known, *_numbers(found, layer.tensor)]


def _numbers(found: Comparison, tensor: TensorDifference) -> list[Text | Pairs]:
    """Return the numbers of the worst difference of a tensor, or the problem that prevents the comparison."""
    worst, tolerance = tensor.worst, tensor.tolerance
    if worst.problem is not None:
        return [Text(worst.problem)]
    actual, reference = found.values
    rows = [("tensor", tensor.type), ("elements beyond", f"{worst.beyond:,} of {worst.size:,}")]
    if worst.position is not None:
        rows.append(("worst element", f"{shown(worst.position)}"))
        rows += [(actual, str(worst.actual)), (reference, str(worst.reference))]
    if found.criterion.metric is None:
        rows.append(("tolerance", f"rtol {tolerance.rtol:.3g}, atol {tolerance.atol:.3g}"))
    names = {"max abs": worst.max_abs, "max rel": worst.max_rel, "mean": worst.mean_abs, "RMSE": worst.rmse}
    names |= {"cosine": worst.cosine, "SQNR dB": worst.sqnr_db}
    rows += [(name, f"{value:.6g}") for name, value in names.items() if value is not None]
    if tensor.agreement is not None:
        rows += [("top-1", f"{tensor.agreement.top1:.1%}"), ("top-5", f"{tensor.agreement.top5:.1%}")]
    if tensor.sets > 1:
        rows.append(("worst set of inputs", tensor.worst_input))
    return [Pairs(rows)]


# --------------------------------------------------------------------------- charts


def _contributions(found: Comparison, page: Page) -> Chart | None:
    """Return the layers that add the most noise."""
    adding = [layer for layer in found.layers if 0 < layer.contribution < math.inf]
    most = sorted(adding, key=lambda layer: -layer.contribution)[:MOST_BARS]
    if not most:
        return None
    return bars(
        "Layers that add the most noise",
        [layer.name for layer in most],
        [layer.contribution for layer in most],
        axis="relative error added",
        texts=[f"{layer.contribution:.2g}" for layer in most],
        layers=[page.layers.find(layer.name) for layer in most],
        room=8,
        note="The root mean square of the error, relative to the signal, without what the inputs bring along.",
    )


def _elements(output: OutputDifference) -> list[Chart]:
    chart = element_errors(output)
    return [] if chart is None else [chart]
