"""Rules about the values of constants."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

import numpy as np

from ovir.checks.constants import constant_of, layer_domains, means_open_end
from ovir.checks.rule import Constant, Context, diagnostic, rule
from ovir.core.arrays import Array
from ovir.core.element_types import bf16, f16, f32, f64, i64, string, u64
from ovir.diagnostics.codes import (
    F16_OVERFLOW,
    NARROWED,
    NON_FINITE,
    STRING_DATA,
    ZERO_DIVISOR,
    ZERO_SCALE,
    Severity,
)
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.errors import OperatorError
from ovir.diagnostics.text import plural
from ovir.graph.layers import Port
from ovir.ir.weights import WeightBytes
from ovir.ops.base.domains import Divisor

_SCANNED = {f16, bf16, f32, f64}
_BLOCK = 1 << 16  # numbers per block
_LEAST_INFINITE = {f16.to_dtype(): 0x7C00, bf16.to_dtype(): 0x7F80}
"""The smallest bit pattern (without the sign) of an infinity or NaN."""


@rule(STRING_DATA)
def string_data(context: Context) -> Iterator[Diagnostic]:
    """Report string constants with invalid bytes; the reader does not decode them."""
    for constant in context.constants:
        if constant.op.element_type == string:
            try:
                constant.op.data  # noqa: B018  (decodes)
            except OperatorError as error:
                for layer in constant.layers:
                    yield diagnostic(STRING_DATA, error.message, layer)


@rule(NON_FINITE)
def non_finite(context: Context) -> Iterator[Diagnostic]:
    """Report NaN and infinity; infinity is an info only, as masks and bounds often contain it."""
    runs = (run for run in _neighbours(context) if not _are_finite(run, context.weights))
    for constant in (constant for run in runs for constant in run):
        if (data := constant.data) is not None and data.size:
            nans, infinities = _count_non_finite(data)
            for layer in constant.layers if nans or infinities else ():
                if nans:
                    yield diagnostic(NON_FINITE, f"NaN in {nans} of {plural(data.size, 'value')}", layer)
                else:
                    message = f"infinity in {infinities} of {plural(data.size, 'value')}"
                    yield diagnostic(NON_FINITE, message, layer, severity=Severity.INFO)


def _neighbours(context: Context) -> Iterator[list[Constant]]:
    """Yield runs of real constants of one type that are adjacent in the weights."""
    run: list[Constant] = []
    for constant in sorted(context.constants, key=lambda c: c.op.offset):
        op = constant.op
        if op.element_type not in _SCANNED:
            continue
        if run:
            first, last = run[0].op, run[-1].op
            is_next = op.element_type == last.element_type and op.offset == last.offset + last.size
            if not is_next or op.offset - first.offset > _BLOCK:
                yield run
                run = []
        run.append(constant)
    if run:
        yield run


def _are_finite(run: list[Constant], weights: WeightBytes) -> bool:
    """Return whether a run of adjacent constants is finite, in one pass."""
    first, last = run[0].op, run[-1].op
    dtype = first.element_type.to_dtype()
    count = (last.offset + last.size - first.offset) // dtype.itemsize
    if not count or not weights.data.size:
        return True
    numbers = np.frombuffer(weights.data, dtype, count, first.offset)
    return (count <= _BLOCK and _surely_finite(numbers)) or not any(_count_non_finite(numbers))


def _count_non_finite(data: Array) -> tuple[int, int]:
    """Return how many values are NaN, and how many are infinite."""
    flat = data.reshape(-1)
    nans = infinities = 0
    for start in range(0, flat.size, _BLOCK):
        block = flat[start : start + _BLOCK]
        if _surely_finite(block):
            continue
        finite = np.isfinite(block)
        if not finite.all():
            nans += (block_nans := int(np.isnan(block).sum()))
            infinities += int((~finite).sum()) - block_nans
    return nans, infinities


def _surely_finite(block: Array) -> bool:
    """Return whether a quick test proves that all values are finite."""
    if block.dtype.itemsize > 2:
        return isfinite(np.vdot(block, block))  # the product is finite only if every number is
    least = _LEAST_INFINITE[block.dtype]
    # As int16, the maximum is among the positive numbers; as uint16, among the negative ones if there are any.
    most_positive = np.maximum.reduce(block.view(np.int16))
    most_negative = np.maximum.reduce(block.view(np.uint16))
    return bool(most_positive < least and most_negative < 0x8000 | least)


@rule(F16_OVERFLOW)
def f16_overflow(context: Context) -> Iterator[Diagnostic]:
    """Report a Convert to f16 of a constant beyond the range of f16, which becomes infinite."""
    largest = float(np.finfo(np.float16).max)
    for layer in context.layers:
        if layer.operator is None or not layer.operator.converts:
            continue
        if not layer.outputs or layer.outputs[0].element_type != f16:
            continue
        data = constant_of(layer.inputs[0]) if layer.inputs else None
        if data is None or data.dtype not in (np.float32, np.float64) or not data.size:
            continue
        most = float(np.nanmax(np.where(np.isfinite(data), np.abs(data), 0)))
        if most > largest:
            yield diagnostic(F16_OVERFLOW, f"the constant holds {most:g}; the largest of f16 is {largest:g}", layer)


_INT32 = np.iinfo(np.int32)


@rule(NARROWED)
def narrowed(context: Context) -> Iterator[Diagnostic]:
    """Report 64-bit integers that devices which compute in i32 clip.

    Integers that mean an open end are left out.
    """
    for constant in context.constants:
        if constant.op.element_type in (i64, u64) and (data := constant.data) is not None and data.size:
            if data.max() <= _INT32.max and data.min() >= _INT32.min:
                continue
            beyond = data[(data > _INT32.max) | (data < _INT32.min)]
            beyond = beyond[~means_open_end(beyond)]
            if beyond.size:
                message = f"the constant holds {beyond[0]}, which devices that compute in i32 clip"
                for layer in constant.layers:
                    yield diagnostic(NARROWED, message, layer)


@rule(ZERO_DIVISOR)
def zero_divisor(context: Context) -> Iterator[Diagnostic]:
    """Report integer division by zero, whose result is undefined and which can end the process."""
    for layer in context.layers:
        for port, rule_ in layer_domains(layer):
            data = constant_of(port) if isinstance(rule_, Divisor) else None
            if data is not None and data.dtype.kind in "iu" and data.size and not data.all():
                yield diagnostic(ZERO_DIVISOR, f"the divisor holds {plural(int((data == 0).sum()), 'zero')}", layer)


@rule(ZERO_SCALE)
def zero_scale(context: Context) -> Iterator[Diagnostic]:
    """Report scales of compressed weights that destroy the weights."""
    for layer in context.layers:
        if layer.operator is None or not layer.operator.scales:
            continue
        if len(layer.inputs) != 2 or not _is_decompressed(layer.inputs[0]):
            continue
        scale = constant_of(layer.inputs[1])
        if scale is not None and scale.size and scale.dtype.kind == "f":
            bad = int((~np.isfinite(scale) | (scale == 0)).sum())
            if bad:
                message = f"zero, NaN or infinity in {bad} of {plural(scale.size, 'scale')} of compressed weights"
                yield diagnostic(ZERO_SCALE, message, layer)


def _is_decompressed(port: Port) -> bool:
    """Return whether a tensor is an integer constant, converted, with an optional zero point subtracted."""
    for _ in range(3):
        source = port.source
        if source is None or not source.layer.inputs or (op := source.layer.operator) is None:
            return False
        if op.converts:
            below = source.layer.inputs[0]
            return below.source is not None and below.source.layer.type == "Const" and below.element_type.is_integral
        if not op.offsets:
            return False
        port = source.layer.inputs[0]
    return False
