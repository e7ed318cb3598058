"""The values that each input of a model accepts, found by following it to the layers that restrict it.

An index must lie inside the data, a TopK's k must not exceed its axis, a pattern of Reshape must match the data: each
operation declares such ``domains``. ``input_domains`` follows each Parameter through the layers that pass values on
unchanged, and through the bodies of If, Loop and TensorIterator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ovir.core.tensor_types import TensorType
from ovir.graph.layers import Layer, Port
from ovir.model import Model
from ovir.ops.base.bodies import BodyMap
from ovir.ops.base.domains import Domain
from ovir.ops.base.operator import Operator


def input_domains(model: Model) -> dict[Port, Domain]:
    """Return the domain of every input whose values a layer restricts."""
    asked = _Asked()
    asked.visit(model)
    found: dict[Port, Domain] = {}
    for port in model.inputs:
        for domain in reversed(asked.of.get(port, {})):  # the domain of the first reader counts
            found[port] = found[port].meet(domain) if port in found else domain
    return found


class _Asked:
    """The domains that readers demand of output ports."""

    def __init__(self) -> None:
        self.of: dict[Port, dict[Domain, None]] = {}

    def visit(self, model: Model) -> None:
        """Visit the layers from the last to the first, so that readers of a tensor come before its source."""
        for layer in reversed(model.layers):
            for body in layer.bodies.values():
                self.visit(body)
            if layer.operator is None:
                continue
            inputs = [port.type for port in layer.inputs]
            for port in layer.inputs:
                if port.source is not None:
                    asked = self.of.setdefault(port.source, {})
                    asked.update(dict.fromkeys(self._by(layer, layer.operator, port.index, inputs)))

    def _by(self, layer: Layer, op: Operator, position: int, inputs: Sequence[TensorType]) -> Iterator[Domain]:
        """Yield the domains that a layer demands of an input."""
        for output in layer.outputs:
            for wanted in self.of.get(output, ()):
                if (before := op.domain_before(position, inputs, wanted)) is not None:
                    yield before
        for key, body in layer.bodies.items():
            if key in op.wiring:
                yield from self._in_body(layer, body, op.wiring[key], position)
        if (domain := op.domain_of(position, inputs)) is not None:
            yield replace(domain, why=f"{layer.type} '{layer.name}'")

    def _in_body(self, layer: Layer, body: Model, wiring: BodyMap, position: int) -> Iterator[Domain]:
        for entry in wiring.inputs:
            if entry.external != position:
                continue
            parameter = body.inputs[entry.parameter]
            yield from self.of.get(parameter, ())
            # A parameter that the body returns unchanged is followed further outside of it.
            for item in wiring.outputs:
                if body.outputs[item.result].source is parameter and 0 <= item.external < len(layer.outputs):
                    yield from self.of.get(layer.outputs[item.external], ())
