"""Models inferred again: for other shapes of their inputs, for one call, and after edits."""

import pytest
from support.builder import Net

import ovir
from ovir.checks.recovering import read_recovering
from ovir.inference.models import infer_for_call, infer_if_edited


def stateful() -> ovir.Model:
    """Return a model that joins its input and a state, and keeps both."""
    net = Net()
    start = net.parameter("start", "2,3")
    read = net.op("ReadValue", start, name="read", opset=6, variable_id="v", variable_shape="?,3", variable_type="f32")
    joined = net.op("Concat", read, net.parameter("more", "?,3"), name="joined", axis=0)
    net.op("Assign", joined, name="kept", opset=6, variable_id="v")
    net.result(joined)
    return net.model()


@pytest.mark.parametrize(
    ("state", "more", "joined"),
    [(None, "4,3", "[6,3]"), ([5, 3], "4,3", "[9,3]"), ([5, 3], "?,3", "[5..,3]"), ([0, 3], "0,3", "[0,3]")],
)
def test_types_for_one_call(state: list[int] | None, more: str, joined: str) -> None:
    model = stateful()
    infer_for_call(model, ["2,3", more], {"v": state})
    assert str(model.layer("joined").outputs[0].shape) == joined


def test_what_one_call_refuses() -> None:
    """The state may have another shape than its initial value, but not one that the layers cannot take."""
    with pytest.raises(ovir.ModelError, match="joined"):
        infer_for_call(stateful(), ["2,3", "4,5"], {"v": [5, 3]})
    infer_for_call(stateful(), ["2,3", "4,3"], {})
    fixed = stateful()
    infer_for_call(fixed, ["2,3", "4,3"], {"w": [5, 3]})
    assert str(fixed.layer("joined").outputs[0].shape) == "[4..,3]"


def test_a_reshape_within_edits_is_inferred_at_their_end() -> None:
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", "2,3")))
    model = net.model()
    with model.editing():
        model.reshape([4, 3])
        assert (str(model.outputs[0].shape), model.needs_inference) == ("[2,3]", True)
    assert (str(model.outputs[0].shape), model.needs_inference) == ("[4,3]", False)


def test_a_parameter_that_could_not_be_read() -> None:
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", "2,3")))
    found = read_recovering(net.declared_xml().replace('shape="2,3"', 'shape="2,q"'))
    with pytest.raises(ovir.InputError, match="the shape of input 'x' cannot be set: its Parameter could not be read"):
        found.reshape({"x": [4, 3]})


def test_only_what_was_edited_is_inferred_again() -> None:
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", "2,3")))
    model = net.model()
    revision = model.revision
    infer_if_edited(model)
    assert model.revision == revision
    model.layer("relu1").operator = None
    model.needs_inference = True
    message = "the layer has no operator, but ReLU of opset1 is a known operation"
    with pytest.raises(ovir.ModelError, match=message) as caught:
        infer_if_edited(model)
    assert caught.value.diagnostic.hint == "create the layer with operator=ReLU(...) from ovir.ops.activation"
    assert model.needs_inference
