"""The memory plan: which buffer each output of a plan is written to, so that memory is allocated once and stays in
cache.

A *storage* is what one step writes; a *block* is memory that several storages use one after the other. Slots made by
views share the storages of their inputs, and keep them alive.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from ovir.graph.layers import Port
from ovir.runtime.step import Step


@dataclass(frozen=True, slots=True)
class Buffer:
    """The memory that a step writes one output to."""

    block: int
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]


@dataclass
class MemoryPlan:
    """``buffers[step][k]`` is the buffer of output k, None if NumPy must allocate."""

    block_sizes: list[int] = field(default_factory=list)
    """In bytes."""
    buffers: list[tuple[Buffer | None, ...]] = field(default_factory=list)
    result_blocks: frozenset[int] = frozenset()
    """Blocks that may hold a model output; they are not used for anything else."""
    borrowed_results: frozenset[int] = frozenset()
    """Slots of model outputs that may lie in memory that the plan does not own (inputs, constants, state)."""


@dataclass(slots=True)
class _Storage:
    size: int
    last_use: int
    is_result: bool = False
    block: int = -1


def plan_memory(
    steps: Sequence[Step], ports: Sequence[Port], results: Collection[int], given: Collection[int]
) -> MemoryPlan:
    """Assign buffers to all outputs whose shape and type are static and whose kernel accepts ``out``.

    ``given`` are the slots of inputs and constants, whose memory the plan only borrows.
    """
    uses = _uses(steps, results)
    storages: list[_Storage] = []
    writes: list[tuple[int | None, ...]] = []
    borrowed = set(given)
    direct: dict[int, int] = {}  # slots that are a whole storage, not a view of it

    for index, step in enumerate(steps):
        may_view_borrowed = step.operator.views and not borrowed.isdisjoint(step.inputs)
        written: list[int | None] = []
        for slot in step.outputs:
            size = _static_size(ports[slot]) if "out" in step.takes else None
            # A new array of a pure kernel belongs to the caller; what a stateful one returns may be its state.
            if may_view_borrowed or (size is None and not step.operator.pure):
                borrowed.add(slot)
            if size is None:
                written.append(None)
                continue
            reused = _in_place(step, index, slot, ports, direct, uses) if slot not in results else None
            if reused is None or reused in written:
                reused = len(storages)
                storages.append(_Storage(size, index))
            written.append(reused)
            storages[reused].last_use = max(storages[reused].last_use, uses.last[slot])
            storages[reused].is_result |= slot in uses.in_results
            if not step.operator.views:
                direct[slot] = reused
        writes.append(tuple(written))

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
        frozenset(slot for slot in results if slot in borrowed),
    )


@dataclass(slots=True)
class _Uses:
    """The last uses of each slot, including those of its views."""

    read: dict[int, int] = field(default_factory=dict)
    """The last step that reads a slot itself; for a result, the step after the last one."""
    viewed: dict[int, int] = field(default_factory=dict)
    """The last use of a view of a slot."""
    last: dict[int, int] = field(default_factory=dict)
    """The later of the two."""
    in_results: set[int] = field(default_factory=set)
    """Results, and slots that a result may be a view of."""


def _uses(steps: Sequence[Step], results: Collection[int]) -> _Uses:
    """Follow views from their last use back to the slots that they are views of."""
    uses = _Uses(in_results=set(results))
    uses.read.update((slot, index) for index, step in enumerate(steps) for slot in step.inputs)
    uses.read.update(dict.fromkeys(results, len(steps)))
    for index, step in zip(reversed(range(len(steps))), reversed(steps), strict=True):
        for slot in step.outputs:
            uses.last[slot] = max(index, uses.read.get(slot, index), uses.viewed.get(slot, index))
        if not step.operator.views or not step.outputs:
            continue
        until = max(uses.last[slot] for slot in step.outputs)
        for slot in step.inputs:
            uses.viewed[slot] = max(uses.viewed.get(slot, index), until)
        if not uses.in_results.isdisjoint(step.outputs):
            uses.in_results.update(step.inputs)
    return uses


def _static_size(port: Port) -> int | None:
    """Return the bytes of the output, None if they are unknown or NumPy manages them (strings)."""
    if not port.shape.is_static or port.element_type.is_dynamic or port.element_type.kind == "string":
        return None
    return prod(port.shape.to_tuple()) * _dtype(port).itemsize


def _dtype(port: Port) -> np.dtype[np.generic]:
    return port.element_type.to_dtype()


def _in_place(
    step: Step, index: int, slot: int, ports: Sequence[Port], direct: dict[int, int], uses: _Uses
) -> int | None:
    """Return the storage of an input that is last used here and that the kernel may overwrite."""
    for position in step.operator.inplace:
        if position >= len(step.inputs):
            continue
        candidate = step.inputs[position]
        if (
            candidate in direct
            and uses.read[candidate] == index
            and step.inputs.count(candidate) == 1
            and ports[candidate].shape == ports[slot].shape
            and ports[candidate].element_type == ports[slot].element_type
            and uses.viewed.get(candidate, -1) < index
        ):
            return direct[candidate]
    return None


def _assign_blocks(storages: list[_Storage], writes: Sequence[tuple[int | None, ...]]) -> list[int]:
    """Give each storage a block and return the sizes of the blocks.

    A block is free for the next storage after the last use of the previous one; the best fitting free block is taken,
    and grown if none is large enough.
    """
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
