"""Random inputs that a model accepts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, f32
from ovir.core.progress import counted, stage
from ovir.core.shapes import Dimension, PartialShape, ShapeLike, as_shape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.errors import ModelError
from ovir.graph.layers import Layer, Port
from ovir.graph.names import distinct_names
from ovir.model import Model
from ovir.ops.base.bodies import BodyMap
from ovir.ops.base.domains import Domain
from ovir.ops.base.operator import Operator
from ovir.runtime.failures import memory_errors_named


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


BATCH, OTHER = 1, 8
"""The sizes that are tried first: for the first axis, and for the others."""
SIZES = (1, 3, 2, 4, 16, 32, 64, 128, 224, 256, 512, 1024, 5, 6, 7, 9, 10, 12, 14, 20, 24)
"""The sizes that are tried next, in this order, until inference accepts one."""


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


def fix_shapes(model: Model, given: Mapping[int, ShapeLike] | None = None) -> dict[int, tuple[int, ...]]:
    """Give every input a static shape and return the chosen shapes by position of the input.

    ``given`` are shapes that the caller has chosen. The first axis becomes 1 and others 8, or the size that a given
    input has on that axis; if inference rejects that, each dynamic dimension becomes the first of ``SIZES`` that it
    accepts. If no sizes are accepted, raise ModelError and leave the model unchanged.
    """
    before = {i: port.shape for i, port in enumerate(model.inputs)}
    fixed = {i: as_shape(shape) for i, shape in (given or {}).items()}
    open_inputs = [i for i, shape in before.items() if i not in fixed and not shape.is_static]
    if not open_inputs and all(before[i] == shape for i, shape in fixed.items()):
        return {}
    likely = _sizes_by_axis(before, fixed)
    first_choice = {i: _first_choice(before[i], likely) for i in open_inputs}
    try:
        model.reshape({**fixed, **first_choice})
    except ModelError as refused:
        if not open_inputs or not _search(model, {**before, **fixed}, open_inputs, likely):
            model.reshape(before)
            raise refused from None
    return {i: model.inputs[i].shape.to_tuple() for i in open_inputs}


def _sizes_by_axis(before: Mapping[int, PartialShape], fixed: Mapping[int, PartialShape]) -> dict[int, int]:
    """Return, for each axis, the size of a given input whose dimension there was dynamic."""
    sizes: dict[int, int] = {}
    for i, shape in fixed.items():
        for axis, dim in enumerate(shape.dims if shape.rank is not None else ()):
            if dim.is_static and not before[i][axis].is_static:
                sizes.setdefault(axis, dim.lower)
    return sizes


def _candidates(dim: Dimension, axis: int, likely: Mapping[int, int]) -> list[int]:
    usual = BATCH if axis == 0 else OTHER
    wanted = dict.fromkeys([likely.get(axis, usual), usual, BATCH, OTHER, *SIZES])
    return [size for size in wanted if dim.contains(size)] or [max(dim.lower, 1) if dim.contains(1) else dim.lower]


def _first_choice(shape: PartialShape, likely: Mapping[int, int]) -> PartialShape:
    if shape.rank is None:
        shape = PartialShape([-1, -1])
    return PartialShape(dim if dim.is_static else _candidates(dim, axis, likely)[0] for axis, dim in enumerate(shape))


def _search(
    model: Model, shapes: dict[int, PartialShape], open_inputs: Sequence[int], likely: Mapping[int, int]
) -> bool:
    """Fix one dimension after another, with later ones open; return whether all could be fixed."""
    for i in open_inputs:
        if shapes[i].rank is None and not _first_accepted(model, shapes, i, _ranks()):
            return False
        for axis, dim in enumerate(shapes[i]):
            trials = (shapes[i].with_dim(axis, size) for size in _candidates(dim, axis, likely))
            if not dim.is_static and not _first_accepted(model, shapes, i, trials):
                return False
    return True


def _ranks() -> Iterator[PartialShape]:
    return (PartialShape([-1] * rank) for rank in (2, 4, 1, 3, 5, 0))


def _first_accepted(model: Model, shapes: dict[int, PartialShape], i: int, trials: Iterator[PartialShape]) -> bool:
    """Set the input's entry in ``shapes`` to the first of the trials that inference accepts."""
    for trial in trials:
        try:
            model.reshape({**shapes, i: trial})
        except ModelError:
            continue
        shapes[i] = trial
        return True
    return False


def generate_inputs(model: Model, seed: int = 0, only: Sequence[int] | None = None) -> list[RandomInput]:
    """Return one random array for each input (or for the positions in ``only``), whose shapes must be static.

    The same seed gives the same values, whichever inputs are requested.
    """
    with stage("making inputs"):
        domains = input_domains(model)
    made = []
    for i, port in enumerate(counted("making inputs", model.inputs)):
        if only is None or i in only:
            domain = domains.get(port) or _domain_by_name(port)
            rng = np.random.default_rng([seed, i])
            with memory_errors_named(port.layer):
                array = _draw(rng, port.element_type, port.shape.to_tuple(), domain)
            made.append(RandomInput(port, array, domain))
    return made


def _domain_by_name(port: Port) -> Domain | None:
    """Return the domain of an input that its name shows to be a mask, whose use the walk over the graph cannot
    follow."""
    names = (*port.names, port.layer.name)
    if not port.element_type.is_real and any("mask" in name.lower() for name in names):
        return Domain(1, 1, why="a mask")
    return None


def _draw(rng: np.random.Generator, element_type: ElementType, shape: tuple[int, ...], domain: Domain | None) -> Array:
    if element_type.is_dynamic:
        element_type = f32
    if element_type.kind == "string":
        letters = rng.integers(97, 123, (*shape, 5), dtype=np.uint8)
        return letters.view("S5").astype("U5").reshape(shape).astype(element_type.to_dtype())
    if element_type.kind == "boolean":
        return np.ones(shape, np.bool_) if domain and domain.low == 1 else rng.random(shape) < 0.5
    if element_type.is_real and domain is None and element_type.bits > 4:
        exact = rng.random(shape, np.float64 if element_type.bits == 64 else np.float32)
        return exact.astype(element_type.to_dtype(), copy=False)
    least, most = _range_of(element_type)
    low, high = _usual(element_type) if domain is None else (domain.low, domain.high)
    low = max(least, low if low is not None else 0)
    high = max(low, min(most, high if high is not None else max(9, low)))
    array = rng.integers(int(low), int(high), shape, np.int64, endpoint=True)
    return _arranged(array, domain).astype(element_type.to_dtype())


def _range_of(element_type: ElementType) -> tuple[float, float]:
    """Return the smallest and the largest integer of a type that are safe to draw."""
    bits = min(element_type.bits, 24 if element_type.is_real else 62)
    if element_type.kind == "signed":
        return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return (0 if element_type.kind == "unsigned" or element_type.bits == 4 else -(2**bits)), 2**bits - 1


def _usual(element_type: ElementType) -> tuple[float, float]:
    """Return the usual range of a type: bytes are pixels or quantized numbers and take every value, other integers are
    counts and ids."""
    return _range_of(element_type) if element_type.bits <= 8 else (0, 9)


def _arranged(array: Array, domain: Domain | None) -> Array:
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

    They are the ones that ``ovir run`` makes: the same seed gives the same values, inputs that serve as indices stay in
    range, and sizes are chosen for what is dynamic. An array has the dtype of its input's element type. The model
    keeps its shapes.

    Raises ModelError if no sizes are found that the model accepts, and what ``read_model`` raises for a file.
    """
    if not isinstance(model, Model):
        from ovir.model import read_model  # a convenience only

        model = read_model(model)
    if not all(port.shape.is_static for port in model.inputs):
        model = model.clone()
        fix_shapes(model)
    made = generate_inputs(model, seed)
    return dict(zip(distinct_names(model.inputs), (item.array for item in made), strict=True))
