"""Models can be copied and pickled: the copies infer, reshape and run like the original, and share nothing with it."""

import copy
import pickle
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.builder import Net, unary_net
from support.derived import chain, derived_of
from support.edited import sample, state_of, with_body

import ovir
from ovir.core.tensor_types import TensorType
from ovir.model import Model
from ovir.ops.infrastructure import Const


def through_pickle(model: Model) -> Model:
    copied = pickle.loads(pickle.dumps(model))
    assert isinstance(copied, Model)
    return copied


COPIES: dict[str, Callable[[Model], Model]] = {
    "pickle": through_pickle,
    "deepcopy": copy.deepcopy,
    "clone": Model.clone,
}
copies = pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)


def types_of(model: Model) -> list[str]:
    return [str(port.type) for layer in model.layers for port in (*layer.inputs, *layer.outputs)]


@copies
@pytest.mark.parametrize("make", [sample, with_body])
def test_a_copy_is_equal_and_its_own(copied: Callable[[Model], Model], make: Callable[[], Model]) -> None:
    model = make()
    other = copied(model)
    assert derived_of(other) == derived_of(model)
    assert state_of(other) == state_of(model)
    assert types_of(other) == types_of(model)
    assert (other.name, other.version, other.rt_info) == (model.name, model.version, model.rt_info)
    shared = {*map(id, model.layers)} & {*map(id, other.layers)}
    operators = {id(layer.operator) for layer in model.layers} & {id(layer.operator) for layer in other.layers}
    attributes = {id(layer.attributes) for layer in model.layers} & {id(layer.attributes) for layer in other.layers}
    assert not shared | operators | attributes
    for layer, twin in zip(model.layers, other.layers, strict=True):
        assert layer.line == twin.line
        for key, body in layer.bodies.items():
            assert types_of(body) == types_of(twin.bodies[key])
    before = state_of(model), types_of(model)
    other.reshape({port.layer.name: [3, 2] for port in other.inputs})
    other.remove_layer(other.outputs[0].layer)
    assert (state_of(model), types_of(model)) == before


@copies
def test_a_copy_runs(copied: Callable[[Model], Model], tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("x", "-1,3")
    weights = net.const(np.arange(6, dtype=np.float32).reshape(3, 2))
    shape = net.const(np.array([0, 2, 1]))
    y = net.op("Reshape", net.op("MatMul", x, weights), shape, special_zero="true")
    net.result(net.op("Add", y, net.const(np.float32(1))))
    path = net.write(tmp_path)
    model = ovir.read_model(path)
    other = copied(model)
    data = np.ones((5, 3), np.float32)
    expected = ovir.compile_model(model)([data])[0]
    assert np.array_equal(ovir.compile_model(other)([data])[0], expected)
    other.reshape([7, 3])
    assert str(other.outputs[0].shape) == "[7,2,1]"
    assert str(model.outputs[0].shape) == "[?,2,1]"


def test_a_pickle_needs_no_files(tmp_path: Path) -> None:
    net = Net()
    net.result(net.op("Add", net.parameter("x", "4"), net.const(np.arange(4, dtype=np.float32))))
    path = net.write(tmp_path)
    data = pickle.dumps(ovir.read_model(path))
    path.with_suffix(".bin").unlink()
    model = pickle.loads(data)
    assert ovir.compile_model(model)([np.zeros(4, np.float32)])[0].tolist() == [0, 1, 2, 3]
    constant = next(layer.operator for layer in model.layers if isinstance(layer.operator, Const))
    assert not constant.data.flags.writeable


@pytest.mark.slow
@copies
def test_long_chains(copied: Callable[[Model], Model]) -> None:
    model = chain(4000)
    assert len(model.layers) > 3 * sys.getrecursionlimit()
    assert derived_of(copied(model)) == derived_of(model)


@copies
def test_a_registered_operation(copied: Callable[[Model], Model]) -> None:
    net = unary_net("ForCopies")
    content = net.xml().replace('type="ForCopies" version="opset1"', 'type="ForCopies" version="mine"').encode()
    model = copied(ovir.read_model(content))
    assert ovir.compile_model(model)([np.array([1, 2], np.float32)])[0].tolist() == [2, 4]


@ovir.register("ForCopies", version="mine")
class ForCopies(ovir.Operator):
    """Twice its input."""

    def infer(self, data: TensorType) -> TensorType:
        return data

    def run(self, data: np.ndarray) -> np.ndarray:
        return data * 2


@pytest.mark.slow
def test_a_layer_is_pickled_with_its_model() -> None:
    layer = chain(3000).layers[1500]
    other = pickle.loads(pickle.dumps(layer))
    assert (other.id, other.inputs[0].source.layer.id) == (layer.id, layer.id - 1)
    port = pickle.loads(pickle.dumps(layer.inputs[0]))
    assert (port.layer.id, port.is_output, port.index) == (layer.id, False, 0)


def test_a_model_amid_its_edits_can_be_pickled() -> None:
    model = sample()
    model.disconnect(model.layer("relu").inputs[0])
    other = through_pickle(model)
    assert derived_of(other) == derived_of(model)
    with pytest.raises(ovir.ModelError):
        other.infer_shapes()
