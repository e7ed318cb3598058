"""Charts: labels are texts, and distributions count every finite value."""

import json
from typing import Any

import numpy as np
import pytest
from support.builder import Net

from ovir.analysis.tensor_comparison import EXACT, compare_tensors
from ovir.core.element_types import bf16
from ovir.debugging.comparison import OutputDifference, TensorDifference
from ovir.reports.charts import bars, curve, element_errors, histogram, label, labels, spread
from ovir.reports.layers import LayerIndex


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("conv1", "conv1"),
        ("<b>bold</b>", "&lt;b&gt;bold&lt;/b&gt;"),
        ("a&lt;b", "a&amp;lt;b"),
        ("a\nb\u202e", "a\\nb\\u202e"),
    ],
)
def test_a_label_is_what_plotly_shows_as_the_text(text: str, expected: str) -> None:
    assert label(text) == expected


def test_a_long_label_keeps_both_ends() -> None:
    shown = label("a" * 50 + "<" + "b" * 50)
    assert len(shown) == 44
    assert shown.startswith("aaa")
    assert shown.endswith("bbb")
    assert label("<" * 60, 5) == "&lt;…&lt;&lt;&lt;"  # an entity is never cut


@pytest.mark.parametrize(
    ("values", "total"),
    [
        (np.linspace(-3, 4, 1000, dtype=np.float32), 1000),
        (np.array([np.nan, np.inf, -np.inf, 1.5, 2.5]), 2),
        (np.array([1.7e308, -1.7e308, 0.0]), 3),
        (np.array([5e-324, 0.0]), 2),
        (np.full((2, 3), 7.25, np.float16), 6),
        (np.array([2**63 - 1, -(2**63)], np.int64), 2),
        (np.arange(-100, 100, dtype=np.int8), 200),
        (np.array([True, False, True]), 3),
        (np.ones(5, bf16.to_dtype()), 5),
        (np.zeros(2_500_000, np.float32), 2_500_000),
    ],
    ids=["f32", "nonfinite", "whole f64", "subnormal", "constant", "whole i64", "i8", "boolean", "bf16", "large"],
)
def test_every_finite_value_is_counted(values: Any, total: int) -> None:
    found = spread(values)
    assert found is not None
    assert sum(found.counts) == total
    assert len(found.edges) == len(found.counts) + 1


NORMAL = np.random.default_rng(0).normal(size=3000)


@pytest.mark.parametrize(
    ("values", "is_log"),
    [
        (NORMAL, False),
        (np.concatenate([NORMAL, [-3.4e38, 1e9]]), False),
        (np.concatenate([np.zeros(100_000), np.abs(NORMAL)]), True),
        (np.concatenate([np.full(300_000, -1), np.arange(40)]), True),
    ],
    ids=["normal", "two far away", "mostly zero", "padded integers"],
)
def test_no_value_hides_the_others_in_a_histogram(values: Any, is_log: bool) -> None:
    chart = histogram("values", values)
    assert chart is not None
    (trace,) = chart.traces
    assert (chart.layout["yaxis"].get("type") == "log") == is_log
    assert sum(trace["y"]) == values.size
    assert sum(count > 0 for count in trace["y"]) >= 20
    assert trace["hovertext"][0].startswith(f"{values.min():.5g} to") or values.dtype.kind == "i"
    chart = histogram("values", values)
    assert chart is not None
    json.dumps(chart.traces, allow_nan=False)


def test_integers_have_a_bar_each() -> None:
    found = spread(np.array([3, 3, 5, 1], np.int32))
    assert found is not None
    assert found.counts == [1, 0, 2, 0, 1]
    assert found.edges == pytest.approx([0.5, 1.5, 2.5, 3.5, 4.5, 5.5])


def test_values_are_in_the_range_that_counts_them() -> None:
    values = np.random.default_rng(0).normal(size=4000)
    found = spread(values)
    assert found is not None
    assert found.counts == np.histogram(values, bins=np.array(found.edges))[0].tolist()


@pytest.mark.parametrize("values", [np.array(["a"]), np.zeros(0, np.float32), np.array([np.nan, np.inf])])
def test_no_numbers_have_no_histogram(values: Any) -> None:
    assert spread(values) is None
    assert histogram("values", values) is None


def test_bars_leave_room_for_those_of_another_chart() -> None:
    chart = bars("times", ["a", "b"], [2.0, 1.0], axis="ms", room=10)
    assert chart.layout["yaxis"]["range"] == [9.5, -0.5]
    assert chart.height == bars("times", ["a"] * 10, [1.0] * 10, axis="ms").height


def test_names_of_layers_are_escaped_wherever_plotly_shows_them() -> None:
    name = "<img src=x onerror=alert(1)>"
    net = Net()
    net.result(net.op("ReLU", net.parameter("data", "2"), name=name.replace("<", "&lt;").replace(">", "&gt;")))
    model = net.model()
    layers = LayerIndex()
    layers.add(model)
    along = curve("times", [(layer, 1.0) for layer in model.layers], layers, axis="ms")
    assert along is not None
    across = bars("times", [layer.name for layer in model.layers], [1.0, 2.0, 3.0], axis="ms")
    text = json.dumps([along.traces, along.layout, across.traces, across.layout])
    assert "<img" not in text
    assert text.count("&lt;img src=x onerror=alert(1)&gt;") == 3


def test_errors_of_elements_are_counted_by_size() -> None:
    reference = np.array([1.0, 1.0, 1.0, 1.0, np.nan], np.float64)
    actual = np.array([1.0, 1.5, 1.75, 1 + 2**-10, 1.0], np.float64)
    found = compare_tensors(actual, reference, EXACT, counts_errors=True)
    assert found.errors == {-1: 2, -10: 1}
    assert compare_tensors(actual, reference, EXACT).errors is None
    chart = element_errors(OutputDifference(0, "out", TensorDifference(found, 0, {}, 1, "", EXACT, "f64", (5,))))
    assert chart is not None
    counts = chart.traces[0]["y"]
    assert (counts[0], counts[1], counts[10], counts[11]) == (1, 1, 2, 1)  # equal, 2**-10, 2**-1, NaN
    assert sum(counts) == 5


def test_labels_of_different_names_differ() -> None:
    names = [
        f"__module.encoder.layers.{number}.attention.self/aten::scaled_dot_product/Attention" for number in range(12)
    ]
    shown = labels(names)
    assert len(set(shown)) == len(names)
    assert all(len(text) < 52 for text in shown)
    alike = [f"{'a' * 40}{number}{'b' * 40}" for number in range(3)]
    assert len(set(labels(alike))) == 3
    assert labels(["conv1", "conv2", "conv1"]) == ["conv1", "conv2", "conv1"]
