"""Runs of the other side that are repeated with the same inputs, and how their results vary."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from ovir.analysis.tensor_comparison import EXACT, TensorComparison, compare_tensors, severity
from ovir.analysis.tensor_stats import as_numbers
from ovir.core.arrays import Array
from ovir.core.json_fields import json_fields
from ovir.core.tables import Table, columns
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Port

WAYS = {"run": "in one request", "request": "in new requests", "compilation": "after new compilations"}
"""The ways in which runs are repeated."""


class Loaded(Protocol):
    """A compiled model with a request."""

    def renew(self) -> None:
        """Replace the request by a new one."""


TensorKey = tuple[str, int]
"""The key of a layer, and the position of its output; of an output of a model, those of its Result."""


def key_of(port: Port) -> TensorKey:
    """Return the key of a tensor, which processes exchange."""
    return port.layer.key, port.index


SomeLoaded = TypeVar("SomeLoaded", bound=Loaded)
Reopen = Callable[[], AbstractContextManager[SomeLoaded]]
"""Compiles the model anew for a ``with`` block."""


def repeated(
    loaded: SomeLoaded, reopen: Reopen[SomeLoaded], infer: Callable[[SomeLoaded], list[Array]], count: int
) -> Iterator[tuple[str, list[Array]]]:
    """Yield the results of ``count`` runs in one request, in new requests, and after new compilations, each with its
    way."""
    for _ in range(count):
        yield "run", infer(loaded)
    for _ in range(count):
        loaded.renew()
        yield "request", infer(loaded)
    for _ in range(count):
        with reopen() as anew:
            yield "compilation", infer(anew)


@dataclass
class Variation:
    """How a tensor varies from run to run."""

    differing: dict[str, int]
    """For each way, the number of runs whose results do not have the bits of the first run."""
    spread: TensorComparison
    """The comparison of the largest values of all runs with the smallest, for the inputs for which it is worst."""
    between: int
    """The number of elements that vary and have a value between these in ovir."""
    worst_input: str
    """The name of the set of inputs that the two fields above are about."""

    def add(self, later: Variation) -> None:
        """Add how the tensor varies for later sets of inputs."""
        self.differing = {way: count + later.differing[way] for way, count in self.differing.items()}
        if severity(later.spread) > severity(self.spread):
            self.spread, self.between, self.worst_input = later.spread, later.between, later.worst_input


class Spread:
    """The values of a tensor in several runs."""

    def __init__(self, first: Array) -> None:
        self.first = first
        self._low = self._high = first
        self._differing = dict.fromkeys(WAYS, 0)

    def add(self, way: str, array: Array) -> None:
        """Add the values of a further run."""
        if same_bits(array, self.first):
            return
        self._differing[way] += 1
        if array.shape != self.first.shape or array.dtype.kind in "TUSO":
            self._high = array
        elif self._high.shape == array.shape:
            low, high, new = map(as_numbers, (self._low, self._high, array))
            self._low, self._high = np.minimum(low, new), np.fmax(high, new)  # a NaN in some runs alone is in one

    def variation(self, reference: Array, inputs: str) -> Variation | None:
        """Return how the tensor varies, None if it does not; ``reference`` are its values in ovir."""
        if not any(self._differing.values()):
            return None
        spread, between = compare_tensors(self._high, self._low, EXACT), 0
        if reference.shape == self._low.shape == self._high.shape and reference.dtype.kind not in "TUSO":
            low, high, own = map(as_numbers, (self._low, self._high, reference))
            between = int(np.count_nonzero((low != high) & (low <= own) & (own <= high)))
        return Variation(self._differing, spread, between, inputs)


def same_bits(a: Array, b: Array) -> bool:
    """Return whether two arrays are equal, bit by bit."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind in "TUSO":
        return np.array_equal(a, b)
    one, other = (np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in (a, b))
    return np.array_equal(one, other)


class Repeats:
    """Repeats the runs of a side. Further results are found by the array that the first run has returned."""

    def __init__(self, count: int | None = None) -> None:
        self.count = count
        """How many runs there are in each way; None for a single run."""
        self._spreads: dict[int, Spread] = {}

    def run(
        self, loaded: SomeLoaded, reopen: Reopen[SomeLoaded], infer: Callable[[SomeLoaded], list[Array]]
    ) -> list[Array]:
        """Return the results of the first run; those of earlier calls are forgotten."""
        if self.count is None:
            return infer(loaded)
        runs = repeated(loaded, reopen, infer, self.count)
        spreads = [Spread(array) for array in next(runs)[1]]
        for way, results in runs:
            for spread, array in zip(spreads, results, strict=True):
                spread.add(way, array)
        self._spreads = {id(spread.first): spread for spread in spreads}
        return [spread.first for spread in spreads]

    def variation(self, array: Array, reference: Array, inputs: str) -> Variation | None:
        """Return how a result of the latest call varies, None if it does not, or if there was a single run."""
        return None if self.count is None else self._spreads[id(array)].variation(reference, inputs)


ONCE = Repeats()
"""Runs everything once."""


@dataclass(frozen=True)
class VaryingTensor:
    """An output of the model or of a layer that varies from run to run."""

    id: int
    """The id of the layer; of an output, that of its Result."""
    name: str
    """The key of the layer, or the name of the output."""
    type: str
    """The operation, such as ``Convolution``; ``Result`` for an output."""
    output: int
    """The position of the output of the model or of the layer."""
    variation: Variation

    def to_dict(self) -> dict[str, Any]:
        """Return the tensor for JSON."""
        head = json_fields(self, "id", "name", "type", "output", "variation.differing")
        spread = {"varying": self.variation.spread.beyond, **json_fields(self.variation.spread, "size", "max_abs")}
        rest = json_fields(self.variation, "spread.max_rel", "spread.problem", "between", "worst_input")
        return {**head, **spread, **rest}


@dataclass(frozen=True)
class Repetition:
    """The result of repeated runs."""

    count: int
    """How often each set of inputs was run in each way."""
    sets: int
    """The number of sets of inputs."""
    outputs: Sequence[VaryingTensor]
    """The outputs that vary."""
    layers: Sequence[VaryingTensor]
    """The outputs of layers that vary, in the order of the run."""

    @classmethod
    def of(cls, model: LayerGraph, count: int, sets: int, found: Mapping[TensorKey, Variation]) -> Self:
        """Return the result for a model."""
        outputs = [
            VaryingTensor(port.layer.id, port.any_name, port.layer.type, index, found[key_of(port)])
            for index, port in enumerate(model.outputs)
            if key_of(port) in found
        ]
        layers = [
            VaryingTensor(layer.id, layer.key, layer.type, port.index, found[key_of(port)])
            for layer in model.layers
            for port in layer.outputs
            if key_of(port) in found
        ]
        return cls(count, sets, outputs, layers)

    @property
    def same(self) -> bool:
        """Return whether all runs gave the same bits."""
        return not self.outputs and not self.layers

    @property
    def varies(self) -> str | None:
        """Return the first of ``run``, ``request`` and ``compilation`` after which results vary; None if none do."""
        found = [item.variation.differing for item in (*self.outputs, *self.layers)]
        return next((way for way in WAYS if any(differing[way] for differing in found)), None)

    @property
    def first(self) -> VaryingTensor | None:
        """Return the first layer that varies, in the order of the run."""
        return next(iter(self.layers), None)

    @property
    def text(self) -> str:
        """Return the result in one line."""
        if self.varies is None:
            return f"the same bits in {len(WAYS)} x {self.count} runs"
        text = f"repeated runs vary, {_SINCE[self.varies]}"
        if (first := self.first) is not None:
            return f"{text}; the first layer that varies: {first.type} '{first.name}' (id {first.id})"
        return f"{text}; no layer that was compared varies"

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON."""
        return {"runs": self.count, **json_fields(self, "same", "varies", "first", "outputs", "layers")}

    def table(self) -> Table:
        """Return the tensors that vary, outputs before layers."""
        rows = []
        for item in (*self.outputs, *self.layers):
            found, spread = item.variation, item.variation.spread
            counts = (f"{found.differing[way]} of {self.count * self.sets}" for way in WAYS)
            elements = "other shapes" if spread.problem else spread.beyond
            between = f"{found.between:,} of {spread.beyond:,}"
            rows.append((item.name, item.type, *counts, elements, spread.max_abs, spread.max_rel, between))
        counted = "; ".join(f"{words}: text" for words in WAYS.values())
        heads = (
            f"varies: name; type: type; {counted}; elements: count; max abs: error; max rel: error; ovir between: text"
        )
        return Table(columns(heads), rows, least=("max rel", "type", "elements"))


_SINCE = {
    "run": "already in one request",
    "request": "in new requests, but not in one request",
    "compilation": "after new compilations, but not before",
}
