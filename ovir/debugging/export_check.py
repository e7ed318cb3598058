"""Compare an exported model with the model itself: both run on the same inputs, with the same state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ovir.analysis.tensor_comparison import Criterion, TensorComparison
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.core.json_fields import json_fields
from ovir.debugging.layerwise_run import Depths, Walk, WalkPlan
from ovir.debugging.rounding import differ_by_rounding, rounding_layers
from ovir.diagnostics.errors import RunError
from ovir.diagnostics.wording import plural
from ovir.editing.states import expose_states
from ovir.export.exported import Exported
from ovir.export.session import OnnxRuntimeSession, OnnxSession, ReferenceSession
from ovir.graph.layers import Layer
from ovir.inference.engines import state_readers
from ovir.model import Model
from ovir.runtime.inputs import collect_inputs

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
        head = json_fields(self, "name", "type=element_type", "call")
        return head | json_fields(self.found, "within", "max_abs", "max_rel", "beyond", "lone", "problem")


@dataclass(frozen=True)
class Verification:
    """The comparison of an exported model with the model."""

    engine: str
    """The engine that ran the exported model."""
    outputs: list[VerifiedOutput]
    reason: str | None = None
    """The reason why onnxruntime did not run it; None if it did."""
    rounding: str | None = None
    """The proof that differences beyond the tolerance come from rounding alone; None without one."""

    @property
    def within(self) -> bool:
        """Return whether all outputs are within the tolerance."""
        return all(output.found.within for output in self.outputs)

    @property
    def agrees(self) -> bool:
        """Return whether all outputs are within the tolerance, or their differences are proven to be rounding."""
        return self.within or self.rounding is not None


def verify_export(model: Model, exported: Exported, inputs: Sequence[Array]) -> Verification:
    """Run a model and its export on the same inputs, and compare the outputs and the new values of variables.

    onnxruntime runs the export if it is installed and has all kernels, otherwise the reference implementation of onnx.
    A model with variables is called twice if they keep their shapes; other variables grow, and the inputs of the second
    call would have to grow with them. Raise RunError if neither engine, or ovir itself, can run the model.
    """
    criterion = Criterion()
    try:
        session: OnnxSession = OnnxRuntimeSession(exported)
        calls = list(_calls(model, exported, inputs, session, criterion))
        outputs = [output for call in calls for output in call.outputs]
        is_within = all(output.found.within for output in outputs)
        rounding = None if is_within else _rounding(model, exported, calls, criterion)
        return Verification("onnxruntime", outputs, None, rounding)
    except ImportError:
        reason = "onnxruntime is not installed"
    except RunError as error:
        reason = error.diagnostic.message
    calls = list(_calls(model, exported, inputs, ReferenceSession(exported), criterion))
    return Verification("onnx.reference", [output for call in calls for output in call.outputs], reason)


@dataclass(frozen=True)
class _Call:
    """A call of the exported model."""

    given: list[Array]
    """The inputs, and the variables before the call."""
    found: list[Array]
    """The outputs, and the variables after the call."""
    outputs: list[VerifiedOutput]


def _rounding(model: Model, exported: Exported, calls: Sequence[_Call], criterion: Criterion) -> str | None:
    """Return the proof that the outputs of all calls differ by rounding alone; None if there is none."""
    stateless = model.clone()
    inputs, outputs = stateless.inputs, stateless.outputs
    states = expose_states(stateless)
    layers = rounding_layers(stateless)
    if not layers or not states.keys() >= {*exported.state_inputs, *exported.state_outputs}:
        return None
    inputs = [*inputs, *(states[name].past for name in exported.state_inputs)]
    outputs = [*outputs, *(port for name in exported.state_outputs if (port := states[name].present) is not None)]
    for call in calls:
        fed, actual = dict(zip(inputs, call.given, strict=True)), dict(zip(outputs, call.found, strict=True))
        arrays = [fed[port] for port in stateless.inputs], [actual[port] for port in stateless.outputs]
        if not differ_by_rounding(stateless, exported, *arrays, criterion):
            return None
    return (
        f"the differences come from rounding, in {plural(len(layers), 'layer')}, first in {layers[0].title}: where the "
        "export rounds otherwise, the number is within tolerance of a tie, and from the numbers that the export has "
        "rounded to, ovir computes the same outputs"
    )


def _calls(
    model: Model, exported: Exported, inputs: Sequence[Array], session: OnnxSession, criterion: Criterion
) -> Iterator[_Call]:
    readers = state_readers(model.layers)
    plan = WalkPlan(model, with_constants=False, keeps_state=True, wanted=readers.values())
    wanted = [*exported.outputs, *exported.state_outputs.values()]
    for call in range(CALLS_WITH_STATE if readers else 1):
        walk, depths = Walk(plan, collect_inputs(model, list(inputs), model.input_index)), Depths()
        before: dict[Layer, Array] = {}
        for step in walk:
            depths.of(step)
            if step.layer in readers.values():
                before[step.layer] = step.outputs[0].copy()
        states = [before[readers[name]] for name in exported.state_inputs]
        found = session.run(exported.feeds((*inputs, *states)), wanted)
        values = {name: plan.variables.named(name).value for name in readers}
        references = [*walk.finish(), *(values[name] for name in exported.state_outputs)]
        ways = [depths.of_port(port.source) for port in model.outputs]
        ways += [depths.longest] * len(exported.state_outputs)
        outputs = []
        for name, actual, reference, depth in zip(wanted, found, references, ways, strict=True):
            assert reference is not None
            element_type = ElementType.from_dtype(reference.dtype)
            tolerance = criterion.tolerance(element_type, depth)
            outputs.append(VerifiedOutput(name, element_type, call, criterion.compare(actual, reference, tolerance)))
        yield _Call([*inputs, *states], found, outputs)
        after = [values.get(name) for name in exported.state_inputs]
        if any(new is not None and new.shape != old.shape for new, old in zip(after, states, strict=True)):
            return
