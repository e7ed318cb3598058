"""Another number of items: the one size that varies is that of a batch, which no layer may mix."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from ovir import opset8 as ops
from ovir.building.creation import create_layer
from ovir.core.shapes import UNKNOWN, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.diagnostic import in_place_of
from ovir.editing.keys import read_by
from ovir.editing.layer_edits import replace
from ovir.editing.size_fitting import Fitting, Pin, Repair, Sizes, set_sizes
from ovir.editing.sizes import Size
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port, ReadOnlyDict
from ovir.inference.engines import Types, set_outputs
from ovir.ops.infrastructure import Parameter
from ovir.ops.state import AssignBase, ReadValue6


class ItemFitting(Fitting):
    """Infers a model for a trial number of items: each tensor that holds items has one axis that grows in proportion,
    and constants that pin the number are repeated."""

    mixes = False

    def __init__(self, model: LayerGraph, old: Sizes, trial: Sizes, states: Mapping[Layer, int]) -> None:
        """Record the present types; ``states`` are the axes of the items of variables, by their ReadValues."""
        super().__init__(model, old, trial)
        i, axis = next((i, axis) for i, axes in old.items() for axis in axes)
        self._source = Size(((model.inputs[i], axis),))
        self._old_number, self._number = old[i][axis], trial[i][axis]
        self._states = dict(states)

    def _solve(self) -> None:
        self._states = {self._with_initial_value(layer): axis for layer, axis in self._states.items()}
        self.set_sizes(self._trial)
        for port in self._model.inputs:  # an initial value may come before the input that tells its number of items
            assert isinstance(port.layer.operator, Parameter)
            set_outputs(port.layer, (port.type.refined(port.element_type, port.layer.operator.shape),))
        self.infer(self._model)

    def set_sizes(self, sizes: Sizes) -> None:
        """Give the inputs, and with them the variables, other sizes, -1 for any."""
        set_sizes(self._model, sizes)
        number = next(size for axes in sizes.values() for size in axes.values())
        for layer, axis in self._states.items():
            set_state(layer, axis, number)

    def _with_initial_value(self, layer: Layer) -> Layer:
        """Return the ReadValue with an initial value of its own, because zeros without one have no number of items."""
        op, port = layer.operator, layer.outputs[0]
        if layer.inputs or not isinstance(op, ReadValue6) or not port.shape.is_static:
            return layer
        zeros = ops.constant(np.zeros(port.shape.to_tuple(), port.element_type.to_dtype()), port.element_type)
        with in_place_of(layer.place):
            new = create_layer("ReadValue", [zeros], dict(layer.attributes), version="opset6")
        replace(self._model, layer, new)
        self._before[new.inputs[0]] = self._before[new.outputs[0]] = self._before[port]
        return new

    def _words(self) -> tuple[str, str, str]:
        trial = f"{self._number} items, a trial number"
        message = f"the number of items cannot change from {self._old_number}: "
        return message, trial, "in which the items are picked or mixed"

    # ----- items of tensors

    def _moved(self, before: PartialShape, shape: PartialShape) -> int | None:
        """Return the axis that has grown with the number of items, None if none has, -1 if other sizes have changed."""
        if before.rank is None or shape.rank is None or before.rank != shape.rank:
            return None if before.rank == shape.rank else -1
        pairs = list(zip(before, shape, strict=True))
        axes = [a for a, (m, n) in enumerate(pairs) if (m.lower, m.upper) != (n.lower, n.upper)]
        if not axes:
            return None
        fixed = [pairs[a] for a in axes if pairs[a][0].is_static]
        in_proportion = all(n.is_static and m.lower * self._number == n.lower * self._old_number for m, n in fixed)
        return axes[0] if in_proportion and (len(axes) == 1 or not fixed) else -1

    def _item_axis(self, port: Port) -> int | None:
        """Return the axis that holds the items of a tensor; None if there is none."""
        moved = self._moved(self._before.get(port, port.shape), port.shape)
        return moved if moved is not None and moved >= 0 else None

    def _item_source(self, layer: Layer) -> Size | None:
        """Return the number of items of the first input that holds some."""
        for port in layer.inputs:
            axis = self._item_axis(port)
            if axis is not None:
                return Size(((read_by(port), axis),), 1, max(self._rows_of(self._dims(port)[axis][0]), 1))
        return None

    def _fits(self, layer: Layer, outputs: Types) -> bool:
        """Return whether the outputs of a layer that reads items hold them, on one axis each."""
        moved = [self._moved(before, shape) for before, shape in self._moves(layer, outputs)]
        if layer in self._states:
            return moved[0] == self._states[layer]
        holds_items = any(self._item_axis(port) is not None for port in layer.inputs)
        if layer.type in ("ShapeOf", "Result") or isinstance(layer.operator, AssignBase) or not (holds_items and moved):
            return True
        if -1 in moved:
            return False
        return any(axis is not None for axis in moved) or not all(tensor.shape.is_static for tensor in outputs)

    # ----- repairs

    def _solutions(self, layer: Layer, settled: frozenset[Pin | None] = frozenset()) -> Iterator[bool]:
        if layer.bodies:
            self._prepare_loop(layer)
        yield from super()._solutions(layer, settled)

    def _pins(self, layer: Layer, outputs: Sequence[TensorType]) -> list[Pin]:
        return []

    def _followed(self, layer: Layer) -> Iterator[Repair]:
        yield from ()

    def _fills(self, layer: Layer) -> dict[int, list[int]]:
        return {}

    def _repairs(self, layer: Layer, pin: Pin | None) -> Iterator[Repair]:
        free = self._fixed(layer)
        if layer in self._states and free:
            yield [(0, self._repeated(free[0], {self._states[layer]: self._source}))]
        else:
            yield from super()._repairs(layer, pin)

    def _data(self, layer: Layer, port: Port) -> Iterator[Callable[[], Layer]]:
        if (source := self._item_source(layer)) is None:
            return
        if (axis := self._constant_item_axis(layer, port)) is not None:
            yield partial(self._repeated, port, {axis: source})

    def _constant_item_axis(self, layer: Layer, port: Port) -> int | None:
        """Return the axis of a constant that may hold items; None if there is none."""
        shape = self._before.get(port, port.shape)
        likely = next(axis for other in layer.inputs if (axis := self._item_axis(other)) is not None)
        if shape.rank is None or not self._old_number:
            return None
        own = [a for a, dim in enumerate(shape) if dim.is_static and dim.lower and dim.lower % self._old_number == 0]
        exact = [a for a in own if shape[a].lower == self._old_number]
        return next((a for a in (likely, 0) if a in exact), None) if exact else next(iter(own), None)

    def _rows_of(self, size: int) -> int:
        return size // max(self._old_number, 1)  # a model may be of no items

    def _prepare_loop(self, layer: Layer) -> None:
        """Give the tensors that a loop hands on to the next iteration all items, if they begin with a constant."""
        wirings = layer.operator.wiring.values() if layer.operator is not None else ()
        carried = {edge.parameter for wiring in wirings for edge in wiring.back_edges}
        for wiring in wirings:
            for entry in wiring.inputs:
                if entry.parameter not in carried or entry.external < 0:
                    continue
                port = layer.inputs[entry.external]
                count = self._item_source(layer)
                axes = state_axes(self._before[port], self._old_number)
                if axes and count is not None and self._item_axis(port) is None:
                    self._apply(layer, [(port.index, self._repeated(port, {axes[0]: count}))])


def state_axes(shape: PartialShape, old: int) -> list[int]:
    """Return the axes that may hold the items of a variable, or of a tensor that a loop hands on."""
    if shape.rank is None or shape.rank < 2:
        return []
    return [axis for axis, dim in enumerate(shape) if dim.is_static and dim.lower == old]


def set_state(layer: Layer, axis: int, number: int) -> None:
    """Give an axis of the variable of a ReadValue another size, -1 for any."""
    if isinstance(op := layer.operator, ReadValue6) and op.variable_shape.rank is not None:
        shape = op.variable_shape.with_dim(axis, UNKNOWN if number < 0 else number)
        layer.operator = ReadValue6(variable_id=op.variable_id, variable_type=op.variable_type, variable_shape=shape)
        layer.attributes = ReadOnlyDict({**layer.attributes, "variable_shape": shape})
