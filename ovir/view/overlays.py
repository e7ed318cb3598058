"""Data on the nodes of a graph, which Model Explorer shows as numbers and colors: its *node data*."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ovir.analysis.diff import Diff
from ovir.analysis.profile import Timing
from ovir.analysis.tensor_stats import Range
from ovir.debugging.comparison import Comparison, LayerDifference, OutputDifference
from ovir.diagnostics.codes import Severity
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.graph.layers import Layer
from ovir.ir.executed import ExecutedGraph
from ovir.model import Model
from ovir.view.graphs import diagnostics_by_layer, graph_id, node_ids

RED, ORANGE, BLUE, GREEN, VIOLET, GRAY = "#d93025", "#f29900", "#8ab4f8", "#81c995", "#c58af9", "#dadce0"
_SEVERITIES = {Severity.ERROR: RED, Severity.WARNING: ORANGE, Severity.INFO: BLUE}
_STATUSES = {
    "added": GREEN, "removed": RED, "replaced": ORANGE, "moved": VIOLET, "changed": BLUE,
    "affected": GRAY, "renumbered": GRAY,
}  # fmt: skip

_WARM = ("#fff7e0", "#fbbc04", "#c5221f")
"""Light for the smallest number, dark for the largest."""
_BOTH = ("#4285f4", "#f1f3f4", "#ea8600")


@dataclass(frozen=True)
class Item:
    """The value of a layer; ``color`` replaces the color that the gradient gives."""

    value: float | int | str
    color: str | None = None


@dataclass
class Overlay:
    """One value for each of some layers."""

    name: str
    items: dict[str, Item] = field(default_factory=dict)
    """By the keys of the layers."""
    gradient: tuple[str, ...] = ()
    """The colors from the smallest number to the largest."""
    sums: bool = False
    """Whether the sum and the mean over the layers of a group mean anything."""

    def to_dict(self, model: Model) -> dict[str, Any]:
        """Return the data for the graphs of a model and its bodies, by the id of the graph."""
        data_of_graphs = {}
        for part in model.graphs():
            items = ((node, self.items.get(layer.key)) for layer, node in node_ids(part).items())
            results = {node: _result(item) for node, item in items if item is not None}
            data: dict[str, Any] = {"name": self.name, "results": results}
            if self.gradient:
                last = len(self.gradient) - 1
                data["gradient"] = [{"stop": i / last, "bgColor": color} for i, color in enumerate(self.gradient)]
            if not self.sums:  # the table of children has the share of each in the sum
                data |= {"hideAggregatedStats": ["sum", "avg"], "hideInChildrenStatsTable": True}
            if not any(isinstance(result["value"], int | float) for result in results.values()):
                data["hideInAggregatedStatsTable"] = True
            data_of_graphs[graph_id(part)] = data
        return data_of_graphs


def _result(item: Item) -> dict[str, Any]:
    value = item.value
    if isinstance(value, float):
        value = float(f"{value:.5g}") if math.isfinite(value) else str(value)
    return {"value": value} if item.color is None else {"value": value, "bgColor": item.color}


# --------------------------------------------------------------------------- what overlays show


_PRECISIONS = {"f32": BLUE, "f64": BLUE, "f16": ORANGE, "bf16": ORANGE, "i8": GREEN, "u8": GREEN}
"""Real numbers in full, in half as many bits, and integers of 8 bits; other types are gray."""


def of_executed(model: Model, executed: ExecutedGraph) -> list[Overlay]:
    """Return the time that a device took for each layer, the type in which it computed, its primitive, and the layer
    into which others were fused.

    The time of layers that were executed as one is at the first of them.
    """
    executions = {layer: item for layer, item in executed.of(model).items() if layer.type not in ("Const", "Result")}
    times, precisions, primitives, fused = {}, {}, {}, {}
    for layer, item in executions.items():
        by, into = item.by, item.fused_into(layer)
        if into is not None:
            fused[layer.key] = Item(into, VIOLET)
        elif by.microseconds is not None:
            times[layer.key] = Item(by.microseconds / 1000)
        if by.types is not None:
            precisions[layer.key] = Item(by.types, _PRECISIONS.get(by.precision or "", GRAY))
        primitives[layer.key] = Item(f"{by.type}: {by.primitive}" if by.primitive else by.type, GRAY)
    return [
        Overlay("executed: time (ms)", times, _WARM, sums=True),
        Overlay("executed: precision", precisions),
        Overlay("executed: primitive", primitives),
        Overlay("executed: fused into", fused),
    ]


def of_diagnostics(model: Model, diagnostics: Iterable[Diagnostic]) -> Overlay:
    """Return the severity of the worst diagnostic of each layer."""
    ranks = list(Severity)
    items = {}
    for layer, of_layer in diagnostics_by_layer(model, diagnostics).items():
        worst = min((item.severity for item in of_layer), key=ranks.index)
        items[layer.key] = Item(str(worst), _SEVERITIES[worst])
    return Overlay("diagnostics", items)


def of_times(timings: Mapping[Layer, Timing]) -> Overlay:
    """Return the time that each layer takes."""
    items = {layer.key: Item(1000 * timing.seconds) for layer, timing in timings.items()}
    return Overlay("time (ms)", items, _WARM, sums=True)


def of_ranges(ranges: Mapping[Layer, Range]) -> list[Overlay]:
    """Return the minimum, maximum and mean of each layer's results, and the number of values that are not finite."""
    overlays = [Overlay(name, _numbers(ranges, name), _BOTH) for name in ("minimum", "maximum", "mean")]
    counts = {layer.key: Item(r.nonfinite, RED if r.nonfinite else None) for layer, r in ranges.items()}
    return [*overlays, Overlay("NaN and infinities", counts)]


def of_magnitudes(ranges: Mapping[Layer, Range]) -> Overlay:
    """Return the largest absolute value of each layer, or that some of its values are not finite."""
    items = _numbers(ranges, "largest")
    bad = {layer.key: Item("not finite", RED) for layer, r in ranges.items() if r.nonfinite}
    return Overlay("largest absolute value", items | bad, _WARM)


def _numbers(ranges: Mapping[Layer, Range], name: str) -> dict[str, Item]:
    return {layer.key: Item(value) for layer, r in ranges.items() if (value := getattr(r, name)) is not None}


def of_comparison(model: Model, comparison: Comparison) -> list[Overlay]:
    """Return whether each layer is within the tolerance, its largest absolute error, and how much noise it adds.

    The first overlay is named after the verdict. Colors say what the tolerance says, however small the errors are.
    """
    first = comparison.first
    layers = {layer.name: layer for layer in comparison.layers}
    compared: dict[str, LayerDifference | OutputDifference] = {
        model.outputs[output.index].layer.key: output for output in comparison.outputs
    }
    verdicts, errors = {}, {}
    for key, difference in (compared | layers).items():
        text = "within" if difference.within else "first beyond" if difference is first else "beyond"
        verdicts[key] = Item(text, GREEN if difference.within else RED if difference is first else ORANGE)
        worst = difference.tensor.worst
        value: float | str = "not comparable" if worst.problem is not None or worst.max_abs is None else worst.max_abs
        errors[key] = Item(worst.lone_text if worst.lone else value, _color(difference))
    noise = {key: Item(difference.contribution, _color(difference)) for key, difference in layers.items()}
    return [
        Overlay(comparison_verdict(comparison), verdicts),
        Overlay("largest absolute error", errors),
        Overlay("noise that a layer adds", noise),
    ]


def comparison_verdict(comparison: Comparison) -> str:
    """Return the result of a comparison in a few words, with the first layer."""
    first = comparison.first
    return comparison.verdict if first is None or comparison.failed else f"{comparison.verdict}, first at {first.name}"


def _color(difference: LayerDifference | OutputDifference) -> str:
    return GREEN if difference.within else RED


def of_diff(diff: Diff, side: Literal["a", "b"]) -> list[Overlay]:
    """Return an overlay of the layers that differ from the other model, with their status, such as removed or moved.

    A layer that only computes another type, because of what it reads, is affected. Layers that are renumbered are left
    out. If layers have several statuses, each status also has an overlay of its own.
    """
    statuses = {(item.a if side == "a" else item.b).key: "affected" for item in diff.affected}
    for entry in diff.layers:
        layer = entry.a if side == "a" else entry.b
        if layer is not None:
            statuses[layer.key] = entry.status
    items = {key: Item(status, _STATUSES[status]) for key, status in statuses.items()}
    overlays = [Overlay("difference", {key: item for key, item in items.items() if item.value != "renumbered"})]
    present = [status for status in _STATUSES if status in statuses.values()]
    if len(present) > 1 or present == ["renumbered"]:
        overlays += [Overlay(s, {key: item for key, item in items.items() if item.value == s}) for s in present]
    return overlays
