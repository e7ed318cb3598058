"""Another number of items in a batch: the sizes of the inputs that vary are all the number of items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace as replace_field
from itertools import islice, product
from typing import Any

from ovir.core.shapes import MAX_SIZE, PartialShape
from ovir.diagnostics.codes import CHANGED_RESULTS
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import InputError, ModelError
from ovir.diagnostics.wording import plural
from ovir.editing.item_fitting import ItemFitting, state_axes
from ovir.editing.keys import refuse
from ovir.editing.preprocessing import recorded_layout
from ovir.editing.proof import ProvenEdit, proven
from ovir.editing.size_fitting import Sizes, set_sizes
from ovir.editing.transaction import editing, with_types
from ovir.graph.layer_graph import LayerGraph
from ovir.inference.models import infer_model
from ovir.inference.pinned_sizes import pinned_layers
from ovir.ops.state import ReadValueBase

TRIAL = 13
"""The number of items for which the model is inferred: a prime, so that no other size is likely to be a multiple."""

MOST_PROVEN = 8
"""With more items than this, and more than twice those of the original, the edit is proven with fewer."""

MOST_CHOICES = 8
"""The most choices of axes that are tried, where several axes of inputs and variables have the number of items."""

Batch = int | str | Mapping[Any, int | str]


def set_batch(model: LayerGraph, batch: Batch, verify: bool) -> ProvenEdit:
    """Give a model another number of items in a batch; see ``Model.set_batch``."""
    if model.holder is not None:
        refuse("the batch of a body cannot be set: its inputs come from the model around it")
    with_types(model)
    named = dict(batch) if isinstance(batch, Mapping) else dict.fromkeys(model.inputs, batch)
    numbers = {_number(value) for value in named.values()}
    if len(numbers) > 1:
        refuse(f"expected one number of items for all inputs, got {batch!r}")
    keys = [model.input_index(key) for key in named]
    choices, old = _axes(model, keys, is_named=isinstance(batch, Mapping))
    (number,) = numbers
    if old is None:
        likely = {i: axes[0] for i, axes in choices.items()}
        old = _pinned_number(model, likely)
        if old is None and (edit := _set_open(model, likely, number, verify)) is not None:
            return edit
        old = old or 1
    states = {
        layer.id: own
        for layer in model.layers
        if isinstance(layer.operator, ReadValueBase) and (own := state_axes(layer.outputs[0].shape, old))
    }
    combinations = list(islice(product(*choices.values(), *states.values()), MOST_CHOICES))
    first: ModelError | None = None
    for axes in combinations:
        chosen, of_states = dict(zip(choices, axes, strict=False)), dict(zip(states, axes[len(choices) :], strict=True))
        if len(combinations) == 1:
            return _set_batch(model, chosen, of_states, old, number, verify)
        try:
            verdict = _set_batch(model.clone(), chosen, of_states, old, number, verify).verdict
        except ModelError as error:
            first = first or error
            continue
        return replace_field(_set_batch(model, chosen, of_states, old, number, False), verdict=verdict)
    assert first is not None
    raise first


def _set_open(model: LayerGraph, axes: Mapping[int, int], number: int, verify: bool) -> ProvenEdit | None:
    """Set the number of items of a model that takes any; return None if it does not take this one."""
    try:
        with editing(model):
            with proven(model, verify) as edit:
                edit.relation["batch"] = dict(axes)
                set_sizes(model, _sizes(axes, number))
                with_types(model)
            return edit
    except ModelError:
        return None


def _set_batch(
    model: LayerGraph, axes: Mapping[int, int], states: Mapping[int, int], old: int, number: int, verify: bool
) -> ProvenEdit:
    """Set the number of items on these axes of inputs and of variables, by the ids of their ReadValues."""
    with editing(model):
        set_sizes(model, _sizes(axes, old))  # a model that takes any number is compared with its runs of this one
        with proven(model, verify) as edit:
            edit.relation["batch"] = dict(axes)
            of_layers = {model.layer(i): axis for i, axis in states.items()}
            fitting = ItemFitting(model, _sizes(axes, old), _sizes(axes, TRIAL), of_layers)
            edit.layers = fitting.run()
            # The edit is the same for every number, and memory may not suffice for a large one.
            shown = number if number <= max(MOST_PROVEN, 2 * old) else 2 * old + 1
            fitting.set_sizes(_sizes(axes, shown))
        if shown != number:
            few = [port.shape for port in model.outputs]
            fitting.set_sizes(_sizes(axes, number))
            with_types(model)
            _require_proportion(model, few, shown, number)
            if edit.verdict.startswith("proven"):
                edit.verdict += f" (run with {plural(shown, 'item')})"
    return edit


def _sizes(axes: Mapping[int, int], number: int) -> Sizes:
    """Return the sizes of inputs with a number of items on these axes."""
    return {i: {axis: number} for i, axis in axes.items()}


def _require_proportion(model: LayerGraph, few: Sequence[PartialShape], shown: int, number: int) -> None:
    """Raise ModelError for an output with a size that neither stays nor grows with the number of items.

    ``few`` are the shapes of the outputs for the number of items that was shown to be right.
    """
    for port, shape in zip(model.outputs, few, strict=True):
        pairs = zip(shape.dims, port.shape.dims, strict=False) if shape.rank is not None else ()
        if all(n.lower in (m.lower, m.lower * number // shown) for m, n in pairs if m.is_static and n.is_static):
            continue
        message = (
            f"output '{port.any_name}' has shape {shape} for {plural(shown, 'item')}, but {port.shape} for {number}"
        )
        raise ModelError(diagnose(CHANGED_RESULTS, message, port.layer.place))


def _number(value: object) -> int:
    """Return a number of items, -1 for any."""
    if value in ("?", -1, "-1"):
        return -1
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_SIZE:
        expected = f"a number of items of at least 1 and at most {MAX_SIZE}, or -1 (?) for any"
        raise InputError.usage(f"expected {expected}, got {value!r}")
    return value


def _axes(model: LayerGraph, keys: Sequence[int], *, is_named: bool) -> tuple[dict[int, list[int]], int | None]:
    """Return the axes that may hold the items by the position of the input, likely ones first, and the present number
    of items, None if it is open.

    The layout of an input tells the axis. Otherwise it has the size that most inputs have as their first.
    """
    shapes = {i: model.inputs[i].shape for i in keys}
    if any(shape.rank is None for shape in shapes.values()):
        port = next(model.inputs[i] for i in keys if shapes[i].rank is None)
        refuse(f"input '{port.any_name}' has an unknown rank", port.layer, "give it a shape before")
    layouts = {i: recorded_layout(model.inputs[i]).find("N") for i in keys if recorded_layout(model.inputs[i])}
    heads = [shapes[i][max(layouts.get(i, 0), 0)] for i in keys if shapes[i].rank and layouts.get(i, 0) >= 0]
    if not heads:
        refuse("no input has an axis of items", None, "`ovir show` lists the inputs")
    old = Counter(dim.lower if dim.is_static else None for dim in heads).most_common(1)[0][0]
    choices: dict[int, list[int]] = {}
    for i, shape in shapes.items():
        own = [a for a, dim in enumerate(shape) if not dim.is_static or dim.lower == old]
        own = [layouts[i]] if i in layouts else own if choices else own[:1]
        if own and own[0] >= 0:
            choices[i] = own
        elif is_named:
            port = model.inputs[i]
            refuse(f"input '{port.any_name}' of shape {shape} has no axis of {plural(old or 1, 'item')}", port.layer)
    return choices, old


def _pinned_number(model: LayerGraph, axes: Mapping[int, int]) -> int | None:
    """Return the number of items for which the constants of a model were made whose inputs take any number."""
    shapes = (layer.outputs[0].shape for layer, *_, is_batch in pinned_layers(model) if is_batch)
    for number in dict.fromkeys(dim.upper for shape in shapes for dim in shape if dim.upper):
        trial = model.clone()
        set_sizes(trial, _sizes(axes, number))
        try:
            infer_model(trial)
        except ModelError:
            continue
        return number
    return None
