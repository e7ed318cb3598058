"""Random inputs that a model accepts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ovir.analysis.input_sizes import with_sizes
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, f32, value_range
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.errors import require_counts
from ovir.graph.layers import Layer, Port
from ovir.graph.names import distinct_names
from ovir.model import Model, opened
from ovir.ops.base.bodies import BodyMap
from ovir.ops.base.domains import Domain
from ovir.ops.base.operator import Operator
from ovir.runtime.failures import memory_errors_named
from ovir.system.progress import counted, stage


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


@dataclass(frozen=True)
class RandomInput:
    """A random input, and the domain of its values (None: unrestricted)."""

    port: Port
    array: Array
    domain: Domain | None

    def __str__(self) -> str:
        shape = ",".join(map(str, self.array.shape))
        within = f", values {self.domain} for {self.domain.why}" if self.domain else ""
        return f"{self.port.any_name} {self.port.element_type}[{shape}]{within}"


def generate_inputs(model: Model, seed: int = 0, only: Sequence[int] | None = None) -> list[RandomInput]:
    """Return one random array for each input (or for the positions in ``only``), whose shapes must be static.

    Real numbers lie in [0, 1) for an even seed and in [-1, 1) for an odd one: functions such as ReLU and Abs differ
    only below 0, where others such as Log and Sqrt have no values. The same seed gives the same values, whichever
    inputs are requested.
    """
    require_counts(0, seed=seed)
    with stage("making inputs"):
        domains = input_domains(model)
    made = []
    for i, port in enumerate(counted("making inputs", model.inputs)):
        if only is None or i in only:
            domain = domains.get(port) or _domain_by_name(port)
            rng = np.random.default_rng([seed, i])
            with memory_errors_named(port.layer):
                array = _draw(rng, port.element_type, port.shape.to_tuple(), domain, is_signed=seed % 2 == 1)
            made.append(RandomInput(port, array, domain))
    return made


def _domain_by_name(port: Port) -> Domain | None:
    """Return the domain of an input whose name shows that it is a mask, whose use the walk over the graph may miss."""
    names = (*port.names, port.layer.name)
    if not port.element_type.is_real and any("mask" in name.lower() for name in names):
        return Domain(1, 1, why="a mask")
    return None


def _draw(
    rng: np.random.Generator,
    element_type: ElementType,
    shape: tuple[int, ...],
    domain: Domain | None,
    *,
    is_signed: bool,
) -> Array:
    if element_type.is_dynamic:
        element_type = f32
    if element_type.kind == "string":
        letters = rng.integers(97, 123, (*shape, 5), dtype=np.uint8)
        return letters.view("S5").astype("U5").reshape(shape).astype(element_type.to_dtype())
    if element_type.kind == "boolean":
        return np.ones(shape, np.bool_) if domain and domain.low == 1 else rng.random(shape) < 0.5
    if element_type.is_real and domain is None and element_type.bits > 4:
        exact = rng.random(shape, np.float64 if element_type.bits == 64 else np.float32)
        if is_signed and value_range(element_type)[0] < 0:
            exact = 2 * exact - 1
        return exact.astype(element_type.to_dtype(), copy=False)
    least, most = _range_of(element_type)
    # Bytes are pixels or codes, and take every value; other integers are counts and ids.
    usual = (least, most) if element_type.bits <= 8 else (0, 9)
    low, high = usual if domain is None else (domain.low, domain.high)
    low = max(least, low if low is not None else 0)
    high = max(low, min(most, high if high is not None else max(9, low)))
    array = rng.integers(int(low), int(high), shape, np.int64, endpoint=True)
    return arranged(array, domain).astype(element_type.to_dtype())


def _range_of(element_type: ElementType) -> tuple[float, float]:
    """Return the smallest and the largest integer of a type that are safe to draw."""
    bits = min(element_type.bits, 24 if element_type.is_real else 62)
    if element_type.kind == "signed":
        return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return (0 if element_type.kind == "unsigned" or element_type.bits == 4 else -(2**bits)), 2**bits - 1


def arranged(array: Array, domain: Domain | None) -> Array:
    """Return numbers in the order that a domain asks for."""
    order = domain.order if domain else "any"
    if order == "any" or array.ndim == 0:
        return array
    if order in ("sorted", "offsets"):
        array = np.sort(array, axis=-1)
        if order == "offsets":
            array[..., :1] = 0
        return array
    if order == "counting":
        assert domain is not None
        return np.arange(array.size).reshape(array.shape) + int(domain.low or 0)
    array = np.ones_like(array)
    array[..., :1] = -1
    return array


def random_inputs(model: Model | str | os.PathLike[str], seed: int = 0) -> dict[str, Array]:
    """Return a random array for each input of a model, by the input's name.

    They are the ones that ``ovir run`` makes: the same seed gives the same values, real numbers are below 0 only for
    odd seeds, inputs that serve as indices stay in range, and sizes are chosen for what is dynamic. An array has the
    dtype of its input's element type. The model keeps its shapes.

    Raises ModelError if no sizes are found that the model accepts, and what ``read_model`` raises for a file.
    """
    model = opened(model)
    model, _ = with_sizes(model)
    return named_inputs(model, seed)


def named_inputs(model: Model, seed: int) -> dict[str, Array]:
    """Return a random array for each input of a model of static inputs, by the input's name."""
    made = generate_inputs(model, seed)
    return dict(zip(distinct_names(model.inputs), (item.array for item in made), strict=True))
