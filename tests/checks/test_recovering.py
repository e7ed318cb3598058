"""Models that are read although they are at fault, or have no weights: their types, errors, and other shapes."""

from pathlib import Path

import numpy as np
import pytest
from support.builder import Net, add_net

import ovir
from ovir.checks.recovering import Recovered, read_recovering


def stateful() -> Recovered:
    """Return a model that appends its input to a variable, and a variable of a body's kind beside it."""
    net = Net()
    x = net.parameter("x", "2,3")
    declared = {"variable_id": "v", "variable_shape": "?,3", "variable_type": "f32"}
    read = net.op("ReadValue", net.const(np.zeros((1, 3), np.float32)), opset=6, name="read", **declared)
    both = net.op("Concat", read, x, axis=0, name="both")
    net.op("Assign", both, opset=6, variable_id="v", name="assign")
    net.result(both)
    return read_recovering(net.declared_xml().encode(), bytes(net.blob))


def test_other_shapes_of_inputs_and_states() -> None:
    recovered = stateful()
    assert {name: [layer.name for layer in readers] for name, readers in recovered.states.items()} == {"v": ["read"]}
    assert str(recovered.model.outputs[0].shape) == "[2..,3]"
    recovered.reshape({"x": [5, 3]}, {"v": [4, 3]})
    assert (str(recovered.model.outputs[0].type), recovered.errors) == ("f32[9,3]", [])
    recovered.reshape({"x": [1, 3]}, {"v": [2, 3]})
    assert (str(recovered.model.outputs[0].type), recovered.errors) == ("f32[3,3]", [])
    recovered.reshape({"x": [1, 7]}, {"v": [2, 3]})
    assert [d.code for d in recovered.errors] == ["OVIR401"]
    recovered.reshape({"x": [1, 3]})
    assert [d.code for d in recovered.errors] == ["OVIR614"]  # which the state [2,3] does not allow
    with pytest.raises(ovir.InputError, match="no input"):
        recovered.reshape({"y": [1, 3]})


def test_missing_weights_are_an_info(tmp_path: Path) -> None:
    path = add_net().write(tmp_path)
    assert [read_recovering(path, need_weights=need).lacks_weights for need in (True, False)] == [False, True]
    assert read_recovering(path, need_weights=False).model.diagnostics == []
    path.with_suffix(".bin").unlink()
    recovered = read_recovering(path)
    assert (recovered.lacks_weights, recovered.errors, recovered.read_errors) == (True, [], [])
    (info,) = recovered.model.diagnostics
    assert (info.code, str(info.severity)) == ("OVIR501", "info")
    assert info.message.endswith("; without them, types that depend on their values are those that the file declares")


@pytest.mark.parametrize("need_weights", [True, False])
def test_types_that_depend_on_values_are_declared_without_weights(need_weights: bool) -> None:
    net = Net()
    net.result(net.op("Reshape", net.parameter("x", "2,6"), net.const([3, 4]), special_zero="false", name="y"))
    recovered = read_recovering(net.declared_xml().encode(), bytes(net.blob), need_weights=need_weights)
    assert str(recovered.model.outputs[0].type) == "f32[3,4]"
    assert [port.layer.name for port in recovered.declared] == ([] if need_weights else ["y"])
    other = net.declared_xml().replace("<dim>3</dim>", "<dim>9</dim>").encode()
    recovered = read_recovering(other, bytes(net.blob), need_weights=need_weights)
    assert recovered.errors == []
    assert [d.code for d in recovered.model.diagnostics] == (["OVIR402"] if need_weights else [])
    assert str(recovered.model.outputs[0].type) == ("f32[3,4]" if need_weights else "f32[9,4]")


@pytest.mark.parametrize("legacy_io", [True, False])
def test_inputs_and_outputs_of_version_10(legacy_io: bool) -> None:
    net = Net(version=10)
    net.result(net.op("ReLU", net.parameter("x", "2", "f16"), name="y"))
    recovered = read_recovering(net.declared_xml().encode(), b"", legacy_io=legacy_io)
    model = recovered.model
    ports = (*model.inputs, *model.outputs)
    assert [str(port.element_type) for port in ports] == ["f32" if legacy_io else "f16"] * 2
    assert (model.version, recovered.errors, recovered.declared) == (11 if legacy_io else 10, [], set())


@pytest.mark.parametrize("fault", ["", "<net", '<net name="a" version="9"/>'])
def test_what_cannot_be_read_is_an_error(fault: str) -> None:
    with pytest.raises(ovir.ReadError):
        read_recovering(fault.encode())
