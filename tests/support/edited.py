"""Models for tests of edits, and what an edit can change."""

from typing import Any

import numpy as np

import ovir
from ovir.core.arrays import Array
from ovir.graph.layers import Layer, Port
from ovir.model import Model
from ovir.ops import resolve
from support.builder import ITERATOR, RESULT, Net, document, layer_text, output


def sample() -> Model:
    """Two inputs, a chain with a state, a Split, a Reshape by a constant, a dead layer and two outputs."""
    net = Net()
    x, y = net.parameter("x", "2,3"), net.parameter("y", "2,3")
    add = net.op("Add", x, y, name="add")
    relu = net.op("ReLU", add, name="relu")
    net.op("Abs", x, name="dead")
    state = net.op(
        "ReadValue", relu, opset=6, name="state", variable_id="v", variable_type="f32", variable_shape="-1,-1"
    )
    product = net.op("Multiply", state, y, name="product")
    net.op("Assign", product, opset=6, name="assign", variable_id="v")
    flat = net.op("Reshape", add, net.const(np.array([1, 6]), name="target"), name="flat", special_zero="true")
    split = net.op("Split", flat, net.const(np.array(1), name="axis"), name="split", outputs=2, num_splits=2)
    net.result(product, "out")
    net.result(output(split, 1), "half")
    return net.model()


def with_body() -> Model:
    """A TensorIterator ``n1`` with a ReLU ``n1`` in its body, over the rows of a Parameter."""
    layers = [layer_text(1, "TensorIterator", ITERATOR), layer_text(2, "Result", RESULT)]
    return ovir.read_model(document(*layers, edges="0.0-1.0 1.1-2.0"))


def layer(name: str, operator: Any, inputs: int, number: int = 1000, outputs: int = 1) -> Layer:
    """Return a layer that belongs to no model."""
    found = Layer(number, name, operator.type, f"opset{operator.opset}", operator=operator)
    found.inputs = [Port(found, index, index, is_output=False) for index in range(inputs)]
    found.outputs = [Port(found, index, inputs + index, is_output=True) for index in range(outputs)]
    return found


def operation(kind: str, opset: int = 1, **attributes: Any) -> Any:
    found = resolve(kind, f"opset{opset}")
    assert found is not None
    return found(**attributes)


def everything(model: Model) -> Any:
    """Return all that an edit can change, as values."""
    return state_of(model), [_identities(layer) for layer in model._file_order]


def state_of(model: Model) -> Any:
    """Return all that an edit can change, in values that a copy of the model shares."""
    return (
        *(model.name, model.path, model.rt_info, model.scope, list(model.diagnostics)),
        [port.layer.id for port in model.inputs],
        [(port.layer.id, sorted(port.names)) for port in model.outputs],
        [_layer(layer) for layer in model._file_order],
        [layer.id for layer in model.layers],
        sorted(layer.id for layer in model.dead_layers),
    )


def _layer(layer: Layer) -> Any:
    return (
        *(layer.id, layer.name, layer.type, layer.version, layer.key, dict(layer.attributes)),
        *(layer.rt_info, layer.owner is not None),
        [_port(port) for port in (*layer.inputs, *layer.outputs)],
        {key: state_of(body) for key, body in layer.bodies.items()},
    )


def _port(port: Port) -> Any:
    return (
        *(port.index, port.id, sorted(port.own_names), str(port.type), port.rt_info, port.edge_line),
        *(str(port.declared_shape), str(port.declared_element_type)),
        (port.source.layer.id, port.source.index) if port.source is not None else None,
        [(reader.layer.id, reader.index) for reader in port.readers],
    )


def _identities(layer: Layer) -> Any:
    ports = [id(port) for port in (*layer.inputs, *layer.outputs)]
    return id(layer), id(layer.operator), ports, [everything(body) for body in layer.bodies.values()]


def run(model: Model, inputs: Any = None) -> list[Array]:
    """Return the outputs of a model for inputs, which count from 1 unless they are given."""
    if inputs is None:
        inputs = [numbers(port) for port in model.inputs]
    results = ovir.compile_model(model)(inputs)
    return [results[index] for index in range(len(model.outputs))]


def numbers(port: Port) -> Array:
    shape = port.shape.to_tuple()
    return (np.arange(np.prod(shape, dtype=int)).reshape(shape) + 1).astype(port.element_type.to_dtype())
