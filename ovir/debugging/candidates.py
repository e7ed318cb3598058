"""Candidates of a reduction: parts of a model, smaller dimensions and simpler constants."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from functools import cached_property, partial

import numpy as np

from ovir.analysis.random_inputs import random_inputs
from ovir.analysis.tensor_stats import as_numbers
from ovir.core.arrays import Array
from ovir.core.shapes import PartialShape
from ovir.diagnostics.errors import OvirError
from ovir.editing.constant_edits import as_constant, put_constant, set_data
from ovir.editing.extraction import runnable_part
from ovir.editing.layer_edits import feeds_result
from ovir.editing.transaction import owner_of
from ovir.graph.constant_layers import all_constant_layers
from ovir.graph.layers import Layer, Port, sources_of
from ovir.graph.order import trace_back
from ovir.model import Model
from ovir.ops.infrastructure import Const
from ovir.runtime.compiled import CompiledModel


class Candidate:
    """A model with arrays for its inputs, and the candidate that it was made from.

    ``sources`` are the tensors of the earlier candidate that the inputs of this one stand for. The arrays are computed
    from the inputs of the whole model when they are first needed.
    """

    def __init__(
        self,
        model: Model,
        before: Candidate | None = None,
        sources: Sequence[Port] = (),
        given: Mapping[int, Array] | None = None,
        seed: int = 0,
    ) -> None:
        self.model = model
        self._before = before
        self._sources = list(sources)
        self._given = dict(given or {})
        self._seed: int = seed if before is None else before._seed
        self._feeds: list[Array] | None = None

    @cached_property
    def constant_layers(self) -> frozenset[int]:
        """Return the ids of the layers, Consts included, that are computed from constants alone."""
        return frozenset(layer.id for layer in all_constant_layers(self.model))

    @property
    def feeds(self) -> list[Array]:
        """Return an array for each input of the model."""
        waiting: list[Candidate] = []
        candidate: Candidate | None = self
        while candidate is not None and candidate._feeds is None:  # chains of candidates may be long
            waiting.append(candidate)
            candidate = candidate._before
        for later in reversed(waiting):
            later._feeds = later._make_feeds()
            later._before, later._sources = None, []  # frees the models before
        assert self._feeds is not None
        return self._feeds

    def values(self, ports: Sequence[Port]) -> list[Array]:
        """Return the values of tensors; raise OvirError if ovir cannot compute them."""
        if not ports:
            return []
        part = self.model.extract(outputs=list(dict.fromkeys(ports)))
        by_id = {port.layer.id: array for port, array in zip(self.model.inputs, self.feeds, strict=True)}
        results = CompiledModel(part, keep_compressed=True)([by_id[port.layer.id] for port in part.inputs])
        values = dict(zip(dict.fromkeys(ports), results.values(), strict=True))
        return [values[port] for port in ports]

    def _make_feeds(self) -> list[Array]:
        """Return the inputs; where their values cannot be computed, or have another type by now, random ones."""
        known = self._given if self._before is None else self._computed(self._before)
        inputs = self.model.inputs
        fits = {i: array for i, array in known.items() if i < len(inputs) and inputs[i].shape.contains(array.shape)}
        if len(fits) == len(inputs):
            return [fits[i] for i in range(len(fits))]
        drawn = list(random_inputs(self.model, self._seed).values())
        return [fits.get(i, array) for i, array in enumerate(drawn)]

    def _computed(self, before: Candidate) -> dict[int, Array]:
        arrays = dict(zip(before.model.inputs, before.feeds, strict=True))
        others = [port for port in self._sources if port not in arrays]
        with suppress(OvirError):  # the fault that is looked for may be one of ovir's own
            arrays |= dict(zip(others, before.values(others), strict=True))
        return {i: arrays[port] for i, port in enumerate(self._sources) if port in arrays}


LayerPath = tuple[int | str, ...]
"""The ids and names of bodies that lead to a layer: ``(7,)``, or ``(7, "body", 3)``. Candidates keep them."""

_ENDS = ("Parameter", "Result", "Const", "Assign")
"""Types of layers that are not counted: they come and go with the layers that they serve."""


class Fill(StrEnum):
    """The replacement of tensors whose layers are removed.

    Tensors that inference knows, or that follow from constants, become constants in any case.
    """

    PARAMETERS = "parameters"
    MIXED = "mixed"
    """Constants for indices, shapes and the like; Parameters for real numbers."""
    CONSTANTS = "constants"
    """All inputs of the model remain, although nothing may read them, because the check may feed them."""


def layers_of(candidate: Candidate, *, are_constant: bool = False) -> list[int]:
    """Return the ids of the layers that compute something from inputs or states, in topological order.

    With ``are_constant``, return those that are computed from constants alone, without Consts.
    """
    ids = (layer.id for layer in candidate.model.layers if layer.type not in _ENDS)
    return [number for number in ids if (number in candidate.constant_layers) is are_constant]


def counted_layers(model: Model) -> list[Layer]:
    """Return the layers, those of bodies included, without Parameters, Results, Consts and Assigns."""
    return [layer for layer in model.walk() if layer.type not in _ENDS]


# --------------------------------------------------------------------------- parts


def without(candidate: Candidate, removed: Collection[int], fill: Fill = Fill.PARAMETERS) -> Candidate | None:
    """Return the part of a model without some layers; all tensors that only they have read are outputs."""
    left = [layer for layer in candidate.model.layers if layer.type not in _ENDS and layer.id not in removed]
    layers = [layer for layer in left if layer.id not in candidate.constant_layers] or left
    if not layers:
        return None
    read = {port.source for layer in layers for port in layer.inputs}
    inputs = [port for port in candidate.model.inputs if fill is Fill.CONSTANTS or port in read]
    first_cut = len(inputs)
    fixed = candidate.constant_layers
    _, border = trace_back(layers, lambda port: port.layer.id in fixed and port.layer.id not in removed)
    inputs += [port for port in border if port.layer.id in removed]
    part = runnable_part(candidate.model, inputs, _open_ends(layers))
    constants = [i for i in range(first_cut, len(inputs)) if _becomes_constant(candidate, inputs[i], fill)]
    if constants and not _fix(candidate, part, {i: inputs[i] for i in constants}):
        return None
    return Candidate(part, candidate, [port for i, port in enumerate(inputs) if i not in constants])


def _open_ends(layers: Sequence[Layer]) -> list[Port]:
    """Return the tensors that a layer outside reads, or nothing, if nothing reads any output of the layer."""
    among = set(layers)
    ends: list[Port] = []
    for layer in layers:
        read = [port for port in layer.outputs if any(reader.layer not in among for reader in port.readers)]
        is_read = any(port.readers for port in layer.outputs)
        ends += read if is_read else layer.outputs[:1]
    return ends


def _becomes_constant(candidate: Candidate, port: Port, fill: Fill) -> bool:
    if port.layer.id in candidate.constant_layers or port.type.constant is not None:
        return True
    return fill is Fill.CONSTANTS or (fill is Fill.MIXED and not port.element_type.is_real)


def _fix(candidate: Candidate, part: Model, sources: dict[int, Port]) -> bool:
    """Replace inputs of a part by the values that their tensors have; return False if they cannot be replaced.

    A constant with NaN or infinity would hide the layer that makes it.
    """
    ports = [part.inputs[i] for i in sources]
    known = {source: array for source in sources.values() if (array := source.type.constant) is not None}
    others = [source for source in sources.values() if source not in known]
    known |= dict(zip(others, candidate.values(others), strict=True))
    with part.editing():
        for port, source in zip(ports, sources.values(), strict=True):
            operator = as_constant(source, known[source])
            if operator is None or (source.element_type.is_real and not np.isfinite(as_numbers(known[source])).all()):
                return False
            put_constant(port.layer, operator)
    return True


def with_outputs(candidate: Candidate, removed: Collection[int]) -> Candidate | None:
    """Return the model without some outputs, given by the ids of their Results; all inputs remain."""
    model = candidate.model
    wanted = dict.fromkeys(port.source for port in model.outputs if port.layer.id not in removed)
    tensors = [port for port in wanted if port is not None]
    if not tensors:
        return None
    return Candidate(model.extract(inputs=list(model.inputs), outputs=tensors), candidate, model.inputs)


def without_inputs(candidate: Candidate, removed: Collection[int]) -> Candidate | None:
    """Return the model without some inputs that nothing reads, given by the ids of their layers."""
    model = candidate.model.clone()
    with model.editing():
        for number in removed:
            model.remove_layer(model.layer(number))
    return Candidate(model, candidate, [port for port in candidate.model.inputs if port.layer.id not in removed])


def bodies(candidate: Candidate) -> Iterator[Candidate]:
    """Yield the bodies of layers as models."""
    for layer in candidate.model.layers:
        for body in layer.bodies.values():
            outputs = dict.fromkeys(port.source for port in body.outputs if port.source is not None)
            with suppress(OvirError):  # such as a body that returns constants alone
                yield Candidate(candidate.model.extract(outputs=list(outputs)), candidate)


# --------------------------------------------------------------------------- past layers


def paths(candidate: Candidate) -> list[LayerPath]:
    """Return the paths of the layers that have an input of the same type as an output, layers of bodies included."""
    return [path for path, layer in _walk(candidate.model) if any(_same_type(layer, port) for port in layer.outputs)]


def past(candidate: Candidate, bypassed: Collection[LayerPath], *, shortest: bool) -> Candidate | None:
    """Return the model in which the readers of layers read an input of the same type instead.

    If several inputs have this type, ``shortest`` chooses the first in topological order, so that whole branches are
    left out; otherwise the last one is chosen, so that branches remain and shortcuts are left out.
    """
    model = candidate.model.clone()
    place = {layer: i for i, layer in enumerate(model.walk())}
    moved = False
    with model.editing():
        for path, layer in list(_walk(model)):
            if path in bypassed:
                moved |= _bypass(layer, place, shortest)
        if not moved:
            return None
        model.prune()
    return Candidate(model, candidate, candidate.model.inputs)


def _walk(model: Model, start: LayerPath = ()) -> Iterator[tuple[LayerPath, Layer]]:
    for layer in model.layers:
        if layer.type not in _ENDS:
            yield (*start, layer.id), layer
        for name, body in layer.bodies.items():
            yield from _walk(body, (*start, layer.id, name))


def _same_type(layer: Layer, output: Port) -> list[Port]:
    """Return the tensors that a layer reads and that have the type of an output."""
    sources = dict.fromkeys(sources_of(layer))
    return [source for source in sources if source.type == output.type and source.layer.type != "Const"]


def _bypass(layer: Layer, place: Mapping[Layer, int], shortest: bool) -> bool:
    """Let the readers of a layer read one of its inputs; return whether that is possible for any output."""
    graph = owner_of(layer)
    moved = False
    for port in layer.outputs:
        alike = sorted(_same_type(layer, port), key=lambda source: place[source.layer])
        if alike and port.readers:
            source = alike[0 if shortest else -1]
            if feeds_result(port):
                source.own_names, port.own_names = source.own_names | port.own_names, frozenset()
            graph.move_readers(port, source)
            moved = True
    return moved


_LARGEST_SHAPE = 16
"""Integer constants of at most this many elements may be shapes, so that sizes in them are replaced, too."""


def sizes(candidate: Candidate) -> list[int]:
    """Return the different sizes of dimensions of inputs and constants that can be reduced, the largest first."""
    lengths = {
        dim.lower
        for layer in candidate.model.layers
        if layer.type in ("Parameter", "Const")
        for dim in (layer.shape if layer.shape.rank is not None else ())
        if dim.is_static and dim.lower > 1
    }
    return sorted(lengths, reverse=True)


def resized(candidate: Candidate, size: int, wanted: int) -> Iterator[Callable[[Candidate], Candidate]]:
    """Yield ways to make dimensions of one size smaller, each of which makes another model.

    First all dimensions of this size are replaced, because the layers between inputs and constants often need equal
    sizes; then only dimensions of inputs and constants, without the numbers in shapes; then only dimensions of inputs.
    """
    constants = [layer.operator for layer in candidate.model.layers if isinstance(layer.operator, Const)]
    in_inputs = any(_replaced(port.shape, size, wanted) != port.shape for port in candidate.model.inputs)
    in_constants = any(size in op.shape for op in constants)
    in_shapes = any(size not in op.shape and _may_be_shape(op) and (op.data == size).any() for op in constants)
    if in_inputs or in_constants or in_shapes:
        yield partial(_resized, size=size, wanted=wanted, in_constants=True, in_shapes=True)
    if in_shapes and (in_inputs or in_constants):
        yield partial(_resized, size=size, wanted=wanted, in_constants=True, in_shapes=False)
    if in_constants and in_inputs:
        yield partial(_resized, size=size, wanted=wanted, in_constants=False, in_shapes=False)


def _resized(candidate: Candidate, size: int, wanted: int, in_constants: bool, in_shapes: bool) -> Candidate:
    model = candidate.model.clone()
    with model.editing():
        model.reshape({i: _replaced(port.shape, size, wanted) for i, port in enumerate(model.inputs)})
        for layer in list(model.layers) if in_constants else ():
            op = layer.operator
            if not isinstance(op, Const):
                continue
            if size in op.shape:
                _set(layer, op, op.data[tuple(slice(wanted if dim == size else None) for dim in op.shape)])
            elif in_shapes and _may_be_shape(op) and (op.data == size).any():
                _set(layer, op, np.where(op.data == size, op.data.dtype.type(wanted), op.data))
    return Candidate(model, candidate, candidate.model.inputs)


def _replaced(shape: PartialShape, size: int, wanted: int) -> PartialShape:
    if shape.rank is None:
        return shape
    return PartialShape(wanted if dim.is_static and dim.lower == size else dim for dim in shape)


def _set(layer: Layer, op: Const, array: Array) -> None:
    set_data(layer, Const.of(array, op.element_type))


def static(candidate: Candidate) -> Candidate | None:
    """Return the model whose inputs have size 1, or the least that is allowed, where they are dynamic."""
    if all(port.shape.is_static or port.shape.rank is None for port in candidate.model.inputs):
        return None
    model = candidate.model.clone()
    shapes = {i: port.shape for i, port in enumerate(model.inputs) if port.shape.rank is not None}
    model.reshape({i: [d if d.is_static else max(1, d.lower) for d in shape] for i, shape in shapes.items()})
    return Candidate(model, candidate, candidate.model.inputs)


def _may_be_shape(op: Const) -> bool:
    return op.element_type.is_integral and op.element_type.bits >= 32 and 0 < op.data.size <= _LARGEST_SHAPE


# --------------------------------------------------------------------------- values


def varied_constants(candidate: Candidate) -> list[int]:
    """Return the ids of constants of numbers that are not all equal, without those that may be shapes."""
    return [layer.id for layer in candidate.model.layers if isinstance(op := layer.operator, Const) and _varies(op)]


def _varies(op: Const) -> bool:
    if _may_be_shape(op) or op.element_type.kind == "string" or op.data.size < 2:
        return False
    numbers = as_numbers(op.data)
    return not np.array_equal(numbers, np.broadcast_to(numbers.flat[0], numbers.shape), equal_nan=True)


def with_equal_elements(candidate: Candidate, constants: Collection[int]) -> Candidate:
    """Return the model in which all elements of some constants equal their element of largest magnitude, or NaN."""
    model = candidate.model.clone()
    with model.editing():
        for number in constants:
            layer = model.layer(number)
            assert isinstance(layer.operator, Const)
            data = layer.operator.data
            largest = int(np.argmax(np.abs(as_numbers(data))))  # NaN counts as larger than all numbers
            _set(layer, layer.operator, np.full_like(data, data.flat[largest]))
    return Candidate(model, candidate, candidate.model.inputs)


def has_rt_info(candidate: Candidate) -> bool:
    """Return whether the model or anything in it has runtime information."""
    return any(
        graph.rt_info or any(layer.rt_info or any(port.rt_info for port in layer.outputs) for layer in graph.layers)
        for graph in candidate.model.graphs()
    )


def stripped(candidate: Candidate) -> Candidate:
    """Return the model without rt_info."""
    model = candidate.model.clone()
    model.strip_rt_info()
    return Candidate(model, candidate, candidate.model.inputs)
