"""Inference of models with faults, where each fault should give one diagnostic.

Declared types replace inferred ones if inference failed or had doubtful inputs.
"""

from __future__ import annotations

from collections.abc import Sequence

from ovir.core.tensor_types import TensorType
from ovir.diagnostics.collector import Diagnostics
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.graph.layers import Layer, Port
from ovir.inference.declared import agrees, declared_type, has_declared
from ovir.inference.engine import Engine, Types
from ovir.inference.known_values import ValueLog
from ovir.inference.policy import Policy
from ovir.ops.base.operator import Operator
from ovir.ops.infrastructure import Const


class RecoveringPolicy(Policy):
    """Continues with what the file declares if that is more reliable than what is inferred."""

    def __init__(self, diagnostics: Diagnostics, ir_version: int, log: ValueLog) -> None:
        super().__init__(diagnostics, ir_version)
        self._log = log
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

    def inference_failed(self, engine: Engine, layer: Layer) -> None:
        """Look for further faults in the bodies of a layer, starting from the declared types of their parameters."""
        if not layer.scope:  # inside bodies, this would double the time with each level
            for body in layer.bodies.values():
                engine.infer(body)

    def reconsider(
        self,
        engine: Engine,
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
            engine.diagnostics.extend(found)  # OpenVINO would refuse the file for this
        declared = list(inputs)
        for i, port in enumerate(layer.inputs):
            if port.source in self.doubtful or not agrees(port, inputs[i]):
                if not has_declared(port):
                    return None, []  # these diagnostics may be consequences of an earlier one
                declared[i] = declared_type(port)
        outputs, found = engine.attempt(layer, declared)
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
