"""Stores constants of f32 and f64 as f16, each followed by a Convert, as ``openvino.save_model`` does; or as bf16."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ovir.building.creation import new_constant, new_operation
from ovir.core import float16
from ovir.core.element_types import ElementType, bf16, f8e4m3, f8e5m2, f16, f32, f64, i4, i8, nf4, u4, u8
from ovir.core.parallel import run_blocks
from ovir.core.shapes import static_shape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.codes import F16_OVERFLOW
from ovir.diagnostics.diagnostic import Diagnostic, diagnose
from ovir.graph.constant_layers import converted_codes, deciding_constants, exact_layers
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer
from ovir.graph.rt_info import RtElement
from ovir.ir.writing.blobs import Source, source_of
from ovir.ops.infrastructure import Const
from ovir.system.progress import counted

_STEP = 1 << 17
"""Numbers that are examined at a time; they stay in the cache."""
_MOST_HELD = 8
"""Steps after which the memory of their numbers is released."""
_BLOCK = 1 << 16
"""Numbers that are converted at a time."""
_LEAST_FOR_THREADS = 1 << 18
"""Numbers from which on another thread helps."""
_BITS = {4: np.uint32, 8: np.uint64}


@dataclass(frozen=True)
class Narrow:
    """An element type of 16 bits that numbers are stored in."""

    element_type: ElementType
    largest: float
    """The largest finite number."""
    smallest: float
    """The smallest positive number."""
    exact_to_one: float
    """The number below which rounding changes a number by at most 1."""


F16 = Narrow(f16, 65504.0, 2.0**-24, 4096.0)
BF16 = Narrow(bf16, (2 - 2.0**-7) * 2.0**127, 2.0**-133, 512.0)

_MOST_OUTSIDE = 0.75
"""The share of numbers outside of the range from which on a constant is kept."""
_LARGEST_ERROR = 1.0
"""The largest rounding error of a number that is accepted."""
_LARGEST_RELATIVE_ERROR = 1e-4
"""The same for constants of one number, in relation to it: they are often scales that all other numbers depend on."""


def compress(model: LayerGraph, to: Narrow) -> list[Diagnostic]:
    """Store constants of f32 and f64 in 16 bits where OpenVINO stores f16; return warnings about those that stay.

    OpenVINO changes no model with quantized or compressed weights, and no constant that sizes depend on, that would
    lose too much by rounding, or has many numbers outside of the range. Numbers above the range it clips; here, a
    constant with one stays as it is, as does one that decides about integers, comparisons or rounded numbers and would
    lose anything. The model must have been inferred, and remains so.
    """
    if any(map(_is_optimized, model.graphs())):
        return []
    deciding = deciding_constants(model)
    warnings: list[Diagnostic] = []
    whole: set[int] = set()
    for part in model.graphs():
        sensitive = exact_layers(part)
        for layer in counted("compressing", part.layers):
            op = layer.operator
            if isinstance(op, Const) and op.element_type in (f32, f64) and layer not in sensitive:
                _compress(part, layer, op, to, warnings, whole, exactly=layer in deciding)
        part.needs_inference = False
    return warnings


# --------------------------------------------------------------------------- what OpenVINO leaves as it is


_COMPRESSED = (i4, u4, i8, u8, nf4, f8e4m3, f8e5m2)


def _is_optimized(model: LayerGraph) -> bool:
    """Return whether the model is quantized, or has weights that are decompressed with a scale."""
    return any(
        op.quantizes or (op.scales and _is_scaled(layer))
        for layer in model.layers
        if (op := layer.operator) is not None
    )


def _is_scaled(layer: Layer) -> bool:
    """Return whether a product applies a constant scale to the numbers of a compressed constant."""
    one, other = layer.inputs
    for scale, port in ((one, other), (other, one)):
        codes = converted_codes(port) if scale.source is not None and scale.source.layer.type == "Const" else None
        if codes is not None and codes.outputs[0].element_type in _COMPRESSED:
            return True
    return False


# --------------------------------------------------------------------------- one constant


@dataclass(eq=False)
class NarrowSource:
    """The numbers of a constant of f32 or f64 in 16 bits, converted while they are written."""

    numbers: Source
    dtype: np.dtype[Any]
    to: Narrow

    @property
    def size(self) -> int:
        return self.numbers.size // self.dtype.itemsize * 2

    def piece(self, start: int, stop: int) -> NDArray[Any]:
        return self._halves(self._numbers(start, stop)).view(np.uint8)

    def _halves(self, numbers: NDArray[Any]) -> NDArray[Any]:
        halves = np.empty(numbers.shape, self.to.element_type.to_dtype())

        def convert(start: int, stop: int) -> None:
            for first in range(start, stop, _BLOCK):
                part = slice(first, min(first + _BLOCK, stop))
                float16.copy(numbers[part], halves[part])
                if numbers.dtype == np.float64:
                    halves[part][np.abs(numbers[part]) < self.to.smallest] = 0  # as OpenVINO does, for f64 only

        with np.errstate(over="ignore", invalid="ignore"):
            run_blocks(convert, numbers.size, _LEAST_FOR_THREADS)
        return halves

    def release(self, start: int, stop: int) -> None:
        self.numbers.release(*self._range(start, stop))

    def _range(self, start: int, stop: int) -> tuple[int, int]:
        return start // 2 * self.dtype.itemsize, stop // 2 * self.dtype.itemsize

    def _numbers(self, start: int, stop: int) -> NDArray[Any]:
        raw = self.numbers.piece(*self._range(start, stop))
        return np.frombuffer(raw, self.dtype) if raw.size else np.empty(0, self.dtype)

    def loss(self) -> Loss:
        """Return the loss of the conversion."""
        losses: list[Loss] = []

        def examine(first: int, last: int) -> None:
            held = first
            for step in range(first, last):
                losses.append(self._loss_of(self._numbers(*self._bytes(step, step + 1))))
                if step + 1 - held == _MOST_HELD or step + 1 == last:
                    self.release(*self._bytes(held, step + 1))
                    held = step + 1

        run_blocks(examine, -(-self.size // (2 * _STEP)), _LEAST_FOR_THREADS // _STEP)
        outside = sum(part.outside for part in losses) / (self.size // 2)
        largest, error = max(part.largest for part in losses), max(part.error for part in losses)
        relative = max(part.relative_error for part in losses)
        return Loss(outside, largest, error, relative)

    @property
    def is_exact(self) -> bool:
        """Return whether 16 bits hold every number."""
        for step in range(-(-self.size // (2 * _STEP))):
            numbers = self._numbers(*self._bytes(step, step + 1))
            if not np.array_equal(self._halves(numbers).astype(numbers.dtype), numbers, equal_nan=True):
                return False
        return True

    def _bytes(self, first: int, last: int) -> tuple[int, int]:
        """Return the bytes of some steps."""
        return 2 * _STEP * first, min(2 * _STEP * last, self.size)

    def _loss_of(self, numbers: NDArray[Any]) -> Loss:
        """Return the loss of some of the numbers, with the count of those outside of the range in place of a share."""
        size = np.abs(numbers)
        outside = int(np.count_nonzero(size < self.to.smallest))
        if outside:
            outside -= size.size - int(np.count_nonzero(size.view(_BITS[size.dtype.itemsize])))
        is_only = self.size == 2
        if not is_only and size.max() < self.to.exact_to_one:
            return Loss(outside, 0.0, 0.0, 0.0)
        above = size > self.to.largest
        outside += int(np.count_nonzero(above))
        largest = float(size[above & np.isfinite(size)].max(initial=0))
        with np.errstate(invalid="ignore"):
            errors = np.abs(numbers - self._halves(numbers).astype(numbers.dtype))
        error = float(errors[~above & (size >= self.to.smallest)].max(initial=0))
        return Loss(outside, largest, error, error / float(size[0]) if is_only and error else 0.0)


class Loss(NamedTuple):
    """The loss of the numbers of a constant as f16."""

    outside: float
    """The share of numbers outside of the range; of a part of the numbers, their count."""
    largest: float
    """The largest finite number above the range, 0 if there is none."""
    error: float
    """The largest rounding error of a number inside of the range."""
    relative_error: float
    """The rounding error of a constant of one number in relation to it, 0 for other constants."""

    @property
    def is_much(self) -> bool:
        """Return whether OpenVINO keeps the constant."""
        is_inexact = self.error > _LARGEST_ERROR or self.relative_error > _LARGEST_RELATIVE_ERROR
        return is_inexact or self.outside >= _MOST_OUTSIDE


def _compress(
    model: LayerGraph,
    layer: Layer,
    op: Const,
    to: Narrow,
    warnings: list[Diagnostic],
    whole: set[int],
    *,
    exactly: bool,
) -> None:
    """Replace a Const by one of 16 bits and a Convert, which gets its name and its readers, if OpenVINO does so.

    With ``exactly``, it stays if rounding changes any number.
    """
    source = NarrowSource(source_of(layer, op, whole), op.element_type.to_dtype(), to)
    if not source.size:
        return
    loss = source.loss()
    if loss.largest:
        kind, largest = op.element_type, loss.largest
        end = f"{to.element_type} ends at {to.largest:g}"
        message = f"the constant stays {kind}: it has numbers of up to {largest:g}, and {end}"
        warnings.append(diagnose(F16_OVERFLOW, message, layer.place))
    if loss.largest or loss.is_much or (exactly and not source.is_exact):
        return
    const_op = Const(element_type=to.element_type, shape=op.shape)
    const_op.constant_data = source  # type: ignore[assignment]  # a source of bytes, which nobody decodes
    const = new_constant(model.next_id, f"{layer.name}_compressed", const_op)
    const.outputs[0].inferred = TensorType(to.element_type, static_shape(op.shape))
    const.outputs[0].names = layer.outputs[0].own_names
    const.rt_info_source = layer.rt_info_source
    convert = new_operation(layer.id, layer.name, "Convert", 1, destination_type=op.element_type)
    convert.outputs[0].inferred = layer.outputs[0].type
    mark = RtElement(1, "attribute", (("name", "decompression"), ("version", "0")))  # by which devices recognize it
    convert.rt_info_source = layer.rt_info.with_marks(mark)
    for new in (const, convert):
        new.line, new.file = layer.line, layer.file
    model.replace_layer(layer, const)
    model.insert_layer_after(const.outputs[0], convert)
