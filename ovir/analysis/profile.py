"""A listener that measures the time of each layer in a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

from ovir.core.arrays import Array
from ovir.graph.layers import Layer


@dataclass
class Timing:
    """Seconds spent in a layer, or in all layers of a type. Time in a body counts for its layers, not for the If, Loop
    or TensorIterator around them."""

    name: str
    type: str
    calls: int = 0
    seconds: float = 0.0


class Profile:
    """A listener of a run; afterwards ``layers`` and ``types`` hold the times, the slowest first."""

    sees_tensors = False

    def __init__(self) -> None:
        self._timings: dict[Layer, Timing] = {}
        self._open: list[tuple[float, float]] = []  # the running layers: start, and seconds in inner layers

    def will_run(self, layer: Layer, inputs: Sequence[Array]) -> None:
        self._open.append((perf_counter(), 0.0))

    def did_run(self, layer: Layer, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        now = perf_counter()
        start, inner = self._open.pop()
        timing = self._timings.get(layer)
        if timing is None:
            timing = self._timings[layer] = Timing(layer.scope + layer.name, layer.type)
        timing.calls += 1
        timing.seconds += now - start - inner
        if self._open:
            outer_start, outer_inner = self._open[-1]
            self._open[-1] = outer_start, outer_inner + now - start

    @property
    def seconds(self) -> float:
        """Return the time in all kernels together."""
        return sum(timing.seconds for timing in self._timings.values())

    @property
    def timings(self) -> Mapping[Layer, Timing]:
        """Return the time of each layer, in the order of the run."""
        return self._timings

    def layers(self) -> list[Timing]:
        return sorted(self._timings.values(), key=lambda t: -t.seconds)

    def types(self) -> list[Timing]:
        """Return the times summed by operation type; ``name`` is the type as well."""
        sums: dict[str, Timing] = {}
        for timing in self._timings.values():
            total = sums.setdefault(timing.type, Timing(timing.type, timing.type))
            total.calls += timing.calls
            total.seconds += timing.seconds
        return sorted(sums.values(), key=lambda t: -t.seconds)
