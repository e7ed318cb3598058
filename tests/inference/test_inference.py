"""Inference: how knowledge of shapes travels, and the contract of infer (see inference_contract.py)."""

import numpy as np
import pytest
from support.builder import Net
from support.tensors import const, operation, tensor

import ovir
from ovir.core.tensor_types import TensorType
from ovir.inference.known_values import InferenceCache
from ovir.ops.activation import ReLU
from ovir.ops.base.operator import Operator
from ovir.ops.unary import Sqrt
from ovir.runtime.failures import explain_failure


def scalar(net: Net, value: int) -> tuple[int, int]:
    return net.const(np.int64(value))


def shape_of(net: Net, source: tuple[int, int]) -> tuple[int, int]:
    return net.op("ShapeOf", source, opset=3, output_type="i64")


def picked(net: Net, source: tuple[int, int], *dims: int) -> tuple[int, int]:
    """The sizes of some dimensions, as a 1-D tensor."""
    return net.op("Gather", shape_of(net, source), net.const(np.int64(dims)), scalar(net, 0), opset=8)


def test_intervals_reach_reshape_through_gather_and_concat() -> None:
    net = Net()
    data = net.parameter("data", "1..4,3,2..5")
    batch = picked(net, data, 0)
    pattern = net.op("Concat", batch, net.const(np.int64([-1])), axis=0)
    net.result(net.op("Reshape", data, pattern, special_zero="false", name="flat"))
    assert str(net.model().layer("flat").outputs[0].shape) == "[1..4,6..15]"


def test_symbols_show_that_two_unknown_sizes_are_equal() -> None:
    net = Net()
    data = net.parameter("data", "?,8")
    zeros = net.op("Broadcast", net.const(np.float32(0)), picked(net, data, 0, 1), opset=3, mode="numpy", name="zeros")
    net.result(net.op("Add", data, zeros, name="sum"))
    model = net.model()
    source, target = model.inputs[0].shape[0], model.layer("sum").outputs[0].shape[0]
    assert source.symbol
    assert model.layer("zeros").outputs[0].shape[0].symbol == source.symbol == target.symbol


def test_reshape_of_the_model() -> None:
    net = Net()
    net.result(net.op("Add", net.parameter("data", "?,3"), net.const(np.float32([1, 2, 3])), name="sum"))
    model = net.model()
    model.reshape({"data": [2, 3]})
    assert str(model.layer("sum").outputs[0].shape) == "[2,3]"
    model.reshape("1..5,3")
    for shapes, message in (
        ({"other": [1]}, "no input 'other'"),
        ({"data": [-7]}, "-7 is not a dimension"),
        ({"data": [5, 3], 0: [6, 3]}, r"input 0 is given a shape twice; the keys are \['data', 0\]"),
        ({"data": [1, 4]}, r"layer 2 'sum' \(Add, opset1\)"),
    ):
        with pytest.raises(ovir.OvirError, match=message):
            model.reshape(shapes)
        assert str(model.inputs[0].shape) == str(model.outputs[0].shape) == "[1..5,3]"
    net = Net()
    net.result(net.const([1]))
    with pytest.raises(ovir.InputError, match=r"the shape \[1\] is; the model's inputs are none"):
        net.model().reshape([1])


def test_outputs_that_a_file_leaves_out() -> None:
    net = Net()
    net.result(net.op("TopK", net.parameter("data", "4"), net.const(np.int64(1)), axis="0", mode="max", sort="none"))
    layer = net.model().layers[2]
    assert [(port.id, port.index, str(port.type)) for port in layer.outputs] == [(2, 0, "f32[1]"), (3, 1, "i32[1]")]
    assert [port.is_output for port in layer.outputs] == [True, True]
    net.const(np.int64(1), name="unread")
    text = net.xml()
    start = text.index("<output>", text.index('name="unread"'))
    text = text[:start] + text[text.index("</layer>", start) :]
    unread = ovir.read_model(text, bytes(net.blob)).layer("unread")
    assert [(port.id, port.index) for port in unread.outputs] == [(0, 0)]


def test_a_fault_in_a_dead_layer_is_no_error() -> None:
    net = Net()
    a, b = net.parameter("a", "2,3"), net.parameter("b", "2,4")
    net.op("Add", a, b, name="dead")
    net.result(net.op("ReLU", a))
    model = net.model()
    assert model.layer("dead").is_dead
    assert [str(d.severity) for d in model.diagnostics] == ["warning"]


def test_a_reshape_keeps_what_reading_found() -> None:
    net = Net()
    net.result(net.op("ReLU", net.parameter("data", "?,3"), bogus="1"))
    model = net.model()
    found = model.diagnostics
    assert ["bogus" in d.message for d in found] == [True]
    assert (model.read_diagnostics, model.inference_diagnostics) == (found, [])
    model.infer_shapes()
    model.reshape([2, 3])
    assert model.diagnostics == found


def test_what_inference_found_is_found_anew() -> None:
    net = Net()
    net.result(net.op("ReLU", net.parameter("data", "?,3"), name="relu"))
    port = '<port id="1" precision="UNSPECIFIED" names="relu"/>'
    text = net.xml().replace(port, '<port id="1" precision="FP32"><dim>2</dim><dim>3</dim></port>')
    model = ovir.read_model(text.encode())
    assert model.diagnostics == []
    model.reshape([4, 3])
    assert [d.code for d in model.inference_diagnostics] == ["OVIR402"]
    model.reshape([2, 3])
    assert model.diagnostics == []


def test_a_content_that_is_not_found_costs_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Operator, *inputs: TensorType) -> None:
        raise OverflowError("too large")

    net = Net()
    root = net.op("Sqrt", shape_of(net, net.parameter("data", "?,3")), name="root")
    net.result(net.op("Reshape", net.parameter("other", "?"), root, special_zero="false"))
    monkeypatch.setattr(Sqrt, "infer_value", fails)
    model = net.model()
    assert str(model.outputs[0].type) == "f32[?,?]"
    (found,) = model.diagnostics
    assert (found.code, str(found.severity), found.layer_id) == ("OVIR999", "warning", 2)
    assert found.message == "ovir failed to compute the known value of the outputs: OverflowError: too large"


def test_equal_operations_on_equal_inputs_are_inferred_once() -> None:
    cache, data = InferenceCache(), tensor("64,?")
    ones, others = [1] * 64, [*[1] * 62, 0, 2]
    relu = cache.infer(ReLU(), [data])
    split = cache.infer(operation("VariadicSplit-1"), [data, const(0), const(ones)])
    assert cache.infer(ReLU(), [tensor("64,1..")]) is not relu
    assert cache.infer(Sqrt(), [data]) is not relu
    assert cache.infer(ReLU(), [data]) is relu
    assert cache.infer(operation("VariadicSplit-1"), [data, const(0), const(others)]) is not split
    assert cache.infer(operation("VariadicSplit-1"), [data, const(0), const(ones)]) is split
    longer = tensor("65,?"), const(0), const([*ones, 1])  # comparing so many takes too long
    assert cache.infer(operation("VariadicSplit-1"), longer) is not cache.infer(operation("VariadicSplit-1"), longer)


def test_strings_have_no_bounds() -> None:
    net = Net()
    known = net.op("StringTensorPack", *(net.const(x) for x in (np.int32([0]), np.int32([2]), np.uint8([72, 105]))),
                   opset=15)  # fmt: skip
    net.result(net.op("Concat", net.parameter("data", "2", "string"), known, axis=0))
    assert net.model().diagnostics == []


def test_why_a_layer_cannot_run() -> None:
    net = Net()
    net.result(net.op("Add", net.parameter("a", "?,3"), net.parameter("b", "2,3"), name="sum"))
    pattern = net.parameter("pattern", "?", "i64")
    net.result(net.op("Reshape", net.parameter("data", "?"), pattern, special_zero="false", name="shaped"))
    model = net.model()
    total, shaped = model.layer("sum"), model.layer("shaped")
    before = [str(port.type) for port in (*total.outputs, *shaped.outputs)]
    misfit = explain_failure(total, [np.ones((3, 3), np.float32), np.ones((2, 3), np.float32)])
    assert misfit is not None
    assert misfit.message == "a of shape [3,3] and b of shape [2,3] cannot be broadcast together in mode numpy"
    assert explain_failure(total, [np.ones((2, 3), np.float32)] * 2) is None
    twice = explain_failure(shaped, [np.ones(4, np.float32), np.int64([-1, -1])])
    assert twice is not None
    assert "-1" in twice.message
    assert [str(port.type) for port in (*total.outputs, *shaped.outputs)] == before


@pytest.mark.parametrize(
    ("kind", "attributes", "shapes", "message"),
    [
        ("Add", {"auto_broadcast": "numpy"}, [(3, 3), (2, 3)], r"a of shape \[3,3\] and b of shape \[2,3\]"),
        ("Add", {"auto_broadcast": "none"}, [(2, 3), (1, 3)], r"cannot be broadcast together in mode none"),
        ("Less", {"auto_broadcast": "none"}, [(1, 3), (2, 3)], r"cannot be broadcast together in mode none"),
        ("Add", {"auto_broadcast": "pdpd"}, [(1, 3), (2, 3)], r"cannot be broadcast together in mode pdpd"),
        ("Concat", {"axis": "0"}, [(3, 3), (2, 4)], r"input 1 has shape \[2,4\]"),
    ],
)
def test_sizes_seen_only_in_a_run_are_told_with_the_layer(
    kind: str, attributes: dict[str, str], shapes: list[tuple[int, int]], message: str
) -> None:
    net = Net()
    net.result(net.op(kind, net.parameter("a", "?,?"), net.parameter("b", "?,?"), **attributes))
    with pytest.raises(ovir.RunError, match=message) as caught:
        net.compiled()([np.ones(shape, np.float32) for shape in shapes])
    assert (caught.value.diagnostic.code, caught.value.diagnostic.layer_id) == ("OVIR801", 2)
