"""The report of ``ovir check``."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from ovir.checks.checker import counts_by_code, counts_by_file
from ovir.checks.recovering import read_recovering
from ovir.diagnostics.codes import Severity
from ovir.diagnostics.diagnostic import Diagnostic, counts_text
from ovir.diagnostics.errors import OvirError
from ovir.diagnostics.wording import plural
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer
from ovir.reports.page import Figure, Page
from ovir.reports.tables import TONES, add_diagnostics, add_layers, worst_tone


def check_page(
    files: Sequence[str],
    diagnostics: Sequence[Diagnostic],
    *,
    known: int = 0,
    weights: str | None = None,
    need_weights: bool = True,
) -> Page:
    """Return the report of a check of files; ``known`` is the number of diagnostics that a baseline holds back.

    The files with diagnostics are read again, to show the layers that are at fault: for one file all of its layers, for
    several those that diagnostics name and their neighbors.
    """
    places = dict.fromkeys((*files, *(d.file for d in diagnostics if d.file is not None)))
    subject = files[0] if len(places) == 1 else plural(len(places), "file")
    page = Page("check", subject, counts_text(diagnostics), worst_tone(diagnostics))
    counts = Counter(d.severity for d in diagnostics)
    for severity in Severity:
        tone = TONES[severity] if counts[severity] else "plain"
        page.figures.append(Figure(f"{severity.value}s", f"{counts[severity]:,}", tone=tone))
    faulty = dict.fromkeys(d.file for d in diagnostics if d.file is not None)
    page.figures.append(Figure("files", f"{len(places):,}", f"{len(faulty):,} with diagnostics"))
    if known:
        page.figures.append(Figure("known", f"{known:,}", "in the baseline, not shown"))
    _add_models(page, files, diagnostics, weights=weights, need_weights=need_weights)
    add_diagnostics(page, diagnostics, with_files=len(files) != 1)
    if len({d.code for d in diagnostics}) > 1:
        page.add("Codes", counts_by_code(diagnostics))
    if len(places) > 1:
        page.add("Files", counts_by_file(diagnostics, places))
    if len(files) == 1:
        add_layers(page)
    return page


def _add_models(
    page: Page, files: Sequence[str], diagnostics: Sequence[Diagnostic], *, weights: str | None, need_weights: bool
) -> None:
    """Add the layers of the files to the page."""
    named: dict[str, set[str]] = defaultdict(set)
    for d in diagnostics:
        if d.file is not None and d.layer is not None:
            named[d.file].add(d.layer)
    for file in files if len(files) == 1 else named:
        try:
            model = read_recovering(file, weights, need_weights=need_weights).model
        except OvirError:  # what prevents reading it is among the diagnostics
            continue
        layers = list(model.walk()) if len(files) == 1 else _near(model, named[file])
        page.layers.add(model, "" if len(files) == 1 else file, layers)


def _near(model: LayerGraph, titles: set[str]) -> list[Layer]:
    """Return the layers with these titles, and their neighbors."""
    layers: dict[Layer, None] = {}
    for layer in model.walk():
        if layer.title in titles:
            layers[layer] = None
            layers.update((port.source.layer, None) for port in layer.inputs if port.source is not None)
            layers.update((reader.layer, None) for port in layer.outputs for reader in port.readers)
    return list(layers)
