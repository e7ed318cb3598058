"""What inference cannot know of a model whose constants have no data: sizes and values that the data decides."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ovir.core.values import is_small
from ovir.diagnostics.codes import Severity
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port
from ovir.ops.control_flow import CONDITIONS
from ovir.ops.infrastructure import Const


@dataclass(frozen=True)
class Undecided:
    """The output ports of a model and its bodies that may be known once constants have their data."""

    sizes: set[Port] = field(default_factory=set)
    """Ports with unknown sizes that the data of a constant may decide."""
    values: set[Port] = field(default_factory=set)
    """Ports whose elements depend on such data and on sizes alone, so that inference would know them."""


class _Origin(NamedTuple):
    """What a tensor depends on."""

    size_lacks: bool = False
    """Whether constants without data may decide its sizes."""
    lacks: bool = False
    """Whether constants without data decide its elements."""
    is_given: bool = False
    """Whether its elements depend on what a run is given: inputs, states or random numbers."""


def undecided(model: LayerGraph) -> Undecided:
    """Return what the data of constants that have none may decide; empty if all have theirs."""
    found = Undecided()
    if any(_lacks_data(layer) for layer in model.walk()):
        _visit(model, _Origin(is_given=True), found)
    return found


def without_undecided(model: LayerGraph, errors: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return diagnostics without errors of layers that read a tensor whose sizes missing data may decide."""
    open_sizes = undecided(model).sizes
    readers = {reader.layer.title for port in open_sizes for reader in port.readers}
    return [error for error in errors if error.severity is not Severity.ERROR or error.layer not in readers]


def _lacks_data(layer: Layer) -> bool:
    return isinstance(layer.operator, Const) and not layer.operator.has_data


def _visit(model: LayerGraph, given: _Origin, found: Undecided) -> list[_Origin]:
    """Add the ports of a model whose Parameters have the origin ``given``; return the origins of its outputs."""
    origins: dict[Port, _Origin] = {}
    for layer in model.layers:
        origin = _origin(layer, given, origins, found)
        for port in layer.outputs:
            is_open = origin.size_lacks and (port.inferred is None or port.type.shape.is_dynamic)
            origins[port] = origin._replace(size_lacks=is_open)
            if is_open:
                found.sizes.add(port)
            if origin.lacks and not origin.is_given:
                found.values.add(port)
    return [origins[port.source] for port in model.outputs if port.source in origins]


def _origin(layer: Layer, given: _Origin, origins: dict[Port, _Origin], found: Undecided) -> _Origin:
    """Return the origin of what a layer returns."""
    op = layer.operator
    if layer.type == "Parameter":
        return given
    if _lacks_data(layer):
        return _Origin(lacks=True)
    inputs = [origins.get(port.source, _Origin()) if port.source is not None else _Origin() for port in layer.inputs]
    if op is None:
        return _joined([*inputs, _Origin(is_given=True)])
    if layer.bodies:
        outputs = [origin for body in layer.bodies.values() for origin in _visit(body, _joined(inputs), found)]
        # The condition of If, the trip count of Loop, or a condition that the body of Loop returns.
        decides = any(
            origin.lacks and not origin.is_given for origin in (*inputs[: CONDITIONS.get(layer.type, 0)], *outputs)
        )
        return _joined([*inputs, *outputs, _Origin(size_lacks=decides)])
    decides = any(
        item.lacks and (not item.is_given or is_small(port.type.shape))  # inference follows parts of small values only
        for index, (port, item) in enumerate(zip(layer.inputs, inputs, strict=True))
        if op.reads_value(index)
    )
    read = _joined(op.with_elements_read(inputs))
    size_lacks = any(item.size_lacks for item in inputs)
    return _Origin(size_lacks or decides, read.lacks or size_lacks, read.is_given or not op.pure)


def _joined(origins: Iterable[_Origin]) -> _Origin:
    known = list(origins)
    return _Origin(*(any(values) for values in zip(*known, strict=True))) if known else _Origin()
