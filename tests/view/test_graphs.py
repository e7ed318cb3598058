"""The nodes and edges that Model Explorer draws for a model."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.bodies import conditional
from support.builder import Net

import ovir
from ovir import opset13 as ops
from ovir.checks.recovering import read_recovering
from ovir.ops.infrastructure import Const
from ovir.view.graphs import MAIN, MOST, describe_constant, graphs_of

EXAMPLES = Path(__file__).parents[2] / "examples" / "xml"


def graph_of(model: ovir.Model, number: int = 0, **options: Any) -> dict[str, Any]:
    graph = graphs_of(model, **options)[number].to_dict()
    json.dumps(graph, allow_nan=False)
    return graph


def nodes_of(model: ovir.Model, number: int = 0, **options: Any) -> dict[str, dict[str, Any]]:
    """Return the nodes of a graph by id, with lists of names and values as dictionaries."""
    nodes = {node["id"]: node for node in graph_of(model, number, **options)["nodes"]}
    for node in nodes.values():
        node["attrs"] = {item["key"]: item["value"] for item in node["attrs"]}
        for side in ("inputsMetadata", "outputsMetadata"):
            node[side] = [{item["key"]: item["value"] for item in port["attrs"]} for port in node[side]]
    return nodes


def test_every_layer_with_its_edges() -> None:
    model = ovir.read_model(EXAMPLES / "digits.xml")
    nodes = nodes_of(model)
    assert set(nodes) == {layer.name for layer in model.layers}
    conv = nodes["conv1"]
    assert conv["label"] == "Convolution conv1"
    assert nodes["conv1/weights"]["label"] == "Const"
    assert conv["incomingEdges"] == [
        {"sourceNodeId": "scale", "sourceNodeOutputId": "0", "targetNodeInputId": "0"},
        {"sourceNodeId": "conv1/weights", "sourceNodeOutputId": "0", "targetNodeInputId": "1"},
    ]
    assert conv["attrs"] == {
        "name": "conv1",
        "layer id": "6",
        "operation": "Convolution, opset1",
        "strides": "[1,1]",
        "dilations": "[1,1]",
        "pads_begin": "[1,1]",
        "pads_end": "[1,1]",
        "auto_pad": "explicit",
        "source line": str(model.layer("conv1").line),
    }
    assert conv["inputsMetadata"][1]["__tensor_tag"] == "filters"
    assert conv["inputsMetadata"][1]["values"].endswith("(144 values)")
    assert conv["outputsMetadata"][0]["shape"] == "f32[?,16,8,8]"
    assert nodes["image"]["label"] == "Parameter image"


def test_constants_show_values_and_statistics() -> None:
    nodes = nodes_of(ovir.read_model(EXAMPLES / "digits.xml"), values=3)
    weights = nodes["conv1/weights"]["attrs"]
    data = ovir.read_model(EXAMPLES / "digits.xml").layer("conv1/weights").operator.data
    assert weights["values"] == ", ".join(f"{value:.6g}" for value in data.reshape(-1)[:3]) + ", … (144 values)"
    assert float(weights["minimum"]) == pytest.approx(data.min(), rel=1e-5)
    assert float(weights["mean"]) == pytest.approx(data.mean(), rel=1e-5)
    assert nodes["flatten/pattern"]["attrs"]["values"] == "0, -1"
    assert "NaN and infinities" not in weights


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.float32(3), {"values": "3"}),
        (np.zeros((0, 3), np.float32), {"values": "none: it is empty"}),
        (np.array([True, False]), {"values": "1, 0", "minimum": "0", "maximum": "1", "mean": "0.5"}),
        (np.array([np.nan, np.inf, 1], np.float16), {"values": "nan, inf, 1", "NaN and infinities": "2"}),
        (np.array(["<script>", "b\n"], np.dtypes.StringDType()), {"values": "'<script>', 'b\\n'"}),
    ],
    ids=["scalar", "empty", "boolean", "nonfinite", "string"],
)
def test_constants_of_any_kind(array: Any, expected: dict[str, str]) -> None:
    found = describe_constant(Const.of(np.asarray(array)), 16)
    assert expected.items() <= found.items()


def test_statistics_of_large_constants_say_what_they_cover() -> None:
    array = np.zeros(MOST + 8, np.float32)
    array[-1] = 7
    found = describe_constant(Const.of(array), 2)
    assert found["values"] == f"0, 0, … ({MOST + 8:,} values)"
    assert found[f"maximum of the first {MOST:,} values"] == "0"


def test_packed_constants_are_decoded_in_part() -> None:
    net = Net()
    net.blob += bytes([0x10, 0x32])
    const = net.op("Const", element_type="u4", shape="4", offset="0", size="2", name="packed")
    net.result(const)
    nodes = nodes_of(net.model(), values=3)
    assert nodes["packed"]["attrs"]["values"] == "0, 1, 2, … (4 values)"


def test_tensor_names_and_rt_info() -> None:
    net = Net()
    x = net.parameter("x", "2")
    net.result(net.op("ReLU", x, name="relu", names=["tensor,x"]))
    text = net.xml().replace('name="relu" type="ReLU" version="opset1">', 'name="relu" type="ReLU" version="opset1">'
        '<rt_info><attribute name="fused_names" version="0" value="relu,old"/></rt_info>')  # fmt: skip
    nodes = nodes_of(ovir.read_model(text.encode()))
    assert nodes["relu"]["attrs"]["rt_info fused_names"] == "relu,old"
    output = nodes["relu"]["outputsMetadata"][0]
    assert output["tensor names"] == "tensor, x"
    assert output["tensor_name"] == "tensor"
    # Data for the tensor x would otherwise be shown at the wrong node.
    assert "tensor_name" not in nodes["x"]["outputsMetadata"][0]


def test_bodies_are_subgraphs() -> None:
    model = conditional()
    graphs = [graph.to_dict() for graph in graphs_of(model)]
    assert [graph["id"] for graph in graphs] == [MAIN, "if/then", "if/else"]
    assert nodes_of(model)["if"]["subgraphIds"] == ["if/then", "if/else"]
    assert nodes_of(model, 2)["inner"]["label"] == "Abs inner"


def test_faults_are_drawn() -> None:
    recovered = read_recovering(EXAMPLES / "broken" / "axis_out_of_range.xml")
    nodes = nodes_of(recovered.model, diagnostics=recovered.errors, declared=recovered.declared)
    assert "axis 5 is outside" in nodes["gather"]["attrs"]["error OVIR305"]
    assert nodes["gather"]["outputsMetadata"][0]["only declared"] == "inference did not find this type"


def test_missing_weights_are_drawn() -> None:
    recovered = read_recovering(EXAMPLES / "broken" / "missing_bin.xml")
    texts = [node["attrs"].get("values", "") for node in nodes_of(recovered.model).values()]
    assert "none: the file with the weights is missing" in texts


@pytest.mark.parametrize("name", ["__proto__", "constructor", "<script>alert(1)</script>", "a;b/c", "x\n", "é"])
def test_any_name_is_just_a_name(name: str) -> None:
    x = ops.parameter([2], "f32", name="x")
    graph = graph_of(ovir.Model([ops.relu(x, name=name)], [x]))
    node = graph["nodes"][1]
    assert node["attrs"][0] == {"key": "name", "value": name}
    assert node["id"] == (f"{name}#1" if name in ("__proto__", "constructor") else name)
    assert ";" not in node["namespace"]


def test_long_values_are_shortened() -> None:
    x = ops.parameter([2], "f32", name="x")
    graph = graph_of(ovir.Model([ops.relu(x, name="n" * 5000)], [x]))
    assert graph["nodes"][1]["attrs"][0]["value"] == "n" * 1000 + "… (5,000 characters)"


def test_groups_show_their_size() -> None:
    model = ovir.read_model(EXAMPLES / "digits.xml")
    graph = graph_of(model)
    inside = [node for node in graph["nodes"] if node["namespace"]]
    assert bool(graph["groupNodeAttributes"]) == bool(inside)
    assert graph["id"] == MAIN
    assert graph["nodeLabelsToHide"] == []
