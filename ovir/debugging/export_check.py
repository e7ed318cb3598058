"""Compare an exported model with the model itself: both run on the same inputs, with the same state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.debugging.tensor_comparison import Criterion, Depth, TensorComparison
from ovir.debugging.walk import Depths, deepest
from ovir.diagnostics.errors import RunError
from ovir.diagnostics.wording import plural
from ovir.export.exported import Exported
from ovir.export.session import OnnxRuntimeSession, OnnxSession, ReferenceSession
from ovir.graph.layers import Layer
from ovir.model import Model
from ovir.ops.state import ReadValueBase
from ovir.runtime.compiled import CompiledModel
from ovir.runtime.executor import SeenStep

CALLS_WITH_STATE = 2
"""The number of calls in a row of a model whose variables keep their shapes."""


@dataclass(frozen=True)
class VerifiedOutput:
    """An output of the exported model, or the new value of a variable, compared with ovir's."""

    name: str
    element_type: ElementType
    call: int
    found: TensorComparison

    def to_dict(self) -> dict[str, Any]:
        """Return the output for JSON."""
        return {
            "name": self.name,
            "type": str(self.element_type),
            "call": self.call,
            "within": self.found.within,
            "max_abs": self.found.max_abs,
            "max_rel": self.found.max_rel,
            "beyond": self.found.beyond,
            "problem": self.found.problem,
        }


@dataclass(frozen=True)
class Verification:
    """The comparison of an exported model with the model."""

    engine: str
    """Which engine has run the exported model."""
    outputs: list[VerifiedOutput]
    reason: str | None = None
    """Why onnxruntime has not run it; None if it has."""
    rounding: str | None = None
    """How a correct export may differ beyond the tolerance; None for a model that rounds nothing to few values."""

    @property
    def within(self) -> bool:
        """Return whether all outputs are within the tolerance."""
        return all(output.found.within for output in self.outputs)


def verify_export(
    model: Model, exported: Exported, inputs: Sequence[Array], criterion: Criterion | None = None
) -> Verification:
    """Run a model and its export on the same inputs, and compare the outputs and the new values of variables.

    onnxruntime runs the export if it is installed and has all kernels, otherwise the reference implementation of onnx.
    A model with variables is called twice if they keep their shapes; other variables grow, and the inputs of the second
    call would have to grow with them. Raise RunError if neither engine, or ovir itself, can run the model.
    """
    criterion = criterion or Criterion()
    rounding = _rounding(model)
    try:
        session: OnnxSession = OnnxRuntimeSession(exported)
        return Verification("onnxruntime", list(_compared(model, exported, inputs, session, criterion)), None, rounding)
    except ImportError:
        reason = "onnxruntime is not installed"
    except RunError as error:
        reason = error.diagnostic.message
    outputs = list(_compared(model, exported, inputs, ReferenceSession(exported), criterion))
    return Verification("onnx.reference", outputs, reason, rounding)


def _rounding(model: Model) -> str | None:
    """Return a warning about differences in the last digit for a model that rounds to few values; None for others."""
    layers = [layer for layer in model.walk() if layer.operator is not None and layer.operator.quantizes]
    if not layers:
        return None
    return (
        f"the model rounds to few values in {plural(len(layers), 'layer')}, first in {layers[0].title}. Where a number "
        "lies halfway between two of them, its last digit decides, so that a correct export may differ by a rounding "
        "step in a few places"
    )


def _compared(
    model: Model, exported: Exported, inputs: Sequence[Array], session: OnnxSession, criterion: Criterion
) -> Iterator[VerifiedOutput]:
    request = CompiledModel(model).create_infer_request()
    readers = {op.variable_id: layer for layer in model.layers if isinstance(op := layer.operator, ReadValueBase)}
    keys = [readers[name].key for name in exported.state_inputs]
    kept = {value.name for value in exported.onnx.graph.inputs}
    wanted = [*exported.outputs, *exported.state_outputs.values()]
    for call in range(CALLS_WITH_STATE if readers else 1):
        depths = _Depths()
        results = request.infer(list(inputs), taps=keys, listeners=[depths])
        states = [results.taps[key][0] for key in keys]
        feeds = dict(zip((*exported.inputs, *exported.state_inputs.values()), (*inputs, *states), strict=True))
        found = session.run({name: array for name, array in feeds.items() if name in kept}, wanted)
        values = {variable.name: variable.value for variable in request.query_state()}
        references = [*results.values(), *(values[name] for name in exported.state_outputs)]
        ways = [depths.found.of_port(port.source) for port in model.outputs]
        ways += [deepest(depths.all)] * len(exported.state_outputs)
        for name, actual, reference, depth in zip(wanted, found, references, ways, strict=True):
            assert reference is not None
            element_type = ElementType.from_dtype(reference.dtype)
            tolerance = criterion.tolerance(element_type, depth)
            yield VerifiedOutput(name, element_type, call, criterion.compare(actual, reference, tolerance))
        after = [values.get(name) for name in exported.state_inputs]
        if any(new is not None and new.shape != old.shape for new, old in zip(after, states, strict=True)):
            return


class _Depths:
    """Follows how many layers and sums a tensor has gone through."""

    def __init__(self) -> None:
        self.found = Depths()
        self.all: list[Depth] = []

    def will_run(self, layer: Layer, inputs: Sequence[Array]) -> None:
        pass

    def did_run(self, layer: Layer, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        if layer.owner is not None and not layer.scope:
            self.all.append(self.found.of(SeenStep(layer, [np.asarray(a) for a in inputs], list(outputs))))
