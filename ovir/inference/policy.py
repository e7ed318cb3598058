"""Compares declared with inferred types, and decides how inference continues after an error.

``Policy`` is strict: it reports every contradiction and continues with the inferred types; outputs of a layer that
fails are unknown. ``RecoveringPolicy`` (ovir.inference.recovery) continues with declared types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ovir import ops
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.codes import EDGE_PORT, INFERENCE, UNFED_INPUT, Severity
from ovir.diagnostics.collector import Diagnostics
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.text import plural
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import UNKNOWN_TENSOR, Layer, Port
from ovir.inference.declared import agrees, difference, input_differences
from ovir.inference.engine import Engine, Types, set_outputs
from ovir.ops.infrastructure import Const, Parameter


class Policy:
    """Reports every contradiction and continues with what is inferred."""

    def __init__(self, diagnostics: Diagnostics, ir_version: int) -> None:
        self.diagnostics = diagnostics
        self.ir_version = ir_version
        self.doubtful: set[Port] = set()
        """Output ports whose type is in doubt; differences that follow from them are not reported."""
        self.refused: set[Port] = set()
        """Doubtful ports for which an error has been reported, or for which the file contradicts itself."""
        self.declared: set[Port] = set()
        """Output ports with a declared type instead of an inferred one; a strict policy has none."""
        self._agreeing: dict[Any, object] = {}

    # ----- called by the engine

    def infer_layer(self, engine: Engine, layer: Layer, *, is_body: bool) -> None:
        """Infer a layer and set the types of its output ports."""
        self.check_operator(layer)
        inputs = [self.input_type(port) for port in layer.inputs]
        is_doubtful, is_refused = self._compare_inputs(engine, layer, inputs, is_body)
        outputs, found = engine.attempt(layer, inputs)
        if is_doubtful:
            outputs, found = self.reconsider(engine, layer, inputs, is_refused, outputs, found)
        engine.diagnostics.extend(found)
        if not is_body:
            outputs = self.completed(layer, outputs, is_doubtful)
        if outputs is None:
            self.give_up(layer)
        elif is_body or layer.operator is None or self.all_agree(layer, outputs):
            set_outputs(layer, outputs)
        else:
            self._report_contradictions(engine, layer, outputs)
        if outputs is not None and len(layer.outputs) > len(outputs):
            _report_surplus(engine, layer, len(outputs))

    def inference_failed(self, engine: Engine, layer: Layer) -> None:
        """Do nothing; a recovering policy looks for further faults in a layer that could not be inferred."""

    # ----- overridden by other policies

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
        engine: Engine,
        layer: Layer,
        inputs: Sequence[TensorType],
        is_refused: bool,
        outputs: Types | None,
        found: list[Diagnostic],
    ) -> tuple[Types | None, list[Diagnostic]]:
        """Return the outputs and diagnostics of a layer whose inputs are partly in doubt."""
        return outputs, found

    def completed(self, layer: Layer, outputs: Types | None, is_doubtful: bool) -> Types | None:
        """Return the outputs of a layer outside bodies, refined by what else is known of them."""
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

    def agrees(self, port: Port, tensor: TensorType) -> bool:
        """Return ``declared.agrees``, cached by the declared and the inferred type."""
        declared, shape = port.declared_shape, tensor.shape
        key = id(declared), id(shape), port.declared_element_type, tensor.element_type
        if key in self._agreeing:
            return True
        if not agrees(port, tensor):
            return False
        self._agreeing[key] = declared, shape  # keeps both alive, so that their ids stay unique
        return True

    def all_agree(self, layer: Layer, outputs: Types) -> bool:
        """Return whether all outputs may have the types that the layer declares."""
        return False not in [self.agrees(port, tensor) for port, tensor in zip(layer.outputs, outputs, strict=False)]

    def _compare_inputs(
        self, engine: Engine, layer: Layer, inputs: Sequence[TensorType], is_body: bool
    ) -> tuple[bool, bool]:
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
            elif source is not None and not is_body and not self.agrees(port, tensor):
                differing.append((port, tensor))
        if differing:
            found = input_differences(differing, self.ir_version)
            engine.diagnostics.extend(found)
            is_doubtful = True
            is_refused |= any(d.severity is Severity.ERROR for d in found)
        return is_doubtful, is_refused

    def _report_contradictions(self, engine: Engine, layer: Layer, outputs: Types) -> None:
        """Report outputs that declare other types than inferred, and set the types to continue with."""
        chosen = list(outputs)
        is_own = isinstance(layer.operator, (Const, Parameter))  # the file contradicts itself
        for port in layer.outputs:
            tensor = outputs[port.index] if port.index < len(outputs) else UNKNOWN_TENSOR
            if agrees(port, tensor):
                continue
            found = difference(port, tensor, self.ir_version)
            engine.diagnostics.extend(found)
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


def _report_surplus(engine: Engine, layer: Layer, count: int) -> None:
    """Report outputs with readers that the operation does not have; surplus outputs without readers may be declared."""
    for port in layer.outputs[count:]:
        if port.readers:
            message = f"output port {port.id} is read, but {layer.type} has only {plural(count, 'output')} here"
            engine.diagnostics.report(EDGE_PORT, message, port.place, port=port.id)
