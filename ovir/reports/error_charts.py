"""The charts of ``ovir compare``: errors along the graph, of layers, and of the elements of outputs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ovir.debugging.comparison import Comparison, LayerDifference, OutputDifference, noise
from ovir.reports.charts import ACCENT, BAD, MUTED, Chart, counted, label, rounded
from ovir.reports.layer_index import LayerIndex

MOST_MARKS = 500
"""Layers of one kind that have a mark; more would hide each other."""


def error_curve(found: Comparison, layers: LayerIndex) -> Chart | None:
    """Return the relative error of each layer in the order of the run, with marks at layers beyond tolerance.

    The axis is logarithmic. The line passes over layers without an error, which have marks at the lower end; layers
    that cannot be compared are at the upper end.
    """
    if len(found.layers) < 2:
        return None
    errors = [noise(layer.tensor.worst) for layer in found.layers]
    low, high = _ends(errors)
    points = [
        _Point(number, layer, error, low, high)
        for number, (layer, error) in enumerate(zip(found.layers, errors, strict=True), 1)
    ]
    unequal = [point for point in points if point.error]
    equal = [point for point in points if not point.error][:MOST_MARKS]
    beyond = sorted((point for point in points if not point.within), key=lambda point: -point.height)[:MOST_MARKS]
    line = {"mode": "lines+markers" if len(unequal) < MOST_MARKS else "lines", "line": {"color": ACCENT, "width": 1.6}}
    circle = {"color": BAD, "size": 8, "symbol": "circle-open", "line": {"width": 2}}
    traces = [
        _trace(unequal, layers, **line, marker={"color": ACCENT, "size": 4}),
        _trace(equal, layers, mode="markers", marker={"color": f"{MUTED}/0.6", "size": 4}),
        _trace(beyond, layers, mode="markers", marker=circle),
    ]
    layout = {
        "xaxis": {"title": {"text": "layer, in the order of the run"}, "range": [0, len(errors) + 1]},
        "yaxis": _axis(low, high, has_equal=0 in errors, has_lone=math.inf in errors),
    }
    note = "The root mean square of the error, relative to the signal. Circles are beyond tolerance; a click opens one."
    return Chart("Error along the graph", [t for t in traces if t["x"]], layout, 360, note, is_wide=True)


class _Point:
    """A layer on the curve."""

    def __init__(self, number: int, layer: LayerDifference, error: float, low: int, high: int) -> None:
        self.number = number
        self.name = layer.name
        self.within = layer.within
        self.error = error
        self.height = low - 1 if error == 0 else high + 1 if error == math.inf else math.log10(error)
        size = "equal" if error == 0 else "not comparable" if error == math.inf else f"relative error {error:.3g}"
        self.text = (
            f"{label(f'{layer.type} {layer.name}', 120)}<br>{size}{'' if layer.within else ', beyond tolerance'}"
        )


def _trace(points: Sequence[_Point], layers: LayerIndex, **style: Any) -> dict[str, Any]:
    return {
        "type": "scatter",
        "x": [point.number for point in points],
        "y": [rounded(point.height) for point in points],
        "text": [point.text for point in points],
        "hovertemplate": "%{text}<extra></extra>",
        "customdata": [layers.find(point.name) for point in points],
        **style,
    }


def _ends(errors: Sequence[float]) -> tuple[int, int]:
    """Return the powers of ten between which the errors are."""
    powers = [math.log10(error) for error in errors if 0 < error < math.inf]
    if not powers:
        return -1, 0
    low = math.floor(min(powers))
    return low, max(math.ceil(max(powers)), low + 1)


def _axis(low: int, high: int, *, has_equal: bool, has_lone: bool) -> dict[str, Any]:
    """Return the axis of errors, with places for errors without a logarithm beside the powers of ten."""
    powers = range(low, high + 1, max(1, math.ceil((high - low) / 10)))
    ticks = {**({low - 1: "equal"} if has_equal else {}), **{power: f"1e{power}" for power in powers}}
    ticks |= {high + 1: "∞"} if has_lone else {}
    return {
        "title": {"text": "relative error"},
        "tickvals": list(ticks),
        "ticktext": list(ticks.values()),
        "range": [low - 1.4 if has_equal else low - 0.4, high + 1.4 if has_lone else high + 0.4],
        "zeroline": False,
    }


def layer_errors(found: Comparison) -> Chart:
    """Return how many layers have errors of which size."""
    errors = [noise(layer.tensor.worst) for layer in found.layers]
    powers = Counter(math.frexp(error)[1] - 1 for error in errors if 0 < error < math.inf)
    return _by_power(
        "Errors of layers",
        powers,
        {"equal": errors.count(0.0)},
        {"not comparable": errors.count(math.inf)},
        axis="relative error",
        of="layers",
        height=378,
        note="The root mean square of the error of each layer's output, relative to the signal.",
    )


def element_errors(output: OutputDifference) -> Chart | None:
    """Return how many elements of an output have errors of which size; None if they were not compared."""
    worst = output.tensor.worst
    if worst.errors is None:
        return None
    equal = worst.size - sum(worst.errors.values()) - worst.lone
    title, rest = f"Errors of {output.name}", {"NaN, Inf": worst.lone}
    return _by_power(title, worst.errors, {"equal": equal}, rest, axis="absolute error", of="elements")


def _by_power(
    title: str,
    powers: Mapping[int, int],
    before: Mapping[str, int],
    after: Mapping[str, int],
    *,
    axis: str,
    of: str,
    height: int = 260,
    note: str = "",
) -> Chart:
    """Return bars of counts by power of two, with counts of what has no power before and after them."""
    between = range(min(powers), max(powers) + 1) if powers else range(0)
    bars = [(name, name, count) for name, count in before.items() if count]
    bars += [(f"{2.0**p:.2g}", f"{2.0**p:.3g} to {2.0 ** (p + 1):.3g}", powers.get(p, 0)) for p in between]
    bars += [(name, name, count) for name, count in after.items() if count]
    ticks, texts, counts = zip(*bars, strict=True) if bars else ((), (), ())
    chart = counted(title, range(len(counts)), counts, texts, axis=axis, of=of, height=height, note=note)
    step = max(1, math.ceil(len(ticks) / _MOST_TICKS))
    places = sorted({*range(0, len(ticks), step), *(i for i, tick in enumerate(ticks) if tick in {*before, *after})})
    chart.layout["xaxis"] |= {
        "range": [-0.6, max(len(ticks), _LEAST_BARS) - 0.4],
        "tickvals": places,
        "ticktext": [ticks[place] for place in places],
        "tickangle": 0,
    }
    return chart


_MOST_TICKS = 9
_LEAST_BARS = 6  # fewer bars leave room beside them
