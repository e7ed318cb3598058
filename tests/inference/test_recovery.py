"""Inference of files at fault: what it reports, and the types with which it continues."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lxml import etree
from support.bodies import conditional, looped
from support.builder import Net

import ovir
from ovir import opset13 as ops
from ovir.checks.recovering import read_recovering
from ovir.diagnostics.errors import Diagnostics
from ovir.graph.layers import Port
from ovir.inference.models import infer_into
from ovir.ops.activation import ReLU


def edit(root: Any, place: str, value: str) -> None:
    """Change what a file says at a place: the dimensions of ``relu.output.0``, the attribute ``twice.data.axis``, the
    type of the layer ``relu``, or, of ``relu.edges``, the edges that lead to it."""
    if place == "version":
        root.set("version", value)
        return
    name, *inside = place.split(".")
    layer = next(layer for layer in root.iter("layer") if layer.get("name") == name)
    if not inside:
        layer.set("type", value)
    elif inside == ["edges"]:
        edges = root.find("edges")
        for edge in [edge for edge in edges if edge.get("to-layer") == layer.get("id")]:
            edges.remove(edge)
    elif inside[0] == "data":
        layer.find("data").set(inside[1], value)
    else:
        port = layer.find(inside[0])[int(inside[1])]
        for dim in port.findall("dim"):
            port.remove(dim)
        precision, _, sizes = value.rpartition(" ")
        port.set("precision", precision or port.get("precision"))
        for size in sizes.split(",") if sizes else ():
            etree.SubElement(port, "dim").text = size


def recovered(text: str, weights: bytes, edits: dict[str, str]) -> tuple[list[str], dict[str, str], set[str]]:
    """Return what is reported of a file in which each port declares its type, except for edits: the codes, and the
    layers in order with the types of their first outputs; and the layers with declared types."""
    root = etree.fromstring(text.encode())
    for place, value in edits.items():
        edit(root, place, value)
    model, declared = read_recovering(etree.tostring(root), weights).model, set[Port]()
    infer_into(model, diagnostics := Diagnostics(), trust_declared=True, declared=declared)
    types = {layer.name: str(layer.outputs[0].type) for layer in model.walk() if layer.outputs}
    return [d.code for d in diagnostics], types, {port.layer.name for port in declared}


def chain() -> Net:
    net = Net()
    relu = net.op("ReLU", net.parameter("x", "2,3"), name="relu")
    twice = net.op("Concat", relu, relu, axis=0, name="twice")
    root = net.op("Sqrt", twice, name="root")
    net.result(net.op("ReduceSum", root, net.const(np.int64([0]), name="axes"), keep_dims="false", name="sums"), "end")
    return net


CHAIN = {
    "x": "f32[2,3]",
    "relu": "f32[2,3]",
    "twice": "f32[4,3]",
    "root": "f32[4,3]",
    "axes": "i64[1]",
    "sums": "f32[3]",
}
ALL_NINE = {
    "root.input.0": "4,9",
    "root.output.0": "4,9",
    "sums.input.0": "4,9",
    "sums.output.0": "9",
    "end.input.0": "9",
}


@pytest.mark.parametrize(
    ("edits", "codes", "types", "declared"),
    [
        ({}, "", {}, ""),
        # A layer that cannot be inferred has the type that it declares.
        ({"twice.data.axis": "5"}, "OVIR305", {}, "twice"),
        ({"twice.data.axis": "5", "twice.output.0": "", "root.input.0": ""}, "OVIR305", {"twice": "f32[...]"}, "twice root"),
        ({"twice.data.axis": "5", "twice.output.0": "UNSPECIFIED ", "root.input.0": "", "root.output.0": "UNSPECIFIED -1,3"},
         "OVIR305", {"twice": "dynamic[...]", "root": "dynamic[?,3]", "sums": "dynamic[3]"}, "twice root"),
        ({"root": "Root"}, "", {}, ""),
        ({"root": "Root", "root.output.0": "", "sums.input.0": ""}, "", {"root": "f32[...]"}, "sums"),
        ({"relu.edges": ""}, "", {}, ""),
        ({"relu.edges": "", "relu.input.0": ""}, "", {}, "relu"),
        # Nobody else declares the size: the layer is wrong.
        ({"twice.output.0": "4,9"}, "OVIR402", {}, ""),
        ({"twice.output.0": "FP16 4,3"}, "OVIR403", {}, ""),
        ({"relu.output.0": "2,9", "twice.input.0": "2,9"}, "OVIR402", {}, ""),
        ({"twice.output.0": "4,9", **ALL_NINE, "root.input.0": ""}, "OVIR402", {"root": "f32[4,9]", "sums": "f32[9]"}, "root"),
        # All readers declare it: inference goes on with it.
        ({"twice.output.0": "4,9", **ALL_NINE}, "OVIR402", {"twice": "f32[4,9]", "root": "f32[4,9]", "sums": "f32[9]"}, "twice"),
        ({"x.data.shape": "2,9"}, "OVIR404", {}, "x"),
        ({"x.data.shape": "2,9", "x.data.element_type": "f16"}, "OVIR404 OVIR405", {"x": "f16[2,3]"}, "x"),
        # What an input declares that has another tensor.
        ({"twice.input.1": "2,9"}, "OVIR406", {}, ""),
    ],
)  # fmt: skip
def test_one_fault_is_reported_once(edits: dict[str, str], codes: str, types: dict[str, str], declared: str) -> None:
    assert recovered(chain().declared_xml(), bytes(chain().blob), edits) == (
        codes.split(),
        {**CHAIN, **types},
        {*declared.split()},
    )


def product() -> Net:
    net = Net()
    b = net.op("ReLU", net.parameter("y", "3,4"), name="b")
    net.result(net.op("MatMul", net.parameter("a", "2,3"), b, name="product"), "end")
    net.result(b, "other")
    return net


PRODUCT = {"y": "f32[3,4]", "b": "f32[3,4]", "a": "f32[2,3]", "product": "f32[2,4]"}
FIVE = {"y.data.shape": "5,4", "y.output.0": "5,4", "b.input.0": "5,4", "other.input.0": "5,4"}
"""The second factor has 5 rows, and one of its readers expects them."""


@pytest.mark.parametrize(
    ("edits", "codes", "types", "declared"),
    [
        # The product can be inferred from what it declares.
        (FIVE, "OVIR402", {}, ""),
        ({**FIVE, "product.input.0": ""}, "OVIR402", {}, ""),
        ({**FIVE, "b.output.0": "5,4"}, "OVIR406", {}, ""),
        ({**FIVE, "b.output.0": "5,4", "product.input.0": ""}, "OVIR406", {}, ""),
        # It cannot, but has a type.
        ({**FIVE, "product.input.1": ""}, "OVIR402", {}, "product"),
        ({**FIVE, "product.input.1": "7,4"}, "OVIR402 OVIR401", {}, "product"),
        ({**FIVE, "product.input.1": "-1,4,1"}, "OVIR402", {}, "product"),
        # What is declared is only a warning in old files, and the product an error.
        ({**FIVE, "version": "10"}, "OVIR402 OVIR401", {}, ""),
    ],
)
def test_layers_behind_a_fault(edits: dict[str, str], codes: str, types: dict[str, str], declared: str) -> None:
    wide = {"y": "f32[5,4]", "b": "f32[5,4]"}
    assert recovered(product().declared_xml(), b"", edits) == (
        codes.split(),
        {**PRODUCT, **wide, **types},
        {*declared.split()},
    )


LOOP = {"x": "f32[2]", "loop": "f32[2]", "state": "f32[2]", "abs": "f32[2]", "exp": "f32[2]", "out": "f32[2]"}


def saved(model: ovir.Model, folder: Path) -> tuple[str, bytes]:
    ovir.save_model(model, folder / "m.xml")
    return (folder / "m.xml").read_text(), (folder / "m.bin").read_bytes()


@pytest.mark.parametrize(
    ("edits", "codes", "types", "declared"),
    [
        ({}, "", {}, ""),
        ({"abs.output.0": "9"}, "OVIR402", {}, ""),
        ({"abs.input.0": "9"}, "OVIR406", {}, ""),
        ({"abs.output.0": "9", "exp.input.0": "9", "exp.output.0": "9"}, "OVIR402", {}, ""),
        ({"state.output.0": "9", "abs.input.0": "9"}, "OVIR404", {}, ""),
        ({"state.data.shape": "9"}, "OVIR404", {}, ""),
        ({"abs": "Abc"}, "", {}, ""),
    ],
)
def test_faults_in_bodies(
    edits: dict[str, str], codes: str, types: dict[str, str], declared: str, tmp_path: Path
) -> None:
    file = saved(looped(lambda state: ops.exp(ops.abs(state, name="abs"), name="exp")), tmp_path)
    found = recovered(*file, edits)
    shown = {name: text for name, text in found[1].items() if name in LOOP}
    assert (found[0], shown, found[2]) == (codes.split(), {**LOOP, **types}, {*declared.split()})


def test_faults_in_bodies_of_a_layer_at_fault(tmp_path: Path) -> None:
    """A SoftMax has axis 1, which its data does not have."""
    file = saved(conditional(), tmp_path)
    assert recovered(*file, {"inner": "SoftMax"})[0] == ["OVIR305"]
    for element_type, is_at_fault in (("boolean", False), ("string", True)):
        edits = (
            {"chosen.data.element_type": element_type, "chosen.output.0": "STRING ", "if.input.0": "STRING "}
            if is_at_fault
            else {}
        )
        assert len(recovered(*file, edits)[0]) == is_at_fault
        assert len(recovered(*file, {"inner": "SoftMax", **edits})[0]) == 1 + is_at_fault


@pytest.mark.parametrize("error", [OverflowError("too large"), MemoryError("no memory")])
def test_a_fault_of_the_inference_itself(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: Any) -> None:
        raise error

    text = chain().declared_xml()
    monkeypatch.setattr(ReLU, "infer", fails)
    if isinstance(error, MemoryError):  # of the whole inference, not of this layer
        with pytest.raises(MemoryError):
            recovered(text, bytes(chain().blob), {})
        return
    codes, types, declared = recovered(text, bytes(chain().blob), {})
    assert (codes, types, declared) == (["OVIR999"], CHAIN, {"relu"})


def variables() -> Net:
    net = Net()
    start = net.parameter("start", "2,3")
    read = net.op("ReadValue", start, name="read", opset=6, variable_id="v", variable_shape="2,3", variable_type="f32")
    net.result(net.op("ReLU", read, name="relu"))
    net.op("Assign", net.parameter("value", "2,3"), name="kept", opset=6, variable_id="v")
    return net


@pytest.mark.parametrize(
    ("edits", "codes"),
    [
        ({}, ""),
        ({"kept.data.variable_id": "w"}, "OVIR611"),
        ({"read.data.variable_shape": "2,4"}, "OVIR401"),
        ({"read.data.variable_type": "f16"}, "OVIR401"),
        (
            {"value.data.shape": "2,4", "value.output.0": "2,4", "kept.input.0": "2,4", "kept.output.0": "2,4"},
            "OVIR614",
        ),
        ({"value.data.shape": "2,-1", "value.output.0": "2,-1", "kept.input.0": "2,-1", "kept.output.0": "2,-1"}, ""),
        # Layers that could not be read may read the variable.
        ({"read": "Read"}, ""),
        ({"read.data.variable_shape": "q"}, ""),
        ({"read.data.variable_id": "", "read.data.variable_shape": "q"}, ""),
        ({"read": "Read", "read.data.variable_id": "w"}, "OVIR611"),
        ({"relu": "Rel", "kept.data.variable_id": "w"}, "OVIR611"),
    ],
)
def test_variables(edits: dict[str, str], codes: str) -> None:
    assert recovered(variables().declared_xml(), b"", edits)[0] == codes.split()


def test_values_on_which_devices_differ_are_not_used() -> None:
    """Nothing is at the place 2 of a list of two."""
    net = Net()
    sizes = net.op(
        "Gather", net.const([2, 3], "i64"), net.const([0, 2], "i64"), net.const(0, "i64"), name="sizes", opset=8
    )
    net.result(
        net.op("Broadcast", net.const(np.float32(1), name="one"), sizes, name="wide", opset=3, mode="numpy"), "sink"
    )
    text, weights = net.declared_xml(), bytes(net.blob)
    codes, types, declared = recovered(text, weights, {"wide.output.0": "2,7", "sink.input.0": "2,7"})
    assert (codes, types["wide"], declared) == (["OVIR803"], "f32[2,7]", {"wide"})
    assert str(ovir.read_model(net.xml(), weights).layer("wide").outputs[0].type) == "f32[2,0]"
