"""The statements that create the layers of one model or body."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from ovir.build.arguments import REQUIRED, Argument, Kind, arguments_of, inputs_of
from ovir.build.code.literals import constant_arguments, literal
from ovir.build.code.opsets import Functions, version_of
from ovir.build.code.variables import Variables
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, f32
from ovir.diagnostics.codes import NO_WEIGHTS, UNFED_INPUT
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import ModelError
from ovir.graph.layers import Layer, Port
from ovir.graph.rt_info import RtInfo
from ovir.ops.base.operator import Operator
from ovir.ops.infrastructure import Const, Parameter

WIDTH = 110
_DROPPED = ("fused_names",)
"""Runtime information about the conversion of a layer, which nothing depends on."""


class Storage(Protocol):
    """Where large constants are kept."""

    def store(self, name: str, array: Array, element_type: ElementType) -> str:
        """Keep an array, and return the expression that loads it."""


class Statements:
    """Writes the statements for layers, with the names of their variables."""

    def __init__(self, functions: Functions, variables: Variables, storage: Storage) -> None:
        self.functions = functions
        self.variables = variables
        self.storage = storage

    def layer(self, layer: Layer) -> Iterator[str]:
        """Yield the statement that creates a layer."""
        version = version_of(layer)
        if version is None:
            function, arguments = "ovir.create_layer", self._generic(layer)
        else:
            function, arguments = self.functions.name(version), self._arguments(layer)
        name = self.variables.add(layer)
        yield assignment(name, function, [*arguments, *common_arguments(layer)])

    def source(self, port: Port) -> str:
        """Return the expression for the tensor that an input reads."""
        if port.source is None:
            message = f"no edge leads to input port {port.id}"
            raise ModelError(diagnose(UNFED_INPUT, message, port.place, port=port.id))
        return self.output(port.source)

    def output(self, port: Port) -> str:
        """Return the expression for an output."""
        name = self.variables[port.layer]
        is_only = port.index == 0 and not any(other.readers for other in port.layer.outputs[1:])
        return name if is_only else f"{name}[{port.index}]"

    # ----- arguments

    def _arguments(self, layer: Layer) -> list[str]:
        op = layer.operator
        assert op is not None
        if isinstance(op, Parameter):
            return list(_parameter(op, layer))
        if isinstance(op, Const):
            return self._constant(op, layer)
        return [*self._inputs(layer, op), *_attributes(op)]

    def _constant(self, op: Const, layer: Layer) -> list[str]:
        if not op.has_data:
            raise ModelError(diagnose(NO_WEIGHTS, "the data of this constant is missing", layer.place))
        array = op.data
        found = constant_arguments(array, op.element_type)
        if found is not None:
            return found
        stored = self.storage.store(layer.name, array, op.element_type)
        is_own = array.dtype.kind in "biuf" and ElementType.from_dtype(array.dtype) == op.element_type
        is_builtin = array.dtype.isbuiltin == 1
        return [stored, *([] if is_own and is_builtin else [literal(op.element_type)])]

    def _inputs(self, layer: Layer, op: Operator) -> Iterator[str]:
        """Yield the inputs: without their names as long as each follows the one before."""
        arguments = arguments_of(type(op))
        sources = [self.source(port) for port in layer.inputs]
        order = inputs_of(type(op))[0]
        if any(argument.kind is Kind.INPUTS for argument in arguments):
            yield from sources[: len(order)]
            yield f"[{', '.join(sources[len(order) :])}]"
            return
        values = dict(zip(order, sources, strict=False))
        in_row = True
        for index, argument in enumerate(arguments):
            is_input = argument.kind is Kind.INPUT
            if is_input and argument.source in values:
                in_row = in_row and arguments[index].is_keyword is False and _follows(arguments, index)
                yield values[argument.source] if in_row else f"{argument.name}={values[argument.source]}"
            elif is_input:
                in_row = False
                if argument.default is REQUIRED:
                    yield f"{argument.name}=None"

    def _generic(self, layer: Layer) -> list[str]:
        """Return the arguments of ``create_layer``."""
        found = [literal(layer.type), f"[{', '.join(map(self.source, layer.inputs))}]"]
        if layer.attributes:
            found.append(literal(layer.attributes))
        if layer.version != "extension":
            found.append(f"version={literal(layer.version)}")
        if layer.operator is None:
            outputs = ", ".join(f"({literal(p.element_type)}, {literal(p.shape)})" for p in layer.outputs)
            found.append(f"outputs=[{outputs}]")
        return found


def _parameter(op: Parameter, layer: Layer) -> Iterator[str]:
    yield literal(op.shape)
    if op.element_type != f32:
        yield literal(op.element_type)
    layout = layer.outputs[0].rt_info.get("layout")
    if isinstance(layout, RtInfo) and "layout" in layout:
        yield f"layout={literal(layout['layout'])}"


def _follows(arguments: Sequence[Argument], index: int) -> bool:
    """Return whether only inputs come before an argument."""
    return all(argument.kind is Kind.INPUT for argument in arguments[:index])


def _attributes(op: Operator) -> Iterator[str]:
    """Yield the attributes that differ from the defaults of the function."""
    for argument in arguments_of(type(op)):
        if argument.kind is Kind.ATTRIBUTES:
            values = {spec.name: getattr(op, spec.field) for spec in op.attributes.values()}
            values = {name: value for name, value in values.items() if value != op.attributes[name].default}
            if values or argument.default is REQUIRED:
                yield f"{argument.name}={literal(values)}"
        elif argument.attribute is not None:
            value = getattr(op, argument.source)
            default = argument.attribute.default if argument.default is None else argument.default
            if default is REQUIRED or value != default:
                yield f"{argument.name}={literal(value) if argument.attribute.allows(value) else None}"


# --------------------------------------------------------------------------- what all functions have


def common_arguments(layer: Layer) -> Iterator[str]:
    """Yield the name of a layer, the names of its tensors and its runtime information."""
    yield f"name={literal(layer.name)}"
    names = tensor_names(layer)
    if names is not None and not layer.bodies:  # which has its outputs later
        yield f"tensor_names={literal(names)}"
    if info := kept_info(layer):
        yield f"rt_info={literal(info)}"


def tensor_names(layer: Layer) -> Any:
    """Return the names of the output tensors as ``tensor_names`` takes them; a Result has its own at its input."""
    found: list[Any] = [_names(port.own_names) for port in layer.outputs]
    if not layer.outputs:
        found = [_names(port.own_names - port.source.own_names) for port in layer.inputs[:1] if port.source is not None]
    while found and found[-1] is None:
        found.pop()
    if len(found) == 1:
        return found[0]
    return found or None


def _names(names: frozenset[str]) -> str | frozenset[str] | None:
    return next(iter(names)) if len(names) == 1 else names or None


def kept_info(layer: Layer) -> dict[str, Any]:
    """Return the runtime information that matters for what the layer means, as ``rt_info`` takes it."""
    found: dict[str, Any] = {}
    for element in layer.rt_info.elements[1:]:
        attributes = dict(element.attributes)
        name = attributes.pop("name", "")
        if element.depth == 1 and element.tag == "attribute" and name and name not in _DROPPED:
            if attributes.get("version") == "0":
                del attributes["version"]
            found[name] = attributes.get("value", "") if attributes.keys() <= {"value"} else attributes
    return found


def assignment(name: str, function: str, arguments: Sequence[str]) -> str:
    """Return the statement ``name = function(arguments)``, in several lines if it is long."""
    start = f"{name} = {function}(" if name else f"{function}("
    line = f"{start}{', '.join(arguments)})"
    if len(line) <= WIDTH:
        return line
    lines: list[str] = [""]
    for argument in arguments:
        if lines[-1] and len(lines[-1]) + len(argument) + 2 > WIDTH - 4:
            lines.append("")
        lines[-1] += f"{' ' if lines[-1] else ''}{argument},"
    return "\n".join([start, textwrap.indent("\n".join(lines), "    "), ")"])
