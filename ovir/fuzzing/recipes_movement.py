"""Recipes of operations that move elements: shapes, slices, pads, blocks."""

from __future__ import annotations

import numpy as np

from ovir.fuzzing.making import Make
from ovir.fuzzing.recipes import recipe


@recipe("Reshape")
def reshape(m: Make) -> None:
    shape = m.data("anything")
    target = list(shape)
    m.rng.shuffle(target)
    if len(target) > 1 and m.flag():
        target = [target[0] * target[1], *target[2:]]
    if target and m.chance(0.4) and 0 not in target:
        target[m.rng.randrange(len(target))] = -1
    m.given(target)
    m.has(special_zero=m.flag() and 0 not in shape)


@recipe("Squeeze")
def squeeze(m: Make) -> None:
    shape = [m.pick(1, 1, 2, 0, 5) for _ in range(m.rng.randint(0, 4))]
    m.add(shape, m.anything)
    if m.flag():
        m.given([i - len(shape) if m.flag() else i for i, size in enumerate(shape) if size == 1 and m.flag()])


@recipe("Unsqueeze")
def unsqueeze(m: Make) -> None:
    shape = m.data("anything", 0, 3)
    count = m.rng.randint(1, 2)
    m.given(m.rng.sample(range(-len(shape) - count, len(shape) + count), 1) if count == 1 else [0, len(shape) + 1])


@recipe("Transpose")
def transpose(m: Make) -> None:
    shape = m.data("anything")
    m.given(m.rng.sample(range(len(shape)), len(shape)) if m.chance(0.8) else [])


@recipe("Broadcast")
def broadcast(m: Make) -> None:
    target = m.any_shape(0, 4)
    mode = m.pick("numpy", "explicit", "none", "pdpd", *(["bidirectional"] if m.opset == 3 else []))
    axes = sorted(m.rng.sample(range(len(target)), m.rng.randint(0, len(target))))
    is_explicit = mode in ("explicit", "none")
    shape = [target[axis] for axis in axes] if is_explicit else m.broadcast(target)
    m.add(shape, m.anything)
    m.given(target)
    if is_explicit:
        m.given(axes)
    m.has(mode=mode)


@recipe("Concat")
def concat(m: Make) -> None:
    shape = m.any_shape(1)
    axis = m.axis(len(shape))
    for _ in range(m.pick(1, 2, 3)):
        sizes = list(shape)
        sizes[axis] = m.size()
        m.add(sizes, m.anything)
    m.has(axis=axis)


@recipe("Split", "VariadicSplit")
def split(m: Make) -> None:
    data = m.existing(1, 4)
    shape, parts = list(data or m.any_shape(1)), m.pick(1, 2, 3)
    axis = m.axis(len(shape))
    lengths = m.ints(parts, 0, 4)
    variadic = m.kind == "VariadicSplit"
    if data:
        parts = 2 - shape[axis] % 2
        lengths = [shape[axis] // parts] * parts
    else:
        shape[axis] = sum(lengths) if variadic else parts * m.size()
    m.add(shape, m.anything)
    m.given(axis)
    if variadic:
        if m.chance(0.3):
            lengths[m.rng.randrange(parts)] = -1
        m.given(lengths)
    else:
        m.has(num_splits=parts)


@recipe("StridedSlice")
def strided_slice(m: Make) -> None:
    shape = m.data("anything", 1)
    count = m.rng.randint(0, len(shape))
    for low, high in ((-5, 5), (-5, 9)):
        m.given(m.ints(count, low, high))
    if m.chance(0.7):
        m.given([m.pick(1, 1, 2, -1, -3) for _ in range(count)])
    for name, share in (("begin", 0.3), ("end", 0.3), ("new_axis", 0.1), ("shrink_axis", 0.1), ("ellipsis", 0.0)):
        m.has(**{f"{name}_mask": [int(m.chance(share)) for _ in range(count)]})


@recipe("Slice", "SliceScatter")
def slicing(m: Make) -> None:
    shape = m.data("anything", 1)
    axes = m.rng.sample(range(len(shape)), m.rng.randint(0, len(shape)))
    axes = axes if m.flag() else list(range(len(axes)))
    starts, stops = m.ints(len(axes), -6, 6), m.ints(len(axes), -6, 20)
    steps = [m.pick(1, 1, 2, -1, -2) for _ in axes]
    if m.kind == "SliceScatter":
        taken = np.empty(shape, np.int8)[_index(len(shape), axes, starts, stops, steps)]
        m.add(taken.shape, m.anything)
    for values in (starts, stops, steps, axes):
        m.given(values)


def _index(rank: int, axes: list[int], starts: list[int], stops: list[int], steps: list[int]) -> tuple[slice, ...]:
    index = [slice(None)] * rank
    for axis, *bounds in zip(axes, starts, stops, steps, strict=True):
        index[axis] = slice(*bounds)
    return tuple(index)


@recipe("Pad")
def pad(m: Make) -> None:
    shape = m.data("anything", 0, 4)
    mode = m.pick("constant", "constant", "edge", "reflect", "symmetric")
    low = -1 if m.opset == 12 and m.chance(0.3) else 0
    for _ in range(2):
        m.given([m.rng.randint(low, 3 if mode in ("constant", "edge") else max(min(3, n - 1), 0)) for n in shape])
    if mode == "constant" and m.flag():
        m.add((), m.anything)
    m.has(pad_mode=mode)


@recipe("Reverse")
def reverse(m: Make) -> None:
    shape = m.data("anything", 1)
    if m.flag():
        m.given(m.axes(len(shape)))
        m.has(mode="index")
    else:
        m.given([m.flag() for _ in shape], "boolean")
        m.has(mode="mask")


@recipe("SpaceToBatch", "BatchToSpace")
def blocks(m: Make) -> None:
    count = m.rng.randint(1, 3)
    block = [1, *m.ints(count, 1, 3)]
    begin, end = [0, *m.ints(count, 0, 2)], [0] * (count + 1)
    shape = [m.size() for _ in block]
    if m.kind == "BatchToSpace":
        shape[0] *= int(np.prod(block))
        begin = [min(b, size * k) for b, size, k in zip(begin, shape, block, strict=True)]
    else:
        end = [-(size + b) % k for size, b, k in zip(shape, begin, block, strict=True)]
    m.add(shape, m.anything)
    for values in (block, begin, end):
        m.given(values)
