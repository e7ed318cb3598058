"""New layers, and names that are still free."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any

from ovir.build.values import as_array_like
from ovir.core.element_types import ElementType
from ovir.core.tensor_types import TensorType
from ovir.graph.layers import Layer, Port
from ovir.ops.base.operator import Operator
from ovir.ops.infrastructure import Const, Parameter, Result


def parameter(number: int, name: str, tensor: TensorType) -> Layer:
    """Return a Parameter of an inferred type."""
    operator = Parameter(element_type=tensor.element_type, shape=tensor.shape)
    layer = _layer(number, name, operator, {"element_type": tensor.element_type, "shape": tensor.shape})
    layer.outputs = [Port(layer, 0, 0, is_output=True)]
    return layer


def result(number: int, name: str) -> Layer:
    """Return a Result."""
    layer = _layer(number, name, Result(), {})
    layer.inputs = [Port(layer, 0, 0, is_output=False)]
    return layer


def constant(number: int, name: str, operator: Const) -> Layer:
    """Return the layer of a constant."""
    layer = _layer(number, name, operator, constant_attributes(operator))
    layer.outputs = [Port(layer, 0, 0, is_output=True)]
    return layer


def constant_attributes(operator: Const) -> dict[str, Any]:
    """Return the attributes of a Const whose data is not in a file."""
    return {"element_type": operator.element_type, "shape": operator.shape}


def constant_operator(value: Any, like: ElementType | None) -> Const:
    """Return the operator for an array, or for numbers, which take the element type ``like``.

    Raises ValueError, TypeError or OverflowError for what is no tensor or does not fit the type.
    """
    return Const.of(*as_array_like(value, like))


def _layer(number: int, name: str, operator: Operator, attributes: Mapping[str, Any]) -> Layer:
    return Layer(number, name, operator.type, f"opset{operator.opset}", dict(attributes), operator)


# --------------------------------------------------------------------------- names


def free_name(wanted: str, taken: Container[str]) -> str:
    """Return the name, with a number if it is taken."""
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name


def name_tensors(ports: Iterable[Port], taken: set[str]) -> None:
    """Give each tensor without a name the name of its layer; ``taken`` has all names of tensors and gets the new ones.

    The outputs after the first one are numbered, as in ``split.1``.
    """
    for port in ports:
        if not port.own_names:
            name = free_name(default_name(port), taken)
            taken.add(name)
            port.own_names = frozenset({name})


def default_name(port: Port) -> str:
    """Return the name of an output that has none."""
    return f"{port.layer.name}.{port.index}" if port.index else port.layer.name


def result_name(port: Port) -> str:
    """Return the name that OpenVINO gives to the Result of a tensor."""
    return f"{port.any_name}/sink_port_{port.index}"
