"""Names of tensors: default ones, repeated ones, and those that tell inputs apart."""

from typing import Any

import pytest
from support.bodies import conditional

import ovir
from ovir import opset13 as ops
from ovir.graph.names import (
    TakenNames,
    distinct_names,
    legacy_name,
    make_names_unique,
    name_tensors,
    own_tensor_names,
    port_as_json,
    repeated_names,
    result_name,
    take_name,
    tensor_names,
)


def parts() -> ovir.Model:
    """Return a model with an output that is one of three parts."""
    x = ops.parameter([3, 6], "f32", name="x", tensor_names="x")
    split = ops.split(x, 1, 3, name="split", tensor_names=["a", None, {"c", "d"}])
    return ovir.Model([ops.result(split[2], name="out"), ops.relu(split[1], name="relu")], [x], "parts")


def test_names_of_outputs() -> None:
    split = parts().layer("split")
    assert [legacy_name(port) for port in split.outputs] == ["split.0", "split.1", "split.2"]
    assert legacy_name(parts().layer("relu").outputs[0]) == "relu"
    assert [result_name(port) for port in split.outputs] == [
        "a/sink_port_0",
        "split/sink_port_1",
        "c/sink_port_2",
    ]
    taken = {"split.1"}
    name_tensors(split.outputs, taken)
    assert [sorted(port.own_names) for port in split.outputs] == [["a"], ["split.1_2"], ["c", "d"]]
    assert taken == {"split.1", "split.1_2"}


def test_a_tensor_is_found_by_the_names_that_it_has_anywhere() -> None:
    model = parts()
    model.layer("out").inputs[0].own_names = frozenset({"shown"})
    inner = conditional()
    for branch in inner.layer("if").bodies.values():
        branch.layer("inner").outputs[0].names = "t"
    found = tensor_names(model)
    places = {name: (port.layer.name, port.index) for name, port in found.items()}
    assert places == {"x": ("x", 0), "a": ("split", 0)} | dict.fromkeys(("c", "d", "shown"), ("split", 2))
    assert own_tensor_names(model.layers) == found.keys()
    names = {name: port.layer.key for name, port in tensor_names(inner).items()}
    assert names == {"if/then/t": "if/then/inner", "if/else/t": "if/else/inner"}
    body = inner.layer("if").bodies["then"]
    assert list(tensor_names(body)) == ["t"]


def test_repeated_names_get_numbers() -> None:
    model = parts()
    split, relu, out = (model.layer(name) for name in ("split", "relu", "out"))
    split.outputs[1].names, relu.outputs[0].names, out.inputs[0].names = {"a"}, {"a", "x"}, {"c", "x"}
    layers = model.layers
    found = [(name, first.layer.name, other.layer.name) for name, first, other in repeated_names(layers)]
    assert found == [("a", "split", "split"), ("a", "split", "relu"), ("x", "x", "relu"), ("x", "x", "out")]
    make_names_unique(layers)
    names = [sorted(port.own_names) for port in (*split.outputs, *relu.outputs, *out.inputs)]
    assert names == [["a"], ["a_1"], ["c", "d"], ["a_2", "x_1"], ["c", "x_2"]]
    assert list(repeated_names(layers)) == []


@pytest.mark.parametrize("kind", [set, TakenNames])
def test_names_are_taken_from_the_first_free_number_on(kind: Any) -> None:
    taken = kind(["a", "a_3"])
    names = [take_name(name, taken) for name in ("a", "a", "a", "a_3", "b", "b")]
    assert names == ["a_2", "a_4", "a_5", "a_3_2", "b", "b_2"]
    assert [take_name("b_2", taken, 1), take_name("c", taken, 1), take_name("c", taken, 1)] == ["b_2_1", "c", "c_1"]
    assert taken >= {"a", "a_2", "a_3", "a_4", "a_5", "a_3_2", "b", "b_2", "b_2_1", "c", "c_1"}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([("a", {"t"}), ("b", {"u", "v"})], ["t", "u"]),
        ([("a", {"t"}), ("b", {"t"})], ["a", "b"]),
        ([("a", {"t"}), ("b", {"t", "u"})], ["a", "u"]),
        ([("a", {"t", "b"}), ("b", {"t"})], ["a", "1"]),
        ([("a", set()), ("a", set())], ["0", "1"]),
    ],
)
def test_inputs_have_names_that_no_other_has(names: list[tuple[str, set[str]]], expected: list[str]) -> None:
    inputs = [ops.parameter([2], name=name) for name, _ in names]
    for layer, (_, own) in zip(inputs, names, strict=True):
        layer.outputs[0].own_names = frozenset(own)
    assert distinct_names([layer.outputs[0] for layer in inputs]) == expected


def test_ports_as_json() -> None:
    expected = {"name": "c", "names": ["c", "d"], "layer": "split", "shape": "[3,2]", "type": "f32"}
    assert port_as_json(parts().layer("split").outputs[2]) == expected
