"""FakeQuantize and FakeConvert: round numbers to what a narrow type can represent, without changing their type."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import bf16, f16, f32
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.kernels.precision import native_dtype
from ovir.ops.base.attributes import attribute
from ovir.ops.base.elementwise import ElementwiseBase
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator
from ovir.ops.base.traits import ALL

RANGES = ("input_low", "input_high", "output_low", "output_high")


@operator("FakeQuantize", opset=1)
class FakeQuantize(ElementwiseBase):
    """x between input_low and input_high rounded to the nearest of ``levels`` steps, and mapped to the output range.

    The result is output_low where x <= min(input_low, input_high), output_high where x > max(input_low, input_high),
    and otherwise, ties to the even step,

        round((x - input_low) / (input_high - input_low) * (levels - 1)) / (levels - 1) * (output_high - output_low)
        + output_low

    The ranges are broadcast to x by the rules of ``auto_broadcast``; x is never broadcast. All five inputs have one
    floating-point type; f16 and bf16 are computed in f32 and rounded once.

    >>> ops.fake_quantize([-1.0, 0.2, 0.6, 5.0], 0.0, 1.0, 0.0, 1.0, 3)
    [0. 0. 0.5 1. ]
    """

    copies = 3

    arguments = "data:x input_low input_high output_low output_high levels auto_broadcast="
    levels: int = attribute(minimum=2)

    quantizes = True
    same_types = ALL
    inplace = (0,)

    def infer(
        self,
        x: TensorType,
        input_low: TensorType,
        input_high: TensorType,
        output_low: TensorType,
        output_high: TensorType,
    ) -> TensorType:
        ranges = dict(zip(RANGES, (input_low, input_high, output_low, output_high), strict=True))
        element_type = self.shared_type(x=x, **ranges)
        self.require_real("x", element_type)
        shape = x.shape
        for name, tensor in ranges.items():
            shape = self._covering(shape, tensor.shape, name)
        return TensorType(element_type, shape)

    def _covering(self, x: PartialShape, given: PartialShape, name: str) -> PartialShape:
        """Return the shapes of ``x`` to which a range of the given shape can be broadcast."""
        if self.auto_broadcast != "numpy":
            return self.broadcast_shapes(x, given, ("x", name)) if given.rank is not None else x
        if x.rank is not None and given.rank is not None and given.rank > x.rank:
            extra = given.rank - x.rank
            alone = all(dim.contains(1) for dim in given.slice(0, extra))
            self.require(alone, "{} of shape {} has more dimensions than x of shape {}", name, given, x)
            given = given.slice(extra)
        message = "{} of shape {} cannot be broadcast to x of shape {}"
        return self.require_known(_broadcast_target(x, given), message, name, given, x)

    def run(self, x: Array, input_low: Array, input_high: Array, output_low: Array, output_high: Array) -> Array:
        dtype = native_dtype(x.dtype)
        ranges = (input_low, input_high, output_low, output_high)
        low, high, first, last = (
            self.aligned_range(x, r, name).astype(dtype) for r, name in zip(ranges, RANGES, strict=True)
        )
        data, steps = x.astype(dtype, copy=False), dtype.type(self.levels - 1)
        result = np.rint((data - low) / (high - low) * steps) / steps * (last - first) + first
        result = np.where(data > np.where(low < high, high, low), last, result)
        result = np.where(data <= np.where(high < low, high, low), first, result)
        return np.asarray(result).astype(x.dtype, copy=False)

    def clips(self, inputs: Sequence[Array], steps: float) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        x, input_low, input_high, *outputs = inputs
        ends = self.aligned_range(x, input_low, "input_low"), self.aligned_range(x, input_high, "input_high")
        low, high = np.minimum(*ends), np.maximum(*ends)
        beyond = (high - low) / (self.levels - 1) * steps if steps else 0
        return (x < low - beyond, outputs[0]), (x > high + beyond, outputs[1])

    def aligned_range(self, x: Array, given: Array, name: str) -> Array:
        """Return a range in a shape that NumPy broadcasts to the shape of ``x``."""
        self._covering(PartialShape(x.shape), PartialShape(given.shape), name)
        if self.auto_broadcast != "numpy":
            return self.aligned(x, given)
        return given.reshape(given.shape[max(given.ndim - x.ndim, 0) :])


def _broadcast_target(x: PartialShape, given: PartialShape) -> PartialShape | None:
    """Return the shapes of ``x`` to which the given shape can be broadcast, or None if there is none."""
    if x.rank is None or given.rank is None:
        return x
    if given.rank > x.rank:
        return None
    dims = list(x)
    for axis, dim in enumerate(given, x.rank - given.rank):
        merged = dims[axis] if dim.contains(1) else dims[axis].merged_with(dim)
        if merged is None:
            return None
        dims[axis] = merged
    return PartialShape(dims)


@operator("FakeConvert", opset=13)
class FakeConvert(Operator):
    """``data`` after a round trip through an 8-bit float: convert y = data * scale - shift and back, then (y + shift) /
    scale.

    ``scale`` and ``shift`` have the same shape and are broadcast to ``data``; all are f16, bf16 or f32, and each step
    is computed in that type. The conversion to ``destination_type`` follows OpenVINO's reference and goes through f16
    (see ``_from_f8e4m3`` and ``_from_f8e5m2``); numbers that are too large become the largest number.

    >>> ops.fake_convert([0.1, 1.0, 3.3], [1.0])
    [0.1015625 1. 3.25 ]
    """

    unmatched = "round to f8"
    arguments = "data scale shift= destination_type='f8e4m3'"
    destination_type: str = attribute(choices=("f8e4m3", "f8e5m2"))

    quantizes = True

    def infer(self, data: TensorType, scale: TensorType, shift: TensorType | None = None) -> TensorType:
        others = {"scale": scale} if shift is None else {"scale": scale, "shift": shift}
        element_type = self.shared_type(data=data, **others)
        self.require_type("data", element_type, lambda t: t in (f16, bf16, f32), "f16, bf16 or f32")
        if shift is not None and not scale.shape.compatible(shift.shape):
            self.fail("scale of shape {} and shift of shape {} must have the same shape", scale.shape, shift.shape)
        shape = data.shape
        for name, tensor in others.items():
            message = "{} of shape {} cannot be broadcast to data of shape {}"
            shape = self.require_known(_broadcast_target(shape, tensor.shape), message, name, tensor.shape, data.shape)
        return TensorType(element_type, shape)

    def run(self, data: Array, scale: Array, shift: Array | None = None) -> Array:
        shift = np.zeros_like(scale) if shift is None else shift
        narrow = (data * scale - shift).astype(np.float16)
        return np.asarray((self.converted(narrow).astype(data.dtype) + shift) / scale)

    def converted(self, x: Array) -> Array:
        """Return f16 numbers after the round trip through the 8-bit float, in f32."""
        x = x.astype(np.float32)
        return _from_f8e4m3(x) if self.destination_type == "f8e4m3" else _from_f8e5m2(x)


def _from_f8e4m3(x: Array) -> Array:
    """Round to 3 fraction bits, ties to even; below 2^-6 truncate to multiples of 2^-9.

    The sign of zero is lost, and NaN becomes a number.
    """
    fraction, exponent = np.frexp(x)
    rounded = np.ldexp(np.rint(fraction * 16), exponent - 4)
    small = np.trunc(x * 512) / 512 + 0
    rounded = np.where(np.abs(rounded) < 2.0**-6, np.trunc(rounded * 512) / 512, rounded)
    rounded = np.where(np.abs(x) < 2.0**-9, small, rounded)
    return np.where(np.isnan(x), np.copysign(448, x), np.clip(rounded, -448, 448))


def _from_f8e5m2(x: Array) -> Array:
    """Round to nearest, ties to even; the sign of zero is lost, NaN stays NaN."""
    quiet = x + 0  # signaling NaN would warn
    return np.clip(quiet, -57344, 57344).astype(ml_dtypes.float8_e5m2).astype(np.float32) + 0
