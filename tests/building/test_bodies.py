"""If, Loop and TensorIterator, built with the methods that OpenVINO's layers have."""

import re
from typing import Any

import numpy as np
import pytest

import ovir
from ovir import opset13 as ops


def run(model: ovir.Model, *inputs: Any) -> list[Any]:
    return [array.tolist() for array in ovir.compile_model(model)(list(inputs)).values()]


def branch(change: Any) -> ovir.Model:
    p = ops.parameter([2], name="p")
    return ovir.Model([change(p)], [p], "branch")


def conditional() -> ovir.Model:
    x, cond = ops.parameter([2], name="x"), ops.parameter([], "boolean", name="cond")
    layer = ops.if_op(cond, name="if")
    then, other = branch(lambda p: p + 1), branch(lambda p: p * 10)
    layer.set_then_body(then)
    layer.set_else_body(other)
    layer.set_input(x, then.inputs[0], other.inputs[0].layer)
    y = layer.set_output(then.outputs[0], other.outputs[0].layer)
    assert str(y.type) == "f32[2]"
    return ovir.Model([y * 2], [x, cond], "m")


def test_if() -> None:
    model = conditional()
    data = np.float32([1, 2])
    assert run(model, data, np.bool_(True)) == [[4, 6]]
    assert run(model, data, np.bool_(False)) == [[20, 40]]
    assert model.layer("if/then/Add_2").type == "Add"
    assert run(model.clone(), data, np.bool_(True)) == [[4, 6]]


def unfinished() -> tuple[ovir.Layer, list[Any]]:
    """Returns a loop that adds the iteration's number to a sum, three times at most, while the sum is below 3."""
    trips = ops.parameter([], "i64", name="trips")
    number, total = ops.parameter([], "i64", name="number"), ops.parameter([1], "i64", name="total")
    added = total + number
    body = ovir.Model([ops.less(added, 3), added], [number, total], "body")
    loop = ops.loop(trips, True, name="loop")
    loop.set_function(body)
    loop.set_special_body_ports([0, 0])
    loop.set_merged_input(total, np.int64([0]), added)
    last = loop.get_iter_value(added, -1)
    parts = loop.get_concatenated_slices(added, 0, 1, 1, -1, 0)
    assert [str(port.type) for port in (last, parts)] == ["i64[1]", "i64[?]"]
    return loop, [last, parts]


def counting() -> tuple[ovir.Model, ovir.Layer]:
    loop, outputs = unfinished()
    return ovir.Model(outputs, [loop.inputs[0].source.layer], "m"), loop


def test_the_ports_of_a_loop_may_be_set_again() -> None:
    loop, _ = unfinished()
    wiring = loop.operator.wiring["body"]  # type: ignore[union-attr]
    for ports, number in (([-1, 1], []), ([0, 0], [(-1, 0)])):
        loop.set_special_body_ports(ports)
        again = loop.operator.wiring["body"]  # type: ignore[union-attr]
        assert [(item.external, item.parameter) for item in again.inputs if item.purpose] == number
        assert [(item.external, item.result) for item in again.outputs if item.purpose] == [(-1, ports[1])]
    assert sorted(again.inputs, key=str) == sorted(wiring.inputs, key=str)
    assert sorted(again.outputs, key=str) == sorted(wiring.outputs, key=str)


def test_loop() -> None:
    model, loop = counting()
    assert [len(loop.inputs), len(loop.outputs)] == [3, 2]
    assert run(model, np.int64(2)) == [[1], [0, 1]]
    assert run(model, np.int64(9)) == [[3], [0, 1, 3]]


def test_tensor_iterator() -> None:
    x = ops.parameter([3, 2], name="x")
    part, state, weight = (ops.parameter([1, 2], name=name) for name in ("part", "state", "weight"))
    added = state + part * weight
    layer = ops.tensor_iterator(name="ti")
    layer.set_body(ovir.Model([added], [part, state, weight], "body"))
    layer.set_sliced_input(part, x, 0, 1, 1, -1, 0)
    layer.set_merged_input(state, np.zeros((1, 2), np.float32), added)
    layer.set_invariant_input(weight, np.float32([[1, 10]]))
    last = layer.get_iter_value(added)
    every = layer.get_concatenated_slices(added, 0, 1, 1, -1, 0)
    model = ovir.Model([last, every], [x], "m")
    data = np.float32([[1, 1], [2, 2], [3, 3]])
    assert run(model, data) == [[[6, 60]], [[1, 10], [3, 30], [6, 60]]]


def test_errors_name_the_method() -> None:
    body = branch(lambda p: p + 1)
    layer = ops.tensor_iterator(name="ti")
    with pytest.raises(ovir.InputError, match=r"ti.set_invariant_input\(.*\): the layer has no body yet"):
        layer.set_invariant_input(body.inputs[0], np.zeros(2, np.float32))
    layer.set_body(body)
    with pytest.raises(ovir.InputError, match="expected a Parameter of the body, got <layer"):
        layer.set_invariant_input(ops.parameter([2]), np.zeros(2, np.float32))
    with pytest.raises(ovir.InputError, match="expected a result of the body, got <output 0 of 'p'"):
        layer.get_iter_value(body.inputs[0])
    layer.set_invariant_input(body.inputs[0], np.zeros(2, np.int32))
    with pytest.raises(ovir.ModelError, match=r"ti.get_iter_value\(.*parameter 0 of the body.*f32") as caught:
        layer.get_iter_value(body.outputs[0])
    assert caught.value.diagnostic.file == __file__
    with pytest.raises(ovir.InputError, match=r"'p' .* of the body is already fed"):
        layer.set_invariant_input(body.inputs[0], np.zeros(2, np.float32))
    with pytest.raises(ovir.InputError, match="only the result of the last iteration"):
        layer.get_iter_value(body.outputs[0], 0)
    with pytest.raises(ovir.InputError, match="already the body of a layer"):
        ops.tensor_iterator().set_body(conditional().layer("if").bodies["then"])


class Call:
    """Calls a method of a Loop, whose body has the Parameter ``p`` and the Result ``r``, for a table of faults."""

    def __init__(self, method: str, *arguments: Any) -> None:
        self.method, self.arguments = method, arguments

    def __call__(self) -> None:
        p = ops.parameter([2], name="p")
        loop = ops.loop(3, True, name="loop")
        loop.set_function(ovir.Model([p + 1, ops.constant(True)], [p], "body"))
        places = {"p": p, "r": loop.bodies["body"].outputs[0]}
        try:
            getattr(loop, self.method)(*(places.get(x, x) if isinstance(x, str) else x for x in self.arguments))
        finally:
            assert [len(loop.inputs), len(loop.outputs)] == [2, 0]
            assert loop.operator.wiring["body"].inputs == ()


X = np.zeros((3, 2), np.float32)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (Call("set_special_body_ports", [0]), "'special_body_ports': expected a parameter and a result, got [0]"),
        (Call("set_special_body_ports", None), "'special_body_ports': expected a list of integers, got None"),
        (Call("set_special_body_ports", "ab"), "'special_body_ports': expected a list of integers, got 'ab'"),
        (Call("set_special_body_ports", [0.5, 0]), "'special_body_ports': expected a list of integers, got 0.5"),
        (Call("set_sliced_input", "p", X, 0, 1, 1, -1, "a"), "'axis': expected an integer, got 'a'"),
        (Call("set_sliced_input", "p", X, 0, 1, 0.5, -1, 0), "'part_size': expected an integer, got 0.5"),
        (Call("get_concatenated_slices", "r", 0, 1, 1, None, 0), "'end': expected an integer, got None"),
        (Call("get_iter_value", "r", -1.0), "'iteration': expected an integer, got -1.0"),
        (Call("set_invariant_input", "p", None), "'value': expected a layer, a port, an array or a number, got None"),
        (Call("set_merged_input", "p", None, "r"), "'initial_value': expected a layer, a port, an array or a number"),
        (Call("set_invariant_input", [1], X), "expected a Parameter of the body, got [1]"),
        (Call("get_iter_value", 0), "expected a result of the body, got 0"),
        (Call("get_iter_value", None), "expected a result of the body, got None"),
    ],
    ids=lambda value: value.method if isinstance(value, Call) else "",
)
def test_wrong_arguments(call: Call, message: str) -> None:
    with pytest.raises(ovir.InputError, match=re.escape(message)):
        call()


def test_branches_have_ports_of_their_own() -> None:
    x, layer = ops.parameter([2], name="x"), ops.if_op(ops.parameter([], "boolean", name="condition"), name="if")
    then, other = branch(lambda p: p + 1), branch(lambda p: p * 10)
    layer.set_then_body(then)
    layer.set_else_body(other)
    with pytest.raises(ovir.InputError, match="expected a Parameter of the then body, got <output 0 of 'p'"):
        layer.set_input(x, other.inputs[0], None)
    with pytest.raises(ovir.InputError, match="expected a result of the else body, got <input 0 of"):
        layer.set_output(then.outputs[0], then.outputs[0])
    layer.set_input(x, then.inputs[0], other.inputs[0])
    ports = [layer.set_output(then.outputs[0], other.outputs[0]) for _ in range(2)]
    assert ports == layer.outputs
    assert [port.id for port in ports] == [2, 3]


def test_a_loop_needs_its_special_ports() -> None:
    p = ops.parameter([2], name="p")
    loop = ops.loop(3, True, name="loop")
    loop.set_function(ovir.Model([p + 1, ops.constant(True)], [p], "body"))
    with pytest.raises(ovir.ModelError, match="a Loop needs exactly one output with purpose"):
        loop.get_iter_value(loop.bodies["body"].outputs[0])
    with pytest.raises(ovir.InputError, match="the body has no result 2: it has 2"):
        loop.set_special_body_ports([-1, 2])
    loop.set_special_body_ports([-1, 1])
    loop.set_merged_input(p, np.zeros(2, np.float32), loop.bodies["body"].outputs[0])
    y = loop.get_iter_value(loop.bodies["body"].outputs[0])
    assert run(ovir.Model([y], [], "m")) == [[3, 3]]


def test_a_layer_of_a_model_is_finished() -> None:
    model = conditional()
    layer: Any = model.layer("if")
    then, x = layer.bodies["then"], model.inputs[0]
    for change in (
        lambda: layer.set_then_body(branch(lambda p: p)),
        lambda: layer.set_input(x, None, None),
        lambda: layer.set_output(then.outputs[0], layer.bodies["else"].outputs[0]),
    ):
        with pytest.raises(ovir.InputError, match=r"if.set_.*: the layer already belongs to a model"):
            change()
    assert [len(layer.inputs), len(layer.outputs)] == [2, 1]
    assert layer.bodies["then"] is then


def test_a_body_is_of_one_layer() -> None:
    body, cond = branch(lambda p: p), ops.constant(True)
    first = ops.if_op(cond)
    first.set_then_body(body)
    for layer, method in ((ops.if_op(cond), "set_then_body"), (first, "set_else_body"), (first, "set_then_body")):
        with pytest.raises(ovir.InputError, match="already the body of a layer"):
            getattr(layer, method)(body)
    with pytest.raises(ovir.InputError, match="a Parameter cannot be added to a body or removed from it"):
        body.remove_layer(body.inputs[0].layer)
    first.set_then_body(branch(lambda p: p + 1))
    ops.if_op(cond).set_then_body(body)


def test_layers_do_not_take_the_bodies_of_others() -> None:
    outputs = []
    for name in ("first", "second"):
        body = branch(lambda p: p)
        layer = ops.tensor_iterator(name=name)
        layer.set_body(body)
        layer.set_invariant_input(body.inputs[0], np.zeros(2, np.float32))
        outputs.append(layer.get_iter_value(body.outputs[0]))
    outputs[1].layer.bodies = dict(outputs[0].layer.bodies)
    with pytest.raises(ovir.InputError, match=r"'second' .*'body' is also a body of .*'first'"):
        ovir.Model(outputs, [], "m")
    assert [len(port.readers) for port in outputs] == [0, 0]
    ovir.Model(outputs[:1], [], "m")
