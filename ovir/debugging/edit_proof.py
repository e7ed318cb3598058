"""`ovir.prove_edit`: an edited model must compute the results of the original on random inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from time import monotonic
from typing import Any

import numpy as np

from ovir.analysis.input_sizes import with_shapes, with_sizes
from ovir.analysis.random_inputs import generate_inputs
from ovir.analysis.tensor_comparison import Criterion, TensorComparison
from ovir.checks.conditions import ending
from ovir.core.arrays import Array
from ovir.core.shapes import MAX_SIZE
from ovir.debugging.comparison import Comparison
from ovir.debugging.comparison_session import Session
from ovir.debugging.comparison_setup import InputSet, as_model
from ovir.debugging.item_calls import ItemCalls, calls_for_items, ports_from_data
from ovir.debugging.sides import Partners, Side
from ovir.debugging.state_calls import StatefulModel, States, state_calls
from ovir.debugging.tensor_sides import SecondModel
from ovir.diagnostics.codes import CHANGED_RESULTS, OUT_OF_MEMORY
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import ModelError, OvirError
from ovir.diagnostics.wording import plural
from ovir.graph.layers import Layer
from ovir.inference.engines import state_readers
from ovir.model import Model
from ovir.ops.state import ReadValueBase, StateBase
from ovir.runtime.compiled import CompiledModel
from ovir.system.progress import stage

SAMPLES, CALLS_WITH_STATE = 3, 5
"""The number of sets of inputs, and of calls in a row of a model whose variables keep their shapes."""
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
        noun, what = ("call", "in a row, with") if self.in_a_row else ("set", "of")
        return f"proven: the results agree for {plural(self.sets, noun)} {what} random inputs"


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
    these. The proof is false, with a reason, if ovir cannot run the original, if memory does not suffice, if a layer
    draws random numbers, or if a loop never ends.

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
    for layer in before.walk():
        if endless := ending(layer).endless:
            return EditProof(reason=f"{layer.title}: {endless}")
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
                sized, calls = calls_for_items(before, after, batch)
                if not calls:
                    return EditProof(reason="the original model takes 0 items, so that its calls have no results")
                if ports_from_data(after).isdisjoint(port.source for port in after.outputs):
                    return EditProof(reason="all outputs are computed from sizes and constants alone")
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
                    if inputs.name == LEAST_SIZES and _why_not_run(before, inputs()) is not None:
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
                    agree = partial(
                        _require_agreement, model=first, is_other_first=first is after, in_items=batch is not None
                    )
                    agree(comparison)
                    if len(comparison.outputs) < len(found.outputs):  # layers that have no partner lead to the others
                        agree(found.result(first, Criterion(), "", len(seen)))
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


def _why_not_run(model: Model, inputs: list[Array] | None = None) -> str | None:
    """Return why ovir cannot run a model, on random inputs unless they are given; None if it can."""
    try:
        if inputs is None:
            model, _ = with_sizes(model)
            inputs = [item.array for item in generate_inputs(model)]
        CompiledModel(model)(inputs)
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
    model: Model, other: Model | None, count: int, seed: int, given: Mapping[str, Array], *, least_sizes: bool = False
) -> Iterator[InputSet]:
    """Yield sets of random inputs; dynamic sizes grow from one to the next where both models accept that.

    With ``least_sizes``, sets with sizes of 1 and 0 follow.
    """
    fixed = {model.input_index(name): np.asarray(array) for name, array in given.items()}
    sized, _ = with_sizes(with_shapes(model, {i: array.shape for i, array in fixed.items()}))
    other = None if other is None else other.clone()
    largest_steps = [] if count == 1 or _keeps_shapes(model) else _largest_steps(model, sized, other)
    for number in range(count):
        shapes = (_grown(model, sized, number, most) for most in largest_steps if number)
        trial = next((found for each in shapes if (found := _reshaped(sized, other, each)) is not None), sized)
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


def _drawn(model: Model, seed: int, fixed: Mapping[int, Array]) -> list[Array]:
    drawn = generate_inputs(model, seed, [i for i in range(len(model.inputs)) if i not in fixed])
    arrays = {model.inputs.index(item.port): item.array for item in drawn} | dict(fixed)
    return [arrays[i] for i in range(len(model.inputs))]


_STEP = 32
"""The most by which a size grows from set to set where only the items of a batch matter, unless some tensor then keeps
a size. Most strides divide it, and the work grows with the square of the sizes of images."""


def _largest_steps(model: Model, sized: Model, other: Model | None) -> list[int]:
    """Return the most by which dynamic sizes grow in a step, in the order in which they are tried.

    Two models may differ only above some size, so with another model all sizes double.
    """
    near, far = (_grown(model, sized, 1, most) for most in (_STEP, MAX_SIZE))
    if other is None and near != far:
        trial = _reshaped(sized, None, near)
        if trial is not None and _differs(model, sized, trial):
            return [_STEP, MAX_SIZE]
    return [MAX_SIZE]


def _grown(model: Model, sized: Model, steps: int, most: int) -> dict[int, Any]:
    """Return the shapes of inputs whose dynamic sizes have grown: by themselves in each step, or by ``most``."""
    shapes: dict[int, Any] = {}
    for i, (port, small) in enumerate(zip(model.inputs, sized.inputs, strict=True)):
        dims = port.shape.dims if port.shape.rank is not None else ()
        sizes = [
            size if dim.is_static else size + steps * min(size, most)
            for dim, size in zip(dims, small.shape.to_tuple(), strict=False)
        ]
        if all(dim.contains(size) for dim, size in zip(dims, sizes, strict=True)):
            shapes[i] = sizes or small.shape
    return shapes


def _differs(model: Model, sized: Model, trial: Model) -> bool:
    """Return whether each dynamic size of a tensor differs between two copies of a model."""
    layers = zip(model.walk(), sized.walk(), trial.walk(), strict=True)
    ports = chain.from_iterable(zip(*(layer.outputs for layer in copies), strict=True) for copies in layers)
    shapes = ([port.shape for port in copies] for copies in ports)
    return all(
        dim.is_static or one != two for shape, *others in shapes for dim, one, two in zip(shape, *others, strict=True)
    )


def _reshaped(sized: Model, other: Model | None, shapes: Mapping[int, Any]) -> Model | None:
    """Return a model in these shapes; None if it, or the other model, which gets them too, refuses them."""
    try:
        trial = with_shapes(sized, shapes)
        if other is not None:
            known = {name for port in other.inputs for name in port.names}
            other.reshape({port.any_name: port.shape for port in trial.inputs if port.any_name in known})
    except ModelError:
        return None
    return trial
