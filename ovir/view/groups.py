"""The groups that layers are drawn in: from the scopes in their names or, without them, from repeated blocks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise, takewhile

import numpy as np

from ovir.core.arrays import Array
from ovir.graph.constant_layers import all_constant_layers
from ovir.graph.layers import Layer, layers_after, layers_before
from ovir.model import Model

SHORTEST = 4
"""The smallest number of layers that make a block; shorter repetitions are clearer as they are."""
_MOST_NESTED = 4
"""The largest number of levels of blocks in blocks."""


@dataclass
class Block:
    """A range of positions that other ranges of the same length repeat."""

    start: int
    stop: int
    inner: list[Block] = field(default_factory=list)


@dataclass(frozen=True)
class _Run:
    """A range in which every element equals the one ``period`` before it, except in the first period."""

    start: int
    stop: int
    period: int

    def repeats(self, other: _Run) -> bool:
        """Return whether this run shows the same repetition as another one, in smaller units."""
        return other.period % self.period == 0 and self.start <= other.start and other.stop <= self.stop


def find_blocks(
    kinds: Sequence[int] | Array, crossings: Sequence[int] | Array, depth: int = _MOST_NESTED
) -> list[Block]:
    """Return the blocks of a sequence, from left to right, with the blocks that are in each of them.

    ``kinds`` has equal numbers for elements of a kind. ``crossings`` has for each place between two elements, and for
    both ends, the number of tensors that pass it; blocks begin where few do. The time grows with the square of the
    length, at the speed of NumPy.
    """
    kinds, crossings = np.asarray(kinds), np.asarray(crossings)
    blocks: list[Block] = []
    taken = np.zeros(len(kinds), bool)
    for run in sorted(_runs(kinds), key=lambda run: (run.start - run.stop, run.period)):
        if run.period < SHORTEST or taken[run.start : run.stop].any():
            continue
        taken[run.start : run.stop] = True
        first, period = _first_cut(run, crossings), run.period
        inner: list[Block] = []
        if depth > 1:
            inner = find_blocks(kinds[first : first + period], crossings[first : first + period + 1], depth - 1)
        for start in range(first, run.stop - period + 1, period):
            blocks.append(Block(start, start + period, [_moved(block, start) for block in inner]))
    return sorted(blocks, key=lambda block: block.start)


def _runs(kinds: Array) -> list[_Run]:
    """Return the longest repetitions of each period that do not also repeat with a smaller one."""
    found: list[_Run] = []
    count = len(kinds)
    for period in range(1, count // 2 + 1):
        breaks = np.flatnonzero(kinds[period:] != kinds[:-period])
        ends = np.concatenate(([-1], breaks, [count - period]))
        for i in np.flatnonzero(np.diff(ends) > max(period, 2 * SHORTEST - period)):
            run = _Run(int(ends[i]) + 1, int(ends[i + 1]) + period, period)
            if not any(other.repeats(run) for other in found):
                found.append(run)
    return found


def _first_cut(run: _Run, crossings: Array) -> int:
    """Return the start of the first block of a run for which the fewest tensors cross the borders of the blocks."""
    copies, spare = divmod(run.stop - run.start, run.period)
    borders = run.period * np.arange(copies + 1)
    return min(range(run.start, run.start + spare + 1), key=lambda start: int(crossings[start + borders].sum()))


def _moved(block: Block, distance: int) -> Block:
    inner = [_moved(item, distance) for item in block.inner]
    return Block(block.start + distance, block.stop + distance, inner)


Path = tuple[str, ...]
"""The names of the groups around a layer, from the outside in."""

MOST = 250
"""The largest number of layers and groups in one group. Model Explorer takes minutes to arrange many thousands."""

_DEEPEST = 32
"""The largest number of groups in each other; names can have any number of slashes."""
_FEW = 3
"""A scope of fewer layers than this says nothing: ``conv1/bias_add`` is a part of a name."""
_MODULE = re.compile(r"(?:__module|self)\.")
"""The beginning of names of layers that were modules of PyTorch."""


def group_paths(model: Model) -> dict[Layer, Path]:
    """Return the groups of each layer of a model, without those in bodies; inputs and outputs are in none.

    Constants, and what is computed from constants alone, are in the innermost group around all that read them. Where
    there would be more than ``MOST`` layers and groups side by side, they are divided into parts.
    """
    constants = all_constant_layers(model)
    ends = {port.layer for port in (*model.inputs, *model.outputs)}
    main = [layer for layer in model.layers if layer not in constants and layer not in ends]
    paths: dict[Layer, Path] = dict.fromkeys(ends, ())
    scopes = {layer: scope_of(layer.name) for layer in main}
    if _are_useful(scopes.values()):
        known = {layer: scope for layer, scope in scopes.items() if scope}
        shared = len(_common_part(known.values()))
        paths |= {layer: scope[shared:] for layer, scope in known.items()}
        _add_unscoped(main, paths)
        _drop_groups_of_nearly_all(main, paths)
    else:
        paths |= _block_paths(main)
    for layer in reversed(model.layers):
        if layer in constants and layer not in paths:
            paths[layer] = _common_part([paths[reader] for reader in layers_after(layer) if reader in paths])
    _split_large(_in_order_of_readers(model, constants), paths)
    return paths


# --------------------------------------------------------------------------- scopes


def scope_of(name: str) -> Path:
    """Return the scope in the name of a layer: the parts before the last slash, and modules of PyTorch one by one.

    ``/model/layers.0/attn/MatMul`` is in ``model``, ``layers.0`` and ``attn``. The same goes for
    ``__module.model.layers.0.attn/aten::mm/MatMul``, because names such as ``aten::mm`` stand for operations. If names
    are joined by ``;``, the last one counts.
    """
    *parts, _ = name.rpartition(";")[2].split("/")
    scope: list[str] = []
    for part in parts:
        if module := _MODULE.match(part):
            scope += _modules(part[module.end() :])
        elif part and "::" not in part:
            scope.append(part)
    return tuple(scope[:_DEEPEST])


def _modules(text: str) -> list[str]:
    """Return the modules of ``encoder.layer.0.output``: a number belongs to the name before it."""
    found: list[str] = []
    was_name = False
    for part in filter(None, text.split(".")):
        if part.isdecimal() and was_name:
            found[-1] += f".{part}"
            was_name = False
        else:
            found.append(part)
            was_name = not part.isdecimal()
    return found


def _are_useful(scopes: Iterable[Path]) -> bool:
    """Return whether most layers are in scopes of several layers."""
    listed = list(scopes)
    sizes = Counter(scope[:1] for scope in listed)
    return 2 * sum(bool(scope) and sizes[scope[:1]] >= _FEW for scope in listed) > len(listed)


def _common_part(paths: Iterable[Path]) -> Path:
    shared = takewhile(lambda names: len({*names}) == 1, zip(*paths, strict=False))
    return tuple(name for name, *_ in shared)


def _add_unscoped(layers: Sequence[Layer], paths: dict[Layer, Path]) -> None:
    """Add layers without a scope, which converters insert: into the group of their only reader, or else into the
    innermost group around the scoped layers before them and behind them."""
    main = set(layers)
    for layer in reversed(layers):
        readers = set(layers_after(layer))
        if layer not in paths and len(readers) == 1 and (reader := readers.pop()) in main and paths.get(reader):
            paths[layer] = paths[reader]
    before, behind = dict(paths), dict(paths)
    for found, ordered, neighbors in ((before, layers, layers_before), (behind, reversed(layers), layers_after)):
        for layer in ordered:
            if layer not in paths and (known := [found[other] for other in neighbors(layer) if found.get(other)]):
                found[layer] = _common_part(known)
    for layer in layers:
        if layer not in paths:
            paths[layer] = _common_part([found[layer] for found in (before, behind) if layer in found])


_NEARLY_ALL = 0.8
"""A group with at least this share of the layers says nothing."""
_MOST_LOOSE = 30
"""The largest number of layers outside of all groups that a reader takes in at a glance."""


def _drop_groups_of_nearly_all(layers: Sequence[Layer], paths: dict[Layer, Path]) -> None:
    """Leave out an outermost group that has nearly all layers, unless groups in it would join others of their name, or
    more than ``_MOST_LOOSE`` layers would then be in no group."""
    while True:
        counts = Counter(paths[layer][0] for layer in layers if paths[layer])
        name, count = counts.most_common(1)[0] if counts else ("", 0)
        without = {layer: paths[layer][1:] if paths[layer][:1] == (name,) else paths[layer] for layer in layers}
        inner = {without[layer][0] for layer in layers if paths[layer][:1] == (name,) and without[layer]}
        if count < _NEARLY_ALL * len(layers) or not inner or inner & counts.keys() - {name}:
            return
        if sum(not path for path in without.values()) > _MOST_LOOSE:
            return
        paths |= without


# --------------------------------------------------------------------------- repeated blocks


def _block_paths(layers: Sequence[Layer]) -> dict[Layer, Path]:
    """Return the groups of layers in topological order, one for each repeated block."""
    numbers: dict[tuple[str, int], int] = {}
    kinds = [numbers.setdefault((layer.type, len(layer.outputs)), len(numbers)) for layer in layers]
    paths: dict[Layer, Path] = dict.fromkeys(layers, ())
    _number_blocks(layers, find_blocks(kinds, _crossings(layers)), paths)
    return paths


def _number_blocks(layers: Sequence[Layer], blocks: Sequence[Block], paths: dict[Layer, Path]) -> None:
    for number, block in enumerate(blocks, 1):
        for layer in layers[block.start : block.stop]:
            paths[layer] += (f"block {number}",)
        _number_blocks(layers, block.inner, paths)


def _crossings(layers: Sequence[Layer]) -> list[int]:
    """Return the number of tensors that pass each place between two layers; 0 at both ends."""
    position = {layer: i for i, layer in enumerate(layers)}
    changes = [0] * (len(layers) + 1)
    for i, layer in enumerate(layers):
        for port in layer.outputs:
            last = max((position.get(reader.layer, 0) for reader in port.readers), default=0)
            if last > i:
                changes[i + 1] += 1
                changes[last + 1] -= 1
    return list(accumulate(changes))


# --------------------------------------------------------------------------- large groups


def _in_order_of_readers(model: Model, constants: set[Layer]) -> list[Layer]:
    """Return the layers in topological order, with constants next to the first layer that reads them."""
    position = {layer: i for i, layer in enumerate(model.layers)}
    for layer in reversed(model.layers):
        if layer in constants and (readers := layers_after(layer)):
            position[layer] = min(position[reader] for reader in readers)
    return sorted(model.layers, key=lambda layer: position[layer])


def _split_large(layers: Sequence[Layer], paths: dict[Layer, Path], depth: int = 0) -> None:
    """Divide the layers directly in a group into parts, if they are many, and the same in the groups in it.

    ``layers`` are those in the group, whose path has the length ``depth``.
    """
    children: dict[str | Layer, list[Layer]] = {}
    for layer in layers:
        path = paths[layer]
        children.setdefault(path[depth] if len(path) > depth else layer, []).append(layer)
    inner = [group for key, group in children.items() if isinstance(key, str)]
    if len(children) > MOST:
        listed = list(children.values())
        count = min(-(-len(listed) // MOST), MOST)
        borders = [len(listed) * i // count for i in range(count + 1)]
        inner = [[layer for child in listed[a:b] for layer in child] for a, b in pairwise(borders)]
        for number, part in enumerate(inner, 1):
            for layer in part:
                paths[layer] = (*paths[layer][:depth], f"part {number} of {count}", *paths[layer][depth:])
    for group in inner:
        _split_large(group, paths, depth + 1)
