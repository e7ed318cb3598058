"""A part of a model computes what the whole computes there."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builder import Net, output
from support.edited import everything, run, sample, with_body

import ovir
from ovir.model import Model


def names(ports: list[ovir.Port]) -> list[str]:
    return [port.any_name for port in ports]


def whole(model: Model, *taps: str) -> dict[str, np.ndarray]:
    inputs = [np.arange(6, dtype=np.float32).reshape(2, 3) + i for i in range(len(model.inputs))]
    results = ovir.compile_model(model)(inputs, taps=taps)
    fed = {port.any_name: array for port, array in zip(model.inputs, inputs, strict=True)}
    return fed | {tap: results.taps[tap][0] for tap in taps}


def test_a_part_up_to_a_tensor_has_the_inputs_that_it_needs() -> None:
    model = sample()
    before = everything(model)
    part = model.extract(outputs=["relu"])
    assert everything(model) == before
    assert (names(part.inputs), names(part.outputs)) == (["x", "y"], ["relu"])
    assert [layer.name for layer in part.layers] == ["x", "y", "add", "relu", "relu/sink_port_0"]
    assert names(model.extract(outputs="dead").inputs) == ["x"]
    values = whole(model, "relu")
    np.testing.assert_array_equal(run(part, [values["x"], values["y"]])[0], values["relu"])


def test_a_part_between_tensors_in_the_given_order() -> None:
    model = sample()
    part = model.extract(inputs=["y", "add"], outputs=[("split", 0), "product", "relu"])
    assert (names(part.inputs), names(part.outputs)) == (["y", "add"], ["split", "product", "relu"])
    assert [layer.type for layer in part.layers if layer.name == "add"] == ["Parameter"]
    values = whole(model, "add", "split", "product", "relu")
    results = run(part, [values["y"], values["add"]])
    for array, name in zip(results, ("split", "product", "relu"), strict=True):
        np.testing.assert_array_equal(array, values[name])


def test_own_results_keep_their_layers() -> None:
    model = sample()
    part = model.extract(inputs=["add", "y"])
    assert [port.layer.name for port in part.outputs] == ["out", "half"]
    assert [port.layer.name for port in model.extract(outputs=["half"]).outputs] == ["half"]
    assert [port.layer.name for port in model.extract(outputs=["product"]).outputs] == ["out"]
    assert [port.layer.name for port in model.extract(outputs=model.outputs).outputs] == ["out", "half"]
    assert "dead" not in [layer.name for layer in model.extract().layers]


def test_all_outputs_of_a_layer_are_meant_by_the_layer() -> None:
    model = sample()
    assert len(model.extract(outputs=[model.layer("split")]).outputs) == 2
    part = model.extract(inputs=[model.layer("split")], outputs=["half"])
    assert names(part.inputs) == ["split", "split.1"]
    assert [port.layer.name for port in part.inputs] == ["split", "split.1"]


def test_one_output_of_a_layer_is_cut_while_another_is_computed() -> None:
    net = Net()
    x = net.parameter("x", "2,4")
    split = net.op("Split", x, net.const(np.array(1)), name="split", outputs=2, num_splits=2, names=["left", "right"])
    net.result(net.op("Subtract", split, output(split, 1), name="difference"), "out")
    part = net.model().extract(inputs=["left", "x"])
    assert (names(part.inputs), [port.layer.name for port in part.inputs]) == (["left", "x"], ["left", "x"])
    x, left = np.ones((2, 4), np.float32), np.full((2, 2), 5, np.float32)
    np.testing.assert_array_equal(run(part, [left, x])[0], left - 1)


def test_the_state_is_kept_where_the_part_can_compute_it() -> None:
    model = sample()
    assert [layer.type for layer in model.extract(outputs=["state"]).layers].count("Assign") == 1
    assert [layer.type for layer in model.extract(inputs=["relu"], outputs=["state"]).layers].count("Assign") == 0
    assert [layer.type for layer in model.extract(inputs=["state", "y"], outputs=["product"]).layers] == [
        *("Parameter", "Parameter", "Multiply", "Result")
    ]
    ones = np.ones((2, 3), np.float32)
    compiled = ovir.compile_model(model.extract(outputs=["state"]))
    assert [float(compiled([ones, 3 * ones])[0][0, 0]) for _ in range(3)] == [4, 12, 36]


def test_weights_are_shared() -> None:
    model = ovir.read_model("examples/xml/digits.xml")
    part = model.extract(outputs=["conv1"])
    (one,), (other,) = (
        [layer.operator.data for layer in m.layers if layer.name == "conv1/weights"] for m in (model, part)
    )
    assert np.shares_memory(one, other)
    model = sample()
    constant = model.set_constant("target", np.array([1, -1]))
    part = model.extract(outputs=[constant])
    assert np.shares_memory(part.layer("target").operator.data, constant.operator.data)


def test_bodies_are_kept() -> None:
    model = with_body()
    part = model.extract(outputs=["n1"])
    part.remove("n1/body/n1")
    data = -np.ones((2, 4), np.float32)
    np.testing.assert_array_equal(run(part, [data])[0], data)
    np.testing.assert_array_equal(run(model, [data])[0], np.zeros((2, 4)))


def test_a_part_of_a_body_has_the_types_of_its_iterations() -> None:
    part = with_body().extract(outputs=["n1/body/n1"])
    assert str(part.inputs[0].type) == "f32[1,4]"
    assert [layer.key for layer in part.layers] == ["n0", "n1", "n2"]
    assert run(part, [np.float32([[-1, 0, 1, 2]])])[0].tolist() == [[0, 0, 1, 2]]


def test_what_a_cut_hides_from_inference_is_one_error() -> None:
    net = Net()
    x = net.parameter("x", "2,3")
    size = net.op("ShapeOf", x, name="size", opset=3, output_type="i64")
    zeros = net.op("Broadcast", net.const(np.float32(0)), size, name="zeros", opset=3, mode="numpy")
    state = net.op(
        "ReadValue", zeros, opset=6, name="state", variable_id="v", variable_type="f32", variable_shape="2,3"
    )
    net.op("Assign", net.op("Add", state, x), opset=6, variable_id="v")
    net.result(state)
    with pytest.raises(ovir.ModelError, match=r"init_value is f32\[\?,\?\], but variable 'v'") as caught:
        net.model().extract(inputs=["size", "x"])
    assert "the values of its inputs are unknown" in caught.value.__notes__[0]


def test_tensors_without_names_get_that_of_their_layer() -> None:
    model = sample()
    for layer in model.layers:
        for port in layer.outputs:
            port.names = frozenset()
    part = model.extract(inputs=["add", "y"], outputs=["relu", ("split", 1)])
    assert [set(port.names) for port in part.inputs] == [{"add"}, set()]
    assert [set(port.names) for port in part.outputs] == [{"relu"}, set()]  # the second has its own Result
    assert model.layer("add").outputs[0].names == frozenset()


# --------------------------------------------------------------------------- random graphs

KINDS = ("ReLU", "Add", "Negative", "Multiply", "Split", "Tanh", "Subtract")


def random_graph(choices: list[tuple[int, int, int]]) -> Model:
    net = Net()
    tensors = [net.parameter("x", "2,3"), net.parameter("y", "2,3")]
    for kind, a, b in choices:
        first, second = tensors[a % len(tensors)], tensors[b % len(tensors)]
        name = f"layer{net.count}"
        if KINDS[kind] == "Split":  # its parts are put together again in another order
            axis = net.const(np.array(1))
            parts = net.op("Split", first, axis, name=name, outputs=3, num_splits=3)
            tensors.append(net.op("Concat", output(parts, 1), parts, output(parts, 2), name=f"{name}/joined", axis=1))
        elif KINDS[kind] in ("ReLU", "Negative", "Tanh"):
            tensors.append(net.op(KINDS[kind], first, name=name))
        else:
            tensors.append(net.op(KINDS[kind], first, second, name=name))
    net.result(tensors[-1], "out")
    return net.model()


numbers = st.integers(0, 30)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, len(KINDS) - 1), numbers, numbers), min_size=1, max_size=12),
    st.lists(numbers, max_size=3),
    st.lists(numbers, min_size=1, max_size=3),
)
def test_parts_compute_the_taps_of_the_whole(
    choices: list[tuple[int, int, int]], cut: list[int], wanted: list[int]
) -> None:
    model = random_graph(choices)
    inner = [layer.name for layer in model.layers if layer.outputs and layer.type not in ("Const", "Split")]
    outputs = list(dict.fromkeys(inner[i % len(inner)] for i in wanted))
    inputs = list(dict.fromkeys(inner[i % len(inner)] for i in cut)) or None
    values = whole(model, *inner[2:])
    try:
        part = model.extract(inputs, outputs)
    except ovir.InputError as error:
        assert "undefined" in str(error)  # noqa: PT017
        inputs = list(dict.fromkeys([*(inputs or []), "x", "y"]))
        part = model.extract(inputs, outputs)
    assert names(part.outputs) == outputs
    assert inputs is None or names(part.inputs) == inputs
    results = run(part, [values[name] for name in names(part.inputs)])
    for name, array in zip(outputs, results, strict=True):
        np.testing.assert_allclose(array, values[name], rtol=1e-6)
