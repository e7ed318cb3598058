"""Creates layers by type and version: also of operations that no opset has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ovir import ops
from ovir.build.creation import Call, Options, constant, create, create_unknown, port_of, ports_of
from ovir.build.types import Info, Shape, Tensor, TensorNames, Type
from ovir.build.values import as_attribute, as_element_type
from ovir.core.shapes import as_shape
from ovir.core.tensor_types import TensorType
from ovir.graph.layers import Layer, Port
from ovir.ops.base import opsets
from ovir.ops.base.operator import Operator
from ovir.ops.base.traits import input_names


def create_layer(
    type: str,  # as Layer.type
    inputs: Sequence[Tensor] = (),
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
    output, output ports, arrays or numbers. ``attributes`` have the names and values that a file would give; values may
    be texts. For an operation that ovir does not know, ``outputs`` has element type and shape of each output. The
    functions of the opsets (``from ovir import opset13``) do the same for their operations.

    Raises ModelError if the operation refuses the types, shapes or attributes, and InputError for arguments that no
    layer can have.
    """
    call = Call("create_layer", {"type": type, "inputs": list(inputs), "attributes": attributes, "version": version})
    cls = ops.resolve(type, version)
    options = Options(name, tensor_names, rt_info)
    given = dict(attributes or {})
    if cls is None:
        if outputs is None:
            why = f"no operation {type} of {version} is registered"
            if not opsets.is_extension(type, version):
                why = opsets.why_unresolved(type, version)[0]
            call.fail(f"{why}: its 'outputs' must be given")
        types = [_tensor_type(call, *item) for item in outputs]
        return create_unknown(call, (type, version), _ports(call, inputs), given, types, options)
    names = [*input_names(cls), *(f"input {index}" for index in range(len(inputs)))][: len(inputs)]
    sources = ports_of(call, cls, names, list(inputs))
    values = {name: _value(call, cls, name, value) for name, value in given.items()}
    missing = [spec.name for spec in cls.required_attributes if spec.name not in values]
    if missing:
        call.fail(f"attribute '{missing[0]}' is missing")
    op = cls.from_parsed({cls.attributes[name].field: value for name, value in values.items()})
    return create(call, op, sources.values(), values, options, version=version)


def _tensor_type(call: Call, element_type: Type, shape: Shape) -> TensorType:
    try:
        return TensorType(as_element_type(element_type), as_shape(shape))
    except ValueError as error:
        call.fail(f"argument 'outputs': {error}")


def _ports(call: Call, inputs: Sequence[Tensor]) -> list[Port]:
    names = [f"inputs[{index}]" for index in range(len(inputs))]
    return [
        port_of(call, name, value) if isinstance(value, (Layer, Port)) else constant(call, name, value, None)
        for name, value in zip(names, inputs, strict=True)
    ]


def _value(call: Call, cls: type[Operator], name: str, value: Any) -> Any:
    spec = cls.attributes.get(name)
    if spec is None:
        call.fail(f"{cls.type} has no attribute {name!r}", hint=f"its attributes are {', '.join(cls.attributes)}")
    try:
        return spec.parse(value) if isinstance(value, str) else as_attribute(spec, value)
    except (ValueError, TypeError) as error:
        call.fail(f"attribute '{name}': {error}")
