"""Infers whole models, and infers them again for other shapes of their inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ovir.core.shapes import Dimension, ShapeLike, as_shape
from ovir.diagnostics.codes import VARIABLE_TYPE
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.errors import Diagnostics, InputError, ModelError
from ovir.diagnostics.wording import quoted
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port, ReadOnlyDict
from ovir.inference.engines import ComparingEngine
from ovir.ops.base.operator import Operator
from ovir.ops.infrastructure import Parameter
from ovir.ops.state import ReadValueBase
from ovir.system.python_runtime import without_garbage_collection


def infer_shapes(model: LayerGraph) -> None:
    """Infer a model; see ``Model.infer_shapes``."""
    model.require_depth()
    model.prepare_change()
    with without_garbage_collection():
        model.inference_diagnostics = infer_model(model)


def infer_if_edited(model: LayerGraph) -> None:
    """Infer a model if it or a body has been edited since its last inference."""
    if any(graph.needs_inference for graph in model.graphs()):
        infer_shapes(model)


def infer_model(model: LayerGraph) -> list[Diagnostic]:
    """Infer every port of a model; return the warnings and infos.

    Raises ModelError with all errors.
    """
    diagnostics = Diagnostics()
    infer_into(model, diagnostics)
    diagnostics.raise_errors()
    return diagnostics.non_fatal


def infer_into(
    model: LayerGraph, diagnostics: Diagnostics, *, trust_declared: bool = False, declared: set[Port] | None = None
) -> list[Diagnostic]:
    """Infer every port of a model and add all diagnostics to ``diagnostics``; return those that are not errors.

    With ``trust_declared``, inference recovers from errors by using what the file declares, so that one fault gives one
    diagnostic. Output ports with a declared type instead of an inferred one are added to ``declared``.
    """
    model.revision += 1
    of_model = Diagnostics()
    engine = ComparingEngine(of_model, model.version, recovers=trust_declared)
    engine.infer(model)
    engine.compare_bodies(model)
    if declared is not None:
        declared |= engine.declared
    for graph in model.graphs():
        graph.needs_inference = bool(of_model.fatal)
    diagnostics.extend(of_model)
    return of_model.non_fatal


def reshape(model: LayerGraph, shapes: Mapping[Any, ShapeLike] | ShapeLike) -> None:
    """Give inputs other shapes and infer again; see ``Model.reshape``.

    Within a block of edits, which infers at its end, only the shapes are set.
    """
    model.require_depth()
    model.prepare_change()
    with without_garbage_collection():
        wanted = reshaped_parameters(model, shapes)
        if model.open_edits is not None:
            set_parameters(wanted)
            model.needs_inference = True
            return
        before = {port.layer: port.layer.operator for port in model.inputs}
        try:
            set_parameters(wanted)
            model.inference_diagnostics = infer_model(model)
        except Exception:
            set_parameters({layer: op for layer, op in before.items() if isinstance(op, Parameter)})
            infer_model(model)
            raise


def infer_for_call(
    model: LayerGraph, shapes: Sequence[ShapeLike], states: Mapping[str, Iterable[int | Dimension] | None]
) -> None:
    """Infer a model for one call: for the shapes of its inputs, in order, and of the values of variables before it.

    A variable that has no value yet (None) has the type of its initial value. Raises ModelError; that a variable is
    assigned a value of another shape is not an error.
    """
    for layer in model.layers:
        if isinstance(op := layer.operator, ReadValueBase) and op.variable_id in states:
            declared = layer.outputs[0].type
            layer.operator = op.at_state(states[op.variable_id], declared, has_initial=bool(layer.inputs))
    set_parameters(reshaped_parameters(model, dict(enumerate(shapes))))
    diagnostics = Diagnostics()
    infer_into(model, diagnostics)
    if errors := [d for d in diagnostics.fatal if d.code != VARIABLE_TYPE.id]:
        raise ModelError(*errors)


def reshaped_parameters(
    model: LayerGraph, shapes: Mapping[str | int | Port, ShapeLike] | ShapeLike
) -> dict[Layer, Parameter]:
    """Return the Parameters with other shapes, by layer; raise InputError for a key that is not an input.

    A single shape is the one of the only input.
    """
    if not isinstance(shapes, Mapping):
        if len(model.inputs) != 1:
            names = quoted(port.any_name for port in model.inputs) or "none"
            raise InputError.usage(
                f"say for which input the shape {as_shape(shapes)} is; the model's inputs are {names}"
            )
        shapes = {0: shapes}
    wanted: dict[Layer, Parameter] = {}
    for key, shape in shapes.items():
        layer = model.inputs[model.input_index(key)].layer
        if layer in wanted:
            raise InputError.usage(f"input {key!r} is given a shape twice; the keys are {list(shapes)}")
        wanted[layer] = _reshaped(layer.operator, key, shape)
    return wanted


def _reshaped(operator: Operator | None, key: str | int | Port, shape: ShapeLike) -> Parameter:
    """Return the Parameter with another shape; InputError if the shape is invalid."""
    if not isinstance(operator, Parameter):
        message = f"the shape of input {key!r} cannot be set: its Parameter could not be read"
        raise InputError.usage(message)
    try:
        return Parameter(element_type=operator.element_type, shape=as_shape(shape))
    except (ValueError, TypeError) as error:
        raise InputError.usage(f"invalid shape for input {key!r}: {error}") from None


def set_parameters(parameters: Mapping[Layer, Parameter]) -> None:
    """Replace the Parameters of layers; nothing is inferred."""
    for layer, operator in parameters.items():
        layer.operator = operator
        declared = {"element_type": operator.element_type, "shape": operator.shape}
        layer.attributes = ReadOnlyDict(layer.attributes | declared)
