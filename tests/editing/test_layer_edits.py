"""Layers that are replaced, inserted, removed; dead layers and runtime information."""

import numpy as np
import pytest
from support.builder import Net
from support.edited import layer, operation, run, sample, with_body

import ovir
from ovir.graph.rt_info import RtElement, RtInfo
from ovir.model import Model

ONES = [np.ones((2, 3), np.float32)] * 2


def kinds(model: Model) -> list[str]:
    return [layer.type for layer in model.layers]


def test_a_replaced_layer_passes_on_its_names() -> None:
    model = sample()
    new = model.replace("product", layer("difference", operation("Subtract"), 2))
    assert new is model.layer("difference")
    assert new.outputs[0].names == {"product"}
    assert set(ovir.compile_model(model)(ONES)["product"].flat) == {1}
    own = layer("own", operation("Abs"), 1, number=model.next_id)
    own.outputs[0].names = frozenset({"mine"})
    assert model.replace("relu", own).outputs[0].names == {"mine"}


def test_the_names_of_an_output_go_with_the_output() -> None:
    model = sample()
    product = model.layer("product").outputs[0]
    model.insert_after("product", layer("negative", operation("Negative"), 1))
    assert (product.names, model.layer("negative").outputs[0].names) == (frozenset(), {"product"})
    assert set(ovir.compile_model(model)(ONES)["product"].flat) == {-2}
    model.remove("negative")
    assert product.names == {"product"}
    assert set(ovir.compile_model(model)(ONES)["product"].flat) == {2}


def test_layers_in_bodies_infer_the_model_around_them() -> None:
    net_model = with_body()
    net_model.insert_after("n1/body/n1", layer("mask", operation("Convert", destination_type="i32"), 1))
    assert str(net_model.outputs[0].type) == "i32[2,4]"
    net_model.replace("n1/body/mask", layer("mask", operation("Convert", destination_type="f16"), 1, number=2000))
    assert str(net_model.outputs[0].type) == "f16[2,4]"
    body = net_model.layer("n1").bodies["body"]
    body.remove("mask")
    assert str(net_model.outputs[0].type) == "f32[2,4]"
    assert net_model.diagnostics == []


def test_removed_ends() -> None:
    model = sample()
    model.remove("out")
    model.remove("assign")
    assert [port.layer.name for port in model.outputs] == ["half"]
    assert {found.name for found in model.prune()} == {"dead", "relu", "state", "product"}
    assert [port.any_name for port in model.inputs] == ["x", "y"]


def test_what_is_needed_is_not_removed() -> None:
    model = ovir.read_model("examples/xml/digits.xml")
    for name, reader in (("conv1/weights", "conv1"), ("image", "scale")):
        with pytest.raises(ovir.InputError, match=rf"cannot be removed: layer \d+ '{reader}' .* reads it"):
            model.remove(name)
    with pytest.raises(ovir.InputError, match="the only output of a model cannot be removed"):
        model.remove(model.outputs[0].layer)
    model.add_outputs("relu1")
    model.remove(model.outputs[0].layer)
    assert len(model.outputs) == 1


def test_dead_layers_are_removed() -> None:
    model = sample()
    expected = run(model)
    assert [found.name for found in model.prune()] == ["dead"]
    assert (model.dead_layers, model.prune()) == (set(), [])
    assert all(np.array_equal(a, b) for a, b in zip(run(model), expected, strict=True))
    model = with_body()
    body = model.layer("n1").bodies["body"]
    body.add_layer(layer("dead", operation("Abs"), 1), [body.layer("n0").outputs[0]])
    model.infer_shapes()
    assert [found.key for found in model.prune()] == ["n1/body/dead"]
    assert kinds(body) == ["Parameter", "ReLU", "Result"]


def test_a_variable_that_is_only_set_is_kept() -> None:
    net = Net()
    x = net.parameter("x", "3")
    net.op("ReadValue", x, opset=6, name="unread", variable_id="v", variable_type="f32", variable_shape="3")
    net.op("Assign", net.op("ReLU", x), opset=6, variable_id="v")
    net.result(x)
    model = net.model()
    assert model.layer("unread").is_dead
    assert model.prune() == []
    assert "ReadValue" in kinds(model)


def test_runtime_information_is_removed() -> None:
    model = ovir.read_model("examples/xml/digits.xml")
    model.layer("conv1").rt_info_source = RtInfo((RtElement(0, "rt_info"), RtElement(1, "a", (("value", "b"),))))
    body = with_body()
    inner = body.layer("n1/body/n1")
    inner.outputs[0].rt_info = RtInfo((RtElement(0, "rt_info"), RtElement(1, "a", (("value", "b"),))))
    assert any(found.rt_info for found in model.layers)
    for each in (model, body):
        each.strip_rt_info()
        assert not each.rt_info
        assert not any(found.rt_info for found in each.walk())
        assert not any(port.rt_info for found in each.walk() for port in (*found.inputs, *found.outputs))
