"""How knowledge of shapes travels: intervals, symbols, and content through shape subgraphs."""

import numpy as np
import pytest
from builder import Net

import ovir
from ovir.types import PartialShape


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


@pytest.mark.parametrize(
    ("kind", "other", "shape"),
    [("Add", 2, "[5..8]"), ("Subtract", 1, "[2..5]"), ("Multiply", 3, "[9..18]"), ("Divide", 2, "[1..3]"),
     ("Maximum", 5, "[5..6]"), ("Minimum", 4, "[3..4]")],
)  # fmt: skip
def test_bounds_through_arithmetic(kind: str, other: int, shape: str) -> None:
    net = Net()
    size = picked(net, net.parameter("data", "3..6"), 0)
    target = net.op(kind, size, net.const(np.int64([other])), auto_broadcast="numpy")
    net.result(net.op("Broadcast", net.const(np.float32(1)), target, opset=3, mode="numpy", name="out"))
    assert str(net.model().layer("out").outputs[0].shape) == shape


def test_reshape_of_the_model() -> None:
    net = Net()
    net.result(net.op("ReLU", net.parameter("data", "?,3"), name="relu"))
    model = net.model()
    model.reshape({"data": [2, 3]})
    assert str(model.layer("relu").outputs[0].shape) == "[2,3]"
    model.reshape("1..5,3")
    assert str(model.outputs[0].shape) == "[1..5,3]"
    with pytest.raises(ovir.InputError, match="no input 'other'"):
        model.reshape({"other": [1]})
    with pytest.raises(ovir.InputError, match="-7 is not a dimension"):
        model.reshape({"data": [-7]})


def test_a_reshape_that_fails_changes_nothing() -> None:
    net = Net()
    data = net.parameter("data", "?,3")
    net.result(net.op("Add", data, net.const(np.float32([1, 2, 3])), name="sum"))
    model = net.model()
    with pytest.raises(ovir.ModelError, match=r"layer 2 'sum' \(Add, opset1\)"):
        model.reshape({"data": [1, 4]})
    assert str(model.inputs[0].shape) == "[?,3]"
    assert str(model.layer("sum").outputs[0].shape) == "[?,3]"


def test_stated_shapes_are_kept_and_compared() -> None:
    net = Net()
    net.result(net.op("ReLU", net.parameter("data", "2,3"), name="relu"))
    text = net.xml().replace(
        '<port id="1" precision="UNSPECIFIED" names="relu"/>',
        '<port id="1" precision="FP16"><dim>2</dim><dim>4</dim></port>',
    )
    model = ovir.read_model(text.encode())
    port = model.layer("relu").outputs[0]
    assert (str(port.stated_shape), str(port.shape)) == ("[2,4]", "[2,3]")
    assert (str(port.stated_element_type), str(port.element_type)) == ("f16", "f32")
    assert sorted(found.code for found in model.diagnostics) == ["OVIR202", "OVIR203"]


def test_only_the_first_fault_is_reported_not_what_follows_from_it() -> None:
    net = Net()
    a, b = net.parameter("a", "2,3"), net.parameter("b", "2,4")
    value = net.op("Add", a, b, name="broken")
    for _ in range(3):
        value = net.op("Add", value, a)
    net.result(value)
    errors = [d for d in ovir.check(net.xml().encode()) if d.severity == "error"]
    assert [d.layer_id for d in errors] == [2]


def test_a_fault_in_a_dead_layer_is_no_error() -> None:
    net = Net()
    a, b = net.parameter("a", "2,3"), net.parameter("b", "2,4")
    net.op("Add", a, b, name="dead")
    net.result(net.op("ReLU", a))
    model = net.model()
    assert model.layer("dead").is_dead
    assert [str(d.severity) for d in model.diagnostics] == ["warning"]


def test_wrong_number_of_inputs() -> None:
    net = Net()
    a = net.parameter("a", "2,3")
    net.result(net.op("Add", a, name="sum"))
    with pytest.raises(ovir.ModelError, match=r"takes 2 inputs \(.*\), got 1"):
        net.model()


def test_large_outputs_are_not_folded_by_inference() -> None:
    net = Net()
    big = net.op("Broadcast", net.const(np.float32(1)), net.const(np.int64([10**6, 10**6])), opset=3, mode="numpy")
    net.result(net.op("ReduceSum", big, net.const(np.int64([0, 1])), keep_dims="false"))
    assert net.model().outputs[0].shape == PartialShape([])
