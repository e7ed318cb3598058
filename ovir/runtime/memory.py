"""Which buffer each result of a plan goes to, so that memory is allocated once and stays in cache.

A *storage* is what one step writes; a *block* is memory that several storages use one after the
other. Slots made by views share the storages of their inputs, and keep them alive.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from ovir.graph.layers import Port
from ovir.runtime.step import Step

FOREIGN = -1
"""In place of a storage: memory that the plan does not own (an input, a constant, a fresh array)."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """Where a step writes one output."""

    block: int
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]


@dataclass
class MemoryPlan:
    """``buffers[step][k]`` is the buffer of output k, None where NumPy must allocate."""

    block_sizes: list[int] = field(default_factory=list)
    """In bytes."""
    buffers: list[tuple[Buffer | None, ...]] = field(default_factory=list)
    result_blocks: frozenset[int] = frozenset()
    """Blocks that a model output may lie in; they serve nothing else."""
    foreign_results: frozenset[int] = frozenset()
    """Slots of model outputs that may lie in memory which is not the plan's to give away."""


@dataclass(slots=True)
class _Storage:
    size: int
    last_use: int
    is_result: bool = False
    block: int = -1


def plan_memory(
    steps: Sequence[Step], ports: Sequence[Port], results: Collection[int], foreign: Collection[int]
) -> MemoryPlan:
    """Assign buffers to all outputs whose shape and type are static and whose kernel takes ``out``."""
    storages: list[_Storage] = []
    holds: dict[int, frozenset[int]] = {slot: frozenset([FOREIGN]) for slot in foreign}
    writes: list[tuple[int | None, ...]] = []
    last_use = {slot: index for index, step in enumerate(steps) for slot in step.inputs}
    last_use.update(dict.fromkeys(results, len(steps)))
    direct: dict[int, int] = {}  # slots that are exactly one storage, not a view of it
    viewed_until: dict[int, int] = {}  # by storage: the last use of a view of it

    for index, step in enumerate(steps):
        aliased = frozenset().union(*(holds[slot] for slot in step.inputs)) if step.operator.views else frozenset()
        written: list[int | None] = []
        for slot in step.outputs:
            size = _static_size(ports[slot]) if "out" in step.takes else None
            if size is None:
                written.append(None)
                # A fresh array of a pure kernel is the caller's; what a stateful one returns may be its state.
                holds[slot] = aliased | (frozenset() if step.operator.pure else frozenset([FOREIGN]))
                continue
            reused = (
                _in_place(step, index, slot, ports, direct, last_use, viewed_until) if slot not in results else None
            )
            if reused is None or reused in written:
                reused = len(storages)
                storages.append(_Storage(size, index))
            written.append(reused)
            holds[slot] = aliased | {reused}
            if not step.operator.views:
                direct[slot] = reused
        writes.append(tuple(written))
        for slot in step.outputs:
            for storage in holds[slot] - {FOREIGN}:
                until = max(last_use.get(slot, index), index)
                storages[storage].last_use = max(storages[storage].last_use, until)
                if direct.get(slot) != storage:
                    viewed_until[storage] = max(viewed_until.get(storage, 0), until)

    for slot in results:
        for storage in holds[slot] - {FOREIGN}:
            storages[storage].is_result = True
    sizes = _assign_blocks(storages, writes)
    buffers = [
        tuple(
            None if s is None else Buffer(storages[s].block, ports[slot].shape.to_tuple(), _dtype(ports[slot]))
            for s, slot in zip(written, step.outputs, strict=True)
        )
        for written, step in zip(writes, steps, strict=True)
    ]
    return MemoryPlan(
        sizes,
        buffers,
        frozenset(s.block for s in storages if s.is_result),
        frozenset(slot for slot in results if FOREIGN in holds[slot]),
    )


def _static_size(port: Port) -> int | None:
    """Bytes of the output, None where they are not known or NumPy manages them (strings)."""
    if not port.shape.is_static or port.element_type.is_dynamic or port.element_type.kind == "string":
        return None
    return prod(port.shape.to_tuple()) * _dtype(port).itemsize


def _dtype(port: Port) -> np.dtype[np.generic]:
    return port.element_type.to_dtype()


def _in_place(
    step: Step,
    index: int,
    slot: int,
    ports: Sequence[Port],
    direct: dict[int, int],
    last_use: dict[int, int],
    viewed_until: dict[int, int],
) -> int | None:
    """The storage of an input that dies here and that the kernel may overwrite."""
    for position in step.operator.inplace:
        if position >= len(step.inputs):
            continue
        candidate = step.inputs[position]
        if (
            candidate in direct
            and last_use[candidate] == index
            and step.inputs.count(candidate) == 1
            and ports[candidate].shape == ports[slot].shape
            and ports[candidate].element_type == ports[slot].element_type
            and viewed_until.get(direct[candidate], -1) < index
        ):
            return direct[candidate]
    return None


def _assign_blocks(storages: list[_Storage], writes: Sequence[tuple[int | None, ...]]) -> list[int]:
    """Give each storage a block; the sizes of the blocks. A block serves the next storage once the
    last one is dead; the best fitting free block is taken, grown if none is large enough."""
    sizes: list[int] = []
    free: list[int] = []
    dying: dict[int, list[int]] = {}
    for index, written in enumerate(writes):
        for storage_index in dict.fromkeys(s for s in written if s is not None):
            storage = storages[storage_index]
            if storage.block >= 0:
                continue
            fitting = [b for b in free if sizes[b] >= storage.size]
            if storage.is_result or not free:
                storage.block = len(sizes)
                sizes.append(storage.size)
            else:
                storage.block = min(fitting, key=sizes.__getitem__) if fitting else max(free, key=sizes.__getitem__)
                free.remove(storage.block)
                sizes[storage.block] = max(sizes[storage.block], storage.size)
            if not storage.is_result:
                dying.setdefault(storage.last_use, []).append(storage.block)
        free.extend(dying.pop(index, ()))
    return sizes
