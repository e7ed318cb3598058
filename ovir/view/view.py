"""The content of ``ovir view``: a model with its diagnostics, overlays, and another model to compare."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ovir.analysis.profile import profile_runs
from ovir.analysis.tensor_stats import Ranges
from ovir.debugging.comparison_setup import input_sets
from ovir.diagnostics.codes import Severity
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.errors import RunError
from ovir.graph.layers import Layer, Port
from ovir.model import Model
from ovir.runtime.compiled import CompiledModel
from ovir.system.progress import counted, stage
from ovir.view.graphs import MAIN, Graph, diagnostics_by_layer, graphs_of
from ovir.view.overlays import Overlay, of_ranges, of_times
from ovir.view.server import Pane, Shown


@dataclass
class ViewedModel:
    """A model on a page, with its graphs and overlays."""

    path: str
    model: Model
    graphs: list[Graph]
    overlays: list[Overlay] = field(default_factory=list)
    selected: Layer | None = None
    """The layer that is selected at first."""

    def pane(self, name: str) -> Pane:
        """Return the part of the page that shows this model, or the body that has the selected layer."""
        for part, graph in zip(self.model.graphs(), self.graphs, strict=True):
            for layer, node in zip(part.layers, graph.nodes, strict=True):
                if layer is self.selected:
                    return Pane(name, graph.id, node["id"], node["namespace"])
        return Pane(name, MAIN)


def viewed(
    path: str, model: Model, diagnostics: Sequence[Diagnostic], declared: Collection[Port], overlays: Iterable[Overlay]
) -> ViewedModel:
    """Return a model as a page shows it. Nodes show the diagnostics of their layers; ``declared`` are the ports whose
    type inference did not find. The first layer with an error is selected."""
    wrong = diagnostics_by_layer(model, (d for d in diagnostics if d.severity is Severity.ERROR))
    selected = next((layer for layer in model.walk() if layer in wrong), None)
    with stage("drawing"):
        return ViewedModel(path, model, graphs_of(model, diagnostics, declared), list(overlays), selected)


def shown_models(models: Sequence[ViewedModel], *, hide_constants: bool = False) -> Shown:
    """Return models and overlays as the server sends them. The page selects the overlay that it loads last, so that the
    first one comes last."""
    names = distinct_names([item.path for item in models])
    hidden = ["Const"] if hide_constants else []
    shown = Shown()
    for name, item in zip(names, counted("laying out", models), strict=True):
        prefix = f"{name}: " if shown.models else ""  # the page tells graphs apart by their ids alone
        graphs = [_prefixed(graph.to_dict(), prefix) | {"nodeLabelsToHide": hidden} for graph in item.graphs]
        shown.models[name] = {"graphs": graphs}
        for overlay in reversed(item.overlays):
            data = {prefix + graph: values for graph, values in overlay.to_dict(item.model).items()}
            shown.overlays.append((overlay.name, name, data))
        pane = item.pane(name)
        shown.panes.append(replace(pane, graph=prefix + pane.graph))
    return shown


def _prefixed(graph: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Return a graph with a prefix before its id and the ids of the bodies of its layers."""
    if not prefix:
        return graph
    nodes = [{**node, "subgraphIds": [prefix + body for body in node["subgraphIds"]]} for node in graph["nodes"]]
    return {**graph, "id": prefix + graph["id"], "nodes": nodes}


def distinct_names(paths: Sequence[str]) -> list[str]:
    """Return the names of files, with their folder, as many models have the same name, and with as many more as it
    takes to tell them apart."""
    parts = [os.path.abspath(path).split(os.sep) for path in paths]
    for count in range(2, max(map(len, parts)) + 1):
        names = ["/".join(part[-count:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    return [f"{path} ({number})" for number, path in enumerate(paths, 1)]


def measure(model: Model, inputs: str | None, *, times: bool, ranges: bool) -> tuple[list[Overlay], RunError | None]:
    """Run a model, and return the time of each layer or the range of its values, or both, as overlays.

    ``inputs`` is an .npz; None stands for random inputs. If a layer fails, the overlays have the layers before it, and
    the error is returned, too. Raise InputError for inputs that do not fit the model.
    """
    arrays = input_sets(model, inputs, None, 0)[0]()
    measured, compiled = Ranges(), CompiledModel(model)
    overlays: list[Overlay] = []
    error = None
    try:
        compiled(arrays, listeners=[measured] if ranges else [])
        if times:
            overlays.append(of_times(profile_runs(compiled, arrays)[0].timings))
    except RunError as raised:
        error = raised
    return [*overlays, *(of_ranges(measured.ranges) if ranges else [])], error
