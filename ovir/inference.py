"""Walks a model once, in order: element type, shape and known content of every output port."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ovir.arrays import Array
from ovir.diagnostics import (
    INFERENCE,
    INTERNAL,
    MISSING_INPUT,
    STATED_SHAPE,
    STATED_TYPE,
    USAGE,
    Diagnostic,
    Findings,
    InputError,
    ModelError,
    OperatorError,
    Place,
    Severity,
    diagnostic,
)
from ovir.element_types import dynamic, string
from ovir.model import Layer, Model, Port, ShapeLike
from ovir.ops.infrastructure import Parameter
from ovir.ops.operator import Operator, can_fold, signature
from ovir.ops.state import Assign, ReadValue
from ovir.types import Dimension, PartialShape, as_shape, new_symbol
from ovir.values import MAX_ELEMENTS, TensorType, Value, constant_type

UNKNOWN_TENSOR = TensorType(dynamic, PartialShape(None))


def infer_model(model: Model) -> list[Diagnostic]:
    """Infer every port of a model; what was found that is no error. ModelError with all errors."""
    findings = Findings()
    infer_into(model, findings)
    findings.raise_errors()
    return list(findings)


def reshape_model(model: Model, shapes: Mapping[str | int, ShapeLike]) -> list[Diagnostic]:
    """Set the shapes of inputs, by name or position, and infer again; on an error all stays as it was."""
    parameters = [port.layer.operator for port in model.inputs]
    wanted: dict[Parameter, PartialShape] = {}
    for key, shape in shapes.items():
        operator = parameters[model.input_index(key)]
        assert isinstance(operator, Parameter)
        if operator in wanted:
            raise InputError(diagnostic(USAGE, f"input {key!r} is given a shape twice; the keys are {list(shapes)}"))
        try:
            wanted[operator] = as_shape(shape)
        except (ValueError, TypeError) as error:
            raise InputError(diagnostic(USAGE, f"the shape given for input {key!r} is none: {error}")) from None
    before = {operator: operator.shape for operator in wanted}
    try:
        _set_shapes(model, wanted)
        return infer_model(model)
    except ModelError:
        _set_shapes(model, before)
        infer_model(model)
        raise


def _set_shapes(model: Model, shapes: Mapping[Parameter, PartialShape]) -> None:
    for port in model.inputs:
        if isinstance(port.layer.operator, Parameter) and port.layer.operator in shapes:
            port.layer.operator.shape = port.layer.attributes["shape"] = shapes[port.layer.operator]


def infer_into(model: Model, findings: Findings) -> None:
    """Infer every port of a model; all that was found is added to ``findings``."""
    model.revision += 1
    _walk(model, findings)
    _compare_with_stated(model, findings)


def _walk(model: Model, findings: Findings, given: Sequence[TensorType] | None = None) -> list[TensorType]:
    """Infer the layers in order; the types of the results. ``given`` replaces the parameters' own."""
    given_by_layer = {}
    if given is not None:
        given_by_layer = {port.layer: tensor for port, tensor in zip(model.inputs, given, strict=True)}
    for layer in model.layers:
        if layer in given_by_layer:
            _set_outputs(layer, (_merge_declared(layer, given_by_layer[layer]),))
            continue
        try:
            outputs = _infer_layer(layer, findings)
        except OperatorError as error:
            severity = Severity.WARNING if layer.is_dead else Severity.ERROR
            found = diagnostic(error.code or INFERENCE, error.message, layer.place, severity=severity, hint=error.hint)
            findings.add(found)
            outputs = tuple(UNKNOWN_TENSOR for _ in layer.outputs)
        except Exception as error:  # a fault of ovir's own must not look like one of the file
            message = f"ovir failed to infer this layer: {type(error).__name__}: {error}"
            findings.error(INTERNAL, message, layer.place, hint="this is a fault of ovir; please report it")
            outputs = tuple(UNKNOWN_TENSOR for _ in layer.outputs)
        _set_outputs(layer, outputs)
    _check_variables(model, findings)
    return [port.type for port in model.outputs]


def _check_variables(model: Model, findings: Findings) -> None:
    """Every Assign has its ReadValue, which declares what the variable may hold."""
    declared = {op.variable_id: layer for layer in model.layers if isinstance(op := layer.operator, ReadValue)}
    for layer in model.layers:
        if not isinstance(op := layer.operator, Assign) or not layer.inputs:
            continue
        reader = declared.get(op.variable_id)
        if reader is None:
            message = f"no ReadValue reads the variable '{op.variable_id}'; those read are {sorted(declared)}"
            findings.error(INFERENCE, message, layer.place)
            continue
        value, variable = layer.inputs[0].type, reader.outputs[0].type
        same_type = value.element_type.merged_with(variable.element_type) is not None
        if not same_type or not value.shape.compatible(variable.shape):
            message = f"assigns {value} to the variable '{op.variable_id}', which {reader.title} declares as {variable}"
            findings.error(INFERENCE, message, layer.place)


def _merge_declared(layer: Layer, given: TensorType) -> TensorType:
    """What flows into a body's parameter: the outer tensor, its type completed by the declared one."""
    declared = getattr(layer.operator, "element_type", dynamic)
    return TensorType(declared, given.shape, given.value) if given.element_type.is_dynamic else given


def _infer_layer(layer: Layer, findings: Findings) -> tuple[TensorType, ...]:
    op = layer.operator
    if op is None or not hasattr(op, "infer"):
        for body in layer.bodies.values():
            _walk(body, findings)
        return tuple(_stated_type(port) for port in layer.outputs)
    inputs = [port.type for port in layer.inputs]
    keywords = _check_arity(op, inputs)
    if "bodies" in keywords:
        bodies = {key: _BodyInference(body, findings) for key, body in layer.bodies.items()}
        inferred = op.infer(*inputs, bodies=bodies)
    else:
        inferred = op.infer(*inputs)
    outputs = inferred if isinstance(inferred, tuple) else (inferred,)
    op.input_types = tuple(t.element_type for t in inputs)
    op.output_types = tuple(t.element_type for t in outputs)
    if not outputs or not inputs:
        return outputs
    try:
        return _with_values(op, inputs, outputs)
    except Exception as error:  # types and shapes are right without it
        message = f"ovir failed to find the content of the outputs: {type(error).__name__}: {error}"
        findings.warning(INTERNAL, message, layer.place, hint="this is a fault of ovir; please report it")
        return outputs


@dataclass(frozen=True)
class _BodyInference:
    """A body as its operation sees it while it infers."""

    body: Model
    findings: Findings

    @property
    def parameters(self) -> list[TensorType]:
        operators = (port.layer.operator for port in self.body.inputs)
        return [op.infer() if isinstance(op, Parameter) else UNKNOWN_TENSOR for op in operators]

    def __call__(self, given: Sequence[TensorType]) -> list[TensorType]:
        return _walk(self.body, self.findings, given)


@cache
def _infer_signature(infer: Callable[..., Any]) -> tuple[list[str], int, bool, frozenset[str]]:
    names, required, variadic, keywords = signature(infer)
    return names[1:], required - 1, variadic, keywords  # without self


def _check_arity(op: Operator, inputs: Sequence[TensorType]) -> frozenset[str]:
    names, required, variadic, keywords = _infer_signature(type(op).infer)
    if len(inputs) < required or (len(inputs) > len(names) and not variadic):
        most = "or more " if variadic else f"to {len(names)} " if required < len(names) else ""
        listed = f" ({', '.join(names)})" if names else ""
        op.fail("takes {} {}inputs{}, got {}", required, most, listed, len(inputs), code=MISSING_INPUT)
    return keywords


def _with_values(op: Operator, inputs: Sequence[TensorType], outputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
    """The outputs with what can be known of their content; it is not sought in large or strange tensors."""
    if any(t.value is not None for t in outputs) or all(t.value is None for t in inputs):
        return outputs
    for tensor in outputs:
        upper = tensor.shape.size().upper
        if upper is None or upper > MAX_ELEMENTS or tensor.element_type.is_dynamic:
            return outputs
    try:
        with np.errstate(all="ignore"):
            values = _values_of(op, inputs, outputs)
    except OperatorError:
        return outputs  # it is an error of the run, with its values, if the layer is ever run
    if values is None:
        return outputs
    return tuple(t.with_value(v) for t, v in zip(outputs, values, strict=True))


def _values_of(
    op: Operator, inputs: Sequence[TensorType], outputs: tuple[TensorType, ...]
) -> tuple[Value | None, ...] | None:
    if can_fold(op, inputs):
        result = op.run(*(t.constant for t in inputs))
        arrays: tuple[Array, ...] = result if isinstance(result, tuple) else (result,)
        return tuple(Value(array) for array in arrays)
    if not all(t.shape.is_static and t.element_type != string for t in outputs):  # of strings there are no bounds
        return None
    found = op.infer_value(*inputs)
    return found if found is None or isinstance(found, tuple) else (found,)


def explain_failure(layer: Layer, arrays: Sequence[Array]) -> OperatorError | None:
    """Why a layer cannot run on these inputs, as its inference says of them; None where it finds no fault.

    The layer stays as it is. One with bodies is not asked: its inference is that of all its layers.
    """
    if layer.operator is None or not hasattr(layer.operator, "infer") or layer.bodies:
        return None
    if len(arrays) != len(layer.inputs):
        return None
    op = copy(layer.operator)
    inputs = []
    for port, array in zip(layer.inputs, arrays, strict=True):
        known = constant_type(array, None if port.element_type.is_dynamic else port.element_type)
        inputs.append(known if array.size <= MAX_ELEMENTS else known.with_value(None))
    try:
        op.infer(*inputs)
    except OperatorError as error:
        return error
    except Exception:
        return None  # whoever asks has a failure to tell already, and this one says no more
    return None


def _set_outputs(layer: Layer, outputs: Sequence[TensorType]) -> None:
    while len(layer.outputs) < len(outputs):
        taken = [port.id for port in (*layer.inputs, *layer.outputs)]
        layer.outputs.append(Port(layer, len(layer.outputs), max(taken, default=-1) + 1, True))
    for port in layer.outputs:
        tensor = outputs[port.index] if port.index < len(outputs) else UNKNOWN_TENSOR
        port.inferred = _with_symbols(tensor)


def _with_symbols(tensor: TensorType) -> TensorType:
    """The tensor, each of its unknown sizes identified by a symbol."""
    shape = tensor.shape
    if shape.rank is None or all(d.symbol or d.is_static for d in shape):
        return tensor
    dims = (d if d.symbol or d.is_static else Dimension(d.lower, d.upper, new_symbol()) for d in shape)
    return TensorType(tensor.element_type, PartialShape(dims), tensor.value)


def _stated_type(port: Port) -> TensorType:
    """What the file says of a port; no dims at all may mean a scalar or an unknown rank."""
    shape = port.stated_shape if port.stated_shape else None
    return TensorType(port.stated_element_type or dynamic, shape if shape is not None else PartialShape(None))


# --------------------------------------------------------------------------- stated against inferred


def _compare_with_stated(model: Model, findings: Findings) -> None:
    for layer in model.layers:
        for body in layer.bodies.values():
            _compare_with_stated(body, findings)
        if layer.operator is None:
            continue
        for port in (*layer.inputs, *layer.outputs):
            _compare_port(port, findings)


def _compare_port(port: Port, findings: Findings) -> None:
    layer = port.layer
    kind = "output" if port.is_output else "input"
    place = Place(layer.file, port.line or layer.line, layer.title, layer.id)
    stated = port.stated_shape
    # A port without dims is a scalar or of unknown rank; the format does not tell which.
    if stated is not None and stated.rank and not stated.compatible(port.shape):
        message = f"{kind} port {port.id} states shape {stated}, inferred is {port.shape}"
        hint = "OpenVINO infers again and ignores what is stated; whoever reads the file may not"
        findings.warning(STATED_SHAPE, message, place, hint)
    stated_type = port.stated_element_type
    if stated_type is not None and stated_type.merged_with(port.element_type) is None:
        message = f"{kind} port {port.id} states type {stated_type}, inferred is {port.element_type}"
        findings.warning(STATED_TYPE, message, place)
