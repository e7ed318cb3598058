"""Reads a model that may be at fault, or that has no weights, as far as it can be understood.

``read_model`` refuses such a file. Here what the file declares stands in where inference fails, so that one sees
every layer up to the fault and behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ovir.core.shapes import as_shape
from ovir.diagnostics.codes import CODES, NO_WEIGHTS, VARIABLE_TYPE, Severity
from ovir.diagnostics.collector import Diagnostics
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.errors import ModelError, ReadError
from ovir.graph.layers import Layer, Port
from ovir.graph.model import Model, ShapeLike
from ovir.inference.declared import about_other_shapes, reshape_undeclared
from ovir.inference.models import infer_into, reshaped_parameters, set_parameters
from ovir.ir.legacy import apply_legacy_io, check_names
from ovir.ir.reader import Document, load, without_garbage_collection
from ovir.ir.source import Source
from ovir.ops.state import AssignBase, FixedReadValue, ReadValueBase
from ovir.runtime.listeners import all_layers


@dataclass
class Recovered:
    """A model and its errors; warnings are in ``model.diagnostics``."""

    model: Model
    errors: list[Diagnostic]
    """What is wrong with it: errors of reading and of inference; none for a sound model."""
    declared: set[Port] = field(default_factory=set)
    """The output ports whose type is what the file declares, because inference does not find it."""
    read_errors: list[Diagnostic] = field(default_factory=list)
    """Those of the errors that reading has found."""
    lacks_weights: bool = False

    @property
    def states(self) -> dict[str, list[Layer]]:
        """Return the variables, each with the layers that read it."""
        found: dict[str, list[Layer]] = {}
        for layer in all_layers(self.model):
            if isinstance(op := layer.operator, ReadValueBase):
                found.setdefault(op.variable_id, []).append(layer)
        return found

    def reshape(self, shapes: Mapping[Any, ShapeLike], states: Mapping[str, ShapeLike] | None = None) -> None:
        """Give inputs, and states by name, other shapes and infer again; ``errors`` has what is then wrong.

        What the file declares is meant for its own shapes: for others it is neither used nor compared. A state of
        another shape is one in the midst of its life: its initial value and what is assigned to it, which is often
        longer, may be of other shapes. InputError for what is no input.
        """
        fixed = self._fix_states(states or {})
        if not self.errors and not states:
            try:
                reshape_undeclared(self.model, shapes)
            except ModelError:
                pass  # inferred once more below, where errors do not end it
            else:
                self.declared.clear()
                return
        earlier = self.model.inference_diagnostics
        set_parameters(reshaped_parameters(self.model, shapes))
        infer_into(self.model, found := Diagnostics())
        self.declared.clear()
        errors = (d for d in found.fatal if d.code != VARIABLE_TYPE.id or d.layer not in fixed)
        self.errors = [*self.read_errors, *errors]
        self.model.inference_diagnostics = about_other_shapes(earlier, found.non_fatal)

    def _fix_states(self, shapes: Mapping[str, ShapeLike]) -> set[str]:
        """Give states these shapes; return the titles of the layers that assign them."""
        readers = self.states
        for name, shape in shapes.items():
            for layer in readers[name]:
                fixed_type = layer.outputs[0].element_type
                layer.operator = FixedReadValue(
                    variable_id=name, variable_type=fixed_type, variable_shape=as_shape(shape)
                )
        layers = (layer for layer in all_layers(self.model) if isinstance(layer.operator, AssignBase))
        return {layer.title for layer in layers if layer.attributes.get("variable_id") in shapes}


def read_recovering(
    model: Source, weights: Any = None, *, need_weights: bool = True, legacy_io: bool = False
) -> Recovered:
    """Read a file as ``read_model`` does; errors are collected, not raised.

    Without ``need_weights`` no weights are opened; where there are none, a note says so. ReadError where no model can
    be read.
    """
    diagnostics = Diagnostics()
    with without_garbage_collection():
        document = load(model, weights, diagnostics, need_weights=need_weights)
        if document is None or any(CODES[d.code].unusable and d.code != NO_WEIGHTS.id for d in diagnostics):
            diagnostics.raise_errors(ReadError)
        assert document is not None
        lacks_weights = _note_missing_weights(diagnostics) or not need_weights
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


def _infer(result: Recovered, document: Document, diagnostics: Diagnostics, lacks_weights: bool) -> None:
    """Infer as ``read_model`` does, and if that fails with what is declared in place of what is in doubt."""
    if not diagnostics.fatal:
        infer_into(document.model, found := Diagnostics(), trust_declared=lacks_weights, declared=result.declared)
        if not found.fatal:
            diagnostics.extend(found)
            return
    from ovir.checks.checker import infer_recovering  # a sound model does not need it

    infer_recovering(document, diagnostics)
    result.declared.clear()
    infer_into(document.model, Diagnostics(), trust_declared=True, declared=result.declared)


def _note_missing_weights(diagnostics: Diagnostics) -> bool:
    """Make a note of the error that there are no weights; return whether there was one."""
    missing = [found for found in diagnostics if found.code == NO_WEIGHTS.id]
    for found in missing:
        diagnostics.discard(found)
        message = f"{found.message}; without them, what the file declares stands in for what depends on their values"
        diagnostics.add(replace(found, severity=Severity.INFO, message=message))
    return bool(missing)
