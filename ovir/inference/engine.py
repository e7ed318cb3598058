"""Infers the layers of a model and its bodies in order: element type and shape of every output port.

The engine infers one layer at a time. Its subclasses decide what happens if the file contradicts what is inferred, or
if inference fails; see ``ovir.inference.policy``.
"""

from __future__ import annotations

from collections.abc import Sequence

from ovir.core.element_types import dynamic
from ovir.core.shapes import MAX_SIZE, Dimension, PartialShape, RankError, new_symbol
from ovir.core.tensor_types import TensorType
from ovir.diagnostics import codes
from ovir.diagnostics.codes import Severity
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.errors import Diagnostics, OperatorError
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import UNKNOWN_TENSOR, Layer, Port
from ovir.inference.known_values import InferenceCache, ValueLog, as_tuple, with_known_values
from ovir.ops.base.operator import Operator
from ovir.ops.base.traits import method_signature
from ovir.ops.infrastructure import Parameter
from ovir.ops.state import AssignBase, ReadValueBase
from ovir.system.progress import counted

Types = tuple[TensorType, ...]


class Engine:
    """One inference of a model and its bodies."""

    def __init__(self, diagnostics: Diagnostics, *, follow_reported: bool = True) -> None:
        """Without ``follow_reported``, values about which a kernel issues a warning are not used."""
        self.diagnostics = diagnostics
        self._log = ValueLog(diagnostics, follow_reported=follow_reported)
        self._cache = self._log.cache = InferenceCache()

    def infer_layer(self, layer: Layer, *, is_body: bool) -> None:
        """Infer a layer and set the types of its output ports."""
        raise NotImplementedError

    def inference_failed(self, layer: Layer) -> None:
        """Do nothing; a recovering engine looks for further faults in a layer that could not be inferred."""

    def infer_whole(self, model: LayerGraph) -> None:
        """Infer a model; known values that are computed later are not cached."""
        self.infer(model)
        self.end()

    def end(self) -> None:
        """Release what was cached."""
        self._log.cache = None

    def infer(self, model: LayerGraph, given: Sequence[TensorType] | None = None) -> list[TensorType]:
        """Infer the layers in order and return the types of the results.

        ``given`` has the types of the parameters of a body.
        """
        fed = {} if given is None else {p.layer: tensor for p, tensor in zip(model.inputs, given, strict=True)}
        for layer in counted("inferring", model.layers):
            if layer in fed:
                set_outputs(layer, (_with_declared_type(layer, fed[layer]),))
            else:
                self.infer_layer(layer, is_body=given is not None)
        check_variables(model, self.diagnostics)
        return [port.type for port in model.outputs]

    def attempt(self, layer: Layer, inputs: Sequence[TensorType]) -> tuple[Types | None, list[Diagnostic]]:
        """Infer one layer; return the types of its outputs, None if inference fails, and the diagnostics."""
        outside, self.diagnostics = self.diagnostics, Diagnostics()
        outputs = None
        try:
            outputs = self._infer_tensors(layer, inputs)
        except OperatorError as error:
            severity = Severity.WARNING if layer.is_dead else Severity.ERROR
            place = _place_of(error, layer)
            self.diagnostics.report(error.code or codes.INFERENCE, error.message, place, error.hint, severity=severity)
            self.inference_failed(layer)
        except MemoryError:
            raise  # of the whole check, not of this layer
        except Exception as error:  # reported as a fault of ovir, not of the file
            message = f"inference of this layer failed: {type(error).__name__}: {error}"
            self.diagnostics.add(diagnose(codes.INTERNAL, message, layer.place, hint=layer.fault_hint(error)))
        finally:
            found, self.diagnostics = self.diagnostics, outside
        return outputs, list(found)

    def _infer_tensors(self, layer: Layer, inputs: Sequence[TensorType]) -> Types:
        """Infer one layer; raise OperatorError if an output has more dimensions or elements than an array can have."""
        try:
            outputs = self._infer_layer(layer, inputs)
        except RankError as error:
            raise OperatorError(f"an output cannot be a tensor: {error}") from None
        for index, tensor in enumerate(outputs):
            if _is_too_large(tensor) and not any(map(_is_too_large, inputs)):
                hint = None if tensor.shape.least_size else "sizes other than 0 count even in an empty tensor"
                too_large = OperatorError(
                    f"output {index}, {tensor}, is larger than any memory", codes.SIZE_OVERFLOW, hint
                )
                too_large.line = layer.outputs[index].place.line if index < len(layer.outputs) else None
                raise too_large
        return outputs

    def _infer_layer(self, layer: Layer, inputs: Sequence[TensorType]) -> Types:
        op = layer.operator
        if op is None or not hasattr(op, "infer"):
            for body in layer.bodies.values():
                self.infer(body)
            return tuple(declared_type(port) for port in layer.outputs)
        if "bodies" in _check_arity(op, inputs):
            bodies = {key: _Body(body, self) for key, body in layer.bodies.items()}
            return as_tuple(op.infer(*inputs, bodies=bodies))
        if not inputs:
            return as_tuple(op.infer())
        return with_known_values(layer, op, inputs, self._cache.infer(op, inputs), self._log)


class _Body:
    """A body, as the inference of its operation sees it."""

    def __init__(self, body: LayerGraph, engine: Engine) -> None:
        self._body = body
        self._engine = engine

    @property
    def parameters(self) -> list[TensorType]:
        """Return the declared types of the parameters."""
        operators = (port.layer.operator for port in self._body.inputs)
        return [op.infer() if isinstance(op, Parameter) else UNKNOWN_TENSOR for op in operators]

    def __call__(self, given: Sequence[TensorType]) -> list[TensorType]:
        return self._engine.infer(self._body, given)


def _is_too_large(tensor: TensorType) -> bool:
    """Return whether 64 bits cannot count the bytes of an array of this type."""
    dtype = tensor.element_type.dtype
    return tensor.shape.least_extent * (1 if dtype is None else dtype.itemsize) > MAX_SIZE


def set_outputs(layer: Layer, outputs: Sequence[TensorType]) -> None:
    """Set the types of the output ports, and add ports for outputs that the file does not declare."""
    while len(layer.outputs) < len(outputs):
        taken = [port.id for port in (*layer.inputs, *layer.outputs)]
        layer.outputs.append(Port(layer, len(layer.outputs), max(taken, default=-1) + 1, True))
    for port, tensor in zip(layer.outputs, outputs, strict=False):
        port.inferred = tensor if tensor.shape.has_symbols else _with_symbols(tensor)
    for port in layer.outputs[len(outputs) :]:
        port.inferred = None


def _with_symbols(tensor: TensorType) -> TensorType:
    """Return the tensor with a new symbol for each unknown size that has none."""
    dims = (d if d.symbol or d.is_static else Dimension(d.lower, d.upper, new_symbol()) for d in tensor.shape)
    return tensor.refined(tensor.element_type, PartialShape(dims))


def _with_declared_type(layer: Layer, given: TensorType) -> TensorType:
    """Return the tensor of a body's parameter, with the declared element type if the tensor's is unknown."""
    declared = getattr(layer.operator, "element_type", dynamic)
    return given.refined(declared, given.shape) if given.element_type.is_dynamic else given


def _check_arity(op: Operator, inputs: Sequence[TensorType]) -> frozenset[str]:
    """Raise OperatorError for too few or too many inputs; return the keywords that ``infer`` takes."""
    names, required, variadic, keywords = method_signature(type(op).infer)
    if len(inputs) < required or (len(inputs) > len(names) and not variadic):
        most = "or more " if variadic else f"to {len(names)} " if required < len(names) else ""
        listed = f" ({', '.join(names)})" if names else ""
        noun = "input" if required == 1 and not most else "inputs"
        op.fail("takes {} {}{}{}, got {}", required, most, noun, listed, len(inputs), code=codes.INPUT_COUNT)
    return keywords


def _place_of(error: OperatorError, layer: Layer) -> Place:
    """Return the place of an error: the line it names, or <data> if its message begins with the name of an
    attribute."""
    attributes = layer.operator.attributes if layer.operator else ()
    if error.line is None and error.message.split(" ", 1)[0] in attributes:
        return layer.data_place
    return layer.at(error.line)


def _may_read(layer: Layer, variable_id: str) -> bool:
    """Return whether a layer that could not be read may be the ReadValue of a variable."""
    if layer.operator is not None:
        return False
    return layer.type == "ReadValue" or layer.attributes.get("variable_id") == variable_id


def declared_type(port: Port) -> TensorType:
    """Return the declared type of a port. Without dimensions the rank is unknown: it may be a scalar."""
    return TensorType(port.declared_element_type or dynamic, port.declared_shape or PartialShape(None))


def check_variables(model: LayerGraph, diagnostics: Diagnostics) -> None:
    """Report Assigns without a ReadValue, and Assigns whose input contradicts the type that the ReadValue declares."""
    assigns = [layer for layer in model.layers if layer.type == "Assign"]
    declared = {op.variable_id: layer for layer in model.layers if isinstance(op := layer.operator, ReadValueBase)}
    for layer in assigns:
        if not isinstance(op := layer.operator, AssignBase) or not layer.inputs:
            continue
        reader = declared.get(op.variable_id)
        if reader is None and any(_may_read(layer, op.variable_id) for layer in model.layers):
            continue
        if reader is None:
            message = f"no ReadValue reads the variable '{op.variable_id}'; ReadValue layers read {sorted(declared)}"
            diagnostics.report(codes.NO_READ_VALUE, message, layer.place)
            continue
        value, variable = layer.inputs[0].type, reader.outputs[0].type
        same_type = value.element_type.merged_with(variable.element_type) is not None
        if not same_type or not value.shape.compatible(variable.shape):
            message = f"assigns {value} to the variable '{op.variable_id}', which {reader.title} declares as {variable}"
            diagnostics.report(codes.VARIABLE_TYPE, message, layer.place)
