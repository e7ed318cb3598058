"""Data on nodes: from diagnostics, runs, comparisons and differences."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from support.bodies import conditional

import ovir
from ovir import opset13 as ops
from ovir.analysis.profile import Profile
from ovir.analysis.tensor_stats import Ranges
from ovir.diagnostics.codes import Severity
from ovir.view.graphs import graphs_of
from ovir.view.overlays import (
    GREEN,
    RED,
    Item,
    Overlay,
    of_comparison,
    of_diagnostics,
    of_diff,
    of_magnitudes,
    of_ranges,
    of_times,
)

EXAMPLES = Path(__file__).parents[2] / "examples" / "xml"
IMAGE = np.load(EXAMPLES / "digits_input.npz")["image"]


def digits() -> ovir.Model:
    return ovir.read_model(EXAMPLES / "digits.xml")


def test_every_value_belongs_to_a_node() -> None:
    model = conditional()
    data = Overlay("all", {layer.key: Item(1) for layer in model.walk()}).to_dict(model)
    graphs = {graph.id: {node["id"] for node in graph.nodes} for graph in graphs_of(model)}
    assert {graph: set(content["results"]) for graph, content in data.items()} == graphs


def test_numbers_fit_json() -> None:
    x = ops.parameter([2], "f32", name="x")
    model = ovir.Model([ops.relu(x, name="relu")], [x])
    data = Overlay("n", {"x": Item(math.inf), "relu": Item(1.23456789)}, ("#000000", "#ffffff")).to_dict(model)
    assert json.loads(json.dumps(data, allow_nan=False))["model"] == {
        "name": "n",
        "results": {"x": {"value": "inf"}, "relu": {"value": 1.2346}},
        "gradient": [{"stop": 0, "bgColor": "#000000"}, {"stop": 1, "bgColor": "#ffffff"}],
        "hideAggregatedStats": ["sum", "avg"],
        "hideInChildrenStatsTable": True,
    }


def test_the_worst_severity_counts() -> None:
    model = digits()
    conv = model.layer("conv1")
    found = [
        ovir.Diagnostic("OVIR402", severity, "m", layer=conv.title)
        for severity in (Severity.INFO, Severity.ERROR, Severity.WARNING)
    ]
    elsewhere = ovir.Diagnostic("OVIR402", Severity.ERROR, "m")
    assert of_diagnostics(model, [*found, elsewhere]).items == {"conv1": Item("error", RED)}


def test_times() -> None:
    model, profile = digits(), Profile()
    ovir.compile_model(model)([IMAGE], listeners=[profile])
    overlay = of_times(profile.timings)
    assert overlay.name == "time (ms)"
    total = sum(float(item.value) for item in overlay.items.values())
    assert total == pytest.approx(1000 * profile.seconds)
    assert "conv1" in overlay.items


def test_ranges() -> None:
    x = ops.parameter([3], "f32", name="x")
    model = ovir.Model([ops.relu(ops.log(x, name="log"), name="relu")], [x])
    measured = Ranges()
    ovir.compile_model(model)([np.float32([0, 1, np.e])], listeners=[measured])
    low, high, mean, nonfinite = of_ranges(measured.ranges)
    assert low.items["log"].value == 0
    assert high.items["log"].value == pytest.approx(1)
    assert mean.items["x"].value == pytest.approx((1 + np.e) / 3)
    assert nonfinite.items["log"] == Item(1, RED)
    assert nonfinite.items["relu"] == Item(0)
    assert of_magnitudes(measured.ranges).items["log"] == Item("not finite", RED)


def test_a_comparison() -> None:
    model, other = digits(), digits()
    weights = other.layer("conv2/weights")
    other.set_constant(weights, weights.operator.data * np.float32(1.5))
    verdict, error, noise = of_comparison(model, ovir.compare(model, other, inputs=[IMAGE], mode="cumulative"))
    assert verdict.name == "beyond tolerance, first at conv2"
    assert verdict.items["conv1"] == Item("within", GREEN)
    assert verdict.items["conv2"] == Item("first beyond", RED)
    assert verdict.items["relu2"].value == "beyond"
    assert error.items["conv1"] == Item(0.0, GREEN)
    assert error.items["conv2"].color == RED
    assert error.items["conv2"].value > 0.1  # type: ignore[operator]
    assert noise.items["conv2"].color == RED
    assert error.items[model.outputs[0].layer.key].color == RED


def test_tiny_errors_look_like_none() -> None:
    model, other = digits(), digits()
    weights = other.layer("conv2/weights")
    other.set_constant(weights, weights.operator.data * np.float32(1 + 1e-7))
    overlays = of_comparison(model, ovir.compare(model, other, inputs=[IMAGE], mode="cumulative"))
    assert overlays[0].name == "within tolerance"
    assert {item.color for overlay in overlays for item in overlay.items.values()} == {GREEN}


def test_a_difference() -> None:
    x = ops.parameter([3], "f32", name="x")
    before = ovir.Model([ops.result(ops.relu(ops.log(x, name="log"), name="relu"), name="y")], [x])
    x = ops.parameter([3], "f32", name="x")
    after = ovir.Model([ops.result(ops.relu(ops.abs(ops.log(x, name="log"), name="abs"), name="relu"), name="y")], [x])
    found = ovir.diff(before, after)
    assert [overlay.items for overlay in of_diff(found, "a")] == [{}]
    [overlay] = of_diff(found, "b")
    assert {key: item.value for key, item in overlay.items.items()} == {"abs": "added"}


def test_each_kind_of_difference_has_an_overlay() -> None:
    def model(number: int, value: float) -> ovir.Model:
        x = ops.parameter([3], "f32", name="x")
        scale = ops.constant(np.float32([value]), name="scale")
        middle = ops.multiply(ops.relu(x, name=f"Relu_{number}"), scale, name="scaled")
        return ovir.Model([ops.result(middle, name="y")], [x])

    overlays = of_diff(ovir.diff(model(3, 1.0), model(7, 2.0)), "b")
    assert {overlay.name: list(overlay.items) for overlay in overlays} == {
        "difference": ["scale"],
        "changed": ["scale"],
        "renumbered": ["Relu_7"],
    }
