"""Find what the unknown sizes that a layer creates depend on, by running its inference on sample sizes.

Every unknown size goes back to roots: sizes of inputs or variables, or sizes that data determines. First, all unknown
sizes and elements of the layer's inputs are set to samples, and inference shows which sizes of the outputs follow from
shapes alone. Then one root after another is changed: the sizes that change with it depend on it. If sizes must be
equal, inference rejects the change of one root alone; those sizes are left open instead.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ovir.core.shapes import UNKNOWN, Dimension, PartialShape, sized
from ovir.core.tensor_types import TensorType
from ovir.core.values import from_moved
from ovir.diagnostics.errors import OperatorError
from ovir.inference.known_values import infer_with_values
from ovir.ops.base.operator import Operator

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


class Place(NamedTuple):
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


def dependences(
    op: Operator, inputs: Sequence[Given], samples: Mapping[int, Sample], places: Sequence[Place], ranks: Sequence[int]
) -> dict[Place, Dependence] | None:
    """Return what each place depends on; None if inference accepts no samples.

    ``samples`` holds the known variables, ``ranks`` the ranks of the outputs (-1: ignored).
    """
    own = {v: samples[v] for v in _variables(inputs) if v in samples}
    # After many layers, for example convolutions without padding, samples may be too small; then new ones are used.
    for tried in (own, _anew(inputs, own)):
        search = _Search(_Probe(op, inputs, tried, ranks), tried)
        if search.world is not None:
            return {place: search.at(place) for place in places}
    return None


class _Search:
    """A search for what the outputs of one layer depend on."""

    def __init__(self, probe: _Probe, samples: Mapping[int, Sample]) -> None:
        self._probe = probe
        self._samples = samples
        self._bases = [probe.outputs((), world) for world in range(len(SAMPLES))]
        self.world = next((i for i, outputs in enumerate(self._bases) if outputs is not None), None)
        """The first of ``SAMPLES`` that inference accepts."""
        roots = dict.fromkeys(root for sample in samples.values() for root in sample.roots)
        self._by_root = {root: self._with_changed(root) for root in roots} if self.world is not None else {}
        self._open: dict[int, Outputs | None] = {}

    def _with_changed(self, root: str) -> Outputs | None:
        """Return the outputs with one root changed; None if inference rejects the change or the numbers are unknown."""
        known = self.world == 0 and all(root in s.changed for s in self._samples.values() if root in s.roots)
        return self._probe.outputs((), root) if known else None

    def at(self, place: Place) -> Dependence:
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

    def _opening(self, place: Place) -> list[int]:
        """Return the variables that leave a place open if they are open themselves."""
        assert self.world is not None
        found = []
        for variable in self._samples:
            if variable not in self._open:
                self._open[variable] = self._probe.outputs((variable,), self.world)
            outputs = self._open[variable]
            if outputs is not None and not _is_known(outputs, place):
                found.append(variable)
        # Sizes that must be equal determine each other, so that none of them alone makes the result unknown.
        return found or self._probe.needed(place, self._samples, self.world)


class _Probe:
    """Inference of one operation with some variables fixed."""

    def __init__(
        self, op: Operator, inputs: Sequence[Given], samples: Mapping[int, Sample], ranks: Sequence[int]
    ) -> None:
        self._op = op
        self._inputs = inputs
        self._samples = samples
        self._ranks = ranks

    def outputs(self, free: Collection[int], world: int | str) -> Outputs | None:
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

    def needed(self, place: Place, variables: Iterable[int], world: int) -> list[int]:
        """Return a minimal set of variables that together leave a place open."""
        free = list(variables)
        for variable in list(free):
            others = [v for v in free if v != variable]
            outputs = self.outputs(others, world)
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
    found: dict[int, None] = {}
    for given in inputs:
        if given.tensor.shape.rank is not None:
            found.update(dict.fromkeys(dim.symbol for dim in given.tensor.shape if not dim.is_static))
        if given.ids is not None:
            found.update(dict.fromkeys(given.ids.ravel().tolist()))
    found.pop(0, None)
    return list(found)


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
        kept = np.zeros_like(given.ids)
        for place in np.argwhere(given.ids != 0):
            at = tuple(place)
            variable = int(given.ids[at])
            if variable in free:
                kept[at] = max(variable, 0)
            elif variable in samples:
                lower[at] = upper[at] = samples[variable].at(world)
        value = from_moved(given.tensor.element_type, lower, upper, kept)
    return TensorType(given.tensor.element_type, shape, value)


def _is_known(outputs: Sequence[TensorType], place: Place) -> bool:
    tensor = outputs[place.output]
    if not place.is_element:
        return tensor.shape[place.position].is_static
    value = tensor.value
    return value is not None and bool(value.lower.flat[place.position] == value.upper.flat[place.position])


def _number(outputs: Sequence[TensorType], place: Place) -> float:
    tensor = outputs[place.output]
    if not place.is_element:
        return float(tensor.shape[place.position].lower)
    return float(tensor.value.lower.flat[place.position]) if tensor.value is not None else 0.0
