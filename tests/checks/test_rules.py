"""Rules on files that are wrong in other ways, too."""

from __future__ import annotations

import numpy as np
import pytest
from builder import ITERATOR, RELU, RESULT, Net, document, layer_text

import ovir


def codes(net: Net) -> dict[str, str]:
    return {d.code: d.message for d in ovir.check(net.xml(), bytes(net.blob))}


@pytest.mark.parametrize(("opset", "batch_dims", "code"), [(8, "x", "OVIR302"), (99, "1", "OVIR202")])
def test_indices_of_an_operation_that_cannot_be_read(opset: int, batch_dims: str, code: str) -> None:
    net = Net()
    indices = net.const(np.array([[7]]))
    net.result(net.op("GatherND", net.parameter("data", "2,3"), indices, opset=opset, batch_dims=batch_dims))
    assert codes(net).keys() == {code}


@pytest.mark.parametrize(
    ("kind", "opset", "code"),
    [("ScatterUpdate", 3, "OVIR511"), ("ScatterElementsUpdate", 3, "OVIR703"), ("ScatterElementsUpdate", 12, None)],
)
def test_negative_indices(kind: str, opset: int, code: str | None) -> None:
    net = Net()
    data, updates = net.parameter("data", "4"), net.parameter("updates", "1")
    net.result(net.op(kind, data, net.const(np.array([-1])), updates, net.const(np.int64(0)), opset=opset))
    assert codes(net).keys() == ({code} if code else set())


def test_negative_indices_of_gather_nd() -> None:
    for opset, expected in (5, {"OVIR703"}), (8, set()):
        net = Net()
        net.result(net.op("GatherND", net.parameter("data", "4"), net.const(np.array([[-1]])), opset=opset))
        assert codes(net).keys() == expected


@pytest.mark.parametrize(
    ("old", "new", "message", "hint"),
    [
        ('names="relu1"', 'name="relu1"', "<port> has no attribute 'name'; it is ignored", "did you mean 'names'?"),
        ('type="ReLU"', 'type="ReLU" colour="1"', "<layer> has no attribute 'colour'; it is ignored", None),
        ('type="ReLU"', 'type="ReLU" xml:lang="en"', None, None),
    ],
)
def test_unknown_attributes_of_layers_and_ports(old: str, new: str, message: str | None, hint: str | None) -> None:
    net = Net()
    net.result(net.op("ReLU", net.parameter("data", "4")))
    text = net.xml()
    assert old in text
    found = [(d.code, d.message, d.hint) for d in ovir.check(text.replace(old, new), bytes(net.blob))]
    assert found == ([("OVIR304", message, hint)] if message else [])


def test_no_elements_along_huge_axes() -> None:
    """NumPy has no array of such a shape, though it would be empty."""
    net = Net()
    data = net.parameter("data", "0,3,9223372036854775807")
    net.result(net.op("ReduceSum", data, net.const(np.array([1])), keep_dims="true"))
    net.result(net.op("Add", data, net.const(np.float32(1)), auto_broadcast="numpy"))
    assert "OVIR999" not in codes(net)


def found(text: str, net: Net) -> list[tuple[str, str]]:
    return [(d.code, str(d.severity)) for d in ovir.check(text, bytes(net.blob))]


def test_a_question_mark_is_no_size() -> None:
    """OpenVINO refuses it, though it stands for an unknown size wherever else a shape is written."""
    net = Net()
    net.result(net.op("ReLU", net.parameter("data", "?,2")))
    port = '<port id="0" precision="UNSPECIFIED" names="data"/>'
    assert port in net.xml()
    for size, expected in ("-1", []), ("?", [("OVIR112", "error")]):
        dims = f"<dim>{size}</dim><dim>2</dim>"
        assert found(net.xml().replace(port, port.replace("/>", f">{dims}</port>")), net) == expected


def test_a_port_without_id_keeps_its_place() -> None:
    net = Net()
    data, index = net.parameter("data", "4"), net.const(np.array([1]))
    net.result(net.op("Gather", data, index, net.const(np.int64(0)), opset=8, batch_dims=0))
    inputs = '<port id="0" precision="UNSPECIFIED"/><port id="1" precision="UNSPECIFIED"/><port id="2"'
    assert inputs in net.xml()
    text = net.xml().replace(inputs, inputs.replace(' id="1"', ""))
    (found,) = ovir.check(text, bytes(net.blob))
    assert (found.code, found.layer_id) == ("OVIR110", 3)


def test_without_a_result_errors_stay_errors() -> None:
    net = Net()
    net.op("Reshape", net.parameter("data", "4"), net.const(np.array([3])), special_zero="false")
    assert ("OVIR401", "error") in found(net.xml(), net)


def test_a_constant_without_data_is_told_once() -> None:
    net = Net()
    net.result(net.op("Const"))
    (found,) = ovir.check(net.xml(), b"")
    assert (found.code, found.message) == (
        "OVIR301",
        "Const has no <data>, but needs element_type, shape, offset, size",
    )


def test_the_own_shape_of_a_parameter_in_a_body() -> None:
    """Inference takes what the body is fed; what the Parameter says of itself is held against its port all the same."""
    for shape, expected in ("1,4", []), ("1,5", ["OVIR404"]):
        own = (
            f'shape="{shape}" element_type="f32"/><output><port id="0" precision="FP32"><dim>1</dim><dim>4</dim></port>'
        )
        body = ITERATOR.replace('shape="1,4" element_type="f32"/><output><port id="0" precision="FP32"/>', own)
        assert own in body
        layers = [layer_text(1, "ReLU", RELU), layer_text(2, "TensorIterator", body), layer_text(3, "Result", RESULT)]
        content = document(*layers, edges="0.0-1.0 1.1-2.0 2.1-3.0")
        assert [d.code for d in ovir.check(content)] == expected


@pytest.mark.parametrize(("is_read", "severity"), [(False, "warning"), (True, "error")])
def test_what_is_declared_of_an_output_that_nothing_reads(is_read: bool, severity: str) -> None:
    """Exports of Open Model Zoo declare f32 for the indices of a MaxPool."""
    net = Net()
    pooled, port = net.op(
        "MaxPool", net.parameter("data", "1,1,4,4"), opset=8, outputs=2, kernel="2,2", strides="2,2",
        pads_begin="0,0", pads_end="0,0",
    )  # fmt: skip
    net.result((pooled, port))
    if is_read:
        net.result((pooled, port + 1))
    text = net.xml()
    declared = f'<port id="{port + 1}" precision="FP32"'
    assert declared.replace("FP32", "UNSPECIFIED") in text
    found = ovir.check(text.replace(declared.replace("FP32", "UNSPECIFIED"), declared), bytes(net.blob))
    assert [(d.code, str(d.severity)) for d in found] == [("OVIR403", severity)]


def test_a_misspelt_attribute_that_the_specification_requires() -> None:
    """One error names both and the value that is assumed."""
    net = Net()
    filters = net.const(np.ones((1, 1, 1, 1), np.float32))
    data = net.parameter("data", "1,1,4,4")
    pads = {"pads_begin": "0,0", "pads_end": "0,0", "dilations": "1,1"}
    net.result(net.op("Convolution", data, filters, stride="2,2", **pads))
    (found,) = ovir.check(net.xml(), bytes(net.blob))
    assert (found.code, str(found.severity), found.hint) == ("OVIR308", "error", "did you mean 'strides'?")
    assert found.message == (
        "Convolution needs the attribute 'strides'; <data> has the unknown attribute 'stride' instead; "
        "1 for each axis is assumed"
    )
    (read,) = ovir.read_model(net.xml(), bytes(net.blob)).diagnostics
    assert (read.message, str(read.severity)) == (found.message, "warning")
