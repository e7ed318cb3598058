"""Why a dimension is dynamic: the input or variable whose unknown size it comes from, or the layer that creates it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from ovir.analysis.size_probes import Dependence, Given, Ids, Place, Sample, dependences, sample_of
from ovir.core.progress import counted
from ovir.core.values import is_small
from ovir.graph.layers import Layer, Port
from ovir.model import Model
from ovir.ops.base.bodies import BodyMap

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
class Origin:
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
    return not hasattr(layer.operator, "infer")


class Origins:
    """The origin of every unknown size of a model that has been inferred."""

    def __init__(self, model: Model) -> None:
        self._origins: dict[int, Origin] = {}
        """By symbol; numbers below 0 stand for elements of tensors without one."""
        self._samples: dict[int, Sample] = {}
        self._elements: dict[Port, Ids] = {}
        self._numbers = itertools.count(-1, -1)
        self._add(model)

    def of(self, port: Port) -> Iterator[tuple[int, Origin]]:
        """Yield the dynamic axes of a port, each with its origin."""
        if port.shape.rank is None:
            return
        for axis, dim in enumerate(port.shape):
            origin = self._origins.get(dim.symbol)
            if not dim.is_static and origin is not None:
                yield axis, origin

    def explain(self, port: Port) -> str:
        """Return why the dynamic dimensions of a port are dynamic; an empty text for a static shape."""
        port = port.source or port
        if port.shape.rank is None:
            return "the rank is not known"
        alike: dict[tuple[Cause, Port, tuple[str, ...]], list[tuple[int, Origin]]] = {}
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
                    self._enter(layer, body, wiring)
                self._add(body)
            self._look_at(layer)

    def _look_at(self, layer: Layer) -> None:
        open_sizes = [(port, axis) for port in layer.outputs for axis in self._open_axes(port)]
        if layer.type == "Parameter":
            self._all(open_sizes, Cause.INPUT)
        elif is_only_declared(layer):
            self._all(open_sizes, Cause.DECLARED)
        elif layer.type == "ReadValue":
            self._all(open_sizes, Cause.STATE)
        elif layer.bodies:
            for port, axis in open_sizes:
                self._leave(layer, port, axis)
        else:
            self._compute(layer, open_sizes)

    def _open_axes(self, port: Port) -> list[int]:
        """Return the axes of sizes whose origin is still unknown, each size once."""
        if port.shape.rank is None or port.shape.is_static:
            return []
        symbols = [0 if dim.is_static or dim.symbol in self._origins else dim.symbol for dim in port.shape]
        return [axis for axis, symbol in enumerate(symbols) if symbol and symbol not in symbols[:axis]]

    def _all(self, sizes: Iterable[tuple[Port, int]], cause: Cause) -> None:
        for port, axis in sizes:
            self._set(port, axis, cause)

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
    ) -> Origin:
        before = [self._origins[v] for v in variables]
        if not before:
            return Origin(cause, port, axis, (f"{name_of(port)}[{axis}]",))
        roots = tuple(dict.fromkeys(root for origin in before for root in origin.roots))
        # The table does not show elements of tensors.
        parents = dict.fromkeys(p for o in before for p in ([str(o)] if o.axis >= 0 else o.parents))
        return Origin(cause, port, axis, roots if sample is None else sample.roots, tuple(parents))

    # ----- layers that compute sizes

    def _compute(self, layer: Layer, open_sizes: list[tuple[Port, int]]) -> None:
        op = layer.operator
        assert op is not None
        inputs = [Given(port.type, self._ids(port)) for port in layer.inputs]
        elements = [port for port in layer.outputs if any(g.ids is not None for g in inputs) and _has_open_values(port)]
        if not open_sizes and not elements:
            return
        places = [Place(port.index, axis) for port, axis in open_sizes]
        for port in elements:
            places += [Place(port.index, i, True) for i in range(port.shape.size().length)]
        ranks = [-1 if port.shape.rank is None else port.shape.rank for port in layer.outputs]
        found = dependences(op, inputs, self._samples, places, ranks)
        known = [v for v in self._given_variables(layer) if v in self._origins]
        for port, axis in open_sizes:
            if found is None:
                self._set(port, axis, Cause.COMPUTED if known else Cause.DATA, known)
                continue
            result = found[Place(port.index, axis)]
            if result.variables:
                self._set(port, axis, Cause.COMPUTED, result.variables, result.sample)
            else:
                self._set_unfixed(layer, port, axis)
        for port in elements if found is not None else ():
            assert found is not None
            self._elements[port] = self._ids_of_elements(port, found)

    def _set_unfixed(self, layer: Layer, port: Port, axis: int) -> None:
        """Record the origin of a size that stays open even if the known sizes of the inputs are fixed."""
        unknown = [name_of(p.source) for p in layer.inputs if p.source is not None and p.shape.rank is None]
        if unknown:
            origin = self._origins[port.shape[axis].symbol] = Origin(Cause.RANK, port, axis, tuple(unknown))
            self._samples[port.shape[axis].symbol] = sample_of(port.shape[axis], origin.roots[0])
        else:
            self._set(port, axis, Cause.DATA)

    def _given_variables(self, layer: Layer) -> list[int]:
        shapes = [port.shape for port in layer.inputs if port.shape.rank is not None]
        return list(dict.fromkeys(dim.symbol for shape in shapes for dim in shape if not dim.is_static))

    def _ids(self, port: Port) -> Ids | None:
        """Return the variables of the elements of an input; None if none is known."""
        source, value = port.source, port.type.value
        if source is not None and source in self._elements:
            return self._elements[source]
        return value.symbols if value is not None and value.constant is None and value.has_symbols else None

    def _ids_of_elements(self, port: Port, found: Mapping[Place, Dependence]) -> Ids:
        value = port.type.value
        shape = port.shape.to_tuple()
        ids = np.zeros(shape, np.int64) if value is None else value.symbols.copy()
        for i in range(ids.size):
            result = found[Place(port.index, i, True)]
            is_known = value is not None and value.lower.flat[i] == value.upper.flat[i]
            if not is_known and result.variables and int(ids.flat[i]) not in self._origins:
                number = ids.flat[i] = next(self._numbers)
                self._origins[number] = self._origin(port, -1, Cause.COMPUTED, result.variables, result.sample)
                self._samples[number] = result.sample
        return ids

    # ----- bodies

    def _enter(self, layer: Layer, body: Model, wiring: BodyMap) -> None:
        """Record the origins of sizes of a body's parameters that differ from the sizes outside."""
        changing = {edge.parameter for edge in wiring.back_edges}
        fed = {entry.parameter: entry for entry in wiring.inputs}
        for position, port in enumerate(body.inputs):
            for axis in self._open_axes(port):
                entry = fed.get(position)
                outer = layer.inputs[entry.external].shape if entry is not None and entry.external >= 0 else None
                dim = outer[axis] if outer is not None and outer.rank == port.shape.rank else None
                if dim is not None and not dim.is_static and dim.symbol in self._origins:
                    self._set(port, axis, Cause.COMPUTED, [dim.symbol])
                else:
                    self._set(port, axis, Cause.ITERATION if position in changing else Cause.DATA)

    def _leave(self, layer: Layer, port: Port, axis: int) -> None:
        """Record the origin of a size of an output of a layer with bodies: the sizes of the bodies' results."""
        variables: dict[int, None] = {}
        for key, wiring in (layer.operator.wiring if layer.operator is not None else {}).items():
            for entry in wiring.outputs:
                if entry.external != port.index:
                    continue
                if entry.axis is not None and axis == entry.axis % (port.shape.rank or 1):
                    variables.update(dict.fromkeys(self._iterated(layer, wiring)))
                inner = layer.bodies[key].outputs[entry.result].shape
                if inner.rank == port.shape.rank and not inner[axis].is_static:
                    variables[inner[axis].symbol] = None
        known = [v for v in variables if v in self._origins]
        self._set(port, axis, Cause.COMPUTED if known else Cause.DATA, known)

    def _iterated(self, layer: Layer, wiring: BodyMap) -> Iterator[int]:
        """Yield the sizes of the axes along which inputs are sliced; they determine the number of iterations."""
        for entry in wiring.inputs:
            if entry.axis is not None and entry.external >= 0 and layer.inputs[entry.external].shape.rank is not None:
                dim = layer.inputs[entry.external].shape[entry.axis]
                if not dim.is_static:
                    yield dim.symbol


def _has_open_values(port: Port) -> bool:
    tensor = port.type
    return tensor.shape.is_static and is_small(tensor.shape) and tensor.constant is None


def _reason(port: Port, same: list[tuple[int, Origin]]) -> str:
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
