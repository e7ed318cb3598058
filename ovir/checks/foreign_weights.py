"""Recognize the weights of another model, and replace the diagnostics that follow from them by one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from ovir.checks.rule import Context, ids, means_open_end
from ovir.checks.rules.constants import index_range, narrowed, negative_index, non_finite, zero_divisor, zero_scale
from ovir.checks.rules.graph import cancelled, no_op
from ovir.checks.rules.weights_file import boolean_bytes, duplicate_constant, unused_bytes, zero_weights
from ovir.core.element_types import i64, u64
from ovir.diagnostics import codes
from ovir.diagnostics.diagnostic import Diagnostic, diagnose
from ovir.diagnostics.errors import Diagnostics
from ovir.diagnostics.wording import plural
from ovir.graph.layers import Layer
from ovir.ir.reader import SAVED_APART
from ovir.ops.infrastructure import Const

_OF_CONSTANTS = ids(non_finite, boolean_bytes, codes.STRING_DATA)
"""Diagnostics of a constant whose bytes may belong to another one."""
_OF_READERS = ids(codes.AXIS, codes.INFERENCE, codes.SIZE_OVERFLOW, index_range)
"""Diagnostics of a layer that may read such a constant as an integer."""
_OF_SHAPES = ids(codes.DECLARED_SHAPE, codes.TOO_LARGE)
"""Diagnostics of a layer to which such an integer gives a size."""
_FOLLOWING = (
    _OF_CONSTANTS
    | _OF_READERS
    | ids(codes.DECLARED_SHAPE, codes.INPUT_SHAPE, codes.RANK, codes.TOO_LARGE, codes.BODY, codes.VARIABLE_TYPE)
    | ids(codes.PAST_END, unused_bytes)
    | ids(codes.F16_OVERFLOW, zero_divisor, narrowed, zero_scale, no_op, negative_index, duplicate_constant, cancelled)
)
"""Diagnostics that depend on the values of constants."""


def report_foreign_weights(context: Context, diagnostics: Diagnostics) -> None:
    """Replace the diagnostics that follow from the weights of another model by one error, if the evidence is clear.

    It is if the .xml has a mark with another size, which reading has reported, or another checksum. A mark that
    matches proves that the weights belong to the .xml, however odd they are.
    """
    if context.weights.missing:
        return
    data, mark = context.weights.data, context.mark
    if mark is not None and (mark.size != data.size or not mark.has_checksum(data)):
        following = _discard_following(diagnostics)
        if mark.size == data.size:
            name = Path(context.weights.name).name
            message = f"{name} has the size, but not the checksum of the weights that the .xml was saved with"
            diagnostics.add(diagnose(codes.FOREIGN_WEIGHTS, f"{message}{following}", context.place, hint=SAVED_APART))
        return
    if not any(d.code in _FOLLOWING for d in diagnostics):
        return
    if context.has_only_zeros and (zeros := [d for d in diagnostics if d.code == zero_weights.id]):
        _leave_out_what_follows(zeros[0], diagnostics)
        return
    if mark is not None:
        return
    constants = {layer: end for layer in context.by_type.get("Const", ()) if (end := _end(layer)) is not None}
    past_end = [layer for layer, end in constants.items() if end > context.weights.data.size]
    impossible = {layer: value for layer in constants if (value := _impossible_integer(layer)) is not None}
    suspicious = _suspicious_constants(constants, diagnostics, {*past_end, *impossible})
    misfits = len(past_end) + len(impossible) + len(suspicious)
    differs = bool(past_end) or any(d.code == unused_bytes.id for d in diagnostics)
    if misfits < _least_misfits(constants, differs) or not (
        len(impossible) > 1
        or (differs and impossible)
        or (differs and len(suspicious) > 1 and 5 * misfits > len(constants))
    ):
        _hint_at_bytes(impossible, diagnostics)
        return
    number = next(iter(impossible.values()), 0)
    kinds = [
        (len(past_end), "lie past its end"),
        (len(impossible), f"hold numbers such as {number}, which no axis, shape or index can be"),
        (len(suspicious), "hold implausible values such as NaN, or make the layers that read them fail"),
    ]
    listed = ", ".join(f"{number} {what}" for number, what in kinds if number)
    message = (
        f"{Path(context.weights.name).name} does not belong to this .xml: {misfits} of {len(constants)} constants "
        f"do not fit ({listed}){_discard_following(diagnostics)}"
    )
    hint = "pass the .bin that was written with the .xml, then check again"
    diagnostics.add(diagnose(codes.FOREIGN_WEIGHTS, message, context.place, hint=hint))


def _leave_out_what_follows(cause: Diagnostic, diagnostics: Diagnostics) -> None:
    """Keep one diagnostic of weights that hold nothing but zeros: an error if errors follow from them."""
    following = [d for d in diagnostics if d.code in _FOLLOWING - {codes.PAST_END.id, unused_bytes.id}]
    if not following:
        return
    diagnostics.discard(cause, *following)
    message = f"{cause.message}; left out: {plural(len(following), 'diagnostic')} that may follow from this"
    is_refused = any(d.severity is codes.Severity.ERROR for d in following)
    diagnostics.add(replace(cause, message=message, severity=codes.Severity.ERROR if is_refused else cause.severity))


def _discard_following(diagnostics: Diagnostics) -> str:
    """Discard the diagnostics that may follow from other weights, and return how many these are in words."""
    following = [d for d in diagnostics if d.code in _FOLLOWING]
    diagnostics.discard(*following)
    return f"; {plural(len(following), 'diagnostic')} that may follow from this are left out" if following else ""


_FEW = 3  # other faults do not affect so many constants at the same time


def _least_misfits(constants: Collection[Layer], differs: bool) -> int:
    """Return the number of constants that must not fit: fewer in a model with few lists of axes, sizes or indices."""
    telling = sum(1 for layer in constants if _may_be_impossible(layer))
    return min(max(telling, 1 if differs else 2), _FEW) if telling else _FEW


def _hint_at_bytes(impossible: Mapping[Layer, int], diagnostics: Diagnostics) -> None:
    """Replace the hints of the layers that read an impossible integer: its bytes are at fault."""
    for layer, value in impossible.items():
        readers = {port.layer.title for output in layer.outputs for port in output.readers}
        hint = f"{layer.title} holds {value}: its offset is wrong, or the .bin belongs to another model"
        related = [d for d in diagnostics if d.layer in readers and d.code in _OF_READERS | _OF_SHAPES]
        for diagnostic in related:
            diagnostics.discard(diagnostic)
            diagnostics.add(replace(diagnostic, hint=hint))
        if related:  # the range of i32 does not matter then
            diagnostics.discard(*(d for d in diagnostics if d.layer == layer.title and d.code == narrowed.id))


def _end(layer: Layer) -> int | None:
    """Return the end of a constant's bytes in the weights; None for a constant without any."""
    size, offset = map(layer.attributes.get, ("size", "offset"))  # one whose bytes are past the end has no operator
    if "value" in layer.attributes or not isinstance(size, int) or size < 1:
        return None
    return size + (offset if isinstance(offset, int) else 0)


def _impossible_integer(layer: Layer) -> int | None:
    """Return an integer of a short 64-bit constant that is neither a size, axis or index nor means an open end; None
    if there is none."""
    op = layer.operator
    if not isinstance(op, Const) or not _may_be_impossible(layer):
        return None
    data = op.data.ravel()
    beyond = data[(np.abs(data.astype(np.float64)) > _LARGEST_SIZE) & ~means_open_end(data)]
    return int(beyond[0]) if beyond.size else None


def _may_be_impossible(layer: Layer) -> bool:
    op = layer.operator
    if not isinstance(op, Const) or op.constant_data is None:
        return False
    return op.element_type in (i64, u64) and op.size <= _MOST_BYTES


_MOST_BYTES = 512  # the largest size of a list of axes, sizes or indices
_LARGEST_SIZE = 2.0**40


def _suspicious_constants(
    constants: Collection[Layer], diagnostics: Diagnostics, known: Collection[Layer]
) -> list[Layer]:
    """Return the other constants with diagnostics, or whose readers have some because of an integer."""
    of_constants = {d.layer for d in diagnostics if d.code in _OF_CONSTANTS}
    of_readers = {d.layer for d in diagnostics if d.code in _OF_READERS and d.severity is not codes.Severity.INFO}
    others = (layer for layer in constants if layer not in known)
    return [layer for layer in others if layer.title in of_constants or _fails(layer, of_readers)]


def _fails(layer: Layer, failing: Collection[str | None]) -> bool:
    op = layer.operator
    if not isinstance(op, Const) or not op.element_type.is_integral or op.size > _MOST_BYTES:
        return False
    return any(reader.layer.title in failing for port in layer.outputs for reader in port.readers)
