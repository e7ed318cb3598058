"""Constants that are read as another element type: each is one diagnostic."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ovir.checks.rule import Context, ids
from ovir.checks.rules.constants import index_range, narrowed, non_finite, zero_divisor, zero_scale
from ovir.checks.rules.graph import double
from ovir.checks.rules.weights_file import boolean_bytes, too_many_bytes
from ovir.diagnostics import codes
from ovir.diagnostics.errors import Diagnostics
from ovir.graph.layers import Layer
from ovir.ops.infrastructure import Const

_OF_VALUES = ids(boolean_bytes, index_range, narrowed, non_finite, zero_divisor, zero_scale, double, codes.F16_OVERFLOW)
_OF_CONSTANT = _OF_VALUES | ids(codes.OWN_TYPE, too_many_bytes)
"""Diagnostics of a constant whose bytes are read as another element type."""
_OF_READER = ids(
    codes.AXIS, codes.ELEMENT_TYPE, codes.INFERENCE, codes.INPUT_TYPE, codes.TYPES_DIFFER, double, index_range
)
"""Diagnostics of a layer that is fed such a constant."""


def fold_constant_types(context: Context, diagnostics: Diagnostics) -> None:
    """Keep one diagnostic for each constant whose attribute ``element_type`` differs from that of its port.

    The error of the first layer that cannot read it remains, otherwise the diagnostic of the constant itself. The kept
    one says what its messages say of the type and the size, and names the element type that fits.
    """
    wrong = {d.layer for d in diagnostics if d.code == codes.OWN_TYPE.id}
    for layer in context.by_type.get("Const", ()):
        if layer.title in wrong:
            _fold(layer, diagnostics)


def _fold(layer: Layer, diagnostics: Diagnostics) -> None:
    own = [d for d in diagnostics if d.layer == layer.title and d.code in _OF_CONSTANT]
    readers = _readers(layer)
    following = [d for d in diagnostics if d.layer in readers and d.code in _OF_READER]
    causes = [d for d in own if d.code not in _OF_VALUES]
    causes.sort(key=lambda d: d.code != codes.OWN_TYPE.id)
    diagnostics.discard(*own, *following)
    message = "; ".join(cause.message for cause in causes)
    kept = next((d for d in following if d.severity is codes.Severity.ERROR), causes[0])
    if kept is not causes[0]:
        message = f"{kept.message}; {layer.title} on line {causes[0].line}: {message}"
    diagnostics.add(replace(kept, message=message, hint=_hint(layer) or kept.hint))


def _readers(layer: Layer) -> set[str]:
    """Return the readers of the constant, and of tensors computed from it in its element type."""
    titles: set[str] = set()
    pending = [layer]
    while pending:
        for output in pending.pop().outputs:
            if output.element_type == layer.outputs[0].element_type:
                pending += [port.layer for port in output.readers if port.layer.title not in titles]
                titles |= {port.layer.title for port in output.readers}
    return titles


def _hint(layer: Layer) -> str | None:
    """Return the element type that the constant seems to have: the declared one, if the size of its bytes fits."""
    op, declared = layer.operator, layer.outputs[0].declared_element_type
    if not isinstance(op, Const) or declared is None or 8 * op.size != declared.bits * prod(op.shape):
        return None
    return f"its size fits {declared}: change the attribute element_type of {layer.title} from {op.element_type}"
