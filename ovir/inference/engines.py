"""Infers the layers of a model and its bodies in order: element type and shape of every output port.

An engine infers one layer at a time. Its subclasses decide what happens if the file contradicts what is inferred, or if
inference fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ovir import ops
from ovir.core.element_types import dynamic
from ovir.core.shapes import MAX_SIZE, Dimension, PartialShape, RankError, new_symbol
from ovir.core.tensor_types import TensorType
from ovir.diagnostics import codes
from ovir.diagnostics.codes import Severity
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.errors import Diagnostics, OperatorError
from ovir.diagnostics.wording import plural
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import UNKNOWN_TENSOR, Layer, Port, agrees, declared_type, has_declared
from ovir.inference.differences import difference, input_differences
from ovir.inference.known_values import InferenceCache, ValueLog, as_tuple, with_known_values
from ovir.ops.base.operator import Operator
from ovir.ops.base.traits import input_signature
from ovir.ops.infrastructure import Const, Parameter
from ovir.ops.state import AssignBase, ReadValueBase
from ovir.system.progress import counted

Types = tuple[TensorType, ...]


class Engine:
    """One inference of a model and its bodies."""

    def __init__(self, diagnostics: Diagnostics, *, follow_reported: bool = True) -> None:
        """Without ``follow_reported``, values about which a kernel issues a warning are not used."""
        self.diagnostics = diagnostics
        self._log = ValueLog(diagnostics, follow_reported=follow_reported)
        self._cache = InferenceCache()

    def infer_layer(self, layer: Layer, *, is_body: bool) -> None:
        """Infer a layer and set the types of its output ports."""
        raise NotImplementedError

    def inference_failed(self, layer: Layer) -> None:
        """Do nothing; a recovering engine looks for further faults in a layer that could not be inferred."""

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
            raised, self.diagnostics = self.diagnostics, outside
        return outputs, list(raised) if raised.added else []

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
        if op is None:
            for body in layer.bodies.values():
                self.infer(body)
            return tuple(declared_type(port) for port in layer.outputs)
        if "bodies" in _keywords(op, len(inputs)):
            bodies = {key: BodyInference(body, self) for key, body in layer.bodies.items()}
            return as_tuple(op.infer(*inputs, bodies=bodies))
        if not inputs:
            return as_tuple(op.infer())
        return with_known_values(layer, op, inputs, self._cache.infer(op, inputs), self._log)


class ComparingEngine(Engine):
    """Compares inferred with declared types.

    A strict engine reports every contradiction, and continues with the inferred types. One that recovers continues with
    the declared types if these are more reliable, so that each fault gives one diagnostic.
    """

    def __init__(self, diagnostics: Diagnostics, ir_version: int, *, recovers: bool = False) -> None:
        """Compare types in a file of a version. With ``recovers``, values about which a kernel issues a warning are not
        used."""
        super().__init__(diagnostics, follow_reported=not recovers)
        self.recovers = recovers
        self.ir_version = ir_version
        self.doubtful: set[Port] = set()
        """Output ports whose type is in doubt; differences that follow from them are not reported."""
        self.refused: set[Port] = set()
        """Doubtful ports for which an error has been reported, or for which the file contradicts itself."""
        self.declared: set[Port] = set()
        """Output ports with a declared type instead of an inferred one; a strict engine has none."""
        self._is_uncertain = False
        """Whether an earlier part could not be read or is in doubt, so that less may be known of later layers."""

    def infer_layer(self, layer: Layer, *, is_body: bool) -> None:
        """Infer a layer and set the types of its output ports."""
        known = ops.resolve(layer.type, layer.version) if layer.operator is None and not self.recovers else None
        if known is not None:  # an edit has added an incomplete layer; the reader would have reported it
            message = f"the layer has no operator, but {layer.type} of {layer.version} is a known operation"
            hint = f"create the layer with operator={known.__name__}(...) from {known.__module__}"
            self.diagnostics.report(codes.INFERENCE, message, layer.place, hint)
        inputs = [self.input_type(port) for port in layer.inputs]
        is_doubtful, is_refused = self._compare_inputs(layer, inputs, is_body)
        outputs, diagnostics = self.attempt(layer, inputs)
        if is_doubtful and self.recovers:
            outputs, diagnostics = self._reconsidered(layer, inputs, is_refused, outputs, diagnostics)
        self.diagnostics.extend(diagnostics)
        if self.recovers and not is_body:
            outputs = self._completed(layer, outputs, is_doubtful)
        if outputs is None:
            self._give_up(layer)
        elif is_body or layer.operator is None or self.all_agree(layer, outputs):
            set_outputs(layer, outputs)
        else:
            self._report_contradictions(layer, outputs)
        if outputs is not None and len(layer.outputs) > len(outputs):
            count = plural(len(outputs), "output")
            for port in (port for port in layer.outputs[len(outputs) :] if port.readers):  # others may be declared
                message = f"output port {port.id} is read, but {layer.type} has only {count} here"
                self.diagnostics.report(codes.EDGE_PORT, message, port.place, port=port.id)

    def input_type(self, port: Port) -> TensorType:
        """Return the type of an input. Without a source it is the declared one, or an error."""
        source = port.source
        if source is not None:
            return source.inferred or UNKNOWN_TENSOR
        if self.recovers:
            self._is_uncertain = True
            return declared_type(port)
        self.diagnostics.report(codes.UNFED_INPUT, f"no edge leads to input port {port.id}", port.place, port=port.id)
        return UNKNOWN_TENSOR

    def _give_up(self, layer: Layer) -> None:
        """Set the outputs of a layer that could not be inferred."""
        self.doubtful.update(layer.outputs)
        self.refused.update(layer.outputs)
        if self.recovers:
            self.declared.update(layer.outputs)
        set_outputs(layer, [declared_type(port) if self.recovers else UNKNOWN_TENSOR for port in layer.outputs])

    # ----- comparison of declared and inferred types

    def all_agree(self, layer: Layer, outputs: Types) -> bool:
        """Return whether all outputs may have the types that the layer declares."""
        return False not in [agrees(port, tensor) for port, tensor in zip(layer.outputs, outputs, strict=False)]

    def _compare_inputs(self, layer: Layer, inputs: Sequence[TensorType], is_body: bool) -> tuple[bool, bool]:
        """Report inputs that declare other types than their tensors have.

        Return whether any input is in doubt, and whether an error has been reported for one.
        """
        is_doubtful = is_refused = False
        differing: list[tuple[Port, TensorType]] = []
        for port, tensor in zip(layer.inputs, inputs, strict=True):
            source = port.source
            if source in self.doubtful:
                is_doubtful = True
                is_refused |= source in self.refused
            elif source is not None and not is_body and not agrees(port, tensor):
                differing.append((port, tensor))
        if differing:
            diagnostics = input_differences(differing, self.ir_version)
            self.diagnostics.extend(diagnostics)
            is_doubtful = True
            is_refused |= any(d.severity is Severity.ERROR for d in diagnostics)
        return is_doubtful, is_refused

    def _report_contradictions(self, layer: Layer, outputs: Types) -> None:
        """Report outputs that declare other types than inferred, and set the types to continue with."""
        chosen = list(outputs)
        is_own = isinstance(layer.operator, (Const, Parameter))  # the file contradicts itself
        for port in layer.outputs:
            tensor = outputs[port.index] if port.index < len(outputs) else UNKNOWN_TENSOR
            if agrees(port, tensor):
                continue
            diagnostics = difference(port, tensor, self.ir_version)
            self.diagnostics.extend(diagnostics)
            self.doubtful.add(port)
            if not is_own and not any(d.severity is Severity.ERROR for d in diagnostics):
                continue
            self.refused.add(port)
            if port.index < len(chosen) and self.recovers:
                chosen[port.index] = self._type_after_contradiction(port, tensor, is_own)
        set_outputs(layer, chosen)

    def compare_bodies(self, model: LayerGraph) -> None:
        """Report ports in bodies that declare other types than inferred; call this when these types are final."""
        for layer in model.walk():
            for body in layer.bodies.values():
                for inner in body.layers:
                    self._compare_inner(inner)

    def _compare_inner(self, layer: Layer) -> None:
        if layer.operator is None:
            return
        if isinstance(layer.operator, Parameter) and layer.outputs:
            port, own = layer.outputs[0], layer.operator.infer()
            if not agrees(port, own):
                self.diagnostics.extend(difference(port, own, self.ir_version))
                self.doubtful.add(port)
                return
        is_doubtful = any(port.source in self.doubtful for port in layer.inputs)
        for port in (*layer.inputs, *layer.outputs):
            if not agrees(port, port.type):
                if not is_doubtful:
                    self.diagnostics.extend(difference(port, port.type, self.ir_version))
                self.doubtful.add(port if port.is_output or port.source is None else port.source)

    # ----- recovery

    def inference_failed(self, layer: Layer) -> None:
        """Look for further faults in the bodies of a layer, starting from the declared types of their parameters."""
        if self.recovers and not layer.scope:  # inside bodies, this would double the time with each level
            for body in layer.bodies.values():
                self.infer(body)

    def _reconsidered(
        self,
        layer: Layer,
        inputs: Sequence[TensorType],
        is_refused: bool,
        outputs: Types | None,
        diagnostics: list[Diagnostic],
    ) -> tuple[Types | None, list[Diagnostic]]:
        """Infer again with the declared types of doubtful inputs, unless the first outputs agree with these."""
        if outputs is not None and self.all_agree(layer, outputs):
            return outputs, diagnostics
        if outputs is None and not is_refused:
            self.diagnostics.extend(diagnostics)  # OpenVINO would refuse the file for this
        declared = list(inputs)
        for i, port in enumerate(layer.inputs):
            if port.source in self.doubtful or not agrees(port, inputs[i]):
                if not has_declared(port):
                    return None, []  # these diagnostics may be consequences of an earlier one
                declared[i] = declared_type(port)
        outputs, diagnostics = self.attempt(layer, declared)
        is_open = any(not declared[i].shape.is_static for i, p in enumerate(layer.inputs) if p.source in self.refused)
        return outputs, [] if outputs is None and is_open else diagnostics

    def _completed(self, layer: Layer, outputs: Types | None, is_doubtful: bool) -> Types | None:
        """Return the outputs, with dimensions that inference leaves open replaced by declared ones."""
        op = layer.operator
        is_incomplete = op is None or (isinstance(op, Const) and op.constant_data is None)
        self._is_uncertain |= outputs is None or is_doubtful or is_incomplete or self._log.left_out
        if outputs is None or not self._is_uncertain:
            return outputs
        completed = list(outputs)
        for port, tensor in zip(layer.outputs, outputs, strict=False):
            shape = tensor.shape.merged_with(port.declared_shape) if port.declared_shape else None
            if shape is not None and agrees(port, tensor):
                completed[port.index] = tensor.refined(tensor.element_type, shape)
                if shape != tensor.shape:
                    self.declared.add(port)
        return tuple(completed)

    def _type_after_contradiction(self, port: Port, inferred: TensorType, is_own: bool) -> TensorType:
        """Return the declared type if readers declare types and none agrees with ``inferred``, else ``inferred``."""
        readers = [reader for reader in port.readers if has_declared(reader)]
        if not readers or any(agrees(reader, inferred) for reader in readers):
            return inferred
        self._is_uncertain = True
        self.declared.add(port)
        declared = declared_type(port)
        return TensorType(inferred.element_type, declared.shape) if is_own else declared


class BodyInference:
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


def _keywords(op: Operator, count: int) -> frozenset[str]:
    """Return the keywords that ``infer`` takes; raise OperatorError for too few or too many inputs."""
    names, required, variadic, keywords = input_signature(type(op))
    if count < required or (count > len(names) and not variadic):
        most = "or more " if variadic else f"to {len(names)} " if required < len(names) else ""
        listed = f" ({', '.join(names)})" if names else ""
        noun = "input" if required == 1 and not most else "inputs"
        op.fail("takes {} {}{}{}, got {}", required, most, noun, listed, count, code=codes.INPUT_COUNT)
    return keywords


def _place_of(error: OperatorError, layer: Layer) -> Place:
    """Return the place of an error: the line it names, or <data> if its message begins with the name of an
    attribute."""
    attributes = layer.operator.attributes if layer.operator else ()
    if error.line is None and error.message.split(" ", 1)[0] in attributes:
        return layer.data_place
    return layer.at(error.line)


def state_readers(layers: Iterable[Layer]) -> dict[str, Layer]:
    """Return the ReadValues among layers by their variables."""
    return {op.variable_id: layer for layer in layers if isinstance(op := layer.operator, ReadValueBase)}


def check_variables(model: LayerGraph, diagnostics: Diagnostics) -> None:
    """Report Assigns without a ReadValue, and Assigns whose input contradicts the type that the ReadValue declares."""
    assigns = [layer for layer in model.layers if layer.type == "Assign"]
    declared = state_readers(model.layers)
    for layer in assigns:
        if not isinstance(op := layer.operator, AssignBase) or not layer.inputs:
            continue
        reader = declared.get(op.variable_id)
        if reader is None:
            unread = (other for other in model.layers if other.operator is None)  # which may be the ReadValue
            if any(
                other.type == "ReadValue" or other.attributes.get("variable_id") == op.variable_id for other in unread
            ):
                continue
            message = f"no ReadValue reads the variable '{op.variable_id}'; ReadValue layers read {sorted(declared)}"
            diagnostics.report(codes.NO_READ_VALUE, message, layer.place)
            continue
        value, variable = layer.inputs[0].type, reader.outputs[0].type
        same_type = value.element_type.merged_with(variable.element_type) is not None
        if not same_type or not value.shape.compatible(variable.shape):
            message = f"assigns {value} to the variable '{op.variable_id}', which {reader.title} declares as {variable}"
            diagnostics.report(codes.VARIABLE_TYPE, message, layer.place)
