"""The report of ``ovir compare``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ovir.core.tables import Table, columns
from ovir.debugging.comparison import Comparison, LayerDifference, TensorDifference
from ovir.diagnostics.wording import plural, shown
from ovir.graph.layer_graph import LayerGraph
from ovir.reports.charts import Chart, bars, element_errors, error_curve, layer_errors
from ovir.reports.page import Detail, Figure, Page, Pairs, Text
from ovir.reports.tables import add_diagnostics

MOST_BARS = 12
MOST_HISTOGRAMS = 6
"""Histograms on the page itself; the details of every output have its own."""


def compare_page(comparison: Comparison, model: LayerGraph, conclusion: Sequence[str] = ()) -> Page:
    """Return the report on a comparison: conclusions, errors of outputs, and errors of layers along the graph."""
    verdict = f"{comparison.verdict}, against {comparison.against}"
    page = Page("compare", comparison.model, verdict, "good" if comparison else "bad")
    page.conclusion = conclusion
    page.layers.add(model)
    page.figures += _figures(comparison, page)
    if comparison.outputs:
        histograms = map(element_errors, comparison.outputs[:MOST_HISTOGRAMS])
        page.add("Outputs", _outputs(comparison, page, model), *histograms)
    if comparison.varying:
        note = "Repeated runs with other bits than the first, and how far apart all runs are."
        page.add("Varying", comparison.varying_table(), note=note)
    add_diagnostics(page, comparison.diagnostics)
    if comparison.layers:
        most = _contributions(comparison, page)
        errors = layer_errors(comparison, most.height if most is not None else 260)
        page.add("Errors", error_curve(comparison, page.layers), most, errors)
        note = "Layers in the order of the noise that they add; those beyond tolerance come first."
        page.add("Layers", _layers(comparison, page), note=note)
    if comparison.not_compared:
        rows = [(layer.id, layer.name, layer.type, layer.reason) for layer in comparison.not_compared]
        page.add("Not compared", Table(columns("id: count; layer: layer 2; operation: type; reason: text 3"), rows))
    return page


def _figures(comparison: Comparison, page: Page) -> Iterator[Figure]:
    precision = "" if comparison.precision is None else f"; the device computes in {comparison.precision}"
    yield Figure("compared", comparison.compared, f"{plural(comparison.sets, 'set')} of inputs{precision}")
    yield Figure("tolerance", *_tolerance_text(comparison))
    if comparison.layers:
        beyond = sum(not layer.within for layer in comparison.layers)
        note = f"of {plural(len(comparison.layers), 'layer')} compared"
        yield Figure("layers beyond", f"{beyond:,}", note, "bad" if beyond else "good")
    if comparison.repeat is not None:
        text = "the same bits" if comparison.varies is None else "other bits"
        runs = f"in 3 x {comparison.repeat} runs"
        yield Figure("repeated", text, runs, "good" if comparison.varies is None else "bad")
    for title, layer in (("first layer beyond", comparison.first), ("largest contributor", comparison.largest)):
        if layer is not None:
            yield Figure(title, layer.name, layer.type, "bad", page.layers.find(layer.name))
    if not comparison.layers and comparison.outputs:
        beyond = sum(not output.within for output in comparison.outputs)
        count = f"{beyond:,} of {len(comparison.outputs):,}"
        yield Figure("outputs beyond", count, "", "bad" if beyond else "good")


def _tolerance_text(comparison: Comparison) -> tuple[str, str]:
    criterion = comparison.criterion
    if criterion.metric is not None:
        return f"{criterion.metric} {criterion.limit:g}", "for each tensor"
    if criterion.rtol is None and criterion.atol is None:
        return "by element type", "and by how many numbers are summed up"
    return f"rtol {criterion.rtol or 0:g}, atol {criterion.atol or 0:g}", "for each element"


# --------------------------------------------------------------------------- tables


def _outputs(comparison: Comparison, page: Page, model: LayerGraph) -> Table:
    details = [
        Detail(
            item.name,
            [*_numbers(comparison, item.tensor), *filter(None, [element_errors(item)])],
            page.layers.number(model.outputs[item.index].layer),
            comparison.mark(item),
        )
        for item in comparison.outputs
    ]
    return replace(comparison.outputs_table(comparison.outputs), details=details)


def _layers(comparison: Comparison, page: Page) -> Table:
    ranked = comparison.ranked()
    details = [
        None if x.within else Detail(x.name, _about(comparison, x), page.layers.find(x.name), comparison.mark(x))
        for x in ranked
    ]
    return replace(comparison.layers_table(ranked), details=details)


def _about(comparison: Comparison, layer: LayerDifference) -> list[Text | Pairs]:
    other = [] if layer.other is None else [Text(layer.other, "In the other model")]
    executed = [] if layer.execution is None else [Text(str(layer.execution), "On the device")]
    known = [] if layer.known is None else [Text(str(layer.known), "Known divergence")]
    return [*other, *executed, *known, *_numbers(comparison, layer.tensor)]


def _numbers(comparison: Comparison, tensor: TensorDifference) -> list[Text | Pairs]:
    """Return the numbers of the worst difference of a tensor, or the problem that prevents the comparison."""
    worst, tolerance = tensor.worst, tensor.tolerance
    if worst.problem is not None:
        return [Text(worst.problem)]
    actual, reference = comparison.values
    rows = [("tensor", tensor.type), ("elements beyond", f"{worst.beyond:,} of {worst.size:,}")]
    if worst.position is not None:
        rows.append(("worst element", f"{shown(worst.position)}"))
        rows += [(actual, str(worst.actual)), (reference, str(worst.reference))]
    if comparison.criterion.metric is None:
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


def _contributions(comparison: Comparison, page: Page) -> Chart | None:
    """Return the layers that add the most noise."""
    adding = [layer for layer in comparison.layers if 0 < layer.contribution < math.inf]
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
