"""Runs of the other side that are repeated with the same inputs, and how their results vary."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np

from ovir.analysis.tensor_comparison import EXACT, TensorComparison, compare_tensors, severity
from ovir.analysis.tensor_stats import as_numbers
from ovir.core.arrays import Array
from ovir.core.json_fields import json_fields

WAYS = {"run": "in one request", "request": "in new requests", "compilation": "after new compilations"}
"""The ways in which runs are repeated."""


class Loaded(Protocol):
    """A compiled model with a request."""

    def infer(self, inputs: Sequence[Array], *, outputs: Sequence[str] | None = None) -> list[Array]:
        """Return all outputs, or those of these names where the engine takes names; state starts anew."""

    def renew(self) -> None:
        """Replace the request by a new one."""

    def again(self) -> AbstractContextManager[Self]:
        """Compile the model anew for a ``with`` block."""


def repeated(
    count: int, loaded: Loaded, inputs: Sequence[Array], outputs: Sequence[str] | None = None
) -> Generator[tuple[str, list[Array]]]:
    """Yield the results of ``count`` runs in each way, with the way."""
    for _ in range(count):
        yield "run", loaded.infer(inputs, outputs=outputs)
    for _ in range(count):
        loaded.renew()
        yield "request", loaded.infer(inputs, outputs=outputs)
    for _ in range(count):
        with loaded.again() as anew:
            yield "compilation", anew.infer(inputs, outputs=outputs)


@dataclass(frozen=True)
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

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers for JSON."""
        found = json_fields(self, "differing", "elements=spread.beyond", "spread.max_abs", "spread.max_rel", "between")
        return found | json_fields(self, "spread.problem", "worst_input")


def joined(one: Variation | None, later: Variation | None) -> Variation | None:
    """Return how a tensor varies for two groups of sets of inputs."""
    if one is None or later is None:
        return one or later
    worst = max(one, later, key=lambda found: severity(found.spread))
    return replace(worst, differing={way: count + later.differing[way] for way, count in one.differing.items()})


class Spread:
    """The values of a tensor in several runs."""

    def __init__(self, first: Array) -> None:
        self.first = first
        self._low = self._high = first
        self._differing = dict.fromkeys(WAYS, 0)

    def add(self, way: str, array: Array) -> None:
        """Add the values of a further run."""
        if _same_bits(array, self.first):
            return
        self._differing[way] += 1
        if array.shape != self.first.shape or array.dtype.kind in "TUSO":
            self._high = array
        elif self._high.shape == array.shape:
            low, high, new = map(as_numbers, (self._low, self._high, array))
            # A NaN that only some runs have stays in the smallest values alone, so that both differ there.
            self._low, self._high = np.minimum(low, new), np.fmax(high, new)

    def variation(self, reference: Array, inputs: str) -> Variation | None:
        """Return how the tensor varies, None if it does not; ``reference`` are its values in ovir."""
        if not any(self._differing.values()):
            return None
        spread, between = compare_tensors(self._high, self._low, EXACT), 0
        if reference.shape == self._low.shape == self._high.shape and reference.dtype.kind not in "TUSO":
            low, high, expected = map(as_numbers, (self._low, self._high, reference))
            between = int(np.count_nonzero((low != high) & (low <= expected) & (expected <= high)))
        return Variation(self._differing, spread, between, inputs)


def _same_bits(a: Array, b: Array) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype or a.dtype.kind in "TUSO":
        return np.array_equal(a, b)
    one, other = (np.ascontiguousarray(array).ravel().view(np.uint8) for array in (a, b))
    return np.array_equal(one, other)


class Repeats:
    """Repeats the runs of a side. Further results are found by the array that the first run has returned."""

    def __init__(self, count: int | None = None) -> None:
        self.count = count
        """How many runs there are in each way; None for a single run."""
        self._spreads: dict[int, Spread] = {}

    def infer(self, loaded: Loaded, inputs: Sequence[Array], *, outputs: Sequence[str] | None = None) -> list[Array]:
        """Return the results of the first run; those of earlier calls are forgotten."""
        if self.count is None:
            return loaded.infer(inputs, outputs=outputs)
        runs = repeated(self.count, loaded, inputs, outputs)
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
