"""Layers made for a model that exists already: with the ids and names given, and not inferred."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ovir import ops
from ovir.core.tensor_types import TensorType
from ovir.graph.layers import Layer, Port
from ovir.ops.base.operator import Operator
from ovir.ops.infrastructure import Const, Parameter, Result


def parameter(number: int, name: str, tensor: TensorType) -> Layer:
    """Return a Parameter of an inferred type."""
    operator = Parameter(element_type=tensor.element_type, shape=tensor.shape)
    return _layer(number, name, operator, {"element_type": tensor.element_type, "shape": tensor.shape})


def result(number: int, name: str) -> Layer:
    """Return a Result."""
    return _layer(number, name, Result(), {}, inputs=1, outputs=0)


def constant(number: int, name: str, operator: Const) -> Layer:
    """Return the layer of a constant."""
    return _layer(number, name, operator, constant_attributes(operator))


def constant_attributes(operator: Const) -> dict[str, Any]:
    """Return the attributes of a Const whose data is not in a file."""
    return {"element_type": operator.element_type, "shape": operator.shape}


def operation(number: int, name: str, kind: str, inputs: int, opset: int = 1, **attributes: Any) -> Layer:
    """Return a layer of an operation with one output, whose attributes have the same names as in files."""
    cls = ops.find(kind, opset)
    assert cls is not None
    return _layer(number, name, cls(**attributes), attributes, inputs=inputs)


def _layer(
    number: int, name: str, operator: Operator, attributes: Mapping[str, Any], *, inputs: int = 0, outputs: int = 1
) -> Layer:
    layer = Layer(number, name, operator.type, f"opset{operator.opset}", dict(attributes), operator)
    layer.inputs = [Port(layer, index, index, is_output=False) for index in range(inputs)]
    layer.outputs = [Port(layer, index, inputs + index, is_output=True) for index in range(outputs)]
    return layer
