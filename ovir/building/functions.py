"""The functions that create layers, one for each operation version of an opset."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ovir import ops
from ovir.building.arguments import REQUIRED, Argument, Kind, arguments_of, has_bodies, signature_of
from ovir.building.bodies import IfLayer, IterationLayer, LoopLayer
from ovir.building.creation import (
    Call,
    Options,
    constant_port,
    create,
    listed_inputs,
    ports_of,
    rt_info_of,
    type_attributes,
)
from ovir.building.values import Info, Shape, TensorNames, Type, as_array, as_attribute, as_element_type
from ovir.core.element_types import ElementType
from ovir.core.shapes import as_shape
from ovir.diagnostics.wording import did_you_mean
from ovir.graph.layers import Layer, Port
from ovir.ops.base.attributes import Attribute
from ovir.ops.base.operator import Operator
from ovir.ops.base.traits import input_signature
from ovir.ops.infrastructure import Const, Parameter

Function = Callable[..., Layer]
Attributes = dict[str, tuple[Attribute, Any]]
"""Attributes of a call by their names in files, with their values."""
LAYER_CLASSES: dict[str, type[Layer]] = {"If": IfLayer, "Loop": LoopLayer, "TensorIterator": IterationLayer}
"""The classes of layers with bodies, whose methods add the bodies, inputs and outputs."""


def make_function(opset: int, name: str, type_name: str, birth: int) -> Function:
    """Return the function that creates layers of an operation version."""
    cls = ops.find(type_name, birth)
    assert cls is not None, type_name
    path = f"opset{opset}.{name}"
    function = handwritten(cls, path) or _derived(cls, path)
    function.__name__ = function.__qualname__ = name
    function.__module__ = f"ovir.opset{opset}"
    function.__doc__ = documentation(cls)
    return function


def documentation(cls: type[Operator]) -> str:
    """Return the docstring of the function: the docstring of the operation's class without its source."""
    text, _, source = inspect.cleandoc(cls.__doc__ or "").rpartition("Source:")
    shown = " The example shows its values." if ">>> " in text + source else ""
    return f"{(text or source).strip()}\n\nCreate {cls.type} of opset{cls.opset}.{shown}"


def _derived(cls: type[Operator], path: str) -> Function:
    creator = _Creator(cls, path)

    def function(*args: Any, **keywords: Any) -> Layer:
        return creator.layer(args, keywords)

    function.__signature__ = creator.signature  # type: ignore[attr-defined]
    return function


class _Creator:
    """Creates the layers of one operation version from the arguments of calls."""

    def __init__(self, cls: type[Operator], path: str) -> None:
        self.cls = cls
        self.path = path
        self.arguments = arguments_of(cls)
        self.layer_class = LAYER_CLASSES.get(cls.type, Layer)
        self.signature = signature_of(self.arguments, ["rt_info"] if has_bodies(cls) else ["tensor_names", "rt_info"])
        self.inputs = [argument for argument in self.arguments if argument.kind is Kind.INPUT]
        expected = input_signature(cls)
        self.inputs.sort(key=lambda argument: expected.names.index(argument.source))
        self.required = sum(argument.default is REQUIRED for argument in self.inputs[: expected.required])

    def layer(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> Layer:
        """Return a new layer; raise TypeError for arguments that the signature does not have."""
        if self.cls.type == "ReadValue" and args and isinstance(args[0], str):
            args = (None, *args)  # without an initial value, the id comes first
        for name in keywords.keys() - self.signature.parameters.keys():
            hint = did_you_mean(name, self.signature.parameters)
            message = f"{self.path}{self.signature}: got an unexpected keyword argument '{name}'"
            raise TypeError(f"{message}; {hint}" if hint else message)
        try:
            given = self.signature.bind(*args, **keywords).arguments
        except TypeError as error:
            raise TypeError(f"{self.path}{self.signature}: {error}") from None
        call = Call(self.path, given)
        attributes = self._attributes(call)
        return create(
            call,
            self.cls.from_parsed({spec.field: value for spec, value in attributes.values()}),
            self._sources(call),
            {name: value for name, (_, value) in attributes.items()},
            Options(given.get("name"), given.get("tensor_names"), given.get("rt_info")),
            kind=self.layer_class,
        )

    # ----- inputs

    def _sources(self, call: Call) -> list[Port]:
        more = [argument for argument in self.arguments if argument.kind is Kind.INPUTS]
        if more:
            listed = listed_inputs(call, more[0].name, call.arguments[more[0].name])
            names = [a.name for a in self.inputs]
            values = [*(call.arguments[name] for name in names), *listed]
            names += [f"{more[0].name}[{index}]" for index in range(len(listed))]
            return list(ports_of(call, self.cls, names, values).values())
        values = [call.arguments.get(argument.name) for argument in self.inputs]
        while len(values) > self.required and values[-1] is None:
            values.pop()
        names = [argument.name for argument in self.inputs[: len(values)]]
        ports = ports_of(call, self.cls, names, values, self.required)
        for index in range(len(values)):
            if index not in ports:
                ports[index] = self._filler(call, index, len(values) - 1, ports)
        return [ports[index] for index in range(len(values))]

    def _filler(self, call: Call, index: int, later: int, ports: Mapping[int, Port]) -> Port:
        """Return the constant in place of an input that is left out although a later one is given."""
        argument = self.inputs[index]
        filler = next(((value, like) for name, value, like in self.cls.fillers if name == argument.source), None)
        if filler is None:
            call.fail(f"argument '{argument.name}' is missing, which comes before '{self.inputs[later].name}'")
        value, like = filler
        same = next((ports.get(i) for i, a in enumerate(self.inputs) if a.source == like), None)
        return constant_port(call, argument.name, value, ElementType.parse(like) if same is None else same.element_type)

    # ----- attributes

    def _attributes(self, call: Call) -> Attributes:
        found: Attributes = {}
        for argument in self.arguments:
            value = call.arguments.get(argument.name, argument.default)
            if argument.kind is Kind.ATTRIBUTES:
                found.update(self._from_dictionary(call, argument, value))
            elif argument.attribute is not None:
                _add(call, found, argument.name, argument.attribute, value, is_given=not argument.is_keyword)
        for spec in self.cls.required_attributes:
            if spec.name not in found:
                name = next((a.name for a in self.arguments if a.source == spec.field), spec.name)
                call.fail(f"argument '{name}' is missing")
        return found

    def _from_dictionary(self, call: Call, argument: Argument, value: Any) -> Attributes:
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            call.fail(f"argument '{argument.name}': expected a dictionary of attributes, got {value!r}")
        specs = self.cls.attributes
        by_name = {**{spec.field: spec for spec in specs.values()}, **specs}
        found: Attributes = {}
        for key, item in value.items():
            if key not in by_name:
                hint = f"its attributes are {', '.join(specs)}"
                call.fail(f"argument '{argument.name}': {self.cls.type} has no attribute {key!r}", hint=hint)
            _add(call, found, f"{argument.name}[{key!r}]", by_name[key], item)
        return found


def _add(call: Call, found: Attributes, label: str, spec: Attribute, value: Any, *, is_given: bool = True) -> None:
    """Add an attribute, unless its value is None, which stands for the default, or an empty default."""
    if value is None or value is REQUIRED or (not is_given and value == spec.default):
        return
    try:
        typed = as_attribute(spec, value)
    except (ValueError, TypeError) as error:
        call.fail(f"argument '{label}': {error}")
    if typed != spec.default or (is_given and typed not in ((), "")):
        found[spec.name] = spec, typed


# --------------------------------------------------------------------------- Parameter and Const


def handwritten(cls: type[Operator], path: str) -> Callable[..., Layer] | None:
    """Return the function for an operation that has its own here; None if it is derived from the class."""
    maker = _MAKERS.get(cls.type)
    return maker(cls, path) if maker is not None else None


def _parameter(cls: type[Operator], path: str) -> Callable[..., Layer]:
    def parameter(
        shape: Shape,
        dtype: Type = "f32",
        name: str | None = None,
        *,
        layout: str | None = None,
        tensor_names: TensorNames | None = None,
        rt_info: Info | None = None,
    ) -> Layer:
        call = Call(path, {"shape": shape, "dtype": dtype, "name": name})
        try:
            op = Parameter(element_type=as_element_type(dtype), shape=as_shape(shape))
        except (ValueError, TypeError) as error:
            call.fail(str(error))
        layer = create(call, op, (), type_attributes(op), Options(name, tensor_names, rt_info))
        if layout is not None:
            text = layout if layout.startswith("[") else f"[{','.join(re.findall(r'[.]{3}|.', layout))}]"
            layer.outputs[0].rt_info = rt_info_of(call, {"layout": {"layout": text}})
        return layer

    return parameter


def _constant(cls: type[Operator], path: str) -> Callable[..., Layer]:
    def constant(
        value: Any,
        dtype: Type | None = None,
        name: str | None = None,
        *,
        shared_memory: bool = False,
        tensor_names: TensorNames | None = None,
        rt_info: Info | None = None,
    ) -> Layer:
        call = Call(path, {"value": value, "dtype": dtype, "name": name})
        try:
            array, element_type = as_array(value, None if dtype is None else as_element_type(dtype))
        except (ValueError, TypeError, OverflowError) as error:
            call.fail(str(error))
        op = Const.of(array, element_type, copy=not shared_memory)
        return create(call, op, (), type_attributes(op), Options(name, tensor_names, rt_info))

    return constant


_MAKERS: dict[str, Callable[[type[Operator], str], Callable[..., Layer]]] = {
    "Const": _constant,
    "Parameter": _parameter,
}
