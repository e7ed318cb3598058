"""`ovir.prove_edit`: an edited model must compute the results of the original on random inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import tee
from time import monotonic
from typing import Any

import numpy as np

from ovir.analysis.input_sizes import with_sizes
from ovir.analysis.random_inputs import generate_inputs
from ovir.analysis.tensor_comparison import Criterion, TensorComparison
from ovir.analysis.tensor_stats import as_numbers
from ovir.core.arrays import Array
from ovir.debugging.comparison import Comparison
from ovir.debugging.comparison_session import Session
from ovir.debugging.comparison_setup import InputSet, as_model
from ovir.debugging.sides import LayerAnswer, Partners, Side
from ovir.debugging.state_calls import StatefulModel, States, state_calls
from ovir.debugging.tensor_sides import SecondModel
from ovir.diagnostics.codes import CHANGED_RESULTS, OUT_OF_MEMORY
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import ModelError, OvirError
from ovir.diagnostics.wording import plural, quoted
from ovir.graph.layers import Layer, Port
from ovir.inference.engines import state_readers
from ovir.model import Model
from ovir.ops.state import ReadValueBase, StateBase
from ovir.runtime.compiled import CompiledModel
from ovir.runtime.executor import SeenStep
from ovir.system.progress import stage

SAMPLES, CALLS_WITH_STATE = 3, 5
"""The number of sets of inputs, and of calls in a row of a model whose variables keep their shapes."""
ITEMS = 2
"""The number of items in a call, where the edited model takes any number."""
MakeSide = Callable[..., Side]
"""Makes the other side of a proof; with ``only_outputs``, one for the outputs alone."""
LEAST_SIZES = "sizes of 0 and 1"
"""The name of a set of inputs with which the original need not run."""
ENOUGH_SECONDS = 10
"""After so many seconds, no further set of inputs is drawn."""


@dataclass(frozen=True)
class EditProof:
    """The result of ``ovir.prove_edit``; it is true if results were compared and agree."""

    sets: int = 0
    """The number of sets of random inputs on which both models agree."""
    reason: str | None = None
    """The reason why nothing was compared; None if something was."""
    in_a_row: bool = False
    """Whether the sets are calls in a row, in which states are handed on."""

    def __bool__(self) -> bool:
        return self.reason is None

    def __str__(self) -> str:
        if self.reason is not None:
            return f"not proven: {self.reason}"
        if self.in_a_row:
            return f"proven: the results agree for {plural(self.sets, 'call')} in a row, with random inputs"
        return f"proven: the results agree for {plural(self.sets, 'set')} of random inputs"


def prove_edit(
    before: Model,
    after: Model,
    *,
    given: Mapping[str, Array] | None = None,
    batch: Mapping[int, int] | None = None,
    states: States | None = None,
    samples: int | None = None,
    seed: int = 0,
) -> EditProof:
    """Run a model and the result of an edit on the same random inputs. The results must agree within the tolerance.

    Dynamic sizes differ between the sets of inputs; further sets have sizes of 0 and 1 where the original runs with
    these. The proof is false, with a reason, if ovir cannot run the original,
    if memory does not suffice, or if a layer draws random numbers.

    Args:
        before: The original, which may have more inputs than the result.
        after: The result of the edit.
        given: The values of some inputs of the original, by name; all others are drawn.
        batch: For an edit that gives the model another number of items, the axis of the items by the position of an
            input. A call of the result must equal calls of the original with the same items. Inputs that have no axis
            here are the same for all items. An output that depends on the items must have an axis for them.
        states: For an edit that makes variables inputs and outputs, or the other way round: the names of the input and
            the output by the id of the variable. The values are handed on from call to call.
        samples: Number of sets of inputs; by default 3, or 5 calls in a row of a model with variables of fixed shapes
            and for ``states``, and fewer if they take more than 10 seconds.
        seed: The seed of the inputs.

    Raises ModelError, which names the first layer that differs, if the results do not agree.
    """
    before, after = as_model(before), as_model(after)
    if drawing := next(filter(_draws, before.walk()), None):
        return EditProof(reason=f"{drawing.title} draws random numbers")
    keeps_state, in_a_row = _keeps_shapes(before), states is not None
    count = samples or (CALLS_WITH_STATE if keeps_state or states else SAMPLES)
    done = 0
    with stage("proving the edit"):
        try:
            first, seen = before, list[InputSet]()
            if states is not None:
                has_states = state_readers(before.layers).keys() >= states.keys()
                stateful, first = (before, after) if has_states else (after, before)
                make: MakeSide = partial(StatefulModel, Partners(first, stateful), "the model with states", states)
                sets = state_calls(stateful, first, states, count, seed)
            elif batch is None:
                make = partial(SecondModel, Partners(before, after), "the edited model", keeps_state=keeps_state)
                sets = _sets(before, after, count, seed, given or {}, least_sizes=samples is None)
            else:
                sized, calls = _items(before, after, batch)
                if not calls:
                    return EditProof(reason="the original model takes 0 items, so that its calls have no results")
                first, make = after, partial(ItemCalls, before, after, batch, calls, keeps_state=keeps_state)
                sets = _sets(sized, None, count, seed, given or {})

            def session_of(side: Side) -> Session:
                return Session(first, side, Criterion(), None, keeps_state=keeps_state or in_a_row)

            side = make(only_outputs=True)
            session = session_of(side)
            start = monotonic()
            for inputs in sets:
                if done and samples is None and not in_a_row and monotonic() - start > ENOUGH_SECONDS:
                    break
                try:
                    session.compare([inputs])
                except OvirError:
                    if inputs.name == LEAST_SIZES and not _runs(before, inputs()):
                        continue
                    raise
                seen.append(inputs)
                comparison, checked, found = None, side, session.findings
                if not found.outputs_agree() or len(found.outputs) < len(first.outputs):
                    checked = make()  # which shows the layer at which the results differ first
                    comparison = session_of(checked).run(seen, None)
                if isinstance(checked, ItemCalls):
                    if checked.failure is not None:
                        return EditProof(reason=f"ovir cannot run the model: {checked.failure}")
                    checked.require_axes()
                if comparison is not None:
                    _require_agreement(comparison, first, is_other_first=first is after, in_items=batch is not None)
                done += 1
        except OvirError as error:
            if error.diagnostic.code == CHANGED_RESULTS.id:
                raise
            reason = error.diagnostic.message if error.diagnostic.code == OUT_OF_MEMORY.id else _why_not_run(before)
            if reason is None:
                raise
            return EditProof(reason=reason)
    return EditProof(done, in_a_row=in_a_row)


def _draws(layer: Layer) -> bool:
    """Return whether a layer gives other results for the same inputs, whatever the state is."""
    op = layer.operator
    return bool(layer.inputs and layer.outputs) and op is not None and not op.pure and not isinstance(op, StateBase)


def _keeps_shapes(model: Model) -> bool:
    """Return whether a model has variables, and all of them keep their shapes."""
    shapes = [layer.outputs[0].shape for layer in model.layers if isinstance(layer.operator, ReadValueBase)]
    return bool(shapes) and all(shape.is_static for shape in shapes)


def _why_not_run(model: Model) -> str | None:
    """Return why ovir cannot run a model; None if it can."""
    try:
        sized, _ = with_sizes(model)
        CompiledModel(sized)([item.array for item in generate_inputs(sized)])
    except OvirError as error:
        return f"ovir cannot run the model: {error.diagnostic}"
    return None


def _require_agreement(comparison: Comparison, model: Model, *, is_other_first: bool, in_items: bool) -> None:
    """Raise ModelError for results that differ: it names the first layer that does, or else the first output.

    ``is_other_first`` says whether ``model`` is the edited one, so that the other side has the expected values;
    ``in_items`` says whether the original was called for fewer items at a time.
    """
    if not comparison.failed and all(output.within for output in comparison.outputs):
        return
    names = {layer.key: layer for layer in model.layers}
    layer, output = comparison.first, next((output for output in comparison.outputs if not output.within), None)
    if layer is not None:
        worst, place, what = layer.tensor.worst, names[layer.name].place, f"output {layer.output}"
    elif output is not None:
        worst, place, what = output.tensor.worst, Place(model.path), f"output '{output.name}'"
    else:
        raise ModelError(*comparison.diagnostics)  # how the edited model fails
    way = "of one call and of calls with fewer items" if in_items else "before and after the edit"
    message = f"the results {way} differ, here first: {what} {_text(worst, in_items, is_other_first)}"
    hint = "the layer, or one before it, mixes the items of a batch" if in_items else None
    raise ModelError(diagnose(CHANGED_RESULTS, message, place, hint=hint))


def _text(worst: TensorComparison, in_items: bool, is_other_first: bool) -> str:
    if worst.problem is not None or worst.position is None:
        return f"of fewer items, put together, {worst.problem}" if in_items else str(worst.problem)
    values = [
        value if isinstance(value, (str, type(None))) else f"{value:.6g}" for value in (worst.actual, worst.reference)
    ]
    now, expected = reversed(values) if is_other_first else values
    return f"is {now} at [{','.join(map(str, worst.position))}] instead of {expected}"


# --------------------------------------------------------------------------- inputs


def _sets(
    model: Model,
    other: Model | None,
    count: int,
    seed: int,
    given: Mapping[str, Array],
    *,
    least_sizes: bool = False,
) -> Iterator[InputSet]:
    """Yield sets of random inputs; dynamic sizes grow from one to the next where both models accept that.

    With ``least_sizes``, sets with sizes of 1 and 0 follow.
    """
    fixed = {model.input_index(name): np.asarray(array) for name, array in given.items()}
    sized = model.clone()
    sized.reshape({i: array.shape for i, array in fixed.items()})
    sized, _ = with_sizes(sized)
    for number in range(count):
        trial = sized if number == 0 or _keeps_shapes(model) else _larger(model, sized, other, number + 1)
        yield InputSet(f"seed {seed + number}", partial(_drawn, trial, seed + number, fixed))
    if least_sizes and not _keeps_shapes(model):
        for trial in _with_least_sizes(model, sized, other, fixed):
            yield InputSet(LEAST_SIZES, partial(_drawn, trial, seed, fixed))


def _with_least_sizes(model: Model, sized: Model, other: Model | None, fixed: Mapping[int, Array]) -> Iterator[Model]:
    """Yield models in which dynamic sizes are 1 or 0, where both models accept that."""
    open_axes = [
        (i, axis)
        for i, port in enumerate(model.inputs)
        if i not in fixed and port.shape.rank is not None
        for axis, dim in enumerate(port.shape.dims)
        if dim.is_dynamic
    ]
    first = {place for place in open_axes if place[1] == 0}
    chosen = [(1, set(open_axes)), (0, first), (0, set(open_axes))]
    chosen += [(0, first | {place for place in open_axes if place[0] == i}) for i in list(dict(open_axes))[:_ALONE]]
    present = [port.shape.to_tuple() for port in sized.inputs]
    seen = [present]
    for size, places in chosen:
        shapes = [
            tuple(size if (i, axis) in places else n for axis, n in enumerate(sizes)) for i, sizes in enumerate(present)
        ]
        if shapes in seen or not all(port.shape.contains(s) for port, s in zip(model.inputs, shapes, strict=True)):
            continue
        seen.append(shapes)
        if (trial := _reshaped(sized, other, dict(enumerate(shapes)))) is not None:
            yield trial


_ALONE = 3
"""The number of inputs of which each has all of its dynamic sizes 0 in one call."""


def _runs(model: Model, inputs: list[Array]) -> bool:
    try:
        CompiledModel(model)(inputs)
    except OvirError:
        return False
    return True


def _drawn(model: Model, seed: int, fixed: Mapping[int, Array]) -> list[Array]:
    drawn = generate_inputs(model, seed, [i for i in range(len(model.inputs)) if i not in fixed])
    arrays = {model.inputs.index(item.port): item.array for item in drawn} | dict(fixed)
    return [arrays[i] for i in range(len(model.inputs))]


def _larger(model: Model, sized: Model, other: Model | None, factor: int) -> Model:
    """Return a model whose dynamic sizes are larger; the sized model where there are none, or one refuses them."""
    shapes: dict[int, Any] = {}
    for i, (port, small) in enumerate(zip(model.inputs, sized.inputs, strict=True)):
        dims = port.shape.dims if port.shape.rank is not None else ()
        sizes = [
            size * (1 if dim.is_static else factor) for dim, size in zip(dims, small.shape.to_tuple(), strict=False)
        ]
        if all(dim.contains(size) for dim, size in zip(dims, sizes, strict=True)):
            shapes[i] = sizes or small.shape
    return _reshaped(sized, other, shapes) or sized


def _reshaped(sized: Model, other: Model | None, shapes: Mapping[int, Any]) -> Model | None:
    """Return a copy of a model in other shapes; None if it, or the other model, refuses them."""
    trial = sized.clone()
    try:
        trial.reshape(shapes)
        if other is not None:
            known = {name for port in other.inputs for name in port.names}
            named = {trial.inputs[i].any_name: shape for i, shape in shapes.items()}
            other.clone().reshape({name: shape for name, shape in named.items() if name in known})
    except ModelError:
        return None
    return trial


# --------------------------------------------------------------------------- items of a batch


def _items(before: Model, after: Model, batch: Mapping[int, int]) -> tuple[Model, list[dict[int, list[int]]]]:
    """Return the edited model for one number of items, and for each call of the original the items of each input."""
    sized = after.clone()
    index, axis = next(iter(batch.items()))
    dim = after.inputs[index].shape[axis]
    items = dim.lower if dim.is_static else ITEMS
    sized.reshape({i: port.shape.with_dim(batch[i], items) for i, port in enumerate(after.inputs) if i in batch})
    dim_before = before.inputs[before.input_index(after.inputs[index].any_name)].shape[axis]
    each = dim_before.lower if dim_before.is_static else 1
    starts = range(0, items, each) if each else ()
    return sized, [{i: [(start + k) % items for k in range(each)] for i in batch} for start in starts]


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
        self._only_outputs, self.with_constants = only_outputs, not only_outputs
        self._after, self._batch, self._calls = after, batch, calls
        partners = Partners(after, before)
        make = partial(SecondModel, partners, self.description, keeps_state=keeps_state, only_outputs=only_outputs)
        self._sides = [make() for _ in calls]
        one = next(iter(calls[0]))
        self._items = max(max(call[one]) for call in calls) + 1, len(calls[0][one])
        """The number of items in one call, and in a call of the original."""
        self._from_data = _ports_from_data(
            layer for layer in after.layers if layer.type == "Parameter" or isinstance(layer.operator, ReadValueBase)
        )
        self._from_items = _ports_from_data(after.inputs[i].layer for i in batch)
        self._without_axis: set[Port] = set()
        """The tensors of outputs that depend on the items, and have no axis for them."""
        self._results: dict[Port, Array] = {}
        self.failure: str | None = None
        """The reason why the original cannot be run."""

    def layer_outputs(self, inputs: Sequence[Array], steps: Iterable[SeenStep]) -> Iterator[LayerAnswer]:
        self._results = dict(zip(self._after.inputs, inputs, strict=True))
        wanted = {port.source for port in self._after.outputs}
        parts = []
        for side, call, its_steps in zip(self._sides, self._calls, tee(steps, len(self._sides)), strict=True):
            chosen = [
                np.take(array, call[i], self._batch[i]) if i in self._batch else array for i, array in enumerate(inputs)
            ]
            parts.append(side.layer_outputs(chosen, its_steps))
        for answers in zip(*parts, strict=True):
            first = answers[0]
            step = first.step
            self.failure = self.failure or next((a.problem for a in answers if a.problem is not None), None)
            if any(a.skipped is not None or a.problem is not None for a in answers):
                yield LayerAnswer(step, skipped=first.skipped or "the original cannot be run")
                continue
            if self._only_outputs and wanted.isdisjoint(step.layer.outputs):
                yield LayerAnswer(step, skipped="only outputs are compared")
                continue
            if not any(port in self._from_data for port in step.layer.outputs):
                yield LayerAnswer(step, skipped="it is computed from sizes alone")
                continue
            columns = list(zip(*([array for array in a.arrays if array is not None] for a in answers), strict=True))
            arrays = []
            for column, actual, port in zip(columns, step.outputs, step.layer.outputs, strict=True):
                number = ITEM_NUMBERS.get((step.layer.type, port.index))
                arrays.append(_together(column, actual, self._items, number, port in wanted))
                if port in wanted and number is None and self._lacks_axis(port, column, actual):
                    self._without_axis.add(port)
            self._results.update((port, array) for port, array in zip(step.layer.outputs, arrays, strict=True))
            yield LayerAnswer(step, arrays, other=first.other)

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


def _ports_from_data(starts: Iterable[Layer]) -> set[Port]:
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


def _together(
    parts: Sequence[Array], actual: Array, items: tuple[int, int], column: int | None, is_output: bool
) -> Array:
    """Return the results of one call with all items, from calls with fewer; ``items`` are both numbers.

    ``actual`` is what it gives indeed, which tells along which axis the items lie.
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
