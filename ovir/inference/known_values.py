"""Computes the known values of outputs from the known values of inputs, when an operation asks for them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovir.core.element_types import string
from ovir.core.tensor_types import Evaluation, TensorType
from ovir.core.values import Value
from ovir.diagnostics.codes import INTERNAL, OUTSIDE_SPEC, Severity
from ovir.diagnostics.collector import Diagnostics
from ovir.diagnostics.errors import OperatorError
from ovir.diagnostics.kernel_warnings import reporting_to
from ovir.graph.layers import Layer
from ovir.inference.cache import InferenceCache, Inferred, inferred
from ovir.ops.base.budget import can_evaluate, can_fold
from ovir.ops.base.operator import Operator


class ValueLog:
    """Records faults of known values, which may be computed long after their layer was inferred."""

    def __init__(self, diagnostics: Diagnostics, *, follow_reported: bool = True) -> None:
        self.cache: InferenceCache | None = None
        """The cache of the current inference; None after it."""
        self._diagnostics = diagnostics
        self._follow_reported = follow_reported
        """Whether to use values about which a kernel issues a warning, because devices differ."""
        self.left_out = False
        """Whether a value was not used because of such a warning."""

    def report_failure(self, layer: Layer, error: Exception) -> None:
        """Report an exception that a kernel should not have raised, as a warning: types and shapes are right without
        the value."""
        message = f"ovir failed to compute the known value of the outputs: {type(error).__name__}: {error}"
        self._diagnostics.report(INTERNAL, message, layer.place, layer.fault_hint, severity=Severity.WARNING)

    def accepts(self, layer: Layer, reports: Sequence[str]) -> bool:
        """Return whether to use a value although the kernel issued a warning about it; if not, report the warning."""
        if self._follow_reported:
            return True
        self._diagnostics.report(OUTSIDE_SPEC, reports[-1], layer.place, severity=Severity.INFO)
        self.left_out = True
        return False


class KnownValues(Evaluation):
    """The deferred known values of one layer's outputs."""

    __slots__ = ("_layer", "_log", "_operator", "_outputs")

    def __init__(
        self,
        layer: Layer,
        operator: Operator,
        inputs: Sequence[TensorType],
        outputs: Sequence[TensorType],
        log: ValueLog,
    ) -> None:
        super().__init__(inputs)
        self._layer = layer
        self._operator = operator
        self._outputs = outputs
        self._log = log

    def compute(self) -> Sequence[Value | None]:
        """Return the known values of all outputs."""
        cache = self._log.cache
        return self._computed()[0] if cache is None else cache.values(self._operator, self.inputs, self._computed)

    def _computed(self) -> tuple[Sequence[Value | None], bool]:
        """Return the known values, and whether the kernel issued no warning. Layers with a warning share nothing, so
        that each of them is reported."""
        nothing = (None,) * len(self._outputs)
        reports: list[str] = []
        try:
            with np.errstate(all="ignore"), reporting_to(lambda code, message: reports.append(message)):
                values = _values_of(self._operator, self.inputs, self._outputs)
        except OperatorError:
            return nothing, True  # a run of the layer reports it with the values
        except Exception as error:
            self._log.report_failure(self._layer, error)
            return nothing, False
        if values is None or (reports and not self._log.accepts(self._layer, reports)):
            values = nothing
        return values, not reports


def with_known_values(
    layer: Layer, op: Operator, inputs: Sequence[TensorType], found: Inferred, log: ValueLog
) -> tuple[TensorType, ...]:
    """Return the outputs, with deferred known values if anything can be known of them."""
    outputs = found.outputs
    read = op.with_elements_read(inputs)
    if not found.is_small or (read and not any(tensor.may_have_value for tensor in read)):
        return outputs
    if any(tensor.may_have_value for tensor in outputs) or not can_evaluate(op, inputs, outputs):
        return outputs
    evaluation = KnownValues(layer, op, inputs, outputs, log)
    return tuple([tensor.deferred(evaluation, index) for index, tensor in enumerate(outputs)])


def infer_with_values(op: Operator, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
    """Infer an operation that belongs to no model; return its outputs with deferred known values."""
    layer = Layer(0, "", op.type, "")  # stands in for the layer in messages, which nobody reads
    return with_known_values(layer, op, inputs, inferred(op.infer(*inputs)), ValueLog(Diagnostics()))


def _values_of(
    op: Operator, inputs: Sequence[TensorType], outputs: Sequence[TensorType]
) -> Sequence[Value | None] | None:
    applied = op.applied(inputs, outputs)
    if inputs and can_fold(op, inputs, outputs):
        result = applied.run(*(tensor.constant for tensor in inputs))
        return [Value(array) for array in (result if isinstance(result, tuple) else (result,))]
    if not all(t.shape.is_static and t.element_type != string for t in outputs):  # strings have no bounds
        return None
    found = applied.infer_value(*inputs)
    return found if found is None or isinstance(found, tuple) else (found,)
