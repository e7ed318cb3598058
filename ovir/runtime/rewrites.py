"""Rewrites of a plan: operations that their constant inputs, or the layers around them, make something cheaper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, Protocol, Self

import numpy as np

from ovir.core.arrays import Array
from ovir.core.shapes import Dimension, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.fast.registry import kernel_of
from ovir.graph.layers import Layer, Port
from ovir.ops.attention import GroupedAttention, ScaledDotProductAttention
from ovir.ops.base.operator import Operator
from ovir.ops.base.replacement import Op, Replacement, replacements, replaces
from ovir.ops.broadcast import Broadcast3, Tile
from ovir.ops.compressed import CompressedMatMul, JoinedMatMul
from ovir.ops.gather import GatherBase
from ovir.ops.movement import Concat
from ovir.ops.shape import RearrangingBase, Reshape, ShapeOf1
from ovir.ops.state import AssignBase, ReadValueBase
from ovir.runtime.plan import Plan, Step, set_releases


class Rewrite(Replacement[Op]):
    """A replacement that depends on a layer and its constant inputs alone."""

    @classmethod
    def of(cls, op: Any, layer: Layer, constants: Sequence[Array | None]) -> Self | None:
        """Return the replacement of the operation of a layer, of whose inputs some are constant; None if it cannot
        take its place."""
        raise NotImplementedError


class Growing(Protocol):
    """A variable whose value can grow."""

    def append(self, value: Array, new: Array, axis: int) -> Array:
        """Return both along an axis, in the memory of ``value`` if that is the value of the variable."""


@replaces(Concat)
class Append(Rewrite[Concat]):
    """A Concat of the value of a variable and new data, whose result the variable is then assigned.

    The value has room after it, to which only what is new is copied, as in the cache of keys and values of a decoder.
    """

    pure = False
    views = True
    guards_sizes = True

    def __init__(self, op: Concat, variable_id: str) -> None:
        """Take the place of ``op``, which appends to a variable."""
        super().__init__(op)
        self.variable_id = variable_id

    @classmethod
    def of(cls, op: Concat, layer: Layer, constants: Sequence[Array | None]) -> Self | None:
        variable_id = _variable_appended_to(layer) if _grows(layer) else None
        return None if variable_id is None else cls(op, variable_id)

    def run(self, value: Array, new: Array, *, variable: Growing) -> Array:
        return variable.append(value, new, self.replaced.axis % value.ndim)


@replaces(GatherBase)
class Reorder(Rewrite[GatherBase]):
    """A Gather of slices of a variable along the first axis, as of the beams of a decoder; if it keeps all slices and
    their order, the output is the input."""

    views = True
    guards_sizes = True
    value_inputs = (2,)

    def __init__(self, op: GatherBase) -> None:
        """Take the place of ``op``."""
        super().__init__(op)
        self._gather = kernel_of(op)

    @classmethod
    def of(cls, op: GatherBase, layer: Layer, constants: Sequence[Array | None]) -> Self | None:
        return cls(op) if _grows(layer) and _reorders_variable(layer) else None

    def run(self, data: Array, indices: Array, axis: Array) -> Array:
        if indices.shape == data.shape[:1] and indices.tolist() == [*range(len(indices))]:
            return data
        return self._gather(data, indices, axis)  # type: ignore[return-value]  # it has one output


@replaces(GatherBase)
class View(Rewrite[GatherBase]):
    """A part of input 0, as a view of it, in place of a Gather with evenly spaced indices, which are a scalar or lie
    on one axis."""

    views = True

    def __init__(self, op: GatherBase, place: tuple[slice, ...], dropped: tuple[int, ...]) -> None:
        """Take the place of ``op``: the output is ``data[place]`` without the axes in ``dropped``, whose size is 1."""
        super().__init__(op)
        self._place = place
        self._dropped = dropped

    @classmethod
    def of(cls, op: GatherBase, layer: Layer, constants: Sequence[Array | None]) -> Self | None:
        data, (indices, axis) = layer.inputs[0].shape, constants[1:]
        if indices is None or axis is None or data.rank is None or op.batch_dims:
            return None
        if not indices.size or indices.ndim > 1:
            return None
        where = op.normalize_axis(axis, data.rank)
        size = data[where]
        positions = indices.reshape(-1).astype(np.int64)
        first, last = int(positions[0]), int(positions[-1])
        step = int(positions[1]) - first if len(positions) > 1 else 1
        lowest = -size.length if size.is_static and op.wraps else 0
        if not step or (np.diff(positions) != step).any() or not size.is_static or not lowest <= min(first, last):
            return None
        if max(first, last) >= size.length or (first < 0) != (last < 0):
            return None
        first %= size.length
        stop = first + step * len(positions)
        place = (*(slice(None),) * where, slice(first, stop if stop >= 0 else None, step))
        return cls(op, place, () if indices.ndim else (where,))

    def infer(self, data: TensorType, *rest: TensorType) -> TensorType:
        parts = (*self._place, *[slice(None)] * (len(data.shape) - len(self._place)))
        sizes = [
            dim if part == slice(None) else Dimension(len(range(dim.length)[part]))
            for dim, part in zip(data.shape, parts, strict=True)
        ]
        kept = [size for axis, size in enumerate(sizes) if axis not in self._dropped]
        return TensorType(data.element_type, PartialShape(kept))

    def run(self, data: Array, *rest: Array) -> Array:
        return data[self._place].squeeze(self._dropped)


@replaces(RearrangingBase)
class Reshaped(Rewrite[RearrangingBase]):
    """Input 0 in a shape of which one size is unknown, in place of an operation whose other inputs are constant."""

    views = True
    rearranges = True
    value_inputs = (1,)

    def __init__(self, op: RearrangingBase, sizes: tuple[int, ...]) -> None:
        """Take the place of ``op``, whose output has these sizes; -1 stands for the unknown one."""
        super().__init__(op)
        self._sizes = sizes

    @classmethod
    def of(cls, op: RearrangingBase, layer: Layer, constants: Sequence[Array | None]) -> Self | None:
        shapes = layer.inputs[0].shape, layer.outputs[0].shape
        if any(shape.rank is None for shape in shapes) or any(constant is None for constant in constants[1:]):
            return None
        before, after = (tuple([dim.length if dim.is_static else -1 for dim in shape]) for shape in shapes)
        has_one_unknown = before.count(-1) == after.count(-1) == 1
        return cls(op, after) if has_one_unknown and prod(before) == prod(after) != 0 else None

    def run(self, data: Array, *rest: Array) -> Array:
        return data.reshape(self._sizes)


def rewritten(op: Operator, layer: Layer, constants: Sequence[Array | None]) -> Operator:
    """Return the replacement of the operation of a layer, of whose inputs some are constant; the operation itself if
    nothing does."""
    classes: tuple[type[Rewrite[Any]], ...] = replacements(Rewrite, type(op))  # type: ignore[arg-type]  # hashable
    found = (cls.of(op, layer, constants) for cls in classes)
    return next((replacement for replacement in found if replacement is not None), op)


def _grows(layer: Layer) -> bool:
    """Return whether the value of a layer may be that of a variable that grows, and so has no static shape; others are
    bound, which is faster."""
    return bool(layer.outputs) and not layer.outputs[0].shape.is_static


def _variable_appended_to(layer: Layer) -> str | None:
    """Return the variable whose value a Concat takes first, and that is assigned the result; None if there is none."""
    value = layer.inputs[0].source
    if len(layer.inputs) != 2 or value is None:
        return None
    if _reorders_variable(value.layer):
        value = value.layer.inputs[0].source
    reader = value.layer.operator if value is not None else None
    if not isinstance(reader, ReadValueBase):
        return None
    assigned = (port.layer.operator for port in layer.outputs[0].readers)
    name = reader.variable_id
    return name if any(isinstance(op, AssignBase) and op.variable_id == name for op in assigned) else None


def _reorders_variable(layer: Layer) -> bool:
    """Return whether a layer gathers slices along the first axis of the value of a variable."""
    op = layer.operator
    if not isinstance(op, GatherBase) or op.batch_dims:
        return False
    data, axis = layer.inputs[0].source, layer.inputs[2].type.constant
    is_first = axis is not None and int(axis.item()) == 0
    return is_first and data is not None and isinstance(data.layer.operator, ReadValueBase)


# --------------------------------------------------------------------------- runs that nobody watches


def for_unwatched_runs(plan: Plan) -> Plan:
    """Return a plan in which attention reads keys and values before they are repeated for the heads of a group, and
    products of one tensor with codes are one step, in the place of the first.

    Steps that nothing reads then are left out, and those that give the shapes of tensors to folded layers, so the plan
    is for runs whose tensors no listener sees.
    """
    if plan.unwatched is not None:
        return plan.unwatched
    makers = {slot: step for step in plan.steps for slot in step.outputs}
    steps = {index: _on_shared_keys(step, makers, plan.ports) for index, step in enumerate(plan.steps)}
    used = set(plan.results)
    for index, step in reversed(list(steps.items())):
        was_read = any(step.wanted) or isinstance(step.operator, ShapeOf1)
        may_assign = not step.operator.pure or step.layer.bodies
        if was_read and not may_assign and used.isdisjoint(step.outputs):
            del steps[index]
        else:
            used.update(step.inputs)
    _join_products(steps)
    if len(steps) == len(plan.steps) and all(step is plan.steps[index] for index, step in steps.items()):
        return plan
    bodies = {place: plan.bodies[index] for place, index in enumerate(steps) if index in plan.bodies}
    left = [replace(step) for step in steps.values()]
    set_releases(left, {*plan.results, *plan.constants})
    plan.unwatched = replace(plan, steps=left, bodies=bodies)
    return plan.unwatched


def _join_products(steps: dict[int, Step]) -> None:
    """Replace products of one tensor with codes of one form by one step."""
    found: dict[object, dict[int, CompressedMatMul]] = {}
    for index, step in steps.items():
        op = step.operator
        if isinstance(op, CompressedMatMul) and op.form is not None and step.may_use_fast_form:
            found.setdefault((step.inputs, op.form), {})[index] = op
    for products in found.values():
        if len(products) > 1:
            outputs = tuple(slot for index in products for slot in steps[index].outputs)
            joined, wanted = JoinedMatMul([*products.values()]), (True,) * len(outputs)
            first, *others = products
            steps[first] = replace(
                steps[first], operator=joined, kernel=kernel_of(joined), outputs=outputs, wanted=wanted
            )
            for index in others:
                del steps[index]


def _on_shared_keys(step: Step, makers: Mapping[int, Step], ports: Sequence[Port]) -> Step:
    """Return a step of attention that reads keys and values before they are repeated; the step itself if it cannot."""
    op = step.operator
    if not isinstance(op, ScaledDotProductAttention) or not step.may_use_fast_form or len(step.inputs) > 5:
        return step
    query, *repeated = (ports[slot].shape for slot in step.inputs[:3])
    shared = [_before_repetition(slot, makers, ports) for slot in step.inputs[1:3]]
    if None in shared or not all(query.rank == 4 and _is_same(query[1], shape[1]) for shape in repeated):
        return step
    key, value = (slot for slot in shared if slot is not None)
    if not _is_same(ports[key].shape[1], ports[value].shape[1]):
        return step
    grouped = GroupedAttention(op)
    inputs = (step.inputs[0], key, value, *step.inputs[3:])
    return replace(step, operator=grouped, kernel=kernel_of(grouped), inputs=inputs, checks_sizes=False)


def _before_repetition(slot: int, makers: Mapping[int, Step], ports: Sequence[Port]) -> int | None:
    """Return the slot of a tensor [N, groups, 1, S, E] of which another one, [N, heads, S, E], repeats each group for
    its heads; None if it does not."""
    reshape = makers.get(slot)
    if reshape is None or not isinstance(reshape.operator, Reshape | Reshaped):
        return None
    repeat = makers.get(reshape.inputs[0])
    if repeat is None or not isinstance(repeat.operator, Broadcast3 | Tile):
        return None
    before, between, after = (ports[place].shape for place in (repeat.inputs[0], repeat.outputs[0], slot))
    if not (reshape.may_use_fast_form and repeat.may_use_fast_form):
        return None
    if (before.rank, between.rank, after.rank) != (5, 5, 4):
        return None
    groups, copies, heads = between[1], between[2], after[1]
    if not (before[2] == Dimension(1) and groups.is_static and copies.is_static and heads.is_static):
        return None
    if groups.length * copies.length != heads.length:
        return None
    same = [(before[1], groups)]
    for axis, place in ((0, 0), (3, 2), (4, 3)):
        same += [(before[axis], between[axis]), (between[axis], after[place])]
    return repeat.inputs[0] if all(_is_same(a, b) for a, b in same) else None


def _is_same(a: Dimension, b: Dimension) -> bool:
    """Return whether two sizes are known to be equal."""
    return (a.is_static and a == b) or (bool(a.symbol) and a.symbol == b.symbol)
