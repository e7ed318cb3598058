"""Models made of layers that the functions of an opset created."""

import pickle
from typing import Any

import numpy as np
import pytest

import ovir
from ovir import opset13 as ops


def parameter(name: str = "x", dtype: str = "f32") -> ovir.Layer:
    return ops.parameter([2], dtype, name=name)


def test_a_model_runs_and_keeps_names() -> None:
    x, y = parameter("x"), parameter("y")
    total = ops.add(x, y, name="total", tensor_names="sum")
    model = ovir.Model([total, ops.result(ops.relu(x), name="out")], [x, y], "both")
    assert model.name == "both"
    assert [port.any_name for port in model.inputs] == ["x", "y"]
    assert [port.any_name for port in model.outputs] == ["sum", "out"]
    assert [layer.id for layer in model.layers] == list(range(len(model.layers)))
    results = ovir.compile_model(model)({"x": np.float32([-1, 2]), "y": np.float32([10, 20])})
    assert results["sum"].tolist() == [9, 22]
    assert results["out"].tolist() == [0, 2]
    read, unread = parameter("read"), parameter("unread")
    inputs = ovir.Model([ops.relu(read)], [unread, read]).inputs
    assert [port.any_name for port in inputs] == ["unread", "read"]
    constant = ovir.Model([ops.constant([1, 2]) * 3], [], "m")
    assert ovir.compile_model(constant)({})[0].tolist() == [3, 6]


def test_layers_without_a_name_get_one() -> None:
    x = ops.parameter([2])
    model = ovir.Model([ops.relu(ops.relu(x, name="Const_2") + 1)], [x])
    assert [layer.name for layer in model.layers] == [
        "Parameter_0",
        "Const_2",
        "Const_2_2",
        "Add_3",
        "ReLU_4",
        "Result_5",
    ]


def test_the_ports_of_a_layer_are_numbered() -> None:
    layer = ops.split(ops.parameter([6]), 0, 3)
    assert [port.id for port in (*layer.inputs, *layer.outputs)] == [0, 1, 2, 3, 4]


def test_equal_code_gives_equal_models() -> None:
    def make() -> list[Any]:
        x = parameter()
        model = ovir.Model([ops.softmax(x * 2 + 1, 0)], [x], "m")
        return [(layer.id, layer.name, layer.type, [str(port.type) for port in layer]) for layer in model.layers]

    assert make() == make()


def test_one_result_needs_no_list_and_dead_layers_are_left_out() -> None:
    x = parameter()
    ops.exp(x)
    y = ops.relu(x)
    model = ovir.Model(y, [x], "m")
    assert [layer.type for layer in model.layers] == ["Parameter", "ReLU", "Result"]
    assert [port.layer for port in x.output().readers] == [y]


FORMS = {
    "sinks by keyword": lambda y, x, s: ovir.Model([y], [x], "m", sinks=[s]),
    "sinks second": lambda y, x, s: ovir.Model([y], [s], [x], "m"),
    "name by keyword": lambda y, x, s: ovir.Model([y], [s], [x], name="m"),
    "parameters by keyword": lambda y, x, s: ovir.Model([y], [s], parameters=[x], name="m"),
    "all by keyword": lambda y, x, s: ovir.Model(results=[y], sinks=[s], parameters=[x], name="m"),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_variables_are_kept(form: Any) -> None:
    x = parameter()
    total = x + ops.read_value(np.zeros(2, np.float32), "total", "f32", [2])
    model = form(total, x, ops.assign(total, "total"))
    assert model.name == "m"
    request = ovir.compile_model(model).create_infer_request()
    for expected in ([1, 2], [2, 4]):
        assert request.infer({"x": np.float32([1, 2])})[0].tolist() == expected


def test_built_models_can_be_copied_pickled_reshaped_and_edited() -> None:
    x = parameter()
    model = ovir.Model([ops.relu(x, name="y")], [x], "m")
    for copy in (model.clone(), pickle.loads(pickle.dumps(model))):
        copy.reshape([7])
        assert str(copy.outputs[0].shape) == "[7]"
    assert str(model.outputs[0].shape) == "[2]"
    model.remove_layer(model.layer("y"), bypass=True)
    model.infer_shapes()
    assert [layer.type for layer in model.layers] == ["Parameter", "Result"]


def test_new_layers_may_read_a_model_without_changing_it() -> None:
    x = parameter()
    y = ops.relu(x)
    model = ovir.Model([y], [x], "m")
    z = model.layer(1) * 2
    assert str(z.shape) == "[2]"
    assert len(y.output().readers) == 1


# --------------------------------------------------------------------------- errors


def owned() -> Any:
    x = parameter()
    ovir.Model([ops.relu(x)], [x], "m")
    return ovir.Model([ops.exp(x)], [x], "other")


def invalid_variable() -> Any:
    x = parameter()
    read = ops.read_value(x, "v")
    try:
        return ovir.Model([read], [x], "m", sinks=[ops.assign(ops.convert(x, "i32"), "v")])
    finally:  # the layers are free again
        assert len(ovir.Model([read], [x], "m", sinks=[ops.assign(x, "v")]).layers) == 4


def one_name_twice(*, at_result: bool) -> Any:
    x = ops.parameter([1], name="p", tensor_names="t")
    y = ops.relu(x, name="y", tensor_names=None if at_result else [{"t", "u"}])
    return ovir.Model([ops.result(y, name="r", tensor_names="t") if at_result else y], [x], "m")


X = parameter()
Y = ops.relu(X)


def call(*arguments: Any, **keywords: Any) -> Any:
    """Call ``Model`` as type checkers do not allow."""
    return ovir.Model(*arguments, **keywords)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (owned, "'x' .* already belongs to a model"),
        (lambda: ovir.Model([ops.relu(parameter("b"))], [parameter("a")], "m"), "'b' .* not among the parameters"),
        (lambda: ovir.Model([3], [], "m"), "expected a layer or port for each result, got 3"),
        (lambda: ovir.Model([parameter()], [ops.constant(1)], "m"), "expected a Parameter for each parameter, got"),
        (lambda: ovir.Model([], [p := parameter(), p], "m"), "a parameter is listed twice"),
        (lambda: ovir.Model([r := ops.result(ops.constant(1)), r], [], "m"), "a result is listed twice"),
        (lambda: ovir.Model([ops.constant(1)], [], "m", sinks=[ops.constant(1)]), "expected a Assign for each sink"),
        (invalid_variable, "variable 'v'"),
        (lambda: one_name_twice(at_result=False), "'y' .* has the tensor name 't', which layer .* 'p' .* has already"),
        (lambda: one_name_twice(at_result=True), "'r' .* has the tensor name 't', which layer .* 'p' .* has already"),
        (lambda: call([Y], [X], [X], [X], "m"), r"Model\(.*\): too many positional arguments"),
        (lambda: call([Y], [X], "m", name="n"), "multiple values for argument 'name'"),
        (lambda: call([Y], [], [X], "m", sinks=[]), "multiple values for argument 'sinks'"),
        (lambda: call([Y], [X], version=9), "unexpected keyword argument 'version'"),
        (lambda: call([Y], name="m"), "(?s)missing a required argument: 'parameters'.*Model.of_layers"),
        (lambda: call(), "missing a required argument: 'results'"),
        (lambda: call("abc", [X]), "expected a layer or port for each result, got 'a'"),
        (lambda: call([Y], "m"), "expected a layer or port for each parameter, got 'm'"),
        (lambda: call([Y], [X], name=3), "expected a text for the name of the model, got 3"),
    ],
)  # fmt: skip
def test_what_cannot_become_a_model(make: Any, message: str) -> None:
    with pytest.raises(ovir.OvirError, match=message):
        make()


def test_names_may_be_repeated_for_one_tensor_and_in_bodies() -> None:
    x = ops.parameter([1], name="x", tensor_names="t")
    first, second = ops.result(x, tensor_names="t"), ops.result(x, tensor_names=[{"t", "u"}])
    model = ovir.Model([first, second], [x], "m")
    assert [port.names for port in model.outputs] == [{"t"}, {"t", "u"}]
