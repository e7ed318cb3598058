"""The report of ``ovir run``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ovir.analysis.profile import WARM_UP, Profile, RunTimes
from ovir.analysis.tensor_stats import likely_classes, stats
from ovir.core.arrays import Array
from ovir.core.shapes import PartialShape
from ovir.core.tables import Column, Table
from ovir.core.tensor_types import TensorType
from ovir.debugging.watch import Watch
from ovir.diagnostics.wording import plural
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port
from ovir.reports.charts import Chart, bars, curve, histogram
from ovir.reports.page import Block, Detail, Figure, Page, Pairs, Text
from ovir.reports.ran import Ran, Tensors, tensors_table
from ovir.reports.tables import add_diagnostics, add_layers
from ovir.runtime.compiled import CompiledModel
from ovir.runtime.listeners import ResultListener

MOST_BARS = 14
MOST_HISTOGRAMS = 6
"""Histograms on the page itself; the details of every tensor have its own."""
LEAST_ELEMENTS = 8
"""Smaller tensors have no histogram on the page itself, because the table has their values."""
MOST_ROWS = 20
"""Rows of scores that the detail of an output shows."""


class RanTypes(ResultListener):
    """A listener that keeps the types of outputs of unknown sizes; in a body, those of the last iteration."""

    def __init__(self, model: LayerGraph) -> None:
        self.types: dict[Port, str] = {}
        layers = (layer for layer in model.walk() if not layer.is_dead)
        self.wanted_steps = {x.key for x in layers if not all(port.shape.is_static for port in x.outputs)}

    def did_run(self, layer: Layer, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        for port, array in zip(layer.outputs, outputs, strict=False):
            if array is not None and not port.shape.is_static:
                self.types[port] = str(TensorType(port.element_type, PartialShape(array.shape)))


def types_of_run(compiled: CompiledModel, feeds: Mapping[int, Array]) -> dict[Port, str]:
    """Return the types that outputs of unknown sizes have in a run."""
    seen = RanTypes(compiled.model)
    if seen.wanted_steps:
        compiled.create_infer_request().infer(feeds, listeners=[seen])
    return seen.types


def run_page(ran: Ran) -> Page:
    """Return the report on a run: times, outputs, inputs and taps with their histograms, and watched values.

    The details of an output have the highest scores of each row, if they are wanted and it has rows of scores.
    """
    model, watch = ran.model, ran.watch
    later = ran.times or ran.profiled or ran.later
    verdict, tone = f"first run in {ran.seconds * 1000:,.1f} ms, with preparations", "good"
    if later is not None:
        verdict = f"runs in {later.percentile(50) * 1000:,.2f} ms"
    if watch is not None and watch.events:
        verdict, tone = f"{verdict}; {plural(len(watch.events), 'layer')} made watched values", "bad"
    page = Page("run", model.path or model.name, verdict, tone)  # type: ignore[arg-type]
    page.layers.add(model)
    page.layers.ran = ran.types
    page.figures += _figures(ran)
    if watch is not None:
        _add_watch(page, watch)
    page.add("Outputs", _tensors(page, "output", ran.outputs, ran), *_histograms(ran.outputs))
    add_diagnostics(page, [*model.diagnostics, *ran.results.diagnostics])
    if ran.profile is not None:
        _add_profile(page, ran.profile, model)
    if ran.times is not None:
        page.add("Repeated runs", *_repeated(ran.times))
    if taps := ran.taps:
        page.add("Taps", _tensors(page, "tap", taps), *_histograms(taps))
    note = f"{plural(len(ran.random), 'input')} with random numbers" if ran.random else ""
    page.add("Inputs", _tensors(page, "input", ran.inputs), note=note)
    if ran.profile is None:
        add_layers(page)
    return page


def _figures(ran: Ran) -> Iterator[Figure]:
    yield Figure("first run", f"{ran.seconds * 1000:,.1f} ms", "with preparations")
    if ran.profile is not None:
        yield from _profile_figures(ran.profile, ran.profiled)
    if ran.times is not None:
        note = f"of {plural(len(ran.times.seconds), 'run')} after {WARM_UP} to warm up"
        yield Figure("median run", f"{ran.times.percentile(50) * 1000:,.3f} ms", note)
    arrays = ran.results.to_dict().values()
    nonfinite = sum(stats(array).nonfinite for array in arrays)
    elements = plural(sum(array.size for array in arrays), "element")
    kind = f"{nonfinite:,} NaN or infinite" if nonfinite else "all finite"
    yield Figure("outputs", f"{len(arrays)}", f"{elements}, {kind}", "bad" if nonfinite else "plain")


def _profile_figures(profile: Profile, runs: RunTimes | None) -> Iterator[Figure]:
    """Yield the main figures of a profile. No operation is the slowest if that changes from run to run."""
    seconds, layers = profile.seconds, profile.layers()
    if runs is not None:
        median, least, most = (1000 * value for value in (runs.percentile(50), min(runs.seconds), max(runs.seconds)))
        note = f"median of {plural(len(runs.seconds), 'run')}, which took {least:,.2f} to {most:,.2f} ms"
        yield Figure("a run", f"{median:,.2f} ms", note)
    note = f"{plural(len(layers), 'layer')}, medians of {plural(profile.runs, 'run')}"
    yield Figure("time in layers", f"{seconds * 1000:,.2f} ms", note)
    if layers and seconds and len(profile.slowest_types) < 2:
        kind = profile.types()[0]
        yield Figure("slowest operation", kind.type, f"{kind.seconds / seconds:.0%} of the time")
    elif layers and seconds:
        yield Figure("slowest operation", "not clear", f"by chance one of {', '.join(profile.slowest_types)}")


# --------------------------------------------------------------------------- tensors


def _tensors(page: Page, kind: str, tensors: Tensors, ran: Ran | None = None) -> Table:
    details = [_detail(page, name, array, layer, ran) for name, array, _, layer in tensors]
    return replace(tensors_table(kind, tensors), details=details)


def _detail(page: Page, name: str, array: Array, layer: Layer | None, ran: Ran | None) -> Detail:
    if array.dtype.kind in "TUSO":
        texts = [(str(number), str(text)) for number, text in enumerate(array.reshape(-1)[:MOST_ROWS].tolist())]
        return Detail(name, [Pairs(texts, "Texts")], page.layers.number(layer))
    chart = histogram("Histogram", array)
    blocks: list[Block] = [Text("no finite numbers")] if chart is None else [chart]
    if ran is not None and (rows := ran.scores(array)) is not None:
        scored = (", ".join(f"{s.label or s.number}: {s.value:.4g}" for s in row) for row in rows[:MOST_ROWS])
        scores = [(f"row {i}", text) for i, text in enumerate(scored)]
        blocks.append(Pairs(scores, f"Highest {plural(ran.top or 0, 'score')}"))
    elif (classes := likely_classes(array)) is not None:
        pairs = [(f"row {row}", f"{number} ({share:.3f})") for row, (number, share) in enumerate(classes[:MOST_ROWS])]
        blocks.append(Pairs(pairs, "Most probable class"))
    return Detail(name, blocks, page.layers.number(layer))


def _histograms(tensors: Tensors) -> list[Chart | None]:
    large = [(name, array) for name, array, _, _ in tensors if array.size >= LEAST_ELEMENTS]
    return [histogram(name, array) for name, array in large[:MOST_HISTOGRAMS]]


# --------------------------------------------------------------------------- times


def _add_profile(page: Page, profile: Profile, model: LayerGraph) -> None:
    """Add the time of each operation and each layer."""
    types, timed, whole = profile.types(), profile.timings, profile.seconds or 1.0
    slowest = sorted(timed.items(), key=lambda item: -item[1].seconds)[:MOST_BARS]
    rows = min(max(len(types), len(slowest)), MOST_BARS)
    by_type = bars(
        "Time by operation",
        [t.type for t in types[:MOST_BARS]],
        [t.seconds * 1000 for t in types[:MOST_BARS]],
        axis="ms",
        texts=[f"{t.seconds / whole:.1%}" for t in types[:MOST_BARS]],
        room=rows,
    )
    by_layer = bars(
        f"The {len(slowest)} slowest layers" if len(slowest) > 1 else "The slowest layer",
        [timing.name for _, timing in slowest],
        [timing.seconds * 1000 for _, timing in slowest],
        axis="ms",
        texts=[f"{timing.seconds / whole:.1%}" for _, timing in slowest],
        layers=[page.layers.number(layer) for layer, _ in slowest],
        room=rows,
        note="Click a bar to see the layer.",
    )
    along = curve(
        "Time along the graph",
        [(layer, timing.seconds * 1000) for layer, timing in timed.items()],
        page.layers,
        axis="ms",
        note="Layers in the order of the run.",
    )
    page.add("Time", by_type, by_layer, along, profile.types_table())
    layers = profile.layers_table(lambda layer: ", ".join(page.layers.types(layer)))
    note = "Layers that are computed when a model is compiled, as constants are, take no time in a run."
    page.add("Layers", layers, note=note)


def _repeated(times: RunTimes) -> tuple[Chart | None, Table]:
    seconds = np.array(times.seconds) * 1000
    chart = histogram(f"Time of {plural(len(seconds), 'run')}", seconds, axis="ms", of="runs")
    milliseconds = {name: value * 1000 for name, value in times.to_dict().items()}
    return chart, Table([Column(name, "ms") for name in milliseconds], [list(milliseconds.values())])


# --------------------------------------------------------------------------- watched values


def _add_watch(page: Page, watch: Watch) -> None:
    """Add the layers that made watched values."""
    watched = ", ".join(map(str, watch.conditions))
    details = []
    for event in watch.events:
        pairs = [(x.source, f"{x.minimum} to {x.maximum}, {x.nonfinite:,} not finite") for x in event.inputs]
        inside = "" if event.inside is None else f" in its {event.inside}"
        text = f"{event.count:,} of {plural(event.size, 'value')} of output {event.output}{inside} are {event.what}."
        number = page.layers.find(event.layer)
        details.append(Detail(event.layer, [Text(text), Pairs(pairs, "Inputs")], number, event.what))
    empty = f"No layer makes such values: {watched}."
    page.add("Watched values", replace(watch.table(), details=details, empty=empty), note=f"Watched for {watched}.")
