"""Reads a model that may be at fault, or that has no weights, as far as it can be understood.

``read_model`` refuses such a file. Here inference continues with the declared types after a fault, so that every layer
before and after it can be shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ovir.core.shapes import ShapeLike, as_shape
from ovir.diagnostics.codes import CODES, NO_WEIGHTS, VARIABLE_TYPE, Severity
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.errors import Diagnostics, ReadError
from ovir.graph.layers import Layer, Port
from ovir.inference.differences import about_other_shapes
from ovir.inference.engines import set_outputs
from ovir.inference.missing_data import without_undecided
from ovir.inference.models import infer_into, reshaped_parameters, set_parameters
from ovir.ir.legacy import apply_legacy_io, check_names
from ovir.ir.reader import Document, load
from ovir.ir.source import Source
from ovir.model import Model
from ovir.ops.infrastructure import Parameter
from ovir.ops.state import AssignBase, FixedReadValue, ReadValueBase
from ovir.system.python_runtime import without_garbage_collection


@dataclass
class Recovered:
    """A model and its errors; warnings are in ``model.diagnostics``."""

    model: Model
    errors: list[Diagnostic]
    """The errors of reading and of inference; empty for a valid model."""
    declared: set[Port] = field(default_factory=set)
    """The output ports whose type is only declared, because inference could not find it."""
    read_errors: list[Diagnostic] = field(default_factory=list)
    """The errors that reading reported."""
    lacks_weights: bool = False

    @property
    def states(self) -> dict[str, list[Layer]]:
        """Return the variables, each with the layers that read it."""
        by_variable: dict[str, list[Layer]] = {}
        for layer in self.model.walk():
            if isinstance(op := layer.operator, ReadValueBase):
                by_variable.setdefault(op.variable_id, []).append(layer)
        return by_variable

    def reshape(self, shapes: Mapping[Any, ShapeLike], states: Mapping[str, ShapeLike] | None = None) -> None:
        """Set the shapes of inputs, and of states by name, infer again and update ``errors``.

        Declared types belong to the shapes of the file: for other shapes they are neither used nor compared. A state
        with a given shape is one between two runs: its initial value and the value assigned to it, which is often
        longer, may have other shapes. Raise InputError for an unknown input.
        """
        self.model.prepare_change()
        wanted = reshaped_parameters(self.model, shapes)
        fixed = self._fix_states(states or {})
        earlier = self.model.inference_diagnostics
        set_parameters(wanted)
        with without_garbage_collection():
            infer_into(self.model, of_inference := Diagnostics())
        self.declared.clear()
        errors = without_undecided(self.model, of_inference.fatal)
        errors = [d for d in errors if d.code != VARIABLE_TYPE.id or d.layer not in fixed]
        self.errors = [*self.read_errors, *errors]
        self.model.inference_diagnostics = about_other_shapes(earlier, of_inference.non_fatal)

    def _fix_states(self, shapes: Mapping[str, ShapeLike]) -> set[str]:
        """Set the shapes of states; return the titles of the layers that assign them."""
        readers = self.states
        for name, shape in shapes.items():
            for layer in readers[name]:
                kind = layer.outputs[0].element_type
                layer.operator = FixedReadValue(variable_id=name, variable_type=kind, variable_shape=as_shape(shape))
        layers = (layer for layer in self.model.walk() if isinstance(layer.operator, AssignBase))
        return {layer.title for layer in layers if layer.attributes.get("variable_id") in shapes}


def read_recovering(
    model: Source, weights: Any = None, *, need_weights: bool = True, legacy_io: bool = False
) -> Recovered:
    """Read a file like ``read_model``, but collect errors instead of raising them.

    Without ``need_weights`` no weights are opened. Missing weights are reported as info. Raise ReadError if no model
    can be read.
    """
    diagnostics = Diagnostics()
    with without_garbage_collection():
        document = load(model, weights, Model, diagnostics, need_weights=need_weights)
        if document is None or any(CODES[d.code].unusable and d.code != NO_WEIGHTS.id for d in diagnostics):
            diagnostics.raise_errors(ReadError)
        assert document is not None
        missing = [d for d in diagnostics if d.code == NO_WEIGHTS.id]
        for d in missing:
            diagnostics.discard(d)
            message = f"{d.message}; without them, types that depend on their values are those that the file declares"
            diagnostics.add(replace(d, severity=Severity.INFO, message=message))
        lacks_weights = bool(missing) or not need_weights
        result = Recovered(document.model, [], read_errors=diagnostics.fatal, lacks_weights=lacks_weights)
        _infer(result, document, diagnostics, lacks_weights)
        if document.model.version == 10:
            check_names(document.model, diagnostics)
            if legacy_io and not diagnostics.fatal:
                apply_legacy_io(document.model)
                result.declared.clear()
                infer_into(document.model, diagnostics, trust_declared=lacks_weights, declared=result.declared)
    result.errors = diagnostics.fatal
    document.model.inference_diagnostics = []
    document.model.read_diagnostics = diagnostics.non_fatal
    return result


def _infer(result: Recovered, document: Document[Model], diagnostics: Diagnostics, lacks_weights: bool) -> None:
    """Infer like ``read_model``; if that fails, infer again with declared types where types are in doubt."""
    refusals = None
    if not (diagnostics.fatal or lacks_weights):
        infer_into(document.model, of_inference := Diagnostics(), declared=result.declared)
        if not of_inference.fatal:
            diagnostics.extend(of_inference)
            return
        refusals = of_inference.fatal
    from ovir.checks.checker import infer_recovering  # a valid model does not need it

    result.declared.clear()
    infer_recovering(document, diagnostics, result.declared, refusals)
    # Parameters have the types that they have themselves, whatever their ports declare. Layers after them are inferred
    # from what the ports declare where readers agree with these.
    for layer in result.model.layers:
        if isinstance(layer.operator, Parameter) and not result.declared.isdisjoint(layer.outputs):
            set_outputs(layer, [layer.operator.infer()])
            result.declared.difference_update(layer.outputs)
