"""Explain dynamic dimensions: where an unknown size first occurs, and what it depends on.

Every unknown size goes back to roots: sizes of inputs or variables, or sizes that data determines. First, all unknown
sizes and elements of a layer's inputs are set to samples, and inference shows which sizes of the outputs follow from
shapes alone. Then one root after another is changed: the sizes that change with it depend on it. If sizes must be
equal, inference rejects the change of one root alone; those sizes are left open instead.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ovir.core.shapes import UNKNOWN, Dimension, PartialShape, sized
from ovir.core.tensor_types import TensorType
from ovir.core.values import SIZE, from_moved, is_small
from ovir.diagnostics.errors import OperatorError
from ovir.graph.layers import Layer, Port
from ovir.inference.known_values import infer_with_values
from ovir.model import Model
from ovir.ops.base.bodies import BodyMap
from ovir.ops.base.operator import Operator
from ovir.ops.control_flow import IterationBase, Loop, known_truth
from ovir.system.progress import counted

SAMPLES = (224, 192)
"""The sample sizes, tried in order: numbers with many divisors."""

Ids = NDArray[np.int64]
"""The variable of each element of a tensor: its symbol, or a number below 0; 0 for none."""
Outputs = tuple[TensorType, ...]


@dataclass(frozen=True)
class Sample:
    """The numbers that stand for a variable (an unknown size or element) in each trial."""

    base: tuple[float, ...]
    """The number for each of ``SAMPLES``."""
    roots: tuple[str, ...]
    changed: Mapping[str, float]
    """The number in the first trial when a root changes, by root, if inference determines it."""

    def at(self, world: int | str) -> float:
        """Return the number in a trial: one of ``SAMPLES``, or the first of them with one root changed."""
        return self.base[world] if isinstance(world, int) else self.changed.get(world, self.base[0])


@dataclass(frozen=True)
class Given:
    """An input of a layer: its type and the variables of its elements."""

    tensor: TensorType
    ids: Ids | None


class PlaceInOutputs(NamedTuple):
    """A size, or an element of a small tensor, in the outputs of a layer."""

    output: int
    position: int
    is_element: bool = False


@dataclass(frozen=True)
class Dependence:
    """The origins of an unknown size or number."""

    variables: tuple[int, ...]
    """Variables of the layer's inputs; if empty, the values of tensors decide, whatever the shapes are."""
    sample: Sample


def sample_of(dim: Dimension, root: str) -> Sample:
    """Return the sample of an unknown size that is a root, within its bounds."""

    def bounded(size: int) -> float:
        return float(max(dim.lower, size if dim.upper is None else min(size, dim.upper)))

    base = tuple(bounded(size) for size in SAMPLES)
    return Sample(base, (root,), {root: bounded(2 * SAMPLES[0])})


class _Search:
    """A search for the variables that determine a layer's outputs, by inference with some of them fixed."""

    def __init__(
        self, op: Operator, inputs: Sequence[Given], samples: Mapping[int, Sample], ranks: Sequence[int]
    ) -> None:
        """Infer with ``samples``; ``ranks`` are those that the outputs must have, -1 for any."""
        self._op = op
        self._inputs = inputs
        self._samples = samples
        self._ranks = ranks
        self._bases = [self._outputs((), world) for world in range(len(SAMPLES))]
        self.world = next((i for i, outputs in enumerate(self._bases) if outputs is not None), None)
        """The first of ``SAMPLES`` that inference accepts."""
        roots = dict.fromkeys(root for sample in samples.values() for root in sample.roots)
        self._by_root = {root: self._with_changed(root) for root in roots} if self.world is not None else {}
        self._open: dict[int, Outputs | None] = {}

    def _with_changed(self, root: str) -> Outputs | None:
        """Return the outputs with one root changed; None if inference rejects the change or the numbers are unknown."""
        known = self.world == 0 and all(root in s.changed for s in self._samples.values() if root in s.roots)
        return self._outputs((), root) if known else None

    def at(self, place: PlaceInOutputs) -> Dependence:
        assert self.world is not None
        baseline = self._bases[self.world]
        assert baseline is not None
        if not _is_known(baseline, place):
            return Dependence((), Sample((), (), {}))
        base = tuple(_number(outputs or baseline, place) for outputs in self._bases)
        changed = {
            root: _number(outputs, place)
            for root, outputs in self._by_root.items()
            if outputs is not None and _is_known(outputs, place)
        }
        moved = [root for root, number in changed.items() if number != base[0]]
        unsettled = self._by_root.keys() - changed.keys()
        if unsettled or not moved:
            by_opening = dict.fromkeys(root for v in self._opening(place) for root in self._samples[v].roots)
            moved = [root for root in by_opening if root in moved or root in unsettled] or list(by_opening)
        variables = tuple(v for v, sample in self._samples.items() if not set(moved).isdisjoint(sample.roots))
        return Dependence(variables, Sample(base, tuple(moved), {r: n for r, n in changed.items() if r in moved}))

    def _opening(self, place: PlaceInOutputs) -> list[int]:
        """Return the variables that leave a place open if they are open themselves."""
        assert self.world is not None
        opening = []
        for variable in self._samples:
            if variable not in self._open:
                self._open[variable] = self._outputs((variable,), self.world)
            outputs = self._open[variable]
            if outputs is not None and not _is_known(outputs, place):
                opening.append(variable)
        # Sizes that must be equal determine each other, so that none of them alone makes the result unknown.
        return opening or self._needed(place, self.world)

    def _outputs(self, free: Collection[int], world: int | str) -> Outputs | None:
        """Return the outputs with the variables ``free`` left open; None if inference fails or a rank changes."""
        types = [_fixed(given, self._samples, free, world) for given in self._inputs]
        try:
            outputs = infer_with_values(self._op, types)
        except OperatorError:
            return None
        alike = len(outputs) == len(self._ranks) and all(
            rank in (-1, t.shape.rank) for t, rank in zip(outputs, self._ranks, strict=True)
        )
        return outputs if alike else None

    def _needed(self, place: PlaceInOutputs, world: int) -> list[int]:
        """Return a minimal set of variables that together leave a place open."""
        free = list(self._samples)
        for variable in list(free):
            others = [v for v in free if v != variable]
            outputs = self._outputs(others, world)
            if outputs is not None and not _is_known(outputs, place):
                free = others
        return free


def _anew(inputs: Iterable[Given], samples: Mapping[int, Sample]) -> dict[int, Sample]:
    """Return new samples, which depend only on the bounds of the sizes."""
    shapes = [given.tensor.shape for given in inputs if given.tensor.shape.rank is not None]
    sizes = {dim.symbol: dim for shape in shapes for dim in shape}
    result = {}
    for variable, sample in samples.items():
        new = sample_of(sizes.get(variable, UNKNOWN), "")
        result[variable] = Sample(new.base, sample.roots, dict.fromkeys(sample.roots, new.changed[""]))
    return result


def _variables(inputs: Iterable[Given]) -> list[int]:
    variables: dict[int, None] = {}
    for given in inputs:
        if given.tensor.shape.rank is not None:
            variables.update(dict.fromkeys(dim.symbol for dim in given.tensor.shape if not dim.is_static))
        if given.ids is not None:
            variables.update(dict.fromkeys(given.ids.ravel().tolist()))
    variables.pop(0, None)
    return list(variables)


def _fixed(given: Given, samples: Mapping[int, Sample], free: Collection[int], world: int | str) -> TensorType:
    """Return the type of an input with all variables except ``free`` set to their samples."""
    shape = given.tensor.shape
    if shape.rank is not None and not shape.is_static:
        fixed = {dim.symbol for dim in shape if not dim.is_static and dim.symbol not in free} & samples.keys()
        shape = PartialShape(
            sized(int(samples[dim.symbol].at(world))) if not dim.is_static and dim.symbol in fixed else dim
            for dim in shape
        )
    value = given.tensor.value
    if given.ids is not None and (bounds := given.tensor.bounds_or_unknown()) is not None:
        lower, upper = bounds.lower.copy(), bounds.upper.copy()
        marks = np.where(bounds.marks < 0, SIZE, 0)
        for place in np.argwhere(given.ids != 0):
            at = tuple(place)
            variable = int(given.ids[at])
            if variable in free:
                marks[at] = variable if variable > 0 else SIZE
            elif variable in samples:
                lower[at] = upper[at] = samples[variable].at(world)
        value = from_moved(given.tensor.element_type, lower, upper, marks)
    return TensorType(given.tensor.element_type, shape, value)


def _is_known(outputs: Sequence[TensorType], place: PlaceInOutputs) -> bool:
    tensor = outputs[place.output]
    if not place.is_element:
        return tensor.shape[place.position].is_static
    value = tensor.value
    return value is not None and bool(value.lower.flat[place.position] == value.upper.flat[place.position])


def _number(outputs: Sequence[TensorType], place: PlaceInOutputs) -> float:
    tensor = outputs[place.output]
    if not place.is_element:
        return float(tensor.shape[place.position].lower)
    return float(tensor.value.lower.flat[place.position]) if tensor.value is not None else 0.0


_FEW = 4
"""The largest number of input sizes that an explanation names; beyond that it names intermediate sizes."""


class Cause(StrEnum):
    INPUT = "input"
    """A size of an input of the model."""
    STATE = "state"
    """A size of a variable, which the previous run has left."""
    COMPUTED = "computed"
    """Computed from other dynamic sizes."""
    ITERATION = "iteration"
    """A size in a body that changes from one iteration to the next."""
    RANK = "rank"
    """Computed from a tensor of unknown rank."""
    DATA = "data"
    """Depends on the values of tensors, not on shapes alone."""
    DECLARED = "declared"
    """Declared in the file; ovir does not infer the operation."""


@dataclass(frozen=True)
class SizeOrigin:
    """The place where an unknown size first occurs, as ``layer[axis]`` in the notation of ``ovir infer``."""

    cause: Cause
    port: Port
    axis: int
    roots: tuple[str, ...]
    """The sizes that it goes back to: of inputs and variables, or of layers that create them from data."""
    parents: tuple[str, ...] = ()
    """The sizes from which this layer computes it."""

    def __str__(self) -> str:
        return f"{name_of(self.port)}[{self.axis}]"


def name_of(port: Port) -> str:
    """Return the name of an output as the table of ``ovir infer`` shows it."""
    name = port.layer.scope + port.layer.name
    return f"{name}:{port.index}" if port.index else name


def is_only_declared(layer: Layer) -> bool:
    """Return whether ovir does not infer the operation, so that its shapes and types are only declared."""
    return layer.operator is None


class SizeOrigins:
    """The origin of every unknown size of a model that has been inferred."""

    def __init__(self, model: Model) -> None:
        self._origins: dict[int, SizeOrigin] = {}
        """By symbol; numbers below 0 stand for elements of tensors without one."""
        self._samples: dict[int, Sample] = {}
        self._elements: dict[Port, Ids] = {}
        self._numbers = itertools.count(-1, -1)
        self._add(model)

    def of(self, port: Port) -> Iterator[tuple[int, SizeOrigin]]:
        """Yield the dynamic axes of a port, each with its origin."""
        if port.shape.rank is None:
            return
        for axis, dim in enumerate(port.shape):
            origin = self._origins.get(dim.symbol)
            if not dim.is_static and origin is not None:
                yield axis, origin

    def explain(self, port: Port) -> str:
        """Return the reasons why dimensions of a port are dynamic; an empty string for a static shape."""
        port = port.source or port
        if port.shape.rank is None:
            return "the rank is not known"
        alike: dict[tuple[Cause, Port, tuple[str, ...]], list[tuple[int, SizeOrigin]]] = {}
        for axis, origin in self.of(port):
            roots = () if origin.cause is Cause.DATA else origin.roots
            key = origin.cause, origin.port, roots if origin.cause in (Cause.COMPUTED, Cause.RANK) else ()
            alike.setdefault(key, []).append((axis, origin))
        return "; ".join(f"{_axes(a for a, _ in same)} {_reason(port, same)}" for same in alike.values())

    # ----- finding them

    def _add(self, model: Model) -> None:
        for layer in counted("explaining shapes", model.layers):
            for key, body in layer.bodies.items():
                wiring = layer.operator.wiring.get(key) if layer.operator is not None else None
                if wiring is not None:
                    self._add_body(layer, body, wiring)
                else:
                    self._add(body)
            self._look_at(layer)

    def _look_at(self, layer: Layer) -> None:
        open_sizes = [(port, axis) for port in layer.outputs for axis in self._open_axes(port)]
        cause = {"Parameter": Cause.INPUT, "ReadValue": Cause.STATE}.get(layer.type)
        if cause is None and is_only_declared(layer):
            cause = Cause.DECLARED
        if cause is None and not layer.bodies:
            self._compute(layer, open_sizes)
            return
        for port, axis in open_sizes:
            if cause is None:
                self._leave(layer, port, axis)
            else:
                self._set(port, axis, cause)

    def _open_axes(self, port: Port) -> list[int]:
        """Return the axes of sizes whose origin is still unknown, each size once."""
        if port.shape.rank is None or port.shape.is_static:
            return []
        symbols = [0 if dim.is_static or dim.symbol in self._origins else dim.symbol for dim in port.shape]
        return [axis for axis, symbol in enumerate(symbols) if symbol and symbol not in symbols[:axis]]

    def _set(
        self, port: Port, axis: int, cause: Cause, variables: Iterable[int] = (), sample: Sample | None = None
    ) -> None:
        """Record the origin of a size. It goes back to the roots of ``variables``, or else of ``sample``."""
        dim = port.shape[axis]
        origin = self._origin(port, axis, cause, variables, sample)
        self._origins[dim.symbol] = origin
        if sample is None:
            sample = sample_of(dim, origin.roots[0])
            sample = sample if origin.roots == (str(origin),) else Sample(sample.base, origin.roots, {})
        self._samples[dim.symbol] = sample

    def _origin(
        self, port: Port, axis: int, cause: Cause, variables: Iterable[int], sample: Sample | None = None
    ) -> SizeOrigin:
        before = [self._origins[v] for v in variables]
        if not before:
            return SizeOrigin(cause, port, axis, (f"{name_of(port)}[{axis}]",))
        roots = tuple(dict.fromkeys(root for origin in before for root in origin.roots))
        # The table does not show elements of tensors.
        parents = dict.fromkeys(p for o in before for p in ([str(o)] if o.axis >= 0 else o.parents))
        return SizeOrigin(cause, port, axis, roots if sample is None else sample.roots, tuple(parents))

    # ----- layers that compute sizes

    def _compute(self, layer: Layer, open_sizes: list[tuple[Port, int]]) -> None:
        op = layer.operator
        assert op is not None
        inputs = [Given(port.type, self._ids(port)) for port in layer.inputs]
        elements = [port for port in layer.outputs if any(g.ids is not None for g in inputs) and _has_open_values(port)]
        if not open_sizes and not elements:
            return
        ranks = [-1 if port.shape.rank is None else port.shape.rank for port in layer.outputs]
        used = {v: self._samples[v] for v in _variables(inputs) if v in self._samples}
        # After many layers, such as convolutions without padding, samples may be too small; then new ones are used.
        searches = (_Search(op, inputs, samples, ranks) for samples in (used, _anew(inputs, used)))
        search = next((search for search in searches if search.world is not None), None)
        known = [v for v in _variables(Given(port.type, None) for port in layer.inputs) if v in self._origins]
        for port, axis in open_sizes:
            if search is None:
                self._set(port, axis, Cause.COMPUTED if known else Cause.DATA, known)
                continue
            result = search.at(PlaceInOutputs(port.index, axis))
            if result.variables:
                self._set(port, axis, Cause.COMPUTED, result.variables, result.sample)
            else:
                self._set_unfixed(layer, port, axis)
        if search is not None:
            self._elements.update((port, self._ids_of_elements(port, search)) for port in elements)

    def _set_unfixed(self, layer: Layer, port: Port, axis: int) -> None:
        """Record the origin of a size that stays open even if the known sizes of the inputs are fixed."""
        unknown = [name_of(p.source) for p in layer.inputs if p.source is not None and p.shape.rank is None]
        if unknown:
            origin = self._origins[port.shape[axis].symbol] = SizeOrigin(Cause.RANK, port, axis, tuple(unknown))
            self._samples[port.shape[axis].symbol] = sample_of(port.shape[axis], origin.roots[0])
        else:
            self._set(port, axis, Cause.DATA)

    def _ids(self, port: Port) -> Ids | None:
        """Return the variables of the elements of an input; None if none is known."""
        source, value = port.source, port.type.value
        if source is not None and source in self._elements:
            return self._elements[source]
        return value.symbols if value is not None and value.constant is None and value.has_symbols else None

    def _ids_of_elements(self, port: Port, search: _Search) -> Ids:
        value = port.type.value
        shape = port.shape.to_tuple()
        ids = np.zeros(shape, np.int64) if value is None else value.symbols.copy()
        for i in range(ids.size):
            result = search.at(PlaceInOutputs(port.index, i, True))
            is_known = value is not None and value.lower.flat[i] == value.upper.flat[i]
            if not is_known and result.variables and int(ids.flat[i]) not in self._origins:
                number = ids.flat[i] = next(self._numbers)
                self._origins[number] = self._origin(port, -1, Cause.COMPUTED, result.variables, result.sample)
                self._samples[number] = result.sample
        return ids

    # ----- bodies

    def _add_body(self, layer: Layer, body: Model, wiring: BodyMap) -> None:
        """Record the origins of sizes in a body, again as long as an iteration hands other roots on to the next."""
        carried: dict[int, list[SizeOrigin]] = {}
        count = len(self._origins)
        while True:
            self._enter(layer, body, wiring, carried)
            self._add(body)
            more = list(self._handed_on(layer, body, wiring))
            origins = [self._origins[symbol] for symbol, _ in more]
            replaced = {str(origin) for origin in origins if origin.roots == (str(origin),)}
            more = [(symbol, replace(new, roots=roots)) for symbol, new in more if (roots := _without(new, replaced))]
            if not more:
                return
            for symbol, origin in more:
                carried.setdefault(symbol, []).append(origin)
            while len(self._origins) > count:
                self._origins.popitem()

    def _enter(self, layer: Layer, body: Model, wiring: BodyMap, carried: Mapping[int, list[SizeOrigin]]) -> None:
        """Record the origins of sizes of a body's parameters that differ from the sizes outside.

        ``carried`` has the origins that earlier iterations bring in, by symbol.
        """
        changing = {edge.parameter for edge in wiring.back_edges}
        fed = {entry.parameter: entry for entry in wiring.inputs}
        for position, port in enumerate(body.inputs):
            for axis in self._open_axes(port):
                entry = fed.get(position)
                outer = layer.inputs[entry.external].shape if entry is not None and entry.external >= 0 else None
                dim = outer[axis] if outer is not None and outer.rank == port.shape.rank else None
                more = list(zip(self._numbers, carried.get(port.shape[axis].symbol, ()), strict=False))
                self._origins.update(more)
                variables = [number for number, _ in more]
                if dim is not None and not dim.is_static and dim.symbol in self._origins:
                    self._set(port, axis, Cause.COMPUTED, [dim.symbol, *variables])
                else:
                    self._set(port, axis, Cause.ITERATION if position in changing else Cause.DATA, variables)

    def _handed_on(self, layer: Layer, body: Model, wiring: BodyMap) -> Iterator[tuple[int, SizeOrigin]]:
        """Yield symbols of a body's parameters, with origins of which an iteration hands on more roots than are known.

        A size that grows or shrinks also depends on the number of iterations.
        """
        for edge in wiring.back_edges:
            port, result = body.inputs[edge.parameter], body.outputs[edge.result]
            pairs = zip(port.shape, result.shape, strict=True) if port.shape.rank == result.shape.rank else ()
            for one, other in pairs if port.shape.rank is not None else ():
                known, inner = self._origins.get(one.symbol), self._origins.get(other.symbol)
                if known is None or inner is None or known.port is not port:  # otherwise the same in all iterations
                    continue
                origins = [inner]
                if self._samples[one.symbol].base != self._samples[other.symbol].base:
                    grown = SizeOrigin(Cause.ITERATION, port, known.axis, (str(known),))
                    count = self._iterated(layer)
                    origins += [grown] if count is None else [self._origins[v] for v in count]
                for origin in origins:
                    if not set(origin.roots) <= set(known.roots):
                        yield one.symbol, origin

    def _leave(self, layer: Layer, port: Port, axis: int) -> None:
        """Record the origin of a size of an output of a layer with bodies: the sizes of the bodies' results."""
        variables: dict[int, None] = {}
        for key, wiring in (layer.operator.wiring if layer.operator is not None else {}).items():
            for entry in wiring.outputs:
                if entry.external != port.index:
                    continue
                if entry.axis is not None and axis == entry.axis % (port.shape.rank or 1):
                    if (count := self._iterated(layer)) is None:
                        self._set(port, axis, Cause.DATA)
                        return
                    variables.update(dict.fromkeys(count))
                inner = layer.bodies[key].outputs[entry.result].shape
                if inner.rank == port.shape.rank:
                    variables[inner[axis].symbol] = None
        known = [v for v in variables if v in self._origins]
        self._set(port, axis, Cause.COMPUTED if known else Cause.DATA, known)

    def _iterated(self, layer: Layer) -> list[int] | None:
        """Return the variables that determine the number of iterations; None if the values of tensors decide."""
        op = layer.operator
        assert isinstance(op, IterationBase)
        if isinstance(op, Loop):
            again = layer.bodies["body"].outputs[op.condition().result].type
            if not (known_truth(layer.inputs[1].type) and known_truth(again)):
                return None
            if layer.inputs[0].type.constant is not None:
                return []
            ids = self._ids(layer.inputs[0])
            known = [] if ids is None else [v for v in ids.ravel().tolist() if v in self._origins]
            return known or None
        shapes = [(layer.inputs[e.external].shape, e.axis) for e in op.wiring["body"].inputs if e.external >= 0]
        sliced = [shape[axis] for shape, axis in shapes if axis is not None and shape.rank is not None]
        return [dim.symbol for dim in sliced if dim.symbol in self._origins]


def _without(origin: SizeOrigin, roots: Collection[str]) -> tuple[str, ...]:
    return tuple(root for root in origin.roots if root not in roots)


def _has_open_values(port: Port) -> bool:
    tensor = port.type
    return is_small(tensor.shape) and tensor.shape.is_static and tensor.constant is None


def _reason(port: Port, same: list[tuple[int, SizeOrigin]]) -> str:
    origin = same[0][1]
    named = origin.roots if len(origin.roots) <= _FEW else origin.parents
    why = {
        Cause.INPUT: "left open by the model" if origin.port is port else "",
        Cause.STATE: f"left open by state '{origin.port.layer.attributes.get('variable_id', '')}'",
        Cause.COMPUTED: f"from {', '.join(named)}",
        Cause.ITERATION: "changes from one iteration to the next",
        Cause.RANK: f"from {', '.join(origin.roots)}, whose rank is not known",
        Cause.DATA: "depends on data",
        Cause.DECLARED: "as the file declares",
    }[origin.cause]
    if origin.port is port:
        return why
    there = f"is {name_of(origin.port)}{_axes(o.axis for _, o in same)}"
    return f"{there}, {why}" if why else there


def _axes(axes: Iterable[int]) -> str:
    return f"[{','.join(map(str, axes))}]"
