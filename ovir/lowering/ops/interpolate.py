"""Interpolate."""

from __future__ import annotations

from ovir import opset7 as ops
from ovir.core.element_types import ElementType, f32, f64, i64, value_range
from ovir.graph.layers import Layer, LayerOrPort, Port
from ovir.lowering.registry import lowers
from ovir.lowering.sizes import below, known, older, part, polynomial, rank, scalar, size, sums, taps_of, tensor
from ovir.ops.interpolate import Interpolate11


@lowers("Interpolate", 11)
def interpolate_11(op: Interpolate11, image: Port, target: Port, axes: Port | None = None) -> LayerOrPort:
    """Give sizes and scales in two inputs; the older version reads only one of them."""
    if op.mode.endswith("_pillow"):
        return _as_pillow(op, image, target, axes)
    resized = range(rank(image, "image")) if axes is None else known(axes, "axes")
    before, after = ([shape[axis] for axis in resized] for shape in (image.shape, op.output_shapes[0]))
    is_known = all(dim.is_static for dim in (*before, *after))
    sizes: LayerOrPort = ops.constant([dim.length if is_known else 1 for dim in after], "i64")
    ratios = [new.length / max(old.length, 1) if is_known else 1.0 for old, new in zip(before, after, strict=True)]
    scales: LayerOrPort = ops.constant(ratios, "f32")
    sizes, scales = (sizes, target) if op.by_scales else (target, scales)
    return older(op, 4, image, sizes, scales, *([] if axes is None else [axes]))


def _as_pillow(op: Interpolate11, image: Port, target: Port, axes: Port | None) -> LayerOrPort:
    """Add the weighted pixels of one axis after the other up; integers are rounded after each."""
    own, last = image.element_type, rank(image, "image") - 1
    is_wide = own == f64 or (own.is_integral and own.bits >= 32)
    begin, end = op.pads(last + 1, [])
    computed = f64 if is_wide else f32
    result: LayerOrPort = ops.convert(image, computed)
    if any((*begin, *end)):
        result = ops.pad(result, begin, end, "constant")
    for index, axis in reversed(list(enumerate(range(last + 1) if axes is None else known(axes, "axes")))):
        before, after = tensor(result).shape[axis], op.output_shapes[0][axis]
        if before.is_static and before == after:
            continue
        wanted = [after.length] if after.is_static else part(target, 0, index, index + 1)
        weights = _pillow_weights(op, size(result, axis), wanted, computed)
        numbers = ops.unsqueeze(below(size(result, axis)), [1])
        is_read = ops.greater(ops.abs(weights), scalar(1e-12, computed))  # a weight of 0 may be rounded
        starts = ops.reduce_min(ops.select(is_read, numbers, size(result, axis)), [0])
        stops = ops.reduce_max(ops.select(is_read, ops.add(numbers, [1]), scalar(0, i64)), [0])
        taps, counted = taps_of(starts, stops)
        result = sums(result, axis, taps, counted, ops.gather_elements(ops.transpose(weights, [1, 0]), taps, 1))
        if own.is_integral:
            rounded = ops.round(result, "half_away_from_zero")
            result = rounded if is_wide else ops.clamp(rounded, *value_range(own))
    return ops.convert(result, own)


def _pillow_weights(
    op: Interpolate11, size_of_axis: Layer, wanted: LayerOrPort | list[int], element_type: ElementType
) -> LayerOrPort:
    """Return the weight [size, count] of each pixel in each pixel of the result; ``wanted`` is a size, or a scale that
    only a run shows."""
    one, half = scalar(1, f64), scalar(0.5, f64)
    length = ops.squeeze(ops.convert(size_of_axis, f64), [0])
    count = ops.squeeze(ops.convert(wanted, f64), [0])
    if op.by_scales and not isinstance(wanted, list):
        count = ops.floor(ops.multiply(ops.add(count, scalar(1e-6, f64)), length))
    scale = ops.divide(length, count)
    places, centers = (ops.add(ops.convert(below(ops.convert(end, i64)), f64), half) for end in (length, count))
    offset = ops.subtract(ops.unsqueeze(places, [1]), ops.unsqueeze(ops.multiply(centers, scale), [0]))
    distance = ops.divide(ops.abs(offset), ops.maximum(scale, one))
    if op.mode == "bilinear_pillow":
        weights = ops.maximum(ops.subtract(one, distance), scalar(0, f64))
    else:
        weights = _keys(distance, op.cube_coeff)
    return ops.convert(ops.divide(weights, ops.reduce_sum(weights, [0])), element_type)


def _keys(distance: Layer, coefficient: float) -> Layer:
    """Return Keys' cubic kernel at a distance."""
    near = polynomial(distance, coefficient + 2, -(coefficient + 3), 0, 1)
    far = polynomial(distance, coefficient, -5 * coefficient, 8 * coefficient, -4 * coefficient)
    beyond = ops.select(ops.less(distance, scalar(2, f64)), far, scalar(0, f64))
    return ops.select(ops.less(distance, scalar(1, f64)), near, beyond)
