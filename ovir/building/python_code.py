"""Python code that builds a model that exists, and the file of its large constants."""

from __future__ import annotations

import builtins
import keyword
import math
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from ovir.building.arguments import REQUIRED, Kind, arguments_of
from ovir.building.opset import functions
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, boolean, f32, i64, string
from ovir.core.shapes import Dimension, PartialShape
from ovir.diagnostics.codes import BODY, NO_WEIGHTS, UNFED_INPUT
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import ModelError
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port
from ovir.graph.names import TakenNames, take_name
from ovir.graph.rt_info import RtInfo
from ovir.ops.base.bodies import BodyMap, Entry, InputMap
from ovir.ops.base.operator import Operator
from ovir.ops.base.opsets import NEWEST_OPSET, OPERATIONS, Version
from ovir.ops.base.traits import input_names, input_signature
from ovir.ops.control_flow import by_output
from ovir.ops.infrastructure import Const, Parameter
from ovir.system.progress import counted


class Program:
    """The code for a model."""

    def __init__(self, model: LayerGraph, weights_file: str | None = None) -> None:
        """Write the code; constants without data are read from ``weights_file``, the name of a .bin beside the code,
        when the code runs."""
        self.arrays: dict[str, Array] = {}
        """The large constants by their names in the .npz."""
        self._file = weights_file
        self._keys = TakenNames(("file", "allow_pickle"))  # arguments of np.savez
        self._functions = Functions(model.walk())
        opsets = {f"opset{number}" for number in range(1, NEWEST_OPSET + 1)}
        self._taken = TakenNames(("Path", "model", "np", "ops", "ovir", "weights", *opsets))
        """All names in the code, so that no function hides a name of the module."""
        self._bodies: list[str] = []
        body = list(self._statements(model, Variables(self._taken), "model = "))
        end = ["weights.close()"] if self.arrays else []
        statements = [*self._bodies, *([""] if self._bodies else []), *body, *end]
        self.text = "\n".join([*self._head(model, statements), *statements, ""])

    def store(self, name: str, array: Array, element_type: ElementType) -> str:
        """Keep a large constant, and return the expression that loads it."""
        key = take_name(identifier(name), self._keys)
        self.arrays[key] = as_stored(array, element_type)
        return f'weights["{key}"]'

    def from_file(self, op: Const) -> str | None:
        """Return the expression that reads a constant from the .bin; None if there is none, or if it is packed."""
        if self._file is None or op.element_type == string or op.is_packed:
            return None
        name = op.element_type.to_dtype().name
        return f'weights[{op.offset}:{op.offset + op.size}].view("{name}").reshape({op.shape!r})'

    def _head(self, model: LayerGraph, statements: Sequence[str]) -> Iterator[str]:
        name = literal(model.name)
        can_be_quoted = model.name and '"""' not in name and "\\" not in name
        yield f'"""Build the model {name}."""' if can_be_quoted else '"""Build a model."""'
        yield ""
        if self.arrays or self._file:
            yield from ("from pathlib import Path", "")
        if self.arrays or self._file or any("np." in line for line in statements):
            yield from ("import numpy as np", "")
        yield from ("import ovir", *self._functions.imports, "")
        if self.arrays:
            yield from ('weights = np.load(Path(__file__).with_suffix(".npz"))', "")
        if self._file:
            yield f"# The constants are in {literal(self._file)}, which was not read when this code was written."
            yield from (f"weights = np.fromfile(Path(__file__).with_name({literal(self._file)}), np.uint8)", "")

    def _statements(self, model: LayerGraph, variables: Variables, start: str) -> Iterator[str]:
        """Yield the statements that create the layers of a model or body, and the model."""
        statements = Statements(self._functions, variables, self)
        alive = [layer for layer in model.layers if not layer.is_dead or layer.type == "Parameter"]
        for layer in counted("writing code", alive):
            if layer.bodies:
                yield from self._with_bodies(layer, statements)
            else:
                yield from statements.layer(layer)
        results = [variables[port.layer] for port in model.outputs]
        parameters = [variables[port.layer] for port in model.inputs]
        sinks = [variables[layer] for layer in alive if layer.type == "Assign"]
        lists = [f"[{', '.join(names)}]" for names in (results, *([sinks] if sinks else []), parameters)]
        yield assignment("", f"{start}ovir.Model", [*lists, *([literal(model.name)] if model.name else [])])

    def _with_bodies(self, layer: Layer, statements: Statements) -> Iterator[str]:
        name = statements.variables.add(layer)
        bodies = {}
        for key, body in layer.bodies.items():
            function = take_name(f"make_{name}_{key}".removesuffix("_body") + "_body", self._taken)
            lines = list(self._statements(body, Variables(self._taken), "return "))
            text = textwrap.indent("\n".join(lines), "    ")
            self._bodies.extend(["", f"def {function}() -> ovir.Model:", text, ""])
            bodies[key] = take_name(f"{name}_{key}", self._taken)
            yield f"{bodies[key]} = {function}()"
        sources = [statements.source(port) for port in layer.inputs]
        version, op = version_of(layer), layer.operator
        assert version is not None
        assert op is not None
        own = sources[: input_signature(type(op)).required]  # methods add the others
        arguments = [*own, *common_arguments(layer)]
        yield assignment(name, statements.functions.name(version), arguments)
        wiring = op.wiring
        if layer.type == "If":
            yield from _branches(name, bodies, sources, wiring)
        else:
            yield from _iterations(layer, name, bodies["body"], sources, wiring["body"])
        for port in layer.outputs:
            if port.own_names:
                yield f"{name}[{port.index}].names = {literal(port.own_names)}"


# --------------------------------------------------------------------------- names of functions and variables


def version_of(layer: Layer) -> Version | None:
    """Return the version of a layer's operation; None if no opset has it."""
    op = layer.operator
    return OPERATIONS[op.type][op.opset] if op is not None and op.opset else None


class Functions:
    """The functions for the operation versions of a model.

    Most are from one opset, the oldest of those that have the most of them; the others are from the oldest opset that
    has them.
    """

    def __init__(self, layers: Iterable[Layer]) -> None:
        counts = Counter(version for layer in layers if (version := version_of(layer)) is not None)
        held = {opset: set(functions(opset).values()) for opset in range(1, NEWEST_OPSET + 1)}
        self.main = max(held, key=lambda opset: (sum(n for v, n in counts.items() if v in held[opset]), -opset))
        self._main = held[self.main]
        self.others = sorted({version.opset for version in counts if version not in self._main})

    def name(self, version: Version) -> str:
        """Return the function for an operation version, with its module."""
        module = "ops" if version in self._main else f"opset{version.opset}"
        return f"{module}.{version.functions[0]}"

    @property
    def imports(self) -> list[str]:
        """Return the lines that import the modules."""
        others = f"from ovir import {', '.join(f'opset{opset}' for opset in self.others)}" if self.others else ""
        return [*([others] if others else []), f"from ovir import opset{self.main} as ops"]


_LONGEST_NAME = 40
"""The most characters of the name of a variable."""


class Variables(dict[Layer, str]):
    """The variables of one function, or of the module; each new name is added to the set of those that are taken."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken

    def add(self, layer: Layer) -> str:
        """Return a new name for the result of a layer."""
        self[layer] = name = take_name(identifier(layer.name or layer.type), self._taken)
        return name


def identifier(text: str) -> str:
    """Return a short name of a variable, in snake case, that is made of the end of a string."""
    text = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[0-9])(?=[A-Z][a-z])", "_", text).lower()
    words = [word for word in re.split(r"[^0-9a-z]+", text) if word]
    kept: list[str] = []
    while words and sum(map(len, kept)) + len(kept) + len(words[-1]) <= _LONGEST_NAME:
        kept.insert(0, words.pop())
    name = "_".join(kept) or (words[-1][:_LONGEST_NAME] if words else "layer")
    name = f"_{name}" if name[0].isdigit() else name
    return f"{name}_" if keyword.iskeyword(name) or keyword.issoftkeyword(name) or hasattr(builtins, name) else name


# --------------------------------------------------------------------------- statements

WIDTH = 110
"""The longest line of the code, as far as it can be broken."""
_DROPPED = ("fused_names",)
"""Runtime information about the conversion of a layer, which nothing depends on."""


class Statements:
    """Writes the statements for the layers of a model or body, with the names of their variables."""

    def __init__(self, functions: Functions, variables: Variables, program: Program) -> None:
        self.functions = functions
        self.variables = variables
        self._program = program

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
        name, index = self.variables[port.source.layer], port.source.index
        is_only = index == 0 and not any(other.readers for other in port.source.layer.outputs[1:])
        return name if is_only else f"{name}[{index}]"

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
            if (code := self._program.from_file(op)) is not None:
                return [code]
            message = f"the data of this constant of {op.element_type} is missing"
            raise ModelError(diagnose(NO_WEIGHTS, message, layer.place))
        array = op.data
        found = constant_arguments(array, op.element_type)
        if found is not None:
            return found
        stored = self._program.store(layer.name, array, op.element_type)
        is_own = array.dtype.kind in "biuf" and ElementType.from_dtype(array.dtype) == op.element_type
        is_builtin = array.dtype.isbuiltin == 1
        return [stored, *([] if is_own and is_builtin else [literal(op.element_type)])]

    def _inputs(self, layer: Layer, op: Operator) -> Iterator[str]:
        """Yield the inputs: without their names as long as each follows the one before."""
        arguments = arguments_of(type(op))
        sources = [self.source(port) for port in layer.inputs]
        order = input_names(type(op))
        if any(argument.kind is Kind.INPUTS for argument in arguments):
            yield from sources[: len(order)]
            yield f"[{', '.join(sources[len(order) :])}]"
            return
        values = dict(zip(order, sources, strict=False))
        in_row = True
        for index, argument in enumerate(arguments):
            is_input = argument.kind is Kind.INPUT
            if is_input and argument.source in values:
                before = arguments[:index]
                in_row = in_row and not argument.is_keyword and all(other.kind is Kind.INPUT for other in before)
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
            if argument.default is REQUIRED or value != argument.default:
                yield f"{argument.name}={literal(value) if argument.attribute.allows(value) else None}"


# ----- what all functions have


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
    names: list[Any] = [_names(port.own_names) for port in layer.outputs]
    if not layer.outputs:
        names = [_names(port.own_names - source.own_names) for port in layer.inputs if (source := port.source)]
    while names and names[-1] is None:
        names.pop()
    if len(names) == 1:
        return names[0]
    return names or None


def _names(names: frozenset[str]) -> str | frozenset[str] | None:
    return next(iter(names)) if len(names) == 1 else names or None


def kept_info(layer: Layer) -> dict[str, Any]:
    """Return the runtime information that matters for the meaning of the layer, as ``rt_info`` takes it."""
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


# --------------------------------------------------------------------------- bodies


def _branches(name: str, bodies: Mapping[str, str], sources: list[str], wiring: Mapping[str, BodyMap]) -> Iterator[str]:
    """Yield the statements for the bodies of an If, which are in variables, and for its inputs and outputs."""
    for key, body in bodies.items():
        yield f"{name}.set_{key}_body({body})"
    for external, source in enumerate(sources):
        fed = {key: [f"{body}.inputs[{i}]" for i in _fed(wiring[key], external)] for key, body in bodies.items()}
        pairs = list(zip_longest(fed["then"], fed["else"], fillvalue="None"))
        if not pairs and external:
            pairs = [("None", "None")]
        for then, other in pairs:
            yield f"{name}.set_input({source}, {then}, {other})"
    for first, second in zip(by_output(wiring["then"].outputs), by_output(wiring["else"].outputs), strict=True):
        then, other = f"{bodies['then']}.outputs[{first.result}]", f"{bodies['else']}.outputs[{second.result}]"
        yield f"{name}.set_output({then}, {other})"


def _fed(wiring: BodyMap, external: int) -> list[int]:
    return [item.parameter for item in wiring.inputs if item.external == external]


def _iterations(layer: Layer, name: str, body: str, sources: list[str], wiring: BodyMap) -> Iterator[str]:
    """Yield the same for a Loop or TensorIterator; raise ModelError if its methods cannot express it."""
    yield f"{name}.set_function({body})"
    if layer.type == "Loop":
        counter = next((item.parameter for item in wiring.inputs if item.purpose == "current_iteration"), -1)
        condition = next(item.result for item in wiring.outputs if item.purpose == "execution_condition")
        yield f"{name}.set_special_body_ports([{counter}, {condition}])"
    carried = {edge.parameter: edge.result for edge in wiring.back_edges}
    inputs = sorted((item for item in wiring.inputs if item.external >= 0), key=lambda item: item.external)
    if unfed := carried.keys() - {item.parameter for item in inputs}:
        message = f"a back edge leads to parameter {min(unfed)} of the body, which has no value for the first iteration"
        raise ModelError(diagnose(BODY, f"{message}; this cannot be built in Python", layer.place))
    for item in inputs:
        yield f"{name}.{_input(item, body, sources[item.external], carried)}"
    for entry in by_output(wiring.outputs):
        result = f"{body}.outputs[{entry.result}]"
        yield (
            f"{name}.get_iter_value({result}, -1)"
            if entry.axis is None
            else f"{name}.get_concatenated_slices({result}, {_slices(entry)})"
        )


def _input(item: InputMap, body: str, source: str, carried: Mapping[int, int]) -> str:
    parameter = f"{body}.inputs[{item.parameter}]"
    if item.axis is not None:
        return f"set_sliced_input({parameter}, {source}, {_slices(item)})"
    if item.parameter in carried:
        return f"set_merged_input({parameter}, {source}, {body}.outputs[{carried[item.parameter]}])"
    return f"set_invariant_input({parameter}, {source})"


def _slices(item: Entry) -> str:
    names = ("start", "stride", "part_size", "end", "axis")
    return ", ".join(f"{name}={literal(getattr(item, name))}" for name in names)


# --------------------------------------------------------------------------- values as Python code

INLINE = 16
"""The number of elements up to which a constant is written into the code."""
_LONGEST_LITERAL = 100
"""The number of characters up to which such code is written, instead of the name of an array that is stored."""


def literal(value: Any) -> str:
    """Return the code for the value of an attribute."""
    if isinstance(value, ElementType):
        return quoted(str(value))
    if isinstance(value, PartialShape):
        return quoted("...") if value.rank is None else literal([_dimension(dim) for dim in value])
    if isinstance(value, Dimension):
        return literal(_dimension(value))
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, (set, frozenset)):
        return f"{{{', '.join(map(literal, sorted(value)))}}}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{literal(key)}: {literal(item)}' for key, item in value.items())}}}"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)


def _dimension(dim: Dimension) -> int | str:
    if dim.is_static:
        return dim.length
    return -1 if (dim.lower, dim.upper) == (0, None) else str(Dimension(dim.lower, dim.upper))


def quoted(text: str) -> str:
    """Return a string in double quotes where Python would choose single ones."""
    plain = repr(text)
    return f'"{plain[1:-1]}"' if plain[0] == "'" and '"' not in plain else plain


def constant_arguments(array: Array, element_type: ElementType) -> list[str] | None:
    """Return the first arguments of ``constant`` for small or uniform data, None for data that is kept in a file."""
    dtype = quoted(str(element_type))
    if array.size > INLINE or (array.size == 0 and array.ndim > 1):
        if array.size and (element_type == string or not _is_uniform(array)):
            return None
        shape = repr(array.shape)
        empty = '""' if element_type == string else "0"
        first = _elements(next(array.flat), element_type) if array.size else empty
        filled = f"np.zeros({shape})" if first in ("0", "0.0", "False") else f"np.full({shape}, {first})"
        return [filled, dtype]
    code = literal(array.tolist()) if element_type == string else _elements(array, element_type)
    if len(code) > _LONGEST_LITERAL and element_type != string:
        return None
    is_own = element_type == f32 or (element_type in (boolean, i64, string) and array.size > 0)
    return [code, *([] if is_own else [dtype])]


def _is_uniform(array: Array) -> bool:
    data = np.ascontiguousarray(array).reshape(-1)
    bits = data.view(np.dtype((np.void, data.dtype.itemsize)))
    return bool((bits == bits[0]).all())


def _elements(array: Any, element_type: ElementType) -> str:
    """Return the code for the elements of an array; floats as short as their type allows."""
    if isinstance(array, np.ndarray) and array.ndim:
        return f"[{', '.join(_elements(item, element_type) for item in array)}]"
    if element_type == string:
        return literal(array)
    if not element_type.is_real or element_type.dtype == np.uint8:
        return repr(array.item() if element_type == boolean else int(array))
    value = float(array)
    if math.isfinite(value) and element_type.dtype in (np.dtype(np.float32), np.dtype(np.float16)):
        return repr(float(str(element_type.to_dtype().type(value))))
    return literal(value)


def as_stored(array: Array, element_type: ElementType) -> Array:
    """Return an array in a type that a .npz can hold, which ``constant`` converts back exactly."""
    if element_type == string:
        return np.asarray([str(item) for item in array.flat]).reshape(array.shape)
    if array.dtype.kind in "biufc" and array.dtype.isbuiltin == 1:
        return array
    if element_type.is_real:
        return array.astype(np.float32)
    return array.astype(np.int8 if element_type.kind == "signed" else np.uint8)
