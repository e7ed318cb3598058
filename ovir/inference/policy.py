"""Compare what a file declares with what is inferred, and decide how inference goes on after an error.

``Policy`` is the strict one: it reports every contradiction and goes on with the inferred types; the outputs of a layer
that fails are unknown. ``RecoveringPolicy`` (ovir.inference.recovery) lets declared types stand in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ovir.core.tensor_types import TensorType
from ovir.diagnostics.codes import EDGE_PORT, Severity
from ovir.diagnostics.collector import Diagnostics
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.graph.layers import UNKNOWN_TENSOR, Layer, Port
from ovir.graph.model import Model
from ovir.inference.declared import agrees, difference, input_differences
from ovir.inference.engine import Engine, Types, set_outputs
from ovir.ops.infrastructure import Const, Parameter


class Policy:
    """Report every contradiction, and go on with what is inferred."""

    def __init__(self, diagnostics: Diagnostics, ir_version: int) -> None:
        self.diagnostics = diagnostics
        self.ir_version = ir_version
        self.doubtful: set[Port] = set()
        """Output ports whose type is in doubt; differences that follow from it are not reported."""
        self.refused: set[Port] = set()
        """Doubtful ports for which an error has been reported, or of which the file says two things."""
        self._agreeing: dict[Any, object] = {}

    # ----- what the engine asks

    def infer_layer(self, engine: Engine, layer: Layer, *, is_body: bool) -> None:
        """Infer a layer and give its output ports their types."""
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
            self._contradicted(engine, layer, outputs)
        if outputs is not None and len(layer.outputs) > len(outputs):
            _refuse_surplus(engine, layer, len(outputs))

    def failed(self, engine: Engine, layer: Layer) -> None:
        """Look further into a layer that cannot be inferred."""

    # ----- what another policy does in another way

    def input_type(self, port: Port) -> TensorType:
        """Return the type of an input."""
        source = port.source
        return UNKNOWN_TENSOR if source is None else source.inferred or UNKNOWN_TENSOR

    def reconsider(
        self,
        engine: Engine,
        layer: Layer,
        inputs: Sequence[TensorType],
        is_refused: bool,
        outputs: Types | None,
        found: list[Diagnostic],
    ) -> tuple[Types | None, list[Diagnostic]]:
        """Return outputs and diagnostics of a layer some of whose inputs are in doubt."""
        return outputs, found

    def completed(self, layer: Layer, outputs: Types | None, is_doubtful: bool) -> Types | None:
        """Return the outputs of a layer outside of bodies, with what else is known of them."""
        return outputs

    def give_up(self, layer: Layer) -> None:
        """Set the outputs of a layer that cannot be inferred."""
        self.doubtful.update(layer.outputs)
        self.refused.update(layer.outputs)
        set_outputs(layer, [self.instead(port) for port in layer.outputs])

    def instead(self, port: Port) -> TensorType:
        """Return the type of an output of a layer that cannot be inferred."""
        return UNKNOWN_TENSOR

    def chosen(self, port: Port, inferred: TensorType, is_own: bool) -> TensorType:
        """Return the type to go on with, where the file declares another one than ``inferred``."""
        return inferred

    # ----- declared against inferred

    def agrees(self, port: Port, tensor: TensorType) -> bool:
        """Return ``declared.agrees``, cached by what is declared and inferred."""
        declared, shape = port.declared_shape, tensor.shape
        key = id(declared), id(shape), port.declared_element_type, tensor.element_type
        if key in self._agreeing:
            return True
        if not agrees(port, tensor):
            return False
        self._agreeing[key] = declared, shape  # which keeps their ids their own
        return True

    def all_agree(self, layer: Layer, outputs: Types) -> bool:
        return False not in [self.agrees(port, tensor) for port, tensor in zip(layer.outputs, outputs, strict=False)]

    def _compare_inputs(
        self, engine: Engine, layer: Layer, inputs: Sequence[TensorType], is_body: bool
    ) -> tuple[bool, bool]:
        """Report inputs that are declared otherwise.

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

    def _contradicted(self, engine: Engine, layer: Layer, outputs: Types) -> None:
        """Report outputs that are declared otherwise, and set those that are chosen to go on with."""
        chosen = list(outputs)
        is_own = isinstance(layer.operator, (Const, Parameter))  # the file itself says two things of it
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
                chosen[port.index] = self.chosen(port, tensor, is_own)
        set_outputs(layer, chosen)

    def compare_bodies(self, model: Model) -> None:
        """Report ports in bodies that are declared otherwise, once their types are final."""
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


def _refuse_surplus(engine: Engine, layer: Layer, count: int) -> None:
    """Report outputs that the operation does not have and that are read; others may be declared."""
    for port in layer.outputs[count:]:
        if port.readers:
            message = f"output port {port.id} is read, yet {layer.type} has {count} outputs here"
            engine.diagnostics.report(EDGE_PORT, message, port.place, port=port.id)
