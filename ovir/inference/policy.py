"""Declared and inferred types: how they are compared, and how inference continues after an error.

A strict engine reports every difference; a recovering one lets declared types stand in, so that each fault gives one
diagnostic.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ovir import ops
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.codes import (
    DECLARED_SHAPE,
    DECLARED_TYPE,
    EDGE_PORT,
    EXCHANGED_INPUTS,
    INFERENCE,
    INPUT_SHAPE,
    INPUT_TYPE,
    OWN_SHAPE,
    OWN_TYPE,
    UNFED_INPUT,
    Severity,
)
from ovir.diagnostics.diagnostic import Diagnostic, diagnose
from ovir.diagnostics.errors import Diagnostics
from ovir.diagnostics.wording import plural
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import UNKNOWN_TENSOR, Layer, Port
from ovir.inference.engine import Engine, Types, declared_type, set_outputs
from ovir.ops.base.operator import Operator
from ovir.ops.infrastructure import Const, Parameter

SHAPES = (DECLARED_SHAPE, OWN_SHAPE, INPUT_SHAPE)
"""The codes of differences between declared and inferred shapes."""


def has_declared(port: Port) -> bool:
    """Return whether the file declares dimensions for a port."""
    return bool(port.declared_shape)


def agrees(port: Port, tensor: TensorType) -> bool:
    """Return whether a tensor may have the type that a port declares.

    A port without dimensions is a scalar or has an unknown rank; the format does not distinguish the two.
    """
    shape, element_type = port.declared_shape, port.declared_element_type
    if shape is not None and shape is not tensor.shape and shape.rank and not shape.compatible(tensor.shape):
        return False
    return (
        element_type is None
        or element_type is tensor.element_type
        or (element_type.merged_with(tensor.element_type) is not None)
    )


def difference(port: Port, tensor: TensorType, ir_version: int) -> list[Diagnostic]:
    """Return the diagnostics for a port that declares another type than ``tensor`` has.

    They are warnings for dead layers, for outputs without readers, and in files of version 10, whose writers left
    outdated types and shapes.
    """
    layer = port.layer
    kind = "output" if port.is_output else "input"
    is_own = layer.type in ("Parameter", "Const")
    if not port.is_output:
        codes, there = (INPUT_SHAPE, INPUT_TYPE), "but its tensor has"
    elif is_own:
        codes, there = (OWN_SHAPE, OWN_TYPE), f"but the {layer.type} itself has"
    else:
        codes, there = (DECLARED_SHAPE, DECLARED_TYPE), "but inference gives"
    is_unread = port.is_output and not port.readers and layer.type != "Result"
    severity = Severity.WARNING if layer.is_dead or is_unread or ir_version < 11 else None
    found = []
    declared = port.declared_shape
    if declared is not None and declared.rank and not declared.compatible(tensor.shape):
        message = f"{kind} port {port.id} declares shape {declared}, {there} {tensor.shape}{_origin(port)}"
        hint = "OpenVINO ignores declared shapes and infers its own; other programs may rely on them"
        found.append(diagnose(codes[0], message, port.place, hint=hint, port=port.id, severity=severity))
    declared_type = port.declared_element_type
    if declared_type is not None and declared_type.merged_with(tensor.element_type) is None:
        message = f"{kind} port {port.id} declares type {declared_type}, {there} {tensor.element_type}{_origin(port)}"
        found.append(diagnose(codes[1], message, port.place, port=port.id, severity=severity))
    return found


def input_differences(differing: Sequence[tuple[Port, TensorType]], ir_version: int) -> list[Diagnostic]:
    """Return the diagnostics for inputs of a layer that declare other types than their tensors have.

    If each of two inputs declares the type of the other's tensor, one diagnostic says that they are exchanged.
    """
    if len(differing) == 2:
        (first, of_first), (second, of_second) = differing
        if has_declared(first) and has_declared(second) and agrees(first, of_second) and agrees(second, of_first):
            return [_exchanged(first, of_first, second, of_second)]
    return [found for port, tensor in differing for found in difference(port, tensor, ir_version)]


def _exchanged(first: Port, of_first: TensorType, second: Port, of_second: TensorType) -> Diagnostic:
    layer = first.layer
    fed = [
        f"port {port.id} declares {declared_type(port)} but gets {tensor}{_origin(port)}"
        for port, tensor in ((first, of_first), (second, of_second))
    ]
    lines = f" on lines {first.edge_line} and {second.edge_line}" if first.edge_line and second.edge_line else ""
    message = f"the inputs look exchanged: {', '.join(fed)}"
    hint = f"exchange the input ports of the edges{lines}"
    severity = Severity.WARNING if layer.is_dead else None
    place = layer.at(first.edge_line or first.line)
    return diagnose(EXCHANGED_INPUTS, message, place, hint=hint, port=first.id, severity=severity)


def _origin(port: Port) -> str:
    """Return the source of an input as the end of a message; empty for an output."""
    if port.source is None:
        return ""
    edge = f" by the edge on line {port.edge_line}" if port.edge_line is not None else ""
    return f" ({port.source.layer.title}{edge})"


def about_other_shapes(earlier: Iterable[Diagnostic], later: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return the diagnostics for a reshaped model: those about declared shapes from before, the others from after."""
    about_shapes = {code.id for code in SHAPES}
    differences = (d for d in earlier if d.code in about_shapes)
    return [*differences, *(d for d in later if d.code not in about_shapes)]


class StrictEngine(Engine):
    """Reports every contradiction and continues with what is inferred."""

    def __init__(self, diagnostics: Diagnostics, ir_version: int, *, follow_reported: bool = True) -> None:
        super().__init__(diagnostics, follow_reported=follow_reported)
        self.ir_version = ir_version
        self.doubtful: set[Port] = set()
        """Output ports whose type is in doubt; differences that follow from them are not reported."""
        self.refused: set[Port] = set()
        """Doubtful ports for which an error has been reported, or for which the file contradicts itself."""
        self.declared: set[Port] = set()
        """Output ports with a declared type instead of an inferred one; a strict engine has none."""

    def infer_layer(self, layer: Layer, *, is_body: bool) -> None:
        """Infer a layer and set the types of its output ports."""
        self.check_operator(layer)
        inputs = [self.input_type(port) for port in layer.inputs]
        is_doubtful, is_refused = self._compare_inputs(layer, inputs, is_body)
        outputs, found = self.attempt(layer, inputs)
        if is_doubtful:
            outputs, found = self.reconsider(layer, inputs, is_refused, outputs, found)
        self.diagnostics.extend(found)
        if not is_body:
            outputs = self.completed(layer, outputs, is_doubtful)
        if outputs is None:
            self.give_up(layer)
        elif is_body or layer.operator is None or self.all_agree(layer, outputs):
            set_outputs(layer, outputs)
        else:
            self._report_contradictions(layer, outputs)
        if outputs is not None and len(layer.outputs) > len(outputs):
            self._report_surplus(layer, len(outputs))

    # ----- overridden by other engines

    def check_operator(self, layer: Layer) -> None:
        """Report a layer without an operator if its operation is known: an edit has added an incomplete layer."""
        if layer.operator is None and (cls := ops.resolve(layer.type, layer.version)) is not None:
            message = f"the layer has no operator, but {layer.type} of {layer.version} is a known operation"
            hint = f"create the layer with operator={cls.__name__}(...) from {cls.__module__}"
            self.diagnostics.report(INFERENCE, message, layer.place, hint)

    def input_type(self, port: Port) -> TensorType:
        """Return the type of an input; an input without a source is an error."""
        source = port.source
        if source is None:
            self.diagnostics.report(UNFED_INPUT, f"no edge leads to input port {port.id}", port.place, port=port.id)
            return UNKNOWN_TENSOR
        return source.inferred or UNKNOWN_TENSOR

    def reconsider(
        self,
        layer: Layer,
        inputs: Sequence[TensorType],
        is_refused: bool,
        outputs: Types | None,
        found: list[Diagnostic],
    ) -> tuple[Types | None, list[Diagnostic]]:
        """Return the outputs and diagnostics of a layer whose inputs are partly in doubt."""
        return outputs, found

    def completed(self, layer: Layer, outputs: Types | None, is_doubtful: bool) -> Types | None:
        """Return the outputs of a layer outside bodies, refined by other known facts."""
        return outputs

    def give_up(self, layer: Layer) -> None:
        """Set the outputs of a layer that could not be inferred."""
        self.doubtful.update(layer.outputs)
        self.refused.update(layer.outputs)
        set_outputs(layer, [self.fallback(port) for port in layer.outputs])

    def fallback(self, port: Port) -> TensorType:
        """Return the type that an output of a layer gets if the layer could not be inferred."""
        return UNKNOWN_TENSOR

    def type_after_contradiction(self, port: Port, inferred: TensorType, is_own: bool) -> TensorType:
        """Return the type to continue with if the file declares another type than ``inferred``."""
        return inferred

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
            if self.doubtful and source in self.doubtful:
                is_doubtful = True
                is_refused |= source in self.refused
            elif source is not None and not is_body and not agrees(port, tensor):
                differing.append((port, tensor))
        if differing:
            found = input_differences(differing, self.ir_version)
            self.diagnostics.extend(found)
            is_doubtful = True
            is_refused |= any(d.severity is Severity.ERROR for d in found)
        return is_doubtful, is_refused

    def _report_contradictions(self, layer: Layer, outputs: Types) -> None:
        """Report outputs that declare other types than inferred, and set the types to continue with."""
        chosen = list(outputs)
        is_own = isinstance(layer.operator, (Const, Parameter))  # the file contradicts itself
        for port in layer.outputs:
            tensor = outputs[port.index] if port.index < len(outputs) else UNKNOWN_TENSOR
            if agrees(port, tensor):
                continue
            found = difference(port, tensor, self.ir_version)
            self.diagnostics.extend(found)
            self.doubtful.add(port)
            if not is_own and not any(d.severity is Severity.ERROR for d in found):
                continue
            self.refused.add(port)
            if port.index < len(chosen):
                chosen[port.index] = self.type_after_contradiction(port, tensor, is_own)
        set_outputs(layer, chosen)

    def compare_bodies(self, model: LayerGraph) -> None:
        """Report ports in bodies that declare other types than inferred; call this when these types are final."""
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

    def _report_surplus(self, layer: Layer, count: int) -> None:
        """Report outputs with readers that the operation does not have; surplus outputs without readers may be
        declared."""
        for port in layer.outputs[count:]:
            if port.readers:
                message = f"output port {port.id} is read, but {layer.type} has only {plural(count, 'output')} here"
                self.diagnostics.report(EDGE_PORT, message, port.place, port=port.id)


class RecoveringEngine(StrictEngine):
    """Continues with the declared types if these are more reliable than the inferred ones."""

    def __init__(self, diagnostics: Diagnostics, ir_version: int) -> None:
        super().__init__(diagnostics, ir_version, follow_reported=False)
        self._is_uncertain = False
        """Whether an earlier part could not be read or is in doubt, so that less may be known of later layers."""

    def check_operator(self, layer: Layer) -> None:
        """Do nothing: the reader has reported why the layer has no operator."""

    def input_type(self, port: Port) -> TensorType:
        """Return the type of an input; for an input without an edge, the declared one."""
        if port.source is None:
            self._is_uncertain = True
            return declared_type(port)
        return super().input_type(port)

    def fallback(self, port: Port) -> TensorType:
        """Return the declared type of an output of a layer that could not be inferred."""
        self.declared.add(port)
        return declared_type(port)

    def inference_failed(self, layer: Layer) -> None:
        """Look for further faults in the bodies of a layer, starting from the declared types of their parameters."""
        if not layer.scope:  # inside bodies, this would double the time with each level
            for body in layer.bodies.values():
                self.infer(body)

    def reconsider(
        self,
        layer: Layer,
        inputs: Sequence[TensorType],
        is_refused: bool,
        outputs: Types | None,
        found: list[Diagnostic],
    ) -> tuple[Types | None, list[Diagnostic]]:
        """Infer again with the declared types of doubtful inputs, unless the first outputs agree with what is
        declared."""
        if outputs is not None and self.all_agree(layer, outputs):
            return outputs, found
        if outputs is None and not is_refused:
            self.diagnostics.extend(found)  # OpenVINO would refuse the file for this
        declared = list(inputs)
        for i, port in enumerate(layer.inputs):
            if port.source in self.doubtful or not agrees(port, inputs[i]):
                if not has_declared(port):
                    return None, []  # these diagnostics may be consequences of an earlier one
                declared[i] = declared_type(port)
        outputs, found = self.attempt(layer, declared)
        is_open = any(not declared[i].shape.is_static for i, p in enumerate(layer.inputs) if p.source in self.refused)
        return outputs, [] if outputs is None and is_open else found

    def completed(self, layer: Layer, outputs: Types | None, is_doubtful: bool) -> Types | None:
        """Return the outputs, with dimensions that inference leaves open replaced by declared ones."""
        self._is_uncertain |= outputs is None or is_doubtful or _is_incomplete(layer.operator) or self._log.left_out
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

    def type_after_contradiction(self, port: Port, inferred: TensorType, is_own: bool) -> TensorType:
        """Return the declared type if readers declare types and none agrees with ``inferred``, else ``inferred``."""
        readers = [reader for reader in port.readers if has_declared(reader)]
        if not readers or any(agrees(reader, inferred) for reader in readers):
            return inferred
        self._is_uncertain = True
        self.declared.add(port)
        declared = declared_type(port)
        return TensorType(inferred.element_type, declared.shape) if is_own else declared


def _is_incomplete(op: Operator | None) -> bool:
    """Return whether an operation could not be read, or is a constant without data."""
    return op is None or (isinstance(op, Const) and op.constant_data is None)
