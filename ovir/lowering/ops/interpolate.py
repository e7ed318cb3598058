"""Interpolate."""

from __future__ import annotations

import numpy as np

from ovir import opset7 as ops
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, f32, i64
from ovir.graph.layers import Layer, LayerOrPort, Port
from ovir.lowering.registry import lowers, refuse
from ovir.lowering.sizes import below, known, older, part, rank, scalar, size, swapped
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
    """Multiply one axis after the other by the matrix of the weights of its pixels."""
    if not image.element_type.is_real:
        refuse(f"older operations do not round {image.element_type} after each axis, as mode {op.mode} does")
    if any((*op.pads_begin, *op.pads_end)):
        refuse(f"older operations do not pad as mode {op.mode} does")
    last = rank(image, "image") - 1
    result: LayerOrPort = image
    for index, axis in enumerate(range(last + 1) if axes is None else known(axes, "axes")):
        before, after = image.shape[axis], op.output_shapes[0][axis]
        if before.is_static and after.is_static:
            if before.length == after.length:
                continue
            weights = ops.constant(_pillow_weights(op, before.length, after.length), image.element_type)
        else:
            wanted = part(target, 0, index, index + 1)
            weights = _computed_weights(op, size(image, axis), wanted, image.element_type)
        result = swapped(ops.matmul(swapped(result, axis, last), weights, False, False), axis, last)
    return result


def _pillow_weights(op: Interpolate11, size: int, count: int) -> Array:
    """Return the weight [size, count] of each pixel in each pixel of the result."""
    scale = size / count
    stretch = max(scale, 1.0)
    reach = 2 if op.mode.startswith("bicubic") else 1
    weights = np.zeros((size, count))
    for place in range(count):
        center = (place + 0.5) * scale
        first, stop = max(int(center - reach * stretch + 0.5), 0), min(int(center + reach * stretch + 0.5), size)
        distance = np.abs((np.arange(first, stop) - center + 0.5) / stretch)
        near = (op.cube_coeff + 2) * distance**3 - (op.cube_coeff + 3) * distance**2 + 1
        far = op.cube_coeff * (distance**3 - 5 * distance**2 + 8 * distance - 4)
        cubic = np.where(distance < 1, near, np.where(distance < 2, far, 0))
        column = np.maximum(1 - distance, 0) if reach == 1 else cubic
        weights[first:stop, place] = column / column.sum()
    return weights


def _computed_weights(op: Interpolate11, size_of_axis: Layer, wanted: Layer, element_type: ElementType) -> Layer:
    """Return the weights for sizes that only a run shows; ``wanted`` is the new size, or the scale."""
    one, half = scalar(1, f32), scalar(0.5, f32)
    length = ops.squeeze(ops.convert(size_of_axis, f32), [0])
    count = ops.squeeze(ops.convert(wanted, f32), [0])
    if op.by_scales:
        count = ops.floor(ops.multiply(count, length))
    scale = ops.divide(length, count)
    places, centers = (ops.add(ops.convert(below(ops.convert(end, i64)), f32), half) for end in (length, count))
    offset = ops.subtract(ops.unsqueeze(places, [1]), ops.unsqueeze(ops.multiply(centers, scale), [0]))
    distance = ops.divide(ops.abs(offset), ops.maximum(scale, one))
    if op.mode == "bilinear_pillow":
        weights = ops.maximum(ops.subtract(one, distance), scalar(0, f32))
    else:
        weights = _keys(distance, op.cube_coeff)
    shares = ops.divide(weights, ops.reduce_sum(weights, [0], keep_dims=True))
    return ops.convert(shares, element_type)


def _keys(distance: Layer, coefficient: float) -> Layer:
    """Return Keys' cubic kernel at a distance."""

    def polynomial(*coefficients: float) -> Layer:
        total = scalar(coefficients[0], f32)
        for item in coefficients[1:]:
            total = ops.add(ops.multiply(total, distance), scalar(item, f32))
        return total

    near = polynomial(coefficient + 2, -(coefficient + 3), 0, 1)
    far = polynomial(coefficient, -5 * coefficient, 8 * coefficient, -4 * coefficient)
    beyond = ops.select(ops.less(distance, scalar(2, f32)), far, scalar(0, f32))
    return ops.select(ops.less(distance, scalar(1, f32)), near, beyond)
