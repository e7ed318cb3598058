"""Rules about layers that quantize: what they clip."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ovir.analysis.clipping import Clipping
from ovir.checks.conditions import Bound, bound_of_type, bounds_of
from ovir.checks.rule import Context, Found, rule
from ovir.core.arrays import Array
from ovir.diagnostics.codes import Code
from ovir.graph.layers import Layer, Port
from ovir.graph.order import trace_back
from ovir.model import Model
from ovir.ops.base.operator import Operator
from ovir.ops.convert import in_f32

_STEPS = 2
"""So many steps beyond the range, values lose little more than by rounding."""


@rule(Code.info(712, "a FakeQuantize clips values", summed=True))
def clipped(context: Context) -> Iterator[Found]:
    """Info. The values that a FakeQuantize gets go beyond its input range, by more than two of its steps. The file
    alone shows this of constants, and of layers with a range of their own whose values become an output of the model:
    behind a Sigmoid and a FakeQuantize up to 0.98, no score is above 0.98. To count what is clipped elsewhere, compare
    the model with the one before it was quantized: `ovir compare` names the layers that clip most.
        <layer id="7" name="scores/fq" type="FakeQuantize" version="opset1">   <!-- 0 to 0.98, behind a Sigmoid -->
    Fix: quantize again with inputs that cover the range, or exclude the layer before it from quantization.
    """
    quantizing = [(layer, op) for layer, op in context.usable if op.quantizes and len(layer.inputs) > 1]
    if not quantizing:
        return
    outputs = _layers_of_outputs(context.model)
    bounds = bounds_of(context.model, [bound_of_type(port.type) for port in context.model.inputs])
    for layer, op in quantizing:
        data, *ranges = (_constant(context, port) for port in layer.inputs)
        known = [array for array in ranges if array is not None and array.size]
        source = layer.inputs[0].source
        if len(known) < len(ranges) or source is None:
            continue
        if data is not None:
            clipping = Clipping.by(op, [data, *known], _STEPS)
            if clipping is not None and clipping.share:
                yield Found(f"the layer clips a constant: {clipping}", layer)
        elif layer in outputs:
            bound = bounds.get(source, Bound())
            for clips in _clipped_ends(op, bound, known):
                own = f"{source.layer.title} gives values from {bound.low:.6g} to {bound.high:.6g}"
                yield Found(f"in output '{outputs[layer]}', {clips}; {own}", layer)


def _layers_of_outputs(model: Model) -> dict[Layer, str]:
    """Return the layers whose values are at most moved before they are an output of the model, with its name."""
    found = {}
    for output in model.outputs:
        _, border = trace_back([output.layer], lambda port: bool(getattr(port.layer.operator, "moves_elements", ())))
        found.update(dict.fromkeys((port.layer for port in border), output.any_name))
    return found


def _constant(context: Context, port: Port) -> Array | None:
    """Return the values of a constant, which another type may hold; None for other inputs."""
    before = None if port.source is None else port.source.layer
    if before is None or before.operator is None or not before.operator.converts or not before.inputs:
        return context.values_of(port)
    data = context.values_of(before.inputs[0])
    return None if data is None else in_f32(data, before.inputs[0].element_type)


def _clipped_ends(op: Operator, bound: Bound, ranges: Sequence[Array]) -> Iterator[str]:
    """Yield which ends of an interval are clipped, and what they become."""
    shape = np.broadcast_shapes(*(array.shape for array in ranges))
    for side, end in enumerate((bound.low, bound.high)):
        found = op.clips([np.full(shape, end), *ranges], _STEPS) if np.isfinite(end) else None
        if found is not None and found[side][0].any():
            first = int(np.argmax(found[side][0]))
            old, new = (float(np.broadcast_to(x, shape).flat[first]) for x in (ranges[side], found[side][1]))
            yield f"values {('below', 'above')[side]} {old:.6g} become {new:.6g}"
