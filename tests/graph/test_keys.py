"""Keys of layers: unique in a model with its bodies, and accepted wherever a layer is named."""

import numpy as np
import pytest
from support.builder import ITERATOR, Net

import ovir
from ovir.graph.layers import Layer
from ovir.graph.names import input_named

X = np.arange(8, dtype="f4").reshape(2, 4) - 2


def iterator(number: int, name: str) -> str:
    return f'<layer id="{number}" name="{name}" type="TensorIterator" version="opset1">{ITERATOR}</layer>'


def model(*, loop: str = "loop", other: str = "n") -> ovir.Model:
    """Return a model with two iterators and two layers of one name."""
    net = Net()
    x = net.parameter("x", "2,4")
    for number, name in ((1, loop), (2, "loop")):
        net.layers.append(iterator(number, name))
        net.edges.append(f'<edge from-layer="0" from-port="0" to-layer="{number}" to-port="0"/>')
    net.count = 3
    first = net.op("Add", (1, 1), (2, 1), name=other)
    net.result(net.op("ReLU", first, name="n"), name="out")
    net.result(x, name="as it is")
    return net.model()


@pytest.mark.parametrize("loop", ["loop", "first", "first/"])
@pytest.mark.parametrize("other", ["n", "loop/body/n1", "n#4"])
def test_keys_are_unique_and_find_their_layers(loop: str, other: str) -> None:
    read = model(loop=loop, other=other)
    for found in (read, read.clone()):
        layers = list(found.walk())
        keys = [layer.key for layer in layers]
        assert len(layers) > len(found.layers)
        assert len(set(keys)) == len(keys), keys
        assert [found.layer(key) for key in keys] == layers


def test_keys_say_where_a_layer_stands() -> None:
    read = model(loop="first")
    inner = read.layer("first").bodies["body"]
    assert [layer.key for layer in inner.layers] == [f"first/body/{layer.name}" for layer in inner.layers]
    assert inner.layer(inner.layers[1].name) is read.layer(inner.layers[1].key) is inner.layer(inner.layers[1].key)
    assert [layer.key for layer in read.layers if layer.name == "n"] == ["n", "n#4"]


def test_a_name_given_later_changes_keys() -> None:
    read = model(loop="first")
    read.rename_layers({"first": "begin"})
    assert all(layer.key.startswith("begin/body/") for layer in read.layer("begin").bodies["body"].layers)
    with pytest.raises(KeyError):
        read.layer("first")


def test_taps_listeners_and_results_take_keys() -> None:
    read = model(loop="first")
    seen: list[str] = []

    class Seen(ovir.Listener):
        def did_run(self, layer: Layer, inputs: object, outputs: object) -> None:
            seen.append(layer.key)

    relu = next(layer.key for layer in read.walk() if layer.type == "ReLU" and layer.scope == "first/body/")
    results = ovir.compile_model(read)([X], taps=[relu, "n#4"], listeners=[Seen()])
    np.testing.assert_array_equal(results.taps[relu][0], np.maximum(X[1:], 0))
    np.testing.assert_array_equal(results.taps["n#4"][0], results["n#4"])
    assert seen.count(relu) == 2
    assert "n#4" in seen


def test_ids_may_be_integers_of_numpy() -> None:
    model = ovir.read_model("examples/xml/digits.xml")
    assert model.layer(np.int64(3)) is model.layer(3)
    with pytest.raises(KeyError, match="no layer has the id 99"):
        model.layer(np.int32(99))


def test_inputs_are_named_before_they_are_counted() -> None:
    net = Net()
    for name in ("a", "0"):
        net.result(net.parameter(name, "2"))
    assert [input_named(net.model(), name) for name in ("a", "0", "1")] == [0, 1, 1]
    with pytest.raises(KeyError, match="no input 'b'"):
        input_named(net.model(), "b")


def test_a_class_of_integers_is_no_position() -> None:
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", "2")))
    read = net.model()
    for find in (read.input, read.output, read.layer):
        with pytest.raises(ovir.InputError):
            find(int)  # type: ignore[arg-type]
