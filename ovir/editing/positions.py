"""Data that are a known function of positions, such as ranges, grids and triangular masks, for other sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ovir.building.creation import create_layer
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.editing.sizes import Factor, Factors, Size, with_sizes
from ovir.graph.layers import Layer
from ovir.opset8 import constant

MOST_STEPS = 3
"""A mask changes at most this far beside the diagonal."""
SPANS = 1.0, 2.0
"""The ranges of coordinates that do not grow with the size, such as those from -1 to 1."""
COORDINATES = ((-1, 0.0), (0, 0.0), (0, 0.5), (1, 1.0))
"""How position i of n becomes a coordinate (i + c) / (n + d): pairs of d and c."""

Form = tuple[int | None, float]
"""One of these pairs; or (None, 0) for the positions themselves, and (None, 1) for positions from the end."""
FORMS: tuple[Form, ...] = ((None, 0.0), (None, 1.0), *COORDINATES)

Find = Callable[[Factor], Size | None]
"""Returns how a factor of an axis is computed."""


def positional(
    array: Array, kind: ElementType, axes: Mapping[int, Factors], find: Find, form: Form | None = None
) -> Layer | None:
    """Return the layer that computes the data of a constant for other sizes of some axes, given what these are made of;
    None if the data are no known function of positions, or more than one. With ``form``, only this one is tried."""
    joined = next((axis for axis, factors in axes.items() if len(factors) == 1 and factors[0].parts), None)
    if joined is not None:
        return _joined(array, kind, axes, find, joined)
    made = [axes.get(axis, (Factor(size, size),)) for axis, size in enumerate(array.shape)]
    flat = [factor for factors in made for factor in factors]
    sizes = {place: find(factor) for place, factor in enumerate(flat) if factor.varies}
    known = {place: size for place, size in sizes.items() if size is not None and flat[place].old > 1}
    if len(known) < len(sizes):
        return None
    grid = array.reshape([factor.old for factor in flat])
    found = (_ramps(grid, kind, known, form) if array.dtype.kind in "iuf" else None) or _band(grid, kind, known)
    if found is None:
        return None
    found = create_layer("Broadcast", [found, with_sizes(np.array(grid.shape), None, known)], version="opset3")
    if len(flat) == len(made):
        return found
    places, target = iter(range(len(flat))), {}
    for axis, factors in enumerate(made):
        own = [known.get(place, Size((), flat[place].old)) for place in (next(places) for _ in factors)]
        if any(factor.varies for factor in factors):
            target[axis] = reduce(Size.times, own)
    return create_layer(
        "Reshape", [found, with_sizes(np.array(array.shape), None, target)], {"special_zero": False}, version="opset1"
    )


def _joined(array: Array, kind: ElementType, axes: Mapping[int, Factors], find: Find, axis: int) -> Layer | None:
    """Return the layer for data that was joined along an axis, of parts each of which is a function of positions."""
    made = axes[axis][0].parts
    ends = np.cumsum([prod(factor.old for factor in factors) for factors in made]).tolist()
    pieces = np.split(array, ends[:-1], axis)

    def parts(form: Form | None) -> list[Any]:
        """Return a layer for each part, None for one that does not have this form."""
        joined: list[Any] = []
        for piece, factors in zip(pieces, made, strict=True):
            own = {**axes, axis: factors}
            varies = any(factor.varies for factors in own.values() for factor in factors)
            joined.append(positional(piece, kind, own, find, form) if varies else constant(piece, kind))
        return joined

    ways = [parts(None)]
    if None in ways[0]:  # a small part may fit several forms; it has that of the other parts
        ways = [joined for form in FORMS if None not in (joined := parts(form))]
    return create_layer("Concat", ways[0], {"axis": axis}, version="opset1") if len(ways) == 1 else None


def _ramp(rank: int, place: int, size: Size, kind: Any) -> Layer:
    """Return the numbers from 0 to a size, along one axis."""
    count = create_layer("Squeeze", [size.layer(), np.array([0])], version="opset1")
    numbers = create_layer("Range", [np.array(0), count, np.array(1)], {"output_type": kind}, version="opset4")
    shape = [-1 if axis == place else 1 for axis in range(rank)]
    return create_layer("Reshape", [numbers, np.array(shape)], {"special_zero": False}, version="opset1")


def _ramps(grid: Array, kind: ElementType, sizes: Mapping[int, Size], form: Form | None) -> Layer | None:
    """Return the sum of ramps along the axes that vary, with steps and offsets for each element of the other axes."""
    data, lengths = grid.astype(np.float64), {place: grid.shape[place] for place in sizes}
    if not np.isfinite(data).all():
        return None
    origin = data[tuple(slice(1) if place in sizes else slice(None) for place in range(grid.ndim))]
    steps: dict[int, Array] = {}
    for place, n in lengths.items():
        row = data[tuple(slice(None) if p == place or p not in sizes else slice(1) for p in range(grid.ndim))]
        steps[place] = (row.take([n - 1], place) - row.take([0], place)) / (n - 1)
    total = origin + sum(step * _positions(grid.ndim, place, lengths[place]) for place, step in steps.items())
    if not np.allclose(total, data, 1e-6, 1e-6 * (np.abs(data).max() or 1)):
        return None
    steps = {place: step for place, step in steps.items() if not np.allclose(step, 0, atol=_LEAST)}
    if not steps:
        return constant(origin.astype(grid.dtype), kind)
    ways = []
    for forms in product(*(_forms(step, lengths[place]) for place, step in steps.items())):
        offset = origin
        for (place, step), (d, c) in zip(steps.items(), forms, strict=True):
            offset = offset - (step * c if d is not None else -step * (lengths[place] - 1) * c)
        backwards = any(d is None and step.min() < 0 for step, (d, _) in zip(steps.values(), forms, strict=True))
        quarters = np.round(offset * 4)
        is_valid = _is_round(offset * 4) and not (backwards and quarters.any())
        if is_valid and (form is None or set(forms) == {form}):
            ways.append((dict(zip(steps, forms, strict=True)), quarters / 4))
    if len(ways) != 1:
        return None
    ((chosen, offset),) = ways

    def total_of(dtype: str, steps_first: bool, ramp: Callable[[int], Any], count: Callable[[int], Any]) -> Any:
        """Return the sum, computed with layers or with arrays."""
        found = np.asarray(offset, dtype)
        for place, form in chosen.items():
            found = _term(steps[place], lengths[place], form, dtype, steps_first, ramp(place), count(place)) + found
        return found

    ways_to_compute = (
        [("i8", False)] if grid.dtype.kind in "iu" else [(t, f) for t in ("f4", "f8") for f in (False, True)]
    )
    for dtype, steps_first in ways_to_compute:
        ramps = {place: _positions(grid.ndim, place, n).astype(dtype) for place, n in lengths.items()}
        counts = {place: np.asarray(n, dtype) for place, n in lengths.items()}
        old = total_of(dtype, steps_first, ramps.__getitem__, counts.__getitem__)
        if np.array_equal(np.broadcast_to(old.astype(grid.dtype), grid.shape), grid):
            break
    else:
        dtype, steps_first = ways_to_compute[0]
    real = ElementType.from_dtype(np.dtype(dtype))
    found = total_of(
        dtype,
        steps_first,
        lambda place: _ramp(grid.ndim, place, sizes[place], real),
        lambda place: create_layer("Convert", [sizes[place].layer()], {"destination_type": real}, version="opset1"),
    )
    return create_layer("Convert", [found], {"destination_type": kind}, version="opset1")


_LEAST = 1e-9


def _positions(rank: int, place: int, n: int) -> Array:
    """Return the positions along an axis."""
    return np.arange(n).reshape([-1 if axis == place else 1 for axis in range(rank)])


def _is_round(numbers: Array) -> bool:
    return np.allclose(numbers, np.round(numbers), 1e-6, 1e-4)


def _forms(step: Array, n: int) -> list[Form]:
    """Return how data with these steps along an axis may follow its positions."""
    spans = [(form, np.abs(step[step != 0]) * (n + form[0])) for form in COORDINATES]
    found: list[Form] = [form for form, span in spans if np.isclose(span[..., np.newaxis], SPANS).any(-1).all()]
    if _is_round(step * 2) or not found:
        found += [(None, 0.0), (None, 1.0)] if step.min() < 0 else [(None, 0.0)]
    return found


def _term(step: Array, n: int, form: Form, dtype: str, steps_first: bool, ramp: Any, count: Any) -> Any:
    """Return what positions along an axis add, computed with layers or with arrays."""
    d, c = form
    if d is None:
        return (count - np.ones(1, dtype) - ramp) * (-step).astype(dtype) if c else ramp * step.astype(dtype)
    span = (np.round(step * (n + d) * 2) / 2).astype(dtype)
    count = count + np.asarray([d], dtype) if d else count
    ramp = ramp + np.asarray([c], dtype) if c else ramp
    return ramp * (span / count) if steps_first else ramp / count * span


def _band(grid: Array, kind: ElementType, sizes: Mapping[int, Size]) -> Layer | None:
    """Return a mask: data that changes only where the difference of two positions passes small numbers."""
    if len(sizes) != 2:
        return None
    (one, n), (two, m) = ((place, grid.shape[place]) for place in sizes)
    diagonals = [grid.diagonal(d, one, two) for d in range(1 - n, m)]
    if any((own != own[..., :1]).any() for own in diagonals):
        return None
    values = [np.expand_dims(own[..., 0], (one, two)) for own in diagonals]
    changes = [d for d in range(2 - n, m) if not np.array_equal(values[d + n - 1], values[d + n - 2])]
    if not changes or any(abs(d) > MOST_STEPS for d in changes):
        return None
    if changes[0] == 2 - n or changes[-1] == m - 1:  # nothing shows that the data stay the same further away
        return None
    ramps = [_ramp(grid.ndim, axis, sizes[axis], "i64") for axis in (two, one)]
    apart = create_layer("Subtract", ramps, version="opset1")
    chosen: Any = constant(values[-1], kind)
    for d in reversed(changes):
        is_before = create_layer("Less", [apart, np.array(d)], version="opset1")
        chosen = create_layer("Select", [is_before, constant(values[d + n - 2], kind), chosen], version="opset1")
    return chosen if isinstance(chosen, Layer) else None
