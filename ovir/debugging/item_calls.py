"""The calls of a model for some items of a batch, whose tensors are put together as one call has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import tee

import numpy as np

from ovir.analysis.input_sizes import with_shapes
from ovir.analysis.tensor_stats import as_numbers
from ovir.core.arrays import Array
from ovir.debugging.sides import LayerAnswer, Partners, Side
from ovir.debugging.tensor_sides import SecondModel
from ovir.diagnostics.codes import CHANGED_RESULTS
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import ModelError, RunError
from ovir.diagnostics.wording import quoted
from ovir.graph.layers import Layer, Port
from ovir.model import Model
from ovir.ops.state import ReadValueBase
from ovir.runtime.executor import SeenStep

ITEMS = 2
"""The number of items in a call, where the edited model takes any number."""


def calls_for_items(before: Model, after: Model, batch: Mapping[int, int]) -> tuple[Model, list[dict[int, list[int]]]]:
    """Return the edited model for one number of items, and for each call of the original the items of each input."""
    index, axis = next(iter(batch.items()))
    dim = after.inputs[index].shape[axis]
    items = dim.lower if dim.is_static else ITEMS
    shapes = {i: port.shape.with_dim(batch[i], items) for i, port in enumerate(after.inputs) if i in batch}
    dim_before = before.inputs[before.input_index(after.inputs[index].any_name)].shape[axis]
    each = dim_before.lower if dim_before.is_static else max(dim_before.lower, 1)
    starts = range(0, items, each) if each else ()
    calls = [{i: [(start + k) % items for k in range(each)] for i in batch} for start in starts]
    return with_shapes(after, shapes), calls


class ItemCalls(Side):
    """The original model, called for some items at a time; its tensors are put together as one call has them."""

    labels = ("in one call", "in calls with single items")

    def __init__(
        self,
        before: Model,
        after: Model,
        batch: Mapping[int, int],
        calls: Sequence[Mapping[int, Sequence[int]]],
        *,
        keeps_state: bool,
        only_outputs: bool = False,
    ) -> None:
        self.description = "calls of the original model"
        self.shares_steps, self.with_constants = only_outputs, not only_outputs
        self._after, self._batch, self._calls = after, batch, calls
        partners = Partners(after, before)
        make = partial(SecondModel, partners, self.description, keeps_state=keeps_state, only_outputs=only_outputs)
        runs_apart = only_outputs and not keeps_state  # the calls run one after the other, and leave nothing behind
        self._sides = [make()] * len(calls) if runs_apart else [make() for _ in calls]
        one = next(iter(calls[0]))
        self._items = max(max(call[one]) for call in calls) + 1, len(calls[0][one])
        """The number of items in one call, and in a call of the original."""
        self._wanted = {port.source for port in after.outputs}
        self._from_data = ports_from_data(after)
        self._from_items = _ports_after(after.inputs[i].layer for i in batch)
        self._without_axis: set[Port] = set()
        """The tensors of outputs that depend on the items, and have no axis for them."""
        self._results: dict[Port, Array] = {}
        self.failure: str | None = None
        """The reason why the original cannot be run."""

    def layer_outputs(self, inputs: Sequence[Array], steps: Iterable[SeenStep]) -> Iterator[LayerAnswer]:
        self._results = dict(zip(self._after.inputs, inputs, strict=True))
        chosen = [
            [np.take(array, call[i], self._batch[i]) if i in self._batch else array for i, array in enumerate(inputs)]
            for call in self._calls
        ]
        if self.shares_steps:
            yield from self._outputs_of_calls(chosen, steps)
            return
        columns = zip(self._sides, chosen, tee(steps, len(self._sides)), strict=True)
        parts = [side.layer_outputs(its_inputs, its_steps) for side, its_inputs, its_steps in columns]
        for answers in zip(*parts, strict=True):
            first = answers[0]
            step = first.step
            self.failure = self.failure or next((a.problem for a in answers if a.problem is not None), None)
            if any(a.skipped is not None or a.problem is not None for a in answers):
                yield LayerAnswer(step, skipped=first.skipped or "the original cannot be run")
                continue
            if not any(port in self._from_data for port in step.layer.outputs):
                yield LayerAnswer(step, skipped="it is computed from sizes alone")
                continue
            found = zip(*([array for array in a.arrays if array is not None] for a in answers), strict=True)
            for port, arrays, actual in zip(step.layer.outputs, found, step.outputs, strict=True):
                self._put_together(port, arrays, actual)
            yield LayerAnswer(step, [self._results[port] for port in step.layer.outputs], other=first.other)

    def _outputs_of_calls(self, inputs: Sequence[Sequence[Array]], steps: Iterable[SeenStep]) -> Iterator[LayerAnswer]:
        """Answer no step, and then put together the outputs of calls with these inputs."""
        wanted = self._wanted & self._from_data
        actual: dict[Port, Array] = {}
        for step in steps:
            pairs = zip(step.layer.outputs, step.outputs, strict=True)
            actual.update((port, array.copy()) for port, array in pairs if port in wanted)
            yield LayerAnswer(step, skipped="only outputs are compared")
        try:
            found = [side.outputs(its_inputs) for side, its_inputs in zip(self._sides, inputs, strict=True)]
        except RunError as error:
            self.failure = error.diagnostic.message
            return
        for port, parts in zip(self._after.outputs, zip(*found, strict=True), strict=True):
            arrays = [part for part in parts if part is not None]
            if port.source is not None and port.source in actual and len(arrays) == len(parts):
                self._put_together(port.source, arrays, actual[port.source])

    def _put_together(self, port: Port, parts: Sequence[Array], actual: Array) -> None:
        """Put together a tensor of the calls, as one call has it."""
        number, is_output = ITEM_NUMBERS.get((port.layer.type, port.index)), port in self._wanted
        self._results[port] = put_together(parts, actual, self._items, number, is_output)
        if is_output and number is None and self._lacks_axis(port, parts, actual):
            self._without_axis.add(port)

    def _lacks_axis(self, port: Port, parts: Sequence[Array], actual: Array) -> bool:
        """Return whether the tensor of an output depends on the items, and is as large for all as for those of a call.

        A tensor without elements, which may have as many rows as were found, does not tell.
        """
        total, each = self._items
        if total == each or not actual.size or _item_axis(parts, actual) is not None:
            return False
        return port in self._from_items or any(not np.array_equal(parts[0], part) for part in parts)

    def require_axes(self) -> None:
        """Raise ModelError if outputs that depend on the items have no axis for them."""
        outputs = [port for port in self._after.outputs if port.source in self._without_axis]
        if outputs:
            names = quoted(port.any_name for port in outputs)
            what = f"outputs {names} depend" if len(outputs) > 1 else f"output {names} depends"
            message = f"{what} on the items of a batch, without an axis that holds them"
            hint = "an output can only hold what is computed for one call of the original"
            raise ModelError(diagnose(CHANGED_RESULTS, message, outputs[0].layer.place, hint=hint))

    def outputs(self, inputs: Sequence[Array]) -> list[Array | None]:
        return [self._results.get(port.source) if port.source is not None else None for port in self._after.outputs]


def ports_from_data(model: Model) -> set[Port]:
    """Return the tensors that depend on the elements of inputs or states, and not on sizes alone."""
    return _ports_after(
        layer for layer in model.layers if layer.type == "Parameter" or isinstance(layer.operator, ReadValueBase)
    )


def _ports_after(starts: Iterable[Layer]) -> set[Port]:
    """Return the tensors that depend on the elements of these layers' outputs, and not on sizes alone."""
    ports: set[Port] = set()
    todo = list(starts)
    while todo:
        new = set(todo.pop().outputs) - ports
        ports |= new
        todo += [reader.layer for port in new for reader in port.readers if reader.layer.type != "ShapeOf"]
    return ports


ITEM_NUMBERS = {("DetectionOutput", 0): 0, ("NonMaxSuppression", 0): 0, ("NonMaxSuppression", 1): 0}
"""The outputs, by operation and position, in whose rows one column is the number of the item that they are about."""


def put_together(
    parts: Sequence[Array], actual: Array, items: tuple[int, int], column: int | None, is_output: bool
) -> Array:
    """Return the results of one call with all items, from calls with fewer; ``items`` are both numbers.

    ``actual`` is what one call really gives, which shows along which axis the items lie.
    """
    one = parts[0]
    if one.ndim != actual.ndim or not one.ndim or any(part.ndim != one.ndim for part in parts):
        return one
    if column is not None:
        return _by_number(parts, actual, items, column)
    if one.shape == actual.shape and all(np.array_equal(one, part) for part in parts):
        return one
    axis = _item_axis(parts, actual) or 0
    if len({part.shape[:axis] + part.shape[axis + 1 :] for part in parts}) > 1:
        return one
    joined = np.concatenate(parts, axis)
    if not is_output or len(parts) * items[1] > items[0]:  # the last call repeats items
        joined = joined.take(range(min(actual.shape[axis], joined.shape[axis])), axis)
    if is_output or len({part.shape for part in parts}) > 1 or one.size * len(parts) != actual.size:
        return joined
    between = np.stack(parts, axis + 1).reshape(actual.shape)  # the items may be the inner part of the axis
    return between if np.allclose(as_numbers(between), as_numbers(actual), 1e-3, 1e-5) else joined


def _item_axis(parts: Sequence[Array], actual: Array) -> int | None:
    """Return the axis along which the result of one call is larger than those of calls with fewer items."""
    sizes = [{part.shape[a] for part in parts} for a in range(actual.ndim)]
    return next((a for a, lengths in enumerate(sizes) if lengths != {actual.shape[a]}), None)


def _by_number(parts: Sequence[Array], actual: Array, items: tuple[int, int], column: int) -> Array:
    """Return rows in the order of ``actual``: those with the number of an item are the ones that its call gives."""
    total, each = items
    expected = actual.copy()
    rows = _rows(expected, column)
    numbers = rows[:, column]
    for call, part in enumerate(parts):
        part_rows = _rows(part, column)
        for number in range(min(each, total - call * each)):
            places = np.flatnonzero(numbers == call * each + number)
            chosen = part_rows[part_rows[:, column] == number].copy()
            if len(chosen) != len(places):
                return np.concatenate([_rows(item, column) for item in parts])  # its shape shows the difference
            chosen[:, column] = call * each + number
            rows[places] = chosen
    return expected


def _rows(array: Array, column: int) -> Array:
    """Return the rows before the first one without an item, as a view."""
    rows = array.reshape(-1, array.shape[-1])
    ends = np.flatnonzero(rows[:, column] < 0)
    return rows[: ends[0]] if ends.size else rows
