"""Interpolate."""

from __future__ import annotations

import numpy as np

from ovir import opset7 as ops
from ovir.core.arrays import Array
from ovir.core.shapes import PartialShape
from ovir.graph.layers import LayerOrPort, Port
from ovir.lowering.parts import known, known_sizes, older, rank, swapped
from ovir.lowering.registry import lowers, refuse
from ovir.ops.interpolate import Interpolate11


@lowers("Interpolate", 11)
def interpolate_11(op: Interpolate11, image: Port, target: Port, axes: Port | None = None) -> LayerOrPort:
    """Give sizes and scales in two inputs, of which the older version reads one."""
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
    """Resize one axis after the other: multiply by the matrix of the weights, or interpolate between unknown sizes."""
    if not image.element_type.is_real:
        refuse(f"older operations do not round {image.element_type} after each axis, as mode {op.mode} does")
    if any((*op.pads_begin, *op.pads_end)):
        refuse(f"older operations do not pad as mode {op.mode} does")
    last = rank(image, "image") - 1
    result: LayerOrPort = image
    for index, axis in enumerate(range(last + 1) if axes is None else known(axes, "axes")):
        before, after = image.shape[axis], op.output_shapes[0][axis]
        if before.is_static and after.is_static:
            if before.length != after.length:
                weights = ops.constant(_pillow_weights(op, before.length, after.length), image.element_type)
                result = swapped(ops.matmul(swapped(result, axis, last), weights, False, False), axis, last)
            continue
        if op.mode != "bilinear_pillow":
            known_sizes(PartialShape([before, after]), "image")
        wanted = ops.strided_slice(target, [index], [index + 1], [1], [0], [0])
        sizes, scales = (ops.constant([1], "i64"), wanted) if op.by_scales else (wanted, ops.constant([1.0], "f32"))
        mode = op.shape_calculation_mode
        result = ops.interpolate(result, sizes, scales, "linear", mode, antialias=True, axes=[axis])
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
