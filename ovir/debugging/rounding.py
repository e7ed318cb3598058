"""Prove that a model and its export differ by rounding alone: where they round to different numbers, a tie is near."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovir.analysis.tensor_comparison import Criterion, Depth, Tolerance, root_mean_square
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, f32
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.debugging.layerwise_run import run_measured
from ovir.diagnostics.errors import OvirError
from ovir.export.exported import Exported
from ovir.export.model_exporter import export_model
from ovir.export.session import OnnxRuntimeSession
from ovir.graph.layers import Layer, sources_of
from ovir.model import Model
from ovir.ops.base.operator import Operator
from ovir.ops.color import ColorBase
from ovir.ops.interpolate import InterpolateBase
from ovir.ops.unary import RoundingBase


def rounding_layers(model: Model) -> list[Layer]:
    """Return the layers outside of bodies that round numbers to few values, in order."""
    return [layer for layer in model.layers if not layer.is_dead and (_rounds_input(layer) or _rounds_result(layer))]


def _rounds_input(layer: Layer) -> bool:
    """Return whether the output is input 0, real numbers, rounded: larger inputs never give smaller outputs."""
    op = layer.operator
    if op is None or not layer.inputs or not layer.inputs[0].element_type.is_real:
        return False
    narrows = op.converts and layer.outputs[0].element_type.is_integral
    return op.quantizes or narrows or isinstance(op, RoundingBase)


def _rounds_result(layer: Layer) -> bool:
    """Return whether real numbers are computed of the integers of an image, and rounded to integers."""
    is_image = isinstance(layer.operator, (ColorBase, InterpolateBase))
    return is_image and layer.outputs[0].element_type.is_integral


def differ_by_rounding(
    model: Model, exported: Exported, inputs: Sequence[Array], found: Sequence[Array], criterion: Criterion
) -> bool:
    """Return whether the differences of an export from its model, which has no variables, are proven to be rounding.

    The export runs once more and also returns what each rounding layer gives; its outputs must be those that were
    ``found``. Then ovir computes each piece of the model from the numbers that the export has rounded to. If all
    outputs are within tolerance, and each number that was rounded otherwise is within tolerance of a tie, nothing else
    differs.
    """
    layers = rounding_layers(model)
    try:
        rounded = _rounded_by_export(model, exported, inputs, found, layers)
        return rounded is not None and _is_explained(model, inputs, found, layers, rounded, criterion)
    except OvirError:  # the pieces cannot be exported or inferred alone, so that nothing is proven
        return False


def _rounded_by_export(
    model: Model, exported: Exported, inputs: Sequence[Array], found: Sequence[Array], layers: Sequence[Layer]
) -> list[Array] | None:
    """Return the export's results of rounding layers; None if its outputs differ from those of the first run."""
    tapped = model.clone()
    added = tapped.add_outputs([tapped.layer(layer.key).outputs[0] for layer in layers])
    positions = [tapped.outputs.index(port) for port in added]
    opsets = exported.onnx.opset_imports
    again = export_model(tapped, opsets[""], contrib="com.microsoft" in opsets)
    arrays = OnnxRuntimeSession(again).run(again.feeds(inputs), again.outputs)
    if not all(np.array_equal(a, b) for a, b in zip(arrays, found, strict=False)):
        return None
    return [arrays[position] for position in positions]


def _is_explained(
    model: Model,
    inputs: Sequence[Array],
    found: Sequence[Array],
    layers: Sequence[Layer],
    rounded: Sequence[Array],
    criterion: Criterion,
) -> bool:
    given = dict(zip(model.inputs, inputs, strict=True))
    given |= {layer.outputs[0]: array for layer, array in zip(layers, rounded, strict=True)}
    ends = [port.source for port in model.outputs if port.source is not None]
    read = [port for layer in layers for port in sources_of(layer)]
    computed = [port for port in dict.fromkeys([*read, *ends]) if port not in given]
    values, depths = dict(given), dict.fromkeys(given, Depth())
    if computed:
        part = model.extract(list(given), computed)
        results, found_depths = run_measured(part, list(given.values()))
        values |= zip(computed, results, strict=True)
        depths |= zip(computed, (found_depths.of_port(port.source) for port in part.outputs), strict=True)
    if not all(
        criterion.compare(array, values[end], criterion.tolerance(end.element_type, depths[end])).within
        for end, array in zip(ends, found, strict=True)
    ):
        return False
    for layer, array in zip(layers, rounded, strict=True):
        tolerance = criterion.tolerance(f32, depths[sources_of(layer)[0]])
        if not _rounds_near_ties(layer, [values[port] for port in sources_of(layer)], array, tolerance):
            return False
    return True


def _rounds_near_ties(layer: Layer, inputs: Sequence[Array], rounded: Array, tolerance: Tolerance) -> bool:
    """Return whether a layer may give these numbers for numbers within a tolerance of its inputs, or of its results
    before they are rounded: towards zero or to the nearest integer, as far as the layer's own numbers show which."""
    op, result_type = layer.operator, layer.outputs[0].element_type
    assert op is not None
    actual = rounded.astype(np.float64)
    if _rounds_input(layer):
        data, *rest = (x.astype(np.float32) if ElementType.from_dtype(x.dtype).is_real else x for x in inputs)
        room = _room(data, tolerance)
        ends = [_computed(op, [(data + sign * room).astype(np.float32), *rest]) for sign in (-1, 1)]
        slack = np.maximum(*(_room(end, tolerance) for end in ends)) if result_type.is_real else 0.0
        low, high = np.minimum(*ends) - slack, np.maximum(*ends) + slack
        return bool(((low <= actual) & (actual <= high)).all())
    images = len(inputs) if isinstance(op, ColorBase) else 1
    result = _computed(op, [x.astype(np.float32) if i < images else x for i, x in enumerate(inputs)])
    room, limits = _room(result, tolerance), np.iinfo(result_type.to_dtype())
    low, high = (np.clip(end, limits.min, limits.max) for end in (result - room, result + room))
    ways = [(np.trunc(low), np.trunc(high)), (np.ceil(low - 0.5), np.floor(high + 0.5))]
    of_model = _computed(op, inputs)
    usable = [(low, high) for low, high in ways if ((low <= of_model) & (of_model <= high)).all()]
    return bool(usable) and all(((low <= actual) & (actual <= high)).all() for low, high in usable)


def _room(array: Array, tolerance: Tolerance) -> Array:
    """Return the allowed errors of numbers."""
    room: Array = tolerance.atol + tolerance.rtol * (np.abs(array.astype(np.float64)) + root_mean_square(array))
    return room


def _computed(op: Operator, inputs: Sequence[Array]) -> Array:
    """Return the output of an operation for arrays of other types than in its model."""
    types = [TensorType(ElementType.from_dtype(x.dtype), PartialShape(x.shape)) for x in inputs]
    outputs = op.infer(*types)
    applied = op.applied(types, [outputs] if isinstance(outputs, TensorType) else outputs)
    with np.errstate(all="ignore"):
        result = applied.run(*inputs)
    return np.asarray(result if not isinstance(result, tuple) else result[0]).astype(np.float64)
