"""Rules about constant indices and the axes that they index."""

from __future__ import annotations

from collections.abc import Iterator

from ovir.checks.constants import constant_of, layer_domains
from ovir.checks.rule import Context, diagnostic, rule
from ovir.core.arrays import Array
from ovir.diagnostics.codes import INDEX_RANGE, NEGATIVE_INDEX
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.graph.layers import Layer
from ovir.ops.base.domains import Coordinates, Index, IndexRule


@rule(INDEX_RANGE)
def index_range(context: Context) -> Iterator[Diagnostic]:
    """Report an index outside its axis.

    A negative index counts from the end (see OVIR703) unless the operation forbids it.
    """
    for layer, index, values, size in _indexed(context):
        low = 0 if index.negative == "forbidden" else -size
        if values.min() < low or values.max() >= size:
            outside = values[(values < low) | (values >= size)]
            message = f"index {outside.flat[0]} is outside [{low}, {size - 1}], the range of the indexed axis"
            yield diagnostic(INDEX_RANGE, message, layer)


@rule(NEGATIVE_INDEX)
def negative_index(context: Context) -> Iterator[Diagnostic]:
    """Report negative indices that the specification leaves open: the reference counts from the end, the CPU plugin's
    Gather returns 0."""
    for layer, index, values, size in _indexed(context):
        if index.negative != "unspecified" or layer.operator is None:
            continue
        negative = values[(values < 0) & (values >= -size)]
        if negative.size:
            version = f"{layer.type}-{layer.operator.opset}"
            message = f"index {negative.flat[0]} is negative, which {version} leaves open"
            hint = "count from the front, or use a later version of the operation"
            yield diagnostic(NEGATIVE_INDEX, message, layer, hint=hint)


def _indexed(context: Context) -> Iterator[tuple[Layer, IndexRule, Array, int]]:
    """Yield (layer, how it indexes, constant indices, static size of the indexed axis)."""
    for layer in context.layers:
        for port, index in layer_domains(layer):
            if not isinstance(index, Index | Coordinates) or (values := constant_of(port)) is None:
                continue
            assert layer.operator is not None
            inputs = layer.operator.named([port.type for port in layer.inputs])
            for part, size in index.parts(layer.operator, inputs, values):
                if part.size:
                    yield layer, index, part, size
