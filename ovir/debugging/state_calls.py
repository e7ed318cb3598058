"""Calls in a row of a model with variables, and of one that has inputs and outputs in their place."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, combinations, islice

import numpy as np

from ovir.analysis.input_sizes import with_sizes
from ovir.analysis.random_inputs import generate_inputs
from ovir.core.arrays import Array
from ovir.core.element_types import i32, i64
from ovir.core.shapes import Dimension
from ovir.debugging.comparison_setup import InputSet
from ovir.debugging.sides import Partners
from ovir.debugging.tensor_sides import SecondModel
from ovir.diagnostics.errors import ModelError, RunError
from ovir.graph.layers import Port
from ovir.inference.engines import state_readers
from ovir.model import Model
from ovir.runtime.compiled import CompiledModel

States = Mapping[str, tuple[str, str | None]]
"""By the id of a variable: the input and the output in its place. The output is None if nothing assigns it."""

MOST_TRIALS = 64
"""The most choices of inputs that are tried for one call."""


class StatefulModel(SecondModel):
    """A model with variables, whose values are compared with outputs of the first model."""

    def __init__(self, partners: Partners, description: str, states: States, *, only_outputs: bool = False) -> None:
        super().__init__(partners, description, keeps_state=True, only_outputs=only_outputs)
        outputs = partners.a.outputs
        found = {variable: present for variable, (_, present) in states.items() if present is not None}
        self._states = {outputs.index(partners.a.output(present)): variable for variable, present in found.items()}

    def outputs(self, inputs: Sequence[Array]) -> list[Array | None]:
        found = super().outputs(inputs)
        for index, variable in self._states.items():
            found[index] = self._plan.variables.named(variable).value
        return found


def state_calls(stateful: Model, stateless: Model, states: States, count: int, seed: int) -> Iterator[InputSet]:
    """Yield the inputs of the model without variables for calls in a row, with the values that the variables have.

    There are fewer calls if no inputs fit what the variables hold.
    """
    calls = StatefulCalls(stateful, seed)
    places = {stateless.input_index(past): variable for variable, (past, _) in states.items()}
    for number in range(count):
        try:
            named = calls.next()
        except (ModelError, RunError):
            if number == 0:
                raise
            return
        ports = enumerate(stateless.inputs)
        arrays = [calls.values[places[i]] if i in places else named[port.any_name] for i, port in ports]
        yield InputSet(f"call {number + 1}", arrays.copy)


Choice = tuple[int, int | None]
"""The position of an input and the axis of it that grows as the variables do; None for an input of positions, which
continue where the variables end."""


class StatefulCalls:
    """Calls in a row of a model with variables: masks become longer as these do, and positions continue."""

    def __init__(self, model: Model, seed: int) -> None:
        self._model = model
        self._request = CompiledModel(model).create_infer_request()
        self._seed = seed
        self._sized, _ = with_sizes(model)
        self._readers = {variable: layer.key for variable, layer in state_readers(model.layers).items()}
        self._first: dict[str, tuple[int, ...]] = {}
        """The shapes that the variables have in the first call."""
        ports = list(enumerate(model.inputs))
        open_axes: list[Choice] = [(i, a) for i, port in ports for a, dim in enumerate(_dims(port)) if dim.is_dynamic]
        counted: list[Choice] = [(i, None) for i, port in ports if _dims(port) and port.element_type in (i32, i64)]
        self._choices = sorted((*open_axes, *counted), key=lambda choice: choice[1] == 0)  # axes of batches last
        self._last: tuple[Choice, ...] = ()
        self.values: dict[str, Array] = {}
        """The value of each variable before the last call."""

    def next(self) -> dict[str, Array]:
        """Run the next call, and return its inputs by name. Raise ModelError or RunError if no inputs fit."""
        growth, failure = self._growth(), None
        choices = [choice for choice in self._choices if growth or choice[1] is None]
        trials = chain.from_iterable(combinations(choices, k) for k in range(len(choices) + 1))
        for chosen in dict.fromkeys((self._last, *islice(trials, MOST_TRIALS))):
            try:
                named = self._call(chosen, growth)
            except (ModelError, RunError) as error:
                failure = failure or error
                continue
            self._last, self._seed = chosen, self._seed + 1
            return named
        assert failure is not None
        raise failure

    def _growth(self) -> int:
        """Return by how much a size of the variables has grown since the first call."""
        held = {variable.name: variable.value for variable in self._request.query_state()} if self._first else {}
        shapes = ((self._first[name], value.shape) for name, value in held.items() if value is not None)
        return max((after - before for pair in shapes for before, after in zip(*pair, strict=True)), default=0)

    def _call(self, chosen: Collection[Choice], growth: int) -> dict[str, Array]:
        sized = self._sized
        if any(axis is not None for _, axis in chosen):
            shapes = [
                [size + growth * ((i, axis) in chosen) for axis, size in enumerate(port.shape.to_tuple())]
                for i, port in enumerate(sized.inputs)
            ]
            sized = self._model.clone()
            sized.reshape(dict(enumerate(shapes)))
        arrays = [item.array for item in generate_inputs(sized, self._seed)]
        for i, axis in chosen:
            if axis is None:
                arrays[i][...] = growth + np.arange(arrays[i].shape[-1])
        results = self._request.infer(arrays, taps=list(self._readers.values()))
        self.values = {variable: results.taps[key][0] for variable, key in self._readers.items()}
        self._first = self._first or {variable: value.shape for variable, value in self.values.items()}
        return dict(zip((port.any_name for port in self._model.inputs), arrays, strict=True))


def _dims(port: Port) -> Sequence[Dimension]:
    return port.shape.dims if port.shape.rank is not None else ()
