"""Resizing with positions and weights that are computed once."""

from __future__ import annotations

from ovir.core.arrays import Array
from ovir.fast.base.binder_protocol import Binder, others_are_constant
from ovir.fast.base.resamples import bind_resampled, cheapest_first
from ovir.fast.registry import fast, fast_kernel, run_with
from ovir.kernels.resample import Method
from ovir.ops.base.operator import Kernel
from ovir.ops.base.traits import input_names
from ovir.ops.interpolate import Interpolate1, Interpolate4Base, InterpolateBase


@fast_kernel(InterpolateBase)
def interpolate(op: InterpolateBase) -> Kernel:
    return run_with(op, ordered=cheapest_first)


@fast(Interpolate1)
def interpolate1(op: Interpolate1, binder: Binder, *inputs: Array) -> bool:
    data, target = inputs
    if list(op.axes) != sorted(op.axes):
        return False  # ``run`` reports it
    return _resampled(op, binder, op.method(data.ndim), data, list(op.axes), target, "target_spatial_shape")


@fast(Interpolate4Base)
def interpolate4(op: Interpolate4Base, binder: Binder, *inputs: Array) -> bool:
    names = input_names(type(op))
    given = dict(zip(names, inputs, strict=False))
    name = names[1] if len(names) == 3 else "scales" if op.by_scales else "sizes"
    axes = given["axes"].tolist() if "axes" in given else list(range(inputs[0].ndim))
    return _resampled(op, binder, op.method(), inputs[0], axes, given[name], name)


def _resampled(
    op: InterpolateBase, binder: Binder, method: Method, data: Array, axes: list[int], target: Array, name: str
) -> bool:
    """Bind the run without pads to constant sizes or scales."""
    begin, end = op.pads(data.ndim, axes)
    if any(begin) or any(end) or not others_are_constant(binder):
        return False
    method, passes, _ = op.axis_passes(method, data, axes, target, name)
    return bool(passes) and bind_resampled(binder, method, data, passes)
