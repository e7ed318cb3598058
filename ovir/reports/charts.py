"""Charts as figures of plotly.

A figure has no colors but names of CSS variables, which the page replaces, so that a chart follows the theme. Plotly
reads labels as HTML, therefore every text of a model goes through ``label``.
"""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ovir.analysis.tensor_comparison import noise
from ovir.analysis.tensor_stats import as_numbers
from ovir.core.arrays import Array
from ovir.core.short_names import short_names, without_middle
from ovir.debugging.comparison import Comparison, LayerDifference, OutputDifference
from ovir.diagnostics.wording import escaped
from ovir.graph.layers import Layer
from ovir.reports.layers import LayerIndex

ACCENT, BAD, MUTED = "--accent", "--bad", "--muted"


@dataclass(frozen=True)
class Chart:
    """A figure of plotly: traces and layout."""

    title: str
    traces: list[dict[str, Any]]
    layout: dict[str, Any]
    height: int = 300
    note: str = ""
    is_wide: bool = False
    """Whether the chart takes the whole width of a page, so that no other chart is beside it."""
    narrow: Sequence[str] | None = None
    """The labels of the vertical axis where the chart is narrow."""


def label(text: str, longest: int = 44) -> str:
    """Return a text that plotly shows as it is; the middle of a long one is left out."""
    return html.escape(without_middle(escaped(text), longest), quote=False)


def labels(names: Sequence[str], longest: int = 44) -> list[str]:
    """Return a label for each name. Labels of different names differ."""
    return [html.escape(text, quote=False) for text in short_names([escaped(name) for name in names], longest)]


NARROW = 20
"""The number of characters of a label beside the bars of a narrow page."""


def bars(
    title: str,
    names: Sequence[str],
    values: Sequence[float],
    *,
    axis: str,
    texts: Sequence[str] | None = None,
    layers: Sequence[int | None] | None = None,
    note: str = "",
    room: int = 0,
) -> Chart:
    """Return horizontal bars, the first one at the top; ``layers`` are opened by a click on a bar.

    There is ``room`` for as many bars at least, so that charts beside each other have bars of one height.
    """
    places, rows = list(range(len(names))), max(len(names), room, 3)
    trace = {
        "type": "bar",
        "orientation": "h",
        "x": [rounded(value) for value in values],
        "y": places,
        "text": list(texts) if texts is not None else None,
        "textposition": "auto",
        "hovertext": [label(name, 120) for name in names],
        "hovertemplate": "%{hovertext}<br>%{x:,.6~g} " + html.escape(axis) + "<extra></extra>",
        "customdata": list(layers) if layers is not None else None,
        "marker": {"color": ACCENT},
    }
    layout = {
        "xaxis": {"title": {"text": axis}, "rangemode": "tozero"},
        "yaxis": {
            "tickvals": places,
            "ticktext": labels(names),
            "range": [rows - 0.5, -0.5],
            "fixedrange": True,
            "automargin": True,
        },
    }
    return Chart(title, [trace], layout, 90 + 24 * rows, note, narrow=labels(names, NARROW))


@dataclass(frozen=True)
class Spread:
    """The number of values in each of the ranges between ``edges``, which are of equal width.

    The first and the last range also have the values beyond, down to ``low`` and up to ``high``.
    """

    edges: list[float]
    counts: list[int]
    low: float
    high: float


def spread(array: Array) -> Spread | None:
    """Return the distribution of the finite values of a tensor; None if there are none, or if they are not numbers.

    There are more ranges for more values; integers have a range each if they are close to each other. Few values that
    are far from all others do not widen the ranges.
    """
    if array.dtype.kind in "TUSO" or not array.size:
        return None
    most = min(_MOST_RANGES, 6 + int(2 * math.sqrt(array.size)))
    flat = as_numbers(array.reshape(-1))
    low, high = math.inf, -math.inf
    for block in _finite_blocks(flat):
        low, high = min(low, float(block.min())), max(high, float(block.max()))
    if low > high:
        return None
    ends = low, high
    sample = np.concatenate([*_finite_blocks(flat[:: 1 + flat.size // _BLOCK]), ends])
    first, last = np.percentile(sample, _MOST_VALUES, method="nearest").tolist()
    if 0 < _FAR * (last / 2 - first / 2) < high / 2 - low / 2:
        low, high = first, last
    is_integral = flat.dtype.kind != "f"
    count = int(high - low) + 1 if is_integral and high - low < most else most if high > low else 1
    if is_integral and high - low < most:
        low, high = low - 0.5, high + 0.5
    counts = np.zeros(count, np.int64)
    width = high / 2 - low / 2  # halves, because the difference may be too large for f64
    for block in _finite_blocks(flat):
        places = np.zeros(block.size) if width == 0 else (block / 2 - low / 2) / width * count
        counts += np.bincount(np.clip(places, 0, count - 1).astype(np.int64), minlength=count)
    edges = [*(low + (high / count - low / count) * number for number in range(count)), high]
    return Spread(edges, counts.tolist(), *ends)


def _finite_blocks(flat: Array) -> Sequence[Array]:
    """Return the finite values as f64, in blocks."""
    blocks = (flat[start : start + _BLOCK].astype(np.float64) for start in range(0, flat.size, _BLOCK))
    return [block[np.isfinite(block)] for block in blocks if np.isfinite(block).any()]


_BLOCK = 1 << 20  # elements
_MOST_RANGES = 60
_MOST_VALUES, _FAR = (0.5, 99.5), 10
"""The percentiles between which most values are, and the part of their distance that makes the others far away."""


def histogram(title: str, array: Array, *, axis: str = "value", of: str = "elements") -> Chart | None:
    """Return the histogram of a tensor; None if it has no finite number."""
    distribution = spread(array)
    if distribution is None:
        return None
    edges, counts = distribution.edges, distribution.counts
    width = edges[1] - edges[0] or 1.0
    shown = [min(distribution.low, edges[0]), *edges[1:-1], max(distribution.high, edges[-1])]
    is_clipped = shown[0] < edges[0] or shown[-1] > edges[-1]
    return counted(
        title,
        [(one + other) / 2 for one, other in pairwise(edges)],
        counts,
        [f"{one:.5g} to {other:.5g}" for one, other in pairwise(shown)],
        axis=axis,
        of=of,
        width=width,
        note=f"The outer bars also count values beyond, from {shown[0]:.5g} to {shown[-1]:.5g}." if is_clipped else "",
    )


def counted(
    title: str,
    places: Sequence[float],
    counts: Sequence[int],
    texts: Sequence[str],
    *,
    axis: str,
    of: str = "elements",
    width: float | None = None,
    height: int = 260,
    note: str = "",
) -> Chart:
    """Return vertical bars of numbers of things; ``texts`` names the things of each bar.

    The axis of numbers is logarithmic if one bar would hide the others.
    """
    heights = [count for count in counts if count]
    is_linear = len(heights) < 2 or max(heights) < _TOWERING * np.median(heights)
    axis_of_counts = {"title": {"text": of}, "rangemode": "tozero", **whole_ticks(max(counts, default=0))}
    log_range = [-0.3, math.log10(1.5 * max(counts, default=1))]
    log_axis = {"title": {"text": f"{of}, logarithmic"}, "type": "log", "range": log_range, "dtick": 1}
    trace = {
        "type": "bar",
        "x": [rounded(place) for place in places],
        "y": list(counts),
        "width": rounded(width) if width is not None else None,
        "hovertext": [label(text, 120) for text in texts],
        "hovertemplate": "%{hovertext}: %{y:,} " + of + "<extra></extra>",
        "marker": {"color": ACCENT},
    }
    layout = {
        "xaxis": {"title": {"text": axis}, "ticks": "outside", "ticklen": 8},  # below the label of the other axis' 0
        "yaxis": axis_of_counts if is_linear else log_axis,
        "bargap": 0.06,
    }
    return Chart(title, [trace], layout, height, note)


_TOWERING = 40
"""The greatest height of a bar, in heights of a usual bar."""


def whole_ticks(most: int) -> dict[str, int]:
    """Return the settings of an axis of integers, which has ticks at integers only."""
    return {"dtick": 1} if most < 6 else {}


def rounded(value: float) -> float | None:
    """Return a number with seven significant digits, which is more than a chart shows; None for one that JSON lacks."""
    return float(f"{value:.7g}") if math.isfinite(value) else None


def curve(
    title: str, points: Sequence[tuple[Layer, float]], layers: LayerIndex, *, axis: str, note: str = ""
) -> Chart | None:
    """Return a value of layers along the graph; None for less than two layers."""
    if len(points) < 2:
        return None
    trace = {
        "type": "scatter",
        "mode": "lines",
        "x": list(range(1, len(points) + 1)),
        "y": [rounded(value) for _, value in points],
        "text": [label(f"{layer.type} {layer.key}", 120) for layer, _ in points],
        "hovertemplate": "%{text}<br>%{y:,.6~g} " + html.escape(axis) + "<extra></extra>",
        "customdata": [layers.number(layer) for layer, _ in points],
        "line": {"color": ACCENT, "width": 1.4, "shape": "hvh"},
        "fill": "tozeroy",
        "fillcolor": f"{ACCENT}/0.15",
    }
    layout = {
        "xaxis": {"title": {"text": "layer"}, "range": [0.5, len(points) + 0.5]},
        "yaxis": {"title": {"text": axis}, "rangemode": "tozero"},
        "hovermode": "x",
    }
    return Chart(title, [trace], layout, 260, note, is_wide=True)


MOST_MARKS = 500
"""Layers of one kind that have a mark; more would hide each other."""


def error_curve(comparison: Comparison, layers: LayerIndex) -> Chart | None:
    """Return the relative error of each layer in the order of the run, with marks at layers beyond tolerance.

    The axis is logarithmic. The line passes over layers without an error, which have marks at the lower end; layers
    that cannot be compared are at the upper end.
    """
    errors = [noise(layer.tensor.worst) for layer in comparison.layers]
    if len(errors) < 2 or not any(errors):
        return None
    low, high = _ends(errors)
    points = [
        _Point(number, layer, error, low, high)
        for number, (layer, error) in enumerate(zip(comparison.layers, errors, strict=True), 1)
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
        "xaxis": {
            "title": {"text": "layer, in the order of the run"},
            "range": [0, len(errors) + 1],
            **whole_ticks(len(errors)),
        },
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
        beyond = "" if layer.within else ", beyond tolerance"
        self.text = f"{label(f'{layer.type} {layer.name}', 120)}<br>{size}{beyond}"


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


def layer_errors(comparison: Comparison, height: int) -> Chart | None:
    """Return a chart of the number of layers by the size of their errors; None without errors."""
    errors = [noise(layer.tensor.worst) for layer in comparison.layers]
    if not any(errors):
        return None
    powers = Counter(math.frexp(error)[1] - 1 for error in errors if 0 < error < math.inf)
    return _by_power(
        "Errors of layers",
        powers,
        {"equal": errors.count(0.0)},
        {"∞": errors.count(math.inf)},
        axis="relative error",
        of="layers",
        height=height,
        note="The root mean square of the error of each layer's output, relative to the signal.",
    )


def element_errors(output: OutputDifference) -> Chart | None:
    """Return a chart of the number of elements of an output by the size of their errors; None without errors."""
    worst = output.tensor.worst
    if worst.errors is None or worst.is_equal:
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
    """Return bars of counts by power of two, with counts of numbers without a power before and after them."""
    between = range(min(powers), max(powers) + 1) if powers else range(0)
    bars = [(name, name, count) for name, count in before.items() if count]
    bars += [(f"{2.0**p:.2g}", f"{2.0**p:.3g} to {2.0 ** (p + 1):.3g}", powers.get(p, 0)) for p in between]
    bars += [(name, name, count) for name, count in after.items() if count]
    ticks, texts, counts = zip(*bars, strict=True) if bars else ((), (), ())
    chart = counted(title, range(len(counts)), counts, texts, axis=axis, of=of, height=height, note=note)
    chart.layout["xaxis"] |= {
        "range": [-0.6, max(len(ticks), _LEAST_BARS) - 0.4],
        "tickvals": list(range(len(ticks))),
        "ticktext": ticks,
        "tickangle": 0,
    }
    return chart


_LEAST_BARS = 6  # fewer bars leave room beside them
