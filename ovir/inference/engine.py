"""Walks a model once, in order: element type, shape and known content of every output port."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ovir.core.dimensions import Dimension, new_symbol
from ovir.core.element_types import dynamic, string
from ovir.core.shapes import PartialShape, as_shape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.codes import EDGE_PORT, INFERENCE, INPUT_COUNT, INTERNAL, OUTSIDE_SPEC, USAGE, Severity
from ovir.diagnostics.collector import Diagnostics
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.errors import InputError, OperatorError
from ovir.diagnostics.kernel_warnings import reporting_to
from ovir.graph.layers import UNKNOWN_TENSOR, Layer, Port
from ovir.graph.model import Model, ShapeLike, provide_inference
from ovir.inference.cache import InferenceCache
from ovir.inference.declared import agrees, declared_type, difference, has_declared, input_differences
from ovir.inference.known_values import with_content
from ovir.inference.variables import check_variables
from ovir.ops.base.operator import Operator, signature
from ovir.ops.infrastructure import Const, Parameter


def infer_model(model: Model) -> list[Diagnostic]:
    """Infer every port of a model; what was found that can be lived with. ModelError with all errors."""
    diagnostics = Diagnostics()
    infer_into(model, diagnostics)
    diagnostics.raise_errors()
    return diagnostics.non_fatal


def reshape_model(model: Model, shapes: Mapping[str | int, ShapeLike]) -> list[Diagnostic]:
    """Set the shapes of inputs, by name or position, and infer again; if that fails, nothing changes."""
    before = {port.layer: port.layer.operator for port in model.inputs}
    wanted: dict[Layer, Parameter] = {}
    for key, shape in shapes.items():
        layer = model.inputs[model.input_index(key)].layer
        if layer in wanted:
            raise InputError(diagnose(USAGE, f"input {key!r} is given a shape twice; the keys are {list(shapes)}"))
        wanted[layer] = _reshaped(layer.operator, key, shape)
    try:
        _set_parameters(wanted)
        return infer_model(model)
    except Exception:
        _set_parameters({layer: op for layer, op in before.items() if isinstance(op, Parameter)})
        infer_model(model)
        raise


def _reshaped(operator: Operator | None, key: str | int, shape: ShapeLike) -> Parameter:
    """Return the Parameter with another shape."""
    if not isinstance(operator, Parameter):
        message = f"the shape of input {key!r} cannot be set: its Parameter could not be read"
        raise InputError(diagnose(USAGE, message))
    try:
        return Parameter(element_type=operator.element_type, shape=as_shape(shape))
    except (ValueError, TypeError) as error:
        raise InputError(diagnose(USAGE, f"invalid shape for input {key!r}: {error}")) from None


def _set_parameters(parameters: Mapping[Layer, Parameter]) -> None:
    for layer, operator in parameters.items():
        layer.operator = operator
        layer.attributes = {**layer.attributes, "shape": operator.shape}


provide_inference(infer_model, reshape_model)


def infer_into(
    model: Model, diagnostics: Diagnostics, *, trust_declared: bool = False, forms: Mapping[Layer, object] | None = None
) -> list[Diagnostic]:
    """Infer every port of a model; all that was found is added to ``diagnostics``, and what can be lived with returned.

    With ``trust_stated`` what the file declares stands in where inference failed or was given something doubtful, so
    that one fault does not show as many. ``forms`` has something equal for layers that are equal in type, attributes
    and in what their ports declare.
    """
    model.revision += 1
    found = Diagnostics()
    walk = _Walk(found, model.version, trust_declared, forms or {})
    with reporting_to(lambda code, message: walk.reports.append(message)):
        walk.model(model)
    walk.compare_bodies(model)
    diagnostics.extend(found)
    return found.non_fatal


class _Walk:
    """One inference of a model and its bodies."""

    def __init__(
        self, diagnostics: Diagnostics, ir_version: int, trust_declared: bool, forms: Mapping[Layer, object]
    ) -> None:
        self.diagnostics = diagnostics
        self.ir_version = ir_version
        self.trust_declared = trust_declared
        self.forms = forms
        self.memory = InferenceCache()
        self._settled = InferenceCache()
        """By form: what was inferred of layers in which nothing was found."""
        self._constants: dict[object, dict[object, TensorType]] = {}
        """By form of constants in which nothing was found, and in whose data nothing can be: the tensors by content."""
        self._agreeing: dict[Any, object] = {}
        self.doubtful: set[Port] = set()
        """Output ports whose type has been found fault with; what differs because of it is not told."""
        self.refused: set[Port] = set()
        """Those of them of which enough has been told: an error, or that the file says two things of the layer."""
        self.reports: list[str] = []
        """What kernels said of values that they were given to find the content of outputs."""
        self.is_vague = False
        """Whether something before could not be read, or is in doubt, so that less may be known of what follows."""

    def model(self, model: Model, given: Sequence[TensorType] | None = None) -> list[TensorType]:
        """Infer the layers in order; the types of the results. ``given``, of a body, replaces the parameters' own."""
        given_by_layer = {}
        if given is not None:
            given_by_layer = {port.layer: tensor for port, tensor in zip(model.inputs, given, strict=True)}
        for layer in model.layers:
            if layer in given_by_layer:
                _set_outputs(layer, (_merge_declared(layer, given_by_layer[layer]),))
            elif layer not in self.forms or self.doubtful or self.is_vague:
                self.layer(layer, is_body=given is not None)
            else:
                self._formed(layer)
        check_variables(model, self.diagnostics)
        return [port.type for port in model.outputs]

    def _formed(self, layer: Layer) -> None:
        """Infer a layer of the model as others of its form that had equal inputs."""
        op = layer.operator
        inputs: list[TensorType] = []
        for port in layer.inputs:
            if port.source is not None and (tensor := port.source.inferred) is not None:
                inputs.append(tensor)
        if op is None or len(inputs) < len(layer.inputs):
            self.layer(layer, is_body=False)
            return
        form = self.forms[layer]
        if isinstance(op, Const) and (known_tensors := self._constants.get(form)) is not None:
            tensor = known_tensors.get(op.content)
            if tensor is None:
                tensor = known_tensors[op.content] = op.infer()
            _set_outputs(layer, (tensor,))
            return
        equal = form, op.content
        settled = self._settled.recall(equal, inputs)
        if settled is not None and len(layer.outputs) <= len(settled.outputs):  # else it matters which of them are read
            _set_outputs(layer, settled.outputs)
            return
        known = self.diagnostics.told
        self.memory.latest = None
        self.layer(layer, is_body=False)
        if self.memory.latest is not None and self.diagnostics.told == known:
            self._settled.keep(equal, inputs, self.memory.latest)
            # The data of strings may turn out to be none.
            if isinstance(op, Const) and op.element_type != string and len(layer.outputs) == 1:
                self._constants[form] = {}

    def layer(self, layer: Layer, is_body: bool) -> None:
        inputs = [self._input(port) for port in layer.inputs]
        is_doubtful, is_refused = self._compare_inputs(layer, inputs, is_body)
        outputs, found = self._attempt(layer, inputs)
        if is_doubtful and self.trust_declared and (outputs is None or not self._all_agree(layer, outputs)):
            if outputs is None and not is_refused:
                self.diagnostics.extend(found)  # for this the file is refused
            outputs, found = self._second_attempt(layer, inputs)
        self.diagnostics.extend(found)
        if self.trust_declared and not is_body:
            self.is_vague |= outputs is None or is_doubtful or _is_incomplete(layer.operator)
            if self.is_vague and outputs is not None:
                outputs = self._completed(layer, outputs)
        if outputs is None:
            self.doubtful.update(layer.outputs)
            self.refused.update(layer.outputs)
            _set_outputs(layer, [declared_type(p) if self.trust_declared else UNKNOWN_TENSOR for p in layer.outputs])
        elif is_body or layer.operator is None or self._all_agree(layer, outputs):
            _set_outputs(layer, outputs)
        else:
            self._contradicted(layer, outputs)
        if outputs is not None and len(layer.outputs) > len(outputs):
            self._refuse_surplus(layer, len(outputs))

    def _refuse_surplus(self, layer: Layer, count: int) -> None:
        """An output that the operation does not have may be declared, but not read."""
        for port in layer.outputs[count:]:
            if port.readers:
                message = f"output port {port.id} is read, yet {layer.type} has {count} outputs here"
                self.diagnostics.report(EDGE_PORT, message, port.place, port=port.id)

    def _input(self, port: Port) -> TensorType:
        if port.source is None:
            self.is_vague = True
            return declared_type(port) if self.trust_declared else UNKNOWN_TENSOR
        return port.source.inferred or UNKNOWN_TENSOR

    def _compare_inputs(self, layer: Layer, inputs: Sequence[TensorType], is_body: bool) -> tuple[bool, bool]:
        """Compare what input ports declare with what they are fed.

        Whether there is doubt about any of them, and whether an error has been told for it.
        """
        is_doubtful = is_refused = False
        differing: list[tuple[Port, TensorType]] = []
        for port, tensor in zip(layer.inputs, inputs, strict=True):
            if port.source in self.doubtful:
                is_doubtful = True
                is_refused |= port.source in self.refused
            elif port.source is not None and not is_body and not self._agrees(port, tensor):
                differing.append((port, tensor))
        if differing:
            found = input_differences(differing, self.ir_version)
            self.diagnostics.extend(found)
            is_doubtful = True
            is_refused |= any(d.severity is Severity.ERROR for d in found)
        return is_doubtful, is_refused

    def _agrees(self, port: Port, tensor: TensorType) -> bool:
        """``agrees``, remembered for what is declared and inferred of other ports, too."""
        declared, shape = port.declared_shape, tensor.shape
        key = id(declared), id(shape), port.declared_element_type, tensor.element_type
        if key in self._agreeing:
            return True
        if not agrees(port, tensor):
            return False
        self._agreeing[key] = declared, shape  # which keeps their ids their own
        return True

    def _all_agree(self, layer: Layer, outputs: Sequence[TensorType]) -> bool:
        return False not in [self._agrees(port, tensor) for port, tensor in zip(layer.outputs, outputs, strict=False)]

    def _attempt(
        self, layer: Layer, inputs: Sequence[TensorType]
    ) -> tuple[tuple[TensorType, ...] | None, Iterable[Diagnostic]]:
        """The outputs' types, None where inference fails, and what was found."""
        outside, self.diagnostics = self.diagnostics, Diagnostics()
        try:
            return self._infer(layer, inputs), self.diagnostics
        except OperatorError as error:
            severity = Severity.WARNING if layer.is_dead else Severity.ERROR
            code = error.code or INFERENCE
            self.diagnostics.report(code, error.message, _place_of(error, layer), error.hint, severity=severity)
            if self.trust_declared and not layer.scope:  # within bodies it would double the time of each level
                for body in layer.bodies.values():
                    self.model(body)  # from what it says of its parameters: there may be other faults in it
        except Exception as error:  # a fault of ovir's own must not look like one of the file
            message = f"ovir failed to infer this layer: {type(error).__name__}: {error}"
            self.diagnostics.report(INTERNAL, message, layer.place, layer.fault_hint)
        finally:
            found, self.diagnostics = self.diagnostics, outside
        return None, found

    def _second_attempt(
        self, layer: Layer, inputs: Sequence[TensorType]
    ) -> tuple[tuple[TensorType, ...] | None, Iterable[Diagnostic]]:
        """The same with what the layer itself states of the inputs that are in doubt."""
        declared = list(inputs)
        for i, port in enumerate(layer.inputs):
            if port.source in self.doubtful or not agrees(port, inputs[i]):
                if not has_declared(port):
                    return None, ()  # whatever is found follows from an earlier diagnostic, or may do so
                declared[i] = declared_type(port)
        outputs, found = self._attempt(layer, declared)
        is_open = any(not declared[i].shape.is_static for i, p in enumerate(layer.inputs) if p.source in self.refused)
        return outputs, () if outputs is None and is_open else found

    def _completed(self, layer: Layer, outputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """The outputs' types, and where they leave open what the file declares, that."""
        found = list(outputs)
        for port, tensor in zip(layer.outputs, outputs, strict=False):
            shape = tensor.shape.merged_with(port.declared_shape) if port.declared_shape else None
            if shape is not None and agrees(port, tensor):
                found[port.index] = TensorType(tensor.element_type, shape, tensor.value)
        return tuple(found)

    def _contradicted(self, layer: Layer, outputs: tuple[TensorType, ...]) -> None:
        """Tell where outputs differ from what is declared, and go on with what most witnesses say."""
        chosen = list(outputs)
        for port in layer.outputs:
            tensor = outputs[port.index] if port.index < len(outputs) else UNKNOWN_TENSOR
            if agrees(port, tensor):
                continue
            found = difference(port, tensor, self.ir_version)
            self.diagnostics.extend(found)
            self.doubtful.add(port)
            is_own = isinstance(layer.operator, (Const, Parameter))  # the file itself says two things of it
            if not is_own and not any(d.severity is Severity.ERROR for d in found):
                continue
            self.refused.add(port)
            if self.trust_declared and port.index < len(chosen):
                readers = [p for p in port.readers if has_declared(p)]
                if readers and not any(agrees(reader, tensor) for reader in readers):
                    declared = declared_type(port)
                    chosen[port.index] = TensorType(tensor.element_type, declared.shape) if is_own else declared
                    self.is_vague = True
        _set_outputs(layer, chosen)

    def compare_bodies(self, model: Model) -> None:
        """Compare what ports in bodies state with their final types; inference may pass them more than once."""
        for layer in model.layers:
            for body in layer.bodies.values():
                for inner in body.layers:
                    self._compare_inner(inner)
                self.compare_bodies(body)

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

    def _infer(self, layer: Layer, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        op = layer.operator
        if op is None or not hasattr(op, "infer"):
            for body in layer.bodies.values():
                self.model(body)
            return tuple(declared_type(port) for port in layer.outputs)
        keywords = _check_arity(op, inputs)
        try:
            if "bodies" in keywords:
                bodies = {key: _BodyInference(body, self) for key, body in layer.bodies.items()}
                return self._complete(layer, op, inputs, op.infer(*inputs, bodies=bodies))
            return self.memory.infer(op, inputs, lambda types: self._complete(layer, op, types, op.infer(*types)))
        except _OutsideSpecError as outside:
            self.diagnostics.report(OUTSIDE_SPEC, outside.message, layer.place, severity=Severity.INFO)
            self.is_vague = True
            return outside.outputs

    def _complete(
        self, layer: Layer, op: Operator, inputs: Sequence[TensorType], inferred: TensorType | tuple[TensorType, ...]
    ) -> tuple[TensorType, ...]:
        """What was inferred, with what can be known of the outputs' content."""
        outputs = inferred if isinstance(inferred, tuple) else (inferred,)
        if not outputs or not inputs:
            return outputs
        try:
            known = len(self.reports)
            completed = with_content(op, inputs, outputs)
        except Exception as error:  # types and shapes are right without it
            message = f"ovir failed to find the content of the outputs: {type(error).__name__}: {error}"
            self.diagnostics.report(INTERNAL, message, layer.place, layer.fault_hint, severity=Severity.WARNING)
            return outputs
        if self.trust_declared and len(self.reports) > known:
            raise _OutsideSpecError(outputs, self.reports[-1])
        return completed


class _OutsideSpecError(Exception):
    """The content of inputs is such that devices may differ on what comes out: it is not followed.

    An exception, so that nothing is remembered for other layers, of each of which it is to be told.
    """

    def __init__(self, outputs: tuple[TensorType, ...], message: str) -> None:
        super().__init__(message)
        self.outputs = outputs
        self.message = message


def _merge_declared(layer: Layer, given: TensorType) -> TensorType:
    """What flows into a body's parameter: the outer tensor, its type completed by the declared one."""
    declared = getattr(layer.operator, "element_type", dynamic)
    return TensorType(declared, given.shape, given.value) if given.element_type.is_dynamic else given


@dataclass(frozen=True)
class _BodyInference:
    """A body as its operation sees it while it infers."""

    body: Model
    walk: _Walk

    @property
    def parameters(self) -> list[TensorType]:
        operators = (port.layer.operator for port in self.body.inputs)
        return [op.infer() if isinstance(op, Parameter) else UNKNOWN_TENSOR for op in operators]

    def __call__(self, given: Sequence[TensorType]) -> list[TensorType]:
        return self.walk.model(self.body, given)


@cache
def _infer_signature(infer: Callable[..., Any]) -> tuple[list[str], int, bool, frozenset[str]]:
    names, required, variadic, keywords = signature(infer)
    return names[1:], required - 1, variadic, keywords  # without self


def _check_arity(op: Operator, inputs: Sequence[TensorType]) -> frozenset[str]:
    names, required, variadic, keywords = _infer_signature(type(op).infer)
    if len(inputs) < required or (len(inputs) > len(names) and not variadic):
        most = "or more " if variadic else f"to {len(names)} " if required < len(names) else ""
        listed = f" ({', '.join(names)})" if names else ""
        op.fail("takes {} {}inputs{}, got {}", required, most, listed, len(inputs), code=INPUT_COUNT)
    return keywords


def _place_of(error: OperatorError, layer: Layer) -> Place:
    """The line of what is at fault: a part that the operation names, the attributes where the error begins with one."""
    attributes = layer.operator.attributes if layer.operator else ()
    if error.line is None and error.message.split(" ", 1)[0] in attributes:
        return layer.data_place
    return layer.at(error.line)


def _is_incomplete(op: Operator | None) -> bool:
    """Whether an operation could not be read, or is a constant whose data is missing."""
    return op is None or (isinstance(op, Const) and op.content is None)


def _set_outputs(layer: Layer, outputs: Sequence[TensorType]) -> None:
    if len(layer.outputs) == len(outputs):
        for port, tensor in zip(layer.outputs, outputs, strict=True):
            port.inferred = tensor if tensor.shape.has_symbols else _with_symbols(tensor)
        return
    while len(layer.outputs) < len(outputs):
        taken = [port.id for port in (*layer.inputs, *layer.outputs)]
        layer.outputs.append(Port(layer, len(layer.outputs), max(taken, default=-1) + 1, True))
    for port in layer.outputs:
        if port.index >= len(outputs):
            port.inferred = None
            continue
        tensor = outputs[port.index]
        port.inferred = tensor if tensor.shape.has_symbols else _with_symbols(tensor)


def _with_symbols(tensor: TensorType) -> TensorType:
    """The tensor, each of its unknown sizes identified by a symbol."""
    dims = (d if d.symbol or d.is_static else Dimension(d.lower, d.upper, new_symbol()) for d in tensor.shape)
    return TensorType(tensor.element_type, PartialShape(dims), tensor.value)
