"""Creates layers: with ``create`` from an operation, the ports that it reads and its attributes.

Such a layer belongs to no model, and is inferred at once. The layers of ``new_parameter`` and the like are for models
that exist: they have the ids and names given, and are not inferred.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from ovir import ops
from ovir.building.values import (
    Info,
    Shape,
    Tensor,
    TensorNames,
    Type,
    as_array,
    as_attribute,
    as_element_type,
    is_plain,
)
from ovir.core.arrays import integer_text
from ovir.core.element_types import ElementType
from ovir.core.shapes import as_shape
from ovir.core.tensor_types import TensorType, array_text
from ovir.diagnostics.codes import USAGE, Code
from ovir.diagnostics.diagnostic import caller, diagnose, stood_for
from ovir.diagnostics.errors import Diagnostics, InputError, ModelError
from ovir.graph.layers import Layer, Port, attach, set_arithmetic
from ovir.graph.rt_info import RtElement, RtInfo
from ovir.inference.engines import ComparingEngine
from ovir.ops.base import opsets
from ovir.ops.base.operator import Operator
from ovir.ops.base.traits import ALL, input_names
from ovir.ops.infrastructure import Const, Parameter, Result

_numbers = itertools.count()
"""The ids of layers that are in no model; a model numbers its layers anew, in this order."""


@dataclass
class Call:
    """A call of a function, for messages."""

    function: str
    arguments: Mapping[str, Any]

    def fail(self, message: str, code: Code = USAGE, hint: str | None = None) -> NoReturn:
        """Raise InputError at the line of the caller."""
        raise InputError(diagnose(code, message, replace(caller(), layer=str(self)), hint=hint))

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={_shown(value)}" for name, value in self.arguments.items() if value is not None)
        return f"{self.function}({shown})"


def _shown(value: Any) -> str:
    """Return an argument for a message: the type of a tensor, or the value of another argument."""
    if isinstance(value, Layer):
        return ", ".join(str(port.type) for port in value.outputs[:1]) or value.type
    if isinstance(value, Port):
        return str(value.type)
    if isinstance(value, np.ndarray) and value.ndim:
        return array_text(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_shown, value))}]"
    return integer_text(value) if type(value) is int else repr(value)


# --------------------------------------------------------------------------- layers


@dataclass(frozen=True)
class Options:
    """The arguments of every function besides inputs and attributes."""

    name: str | None = None
    tensor_names: TensorNames | None = None
    rt_info: Info | None = None


def create(
    call: Call,
    op: Operator | None,
    sources: Iterable[Port],
    attributes: Mapping[str, Any],
    options: Options = Options(),  # it is immutable
    *,
    operation: tuple[str, str] | None = None,
    outputs: Sequence[TensorType] = (),
    kind: type[Layer] = Layer,
) -> Layer:
    """Return a new layer that reads these ports and belongs to no model, with its outputs inferred.

    ``attributes`` are those that a file would give, and ``operation`` has the type and version there, if they are not
    those of ``op``. A layer without ``op`` has ``outputs`` of these types. A layer with bodies is inferred later, when
    it has them. Raises ModelError, at the line of the caller, if inference fails.
    """
    if operation is None:
        assert op is not None
        operation = op.type, f"opset{op.opset}"
    layer = _new_layer(call, kind, operation, attributes, options)
    layer.operator = op
    for source in sources:
        add_input(layer, source)
    for index, tensor in enumerate(outputs):
        port = Port(layer, index, len(layer.inputs) + index, True, tensor.shape, tensor.element_type)
        layer.outputs.append(port)
    if kind is Layer:
        infer(layer, call)
        _name_tensors(call, layer, options.tensor_names)
    return layer


def _new_layer(
    call: Call, kind: type[Layer], operation: tuple[str, str], attributes: Mapping[str, Any], options: Options
) -> Layer:
    if options.name is not None and not isinstance(options.name, str):
        call.fail(f"argument 'name': expected a text, got {options.name!r}")
    place = caller()
    layer = kind(next(_numbers), options.name or "", *operation, dict(attributes))
    layer.line, layer.file = place.line, place.file
    if options.rt_info is not None:
        layer.rt_info_source = rt_info_of(call, options.rt_info)
    return layer


def add_input(layer: Layer, source: Port) -> None:
    """Add an input port that reads ``source``, which does not list it as a reader before the layer is in a model."""
    port = Port(layer, len(layer.inputs), len(layer.inputs), False)
    attach(source, port)
    layer.inputs.append(port)


def infer(layer: Layer, call: Call) -> None:
    """Infer the outputs of a layer; ModelError at the line of the caller."""
    diagnostics = Diagnostics()
    ComparingEngine(diagnostics, 11).infer_layer(layer, is_body=False)
    for port in layer.outputs:
        port.id = len(layer.inputs) + port.index
    if errors := diagnostics.fatal:
        place = caller()
        text = str(call)
        raise ModelError(*(replace(d, file=place.file, line=place.line, layer=text) for d in errors))


def _name_tensors(call: Call, layer: Layer, names: TensorNames | None) -> None:
    """Set the names of the tensors; a Result has them at its input."""
    if names is None:
        return
    ports = layer.outputs or layer.inputs
    items = [names] if isinstance(names, (str, set, frozenset)) else list(names)
    if len(items) > len(ports):
        hint = "an item of a list names one tensor; [{'a', 'b'}] gives the first tensor two names"
        message = f"argument 'tensor_names': names for {len(items)} tensors, but the layer has {len(ports)}"
        call.fail(message, hint=hint)
    for port, own in zip(ports, items, strict=False):
        given = [own] if isinstance(own, str) else list(own or ())
        if not all(isinstance(text, str) and text for text in given):
            call.fail(f"argument 'tensor_names': expected texts, got {own!r}")
        port.names = frozenset(given)


def rt_info_of(call: Call, info: Info) -> RtInfo:
    """Return the runtime information for a dictionary, which has a value or a dictionary of XML attributes for each
    name."""
    elements = [RtElement(0, "rt_info")]
    for name, value in info.items():
        own = value if isinstance(value, Mapping) else {"value": value} if value else {}
        if not all(isinstance(text, str) for item in own.items() for text in item):
            call.fail(f"argument 'rt_info': expected texts for {name!r}, got {value!r}")
        elements.append(RtElement(1, "attribute", (("name", name), ("version", "0"), *own.items())))
    return RtInfo(tuple(elements))


# --------------------------------------------------------------------------- inputs


def port_of(call: Call, argument: str, value: Layer | Port) -> Port:
    """Return the output port that a layer or port stands for: the first output of a layer."""
    if isinstance(value, Port):
        source = value if value.is_output else value.source
    else:
        source = value.outputs[0] if value.outputs else None
    if source is None:
        owner = value.layer if isinstance(value, Port) else value
        call.fail(f"argument '{argument}': {owner.type} has no output that can be read")
    return source


def listed_inputs(call: Call, argument: str, given: Any) -> list[Any]:
    """Return the items of a list of inputs; a layer in its place stands for all of its outputs."""
    if not isinstance(given, (Sequence, Layer)) or isinstance(given, str):
        call.fail(f"argument '{argument}': expected a list of layers, got {given!r}")
    return list(given)


def constant_port(
    call: Call, argument: str, value: Any, element_type: ElementType | None, *, copy: bool = True
) -> Port:
    """Return the output of a new constant."""
    try:
        array, own = as_array(value, element_type)
    except (ValueError, TypeError, OverflowError) as error:
        call.fail(f"argument '{argument}': {error}")
    op = Const.of(array, own, copy=copy)
    return create(call, op, (), type_attributes(op)).outputs[0]


def ports_of(
    call: Call, cls: type[Operator], names: Sequence[str], values: Sequence[Any], required: int | None = None
) -> dict[int, Port]:
    """Return the output ports for the first inputs, by position; arrays and numbers become constants.

    Numbers and lists take the element type of another input where the operation needs equal ones. Otherwise fractions
    take the type of the first input of a floating-point type, and integers are i64. None gives no port, and is an error
    among the ``required`` first inputs, which are all by default.
    """
    for name, value in zip(names[:required], values, strict=False):
        if value is None:
            call.fail(f"argument '{name}': expected a layer, a port, an array or a number, got None")
    values = [float(value) if isinstance(value, float) else value for value in values]  # np.float64 is a float, too
    known: dict[int, Port] = {}
    for index, (name, value) in enumerate(zip(names, values, strict=True)):
        if isinstance(value, (Layer, Port)):
            known[index] = port_of(call, name, value)
        elif value is not None and not is_plain(value):
            known[index] = constant_port(call, name, value, None)
    made = {
        index: constant_port(call, name, value, _type_of_number(cls, index, value, known))
        for index, (name, value) in enumerate(zip(names, values, strict=True))
        if value is not None and index not in known
    }
    return dict(sorted((known | made).items()))


def _type_of_number(cls: type[Operator], index: int, value: Any, known: Mapping[int, Port]) -> ElementType | None:
    """Return the element type for a number or a list; None for the one that Python's numbers have."""
    same = cls.same_types
    if same == ALL or index in same:
        types = [port.element_type for place, port in known.items() if same == ALL or place in same]
        found = next((element_type for element_type in types if not element_type.is_dynamic), None)
        if found is not None:
            return found
    if _has_fractions(value):
        return next((port.element_type for port in known.values() if port.element_type.is_real), None)
    return None


def _has_fractions(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_fractions, value))
    return isinstance(value, float)


# --------------------------------------------------------------------------- layers of any operation


def apply(type_name: str, *operands: Any) -> Layer:
    """Return a layer of the newest version of an operation without required attributes."""
    birth = max(opsets.OPERATIONS[type_name])
    cls = ops.find(type_name, birth)
    assert cls is not None
    names = ("a", "b")[: len(operands)]
    call = Call(type_name, dict(zip(names, operands, strict=True)))
    return create(call, cls(), ports_of(call, cls, names, operands).values(), {})


set_arithmetic(apply)


def create_layer(
    type: str,  # as Layer.type
    inputs: Layer | Sequence[Tensor] = (),
    attributes: Mapping[str, Any] | None = None,
    *,
    version: str = "extension",
    outputs: Sequence[tuple[Type, Shape]] | None = None,
    name: str | None = None,
    tensor_names: TensorNames | None = None,
    rt_info: Info | None = None,
) -> Layer:
    """Create a layer of any operation, such as one that ``ovir.register`` has added.

    A file would name ``type`` and ``version`` in the same way. ``inputs`` are layers, which stand for their first
    output, output ports, arrays or numbers; a layer in place of the list stands for all of its outputs.
    ``attributes`` have the names and values that a file would give; values may be strings. For an operation that ovir
    does not know, ``outputs`` has element type and shape of each output. The functions of the opsets (``from ovir
    import opset13``) do the same for their operations.

    Raises ModelError if the operation refuses the types, shapes or attributes, and InputError for arguments that no
    layer can have.
    """
    call = Call("create_layer", {"type": type, "inputs": inputs, "attributes": attributes, "version": version})
    listed = listed_inputs(call, "inputs", inputs)
    cls = ops.resolve(type, version)
    options = Options(name, tensor_names, rt_info)
    given = dict(attributes or {})
    if cls is None:
        if outputs is None:
            why = f"no operation {type} of {version} is registered"
            if not opsets.is_extension(type, version):
                why = opsets.why_unresolved(type, version)[0]
            call.fail(f"{why}: its 'outputs' must be given")
        try:
            types = [TensorType(as_element_type(element_type), as_shape(shape)) for element_type, shape in outputs]
        except ValueError as error:
            call.fail(f"argument 'outputs': {error}")
        ports = _ports(call, listed)
        return create(call, None, ports, given, options, operation=(type, version), outputs=types)
    names = [*input_names(cls), *(f"input {index}" for index in range(len(listed)))][: len(listed)]
    sources = ports_of(call, cls, names, listed)
    values = {name: _value(call, cls, name, value) for name, value in given.items()}
    missing = [spec.name for spec in cls.required_attributes if spec.name not in values]
    if missing:
        call.fail(f"attribute '{missing[0]}' is missing")
    op = cls.from_parsed({cls.attributes[name].field: value for name, value in values.items()})
    return create(call, op, sources.values(), values, options, operation=(op.type, version))


def _ports(call: Call, inputs: Sequence[Tensor]) -> list[Port]:
    named = ((f"inputs[{index}]", value) for index, value in enumerate(inputs))
    return [
        port_of(call, name, value) if isinstance(value, (Layer, Port)) else constant_port(call, name, value, None)
        for name, value in named
    ]


def _value(call: Call, cls: type[Operator], name: str, value: Any) -> Any:
    spec = cls.attributes.get(name)
    if spec is None:
        call.fail(f"{cls.type} has no attribute {name!r}", hint=f"its attributes are {', '.join(cls.attributes)}")
    try:
        return spec.parse(value) if isinstance(value, str) else as_attribute(spec, value)
    except (ValueError, TypeError) as error:
        call.fail(f"attribute '{name}': {error}")


# --------------------------------------------------------------------------- layers for a model that exists


def new_parameter(number: int, name: str, tensor: TensorType) -> Layer:
    """Return a Parameter of an inferred type."""
    operator = Parameter(element_type=tensor.element_type, shape=tensor.shape)
    return _unconnected(number, name, operator, type_attributes(operator))


def new_result(number: int, name: str) -> Layer:
    """Return a Result."""
    return _unconnected(number, name, Result(), {}, inputs=1, has_output=False)


def new_constant(number: int, name: str, operator: Const) -> Layer:
    """Return the layer of a constant."""
    return _unconnected(number, name, operator, type_attributes(operator))


def type_attributes(operator: Const | Parameter) -> dict[str, Any]:
    """Return the attributes of a Parameter, or of a Const whose data is not in a file."""
    return {"element_type": operator.element_type, "shape": operator.shape}


def new_operation(number: int, name: str, kind: str, inputs: int, opset: int = 1, **attributes: Any) -> Layer:
    """Return a layer of an operation with one output, whose attributes have the same names as in files."""
    cls = ops.find(kind, opset)
    assert cls is not None
    return _unconnected(number, name, cls(**attributes), attributes, inputs=inputs)


def _unconnected(
    number: int,
    name: str,
    operator: Operator,
    attributes: Mapping[str, Any],
    *,
    inputs: int = 0,
    has_output: bool = True,
) -> Layer:
    layer = Layer(number, name, operator.type, f"opset{operator.opset}", dict(attributes), operator)
    layer.inputs = [Port(layer, index, index, is_output=False) for index in range(inputs)]
    if has_output:
        layer.outputs = [Port(layer, 0, inputs, is_output=True)]
    if (place := stood_for()) is not None:
        layer.line, layer.file = place.line, place.file
    return layer
