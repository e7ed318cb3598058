"""Other sizes of the inputs: finds constants that pin the old sizes, and lets them follow the inputs.

The model is inferred for trial sizes that occur nowhere else. Where inference fails, or where a size that varies is
lost, a constant pins an old size: the target of a Reshape, a size or an end among the inputs of a layer, or data that
was made for this size, such as an initial state. It is replaced by 0, by -1, or by what is computed from the shape of a
tensor that has the size. Where several sizes come into question, the likeliest is taken, and another one if a later
layer contradicts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, combinations, count, islice, takewhile
from math import gcd, isqrt, log, prod
from typing import Any

import numpy as np

from ovir.building.creation import create_layer, new_constant
from ovir.core.arrays import Array
from ovir.core.shapes import UNKNOWN, Dimension, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.codes import CHANGED_RESULTS
from ovir.diagnostics.diagnostic import Diagnostic, diagnose, in_place_of
from ovir.diagnostics.errors import Diagnostics, ModelError
from ovir.editing.constant_edits import remove_unread
from ovir.editing.keys import read_by
from ovir.editing.layer_edits import NewLayers, replace
from ovir.editing.other_exports import counterparts, is_like
from ovir.editing.positions import positional
from ovir.editing.sizes import Factor, Factors, Size, mixed_ways, new_size, ways, with_sizes
from ovir.editing.transaction import editing, owner_of
from ovir.graph.constant_layers import constant_layers
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port
from ovir.graph.names import free_name
from ovir.graph.order import trace_back
from ovir.inference.engines import ComparingEngine, Types, set_outputs
from ovir.inference.models import set_parameters
from ovir.ops.base.domains import ONE, Axis, Index, Length, axis_of
from ovir.ops.base.traits import input_names
from ovir.ops.broadcast import Broadcast3, Tile
from ovir.ops.control_flow import Loop
from ovir.ops.convolution import ConvolutionBase
from ovir.ops.infrastructure import Const, Parameter
from ovir.ops.interpolate import InterpolateBase
from ovir.ops.matmul import MatMul
from ovir.ops.movement import Concat, Pad1
from ovir.ops.pooling import MaxPoolBase, PoolBase
from ovir.ops.shape import Reshape
from ovir.runtime.planning import known_tensors

MOST_INPUTS = 8
"""The most inputs of a layer that are tried together as data made for the old size."""
MOST_TRIED = 1 << MOST_INPUTS
"""The most choices of such inputs that are tried."""
MOST_RETRIES = 60
"""The most times that another size is tried because a later layer contradicts."""
MOST_KNOWN = 1_000_000
"""Sizes that stay open in the old and in the trial shapes are taken for primes above this."""
LEAST_WINDOW = 4
"""The least window of a pool that may be meant for a part of an image."""
LEAST_ROUND = 8
"""Pads at both ends may fill an axis up to a multiple of a power of two that is at least this."""
MOST_FOLLOWED = 1 << 16
"""Larger data follows only if another input of its layer varies."""
MOST_OFFSET = 8
"""The most by which a size differs from another one that it follows."""

SLICING = ("Slice", "StridedSlice")
REPEATING = (Broadcast3, Tile, InterpolateBase)
"""Operations that repeat or resize a tensor to sizes that they are given."""
Sizes = Mapping[int, Mapping[int, int]]
"""Sizes of axes by the positions of the inputs, -1 for any."""
Repair = Sequence[tuple[int, Layer]]
"""The new sources of some inputs of a layer."""
Pin = int | str
"""Where a layer is pinned to an old size: an axis of its result, or the name of an input that gives a length."""


def set_sizes(model: LayerGraph, sizes: Sizes) -> None:
    """Give axes of inputs other sizes; nothing is inferred."""
    wanted: dict[Layer, Parameter] = {}
    for i, axes in sizes.items():
        port = model.inputs[i]
        shape = port.layer.operator.shape if isinstance(port.layer.operator, Parameter) else port.shape
        for axis, size in axes.items():
            shape = shape.with_dim(axis, UNKNOWN if size < 0 else size)
        wanted[port.layer] = Parameter(element_type=port.element_type, shape=shape)
    set_parameters(wanted)
    model.needs_inference = True


def shapes_text(model: LayerGraph, sizes: Sizes) -> str:
    """Return inputs with their shapes in some sizes."""
    texts = []
    for i, axes in sizes.items():
        shape = model.inputs[i].shape
        for axis, size in axes.items():
            shape = shape.with_dim(axis, size)
        texts.append(f"{model.inputs[i].any_name}={shape}")
    return ", ".join(texts)


class Fitting(ComparingEngine):
    """Infers a model for trial sizes, and repairs each layer that a constant pins to the old ones."""

    mixes = True
    """Whether a Reshape may put axes in another order."""

    def __init__(self, model: LayerGraph, old: Sizes, trial: Sizes, like: LayerGraph | None = None) -> None:
        """Record the present types of a model that has the old sizes.

        ``like``, a model of the trial sizes, tells the shapes and the numbers of its layers.
        """
        super().__init__(Diagnostics(), model.version)
        self._model = model
        self._old, self._trial = old, trial
        self._before = {port: port.shape for layer in model.walk() for port in (*layer.inputs, *layer.outputs)}
        self._factors: dict[tuple[Port, int], Factors] = {}
        self._made: dict[tuple[int, int], Factors] = {}
        """What an axis of this old and this trial size was made of when it was last seen."""
        self._trail: list[tuple[Port, Port, Layer]] = []
        """Each input that has another source now, its old source, and the layer that was repaired."""
        self._refused: Diagnostic | None = None
        self.reached = 0
        """The number of layers up to the first that contradicted."""
        self._layers: list[Layer] = []
        self._done: list[tuple[int, Iterator[bool]]] = []
        """The length of the trail before each layer that was inferred, and the other ways in which it fits."""
        self._open: dict[int, int] = {}
        """A number for each size that is open, by its symbol."""
        self._known: dict[LayerGraph, dict[Port, Array]] = {}
        self._expected = counterparts(model, like) if like is not None else {}
        self.reduced: list[Layer] = []
        """The layers that reduce a whole image in place of pools, which remain if the sizes do not fit."""

    def run(self, require: Callable[[], None] = lambda: None) -> list[Layer]:
        """Infer the model, and return the layers that were repaired; raise ModelError for one that cannot be, or if
        what is required of the model then is not met."""
        self._solve()
        try:
            require()
        except ModelError:
            self._undo(0)
            raise
        for _, source, layer in self._trail:
            remove_unread(owner_of(layer), [source])
        return list(dict.fromkeys(layer for *_, layer in self._trail))

    def _solve(self) -> None:
        set_sizes(self._model, self._trial)
        self.infer(self._model)

    def _reduced(self, layer: Layer) -> Layer:
        """Return what reduces a whole image, in place of a pool with one window of the image's old size."""
        op, like = layer.operator, self._expected.get(layer)
        if not isinstance(op, PoolBase) or not layer.outputs[0].element_type.is_real:
            return layer
        sizes = self._dims(layer.inputs[0])[2:]
        is_kept = like is not None and isinstance(like.operator, PoolBase) and like.operator.kernel == op.kernel
        if is_kept or [old for old, _ in sizes] != list(op.kernel) or all(old == new for old, new in sizes):
            return layer
        is_read = any(port.readers for port in layer.outputs[1:])
        if is_read or max(op.kernel) < LEAST_WINDOW or any((*op.pads_begin, *op.pads_end)):
            return layer
        source, axes = read_by(layer.inputs[0]), np.arange(2, 2 + len(op.kernel))
        with in_place_of(layer.place):
            kind = "ReduceMax" if isinstance(op, MaxPoolBase) else "ReduceMean"
            new = create_layer(kind, [source, axes], {"keep_dims": True}, version="opset1")
        replace(self._model, layer, new)
        self._before[new.inputs[0]] = self._before[layer.inputs[0]]
        self._before[new.outputs[0]] = self._before[layer.outputs[0]]
        self.reduced.append(new)
        return new

    # ----- the search

    def infer(self, model: LayerGraph, given: Sequence[TensorType] | None = None) -> list[TensorType]:
        """Infer the layers in order, with repairs."""
        if model is not self._model:
            return super().infer(model, given)
        self._layers, self._done = list(model.layers), []
        if (refused := self._search(0)) is not None:
            raise ModelError(refused)
        return [port.type for port in model.outputs]

    def _search(self, first: int) -> Diagnostic | None:
        """Infer the layers that are left; where one contradicts, take another way for the nearest one before it that
        has one, but not for the ``first`` ones. If there is no way, return the first contradiction."""
        layers, done, retries = self._layers, self._done, 0
        refused: Diagnostic | None = None
        while len(done) < len(layers):
            layer = layers[len(done)] = self._reduced(layers[len(done)])
            others = self._solutions(layer)
            done.append((len(self._trail), others))
            with in_place_of(layer.place):
                if next(others, False):
                    continue
                if refused is None:
                    refused, self.reached = self._refusal(layer), len(done)
            causes, _ = trace_back([layer], lambda _: True)
            while done.pop() and len(done) > first:
                mark, others = done[-1]
                self._undo(mark)
                cause = layers[len(done) - 1]
                if cause in causes and retries < MOST_RETRIES:
                    with in_place_of(cause.place):
                        if next(others, False):
                            retries += 1
                            break
            else:
                return refused
        return None

    def infer_layer(self, layer: Layer, *, is_body: bool) -> None:
        """Infer a layer of a body in the first way in which it fits."""
        if self._refused is None:
            layer = self._reduced(layer)
            with in_place_of(layer.place):
                if not next(self._solutions(layer), False):
                    self._refused = self._refusal(layer)

    def _attempt(self, layer: Layer, repair: Repair = ()) -> tuple[Types | None, list[Diagnostic]]:
        """Infer a layer, perhaps with new sources of some inputs, in trial sizes."""
        self._refused, new = None, dict(repair)
        types = [
            new[port.index].outputs[0].type if port.index in new else self.input_type(port) for port in layer.inputs
        ]
        outputs, diagnostics = self.attempt(layer, types)
        other = self._expected.get(layer)
        if outputs is not None and other is not None and not is_like(types, outputs, other):
            outputs, diagnostics = None, [diagnose(CHANGED_RESULTS, "the other model has other sizes", layer.place)]
        refused, self._refused = self._refused, None
        return (outputs, diagnostics) if refused is None else (None, [refused])

    def _solutions(self, layer: Layer, settled: frozenset[Pin | None] = frozenset()) -> Iterator[bool]:
        """Infer a layer in each of the ways in which it fits, the likely ones first; each time yield True.

        The pins in ``settled`` may stay; None among them says that constants follow already, so that no others are
        tried.
        """
        mark = len(self._trail)
        if isinstance(layer.operator, Reshape) and self._varying(layer.inputs[0]):
            yield from self._reshaped(layer)
            return
        outputs, _ = self._attempt(layer)
        is_valid = outputs is not None and self._fits(layer, outputs)
        pins = [pin for pin in self._pins(layer, outputs) if pin not in settled] if outputs and is_valid else []
        if outputs is not None and is_valid and not pins:
            set_outputs(layer, outputs)
            self._follow_factors(layer)
            yield True
            for repair in chain(self._followed(layer), self._filled(layer)) if None not in settled else ():
                self._apply(layer, repair)
                yield from self._solutions(layer, frozenset({None}))
                self._undo(mark)
            return
        pin = pins[0] if pins else None
        for repair in self._last_parts(layer, pin) if isinstance(pin, int) else ():
            self._apply(layer, repair)
            yield from self._solutions(layer, settled | {pin})
            self._undo(mark)
        stays = isinstance(pin, int) and not self._is_whole(layer, pin)
        if stays:
            yield from self._solutions(layer, settled | {pin})
        for repair in self._repairs(layer, pin):
            repaired, _ = self._attempt(layer, repair)
            if repaired is None or not self._fits(layer, repaired):
                continue
            if not isinstance(pin, int) or pin not in self._pins(layer, repaired):
                self._apply(layer, repair)
                yield from self._solutions(layer, settled | {pin})
                self._undo(mark)
        if pin is not None and not stays:
            yield from self._solutions(layer, settled | {pin})

    def _apply(self, layer: Layer, repair: Repair) -> None:
        graph = owner_of(layer)
        for index, new in repair:
            port, added = layer.inputs[index], NewLayers(graph, new)
            with editing(self._model, added.layers):
                graph.add_layer(new, added.include(()))
                self._trail.append((port, read_by(port), layer))
                graph.connect(new.outputs[0], port)

    def _undo(self, mark: int) -> None:
        """Take back all repairs after the first ones."""
        while len(self._trail) > mark:
            port, source, _ = self._trail.pop()
            new, graph = read_by(port), owner_of(port.layer)
            graph.connect(source, port)
            remove_unread(graph, [new])

    def _refusal(self, layer: Layer) -> Diagnostic:
        outputs, diagnostics = self._attempt(layer)
        message, trial, what = self._words()
        if outputs is None:
            message += f"this layer cannot take {trial}: {diagnostics[0].message}"
        else:
            shapes = ", ".join(str(tensor.shape) for tensor in outputs)
            message += f"for {trial}, the result of this layer is {shapes}, {what}"
        return diagnose(CHANGED_RESULTS, message, layer.place, hint="; ".join(self._needs(layer)) or None)

    def _words(self) -> tuple[str, str, str]:
        """Return the beginning of a refusal, the trial sizes, and what is wrong with a result."""
        message = f"the sizes cannot change from {shapes_text(self._model, self._old)}: "
        trial = f"{shapes_text(self._model, self._trial)}, trial sizes"
        return message, trial, "which does not follow the sizes of its data"

    def _needs(self, layer: Layer) -> Iterator[str]:
        """Yield what data of a layer would have to be for the trial sizes."""
        if isinstance(layer.operator, Reshape) and (numbers := self._list(layer.inputs[1])):
            data, name = layer.inputs[0], read_by(layer.inputs[1]).layer.name
            sizes = f"sizes of the data, which was {self._before[data]} and would be {data.shape}"
            yield f"constant '{name}' of {numbers} would need numbers that are made of {sizes}"
            return
        for port in self._fixed(layer):
            is_list = self._reads_value(port) and port.shape.rank == 1
            axes = None if is_list else next(self._data_axes(layer, port), None)
            if axes is not None and constant_layers(read_by(port).layer) is not None:
                shape = port.shape
                for axis, (_, made) in axes.items():
                    shape = shape.with_dim(axis, new_size(made))
                source = read_by(port).layer
                parts = [own.outputs[0] for own in constant_layers(source) or () if isinstance(own.operator, Const)]
                most = max(parts, key=lambda own: (own.element_type.is_real, prod(own.shape.to_tuple())))
                of = f", made of '{most.layer.name}' of shape {most.shape}," if most.layer is not source else ""
                text = f"constant '{source.name}' of shape {port.shape}{of} would need the shape {shape}"
                yield f"{text}, for which it has no data"

    # ----- sizes of tensors

    def _dims(self, port: Port) -> list[tuple[int, int]]:
        """Return the old and the trial size of each axis of a tensor; a size that is open in both is a prime."""
        before, now = self._before.get(port, port.shape), port.shape
        if None in (before.rank, now.rank):
            return []
        return [self._pair(m, n) for m, n in zip(before, now, strict=True)]

    def _pair(self, before: Dimension, now: Dimension) -> tuple[int, int]:
        if before.is_static and now.is_static:
            return before.lower, now.lower
        if before.symbol not in self._open:
            self._open[before.symbol] = next_prime(max(self._open.values(), default=MOST_KNOWN))
        return (self._open[before.symbol],) * 2

    def _varying(self, port: Port) -> list[tuple[int, int, int]]:
        """Return the axes of a tensor that vary, each with its sizes."""
        return [(axis, old, new) for axis, (old, new) in enumerate(self._dims(port)) if old != new]

    def _fixed(self, layer: Layer) -> list[Port]:
        """Return the inputs whose sizes do not vary, apart from axes and steps, which follow no size."""
        op, free = layer.operator, [port for port in layer.inputs if port.source is not None]
        names = () if op is None else input_names(type(op))
        rules = {i: op.domains.get(name) for i, name in enumerate(names)} if op is not None else {}
        rules = {i: rule for i, rule in rules.items() if isinstance(rule, Axis) or rule is ONE}
        return [port for port in free if port.index not in rules and not self._varying(port)]

    def _reads_value(self, port: Port) -> bool:
        op = port.layer.operator
        return op is not None and type(op).reads_value(port.index)

    def _candidates(self, layer: Layer, old: int, hint: int, new: int | None = None) -> Iterator[tuple[Size, int]]:
        """Yield sizes that a number of a layer may stand for, with their trial sizes, the likely ones first.

        A size of axis ``hint`` is likelier than others. With ``new``, only sizes of this trial size are yielded.
        """
        seen: set[int] | None = set() if new is None else None
        for size, number in self._all_candidates(layer, old, hint):
            if (seen is None and number == new) or (seen is not None and number not in seen):
                yield size, number
                if seen is None:
                    return
                seen.add(number)

    def _all_candidates(self, layer: Layer, old: int, hint: int) -> Iterator[tuple[Size, int]]:
        own = [(read_by(port), *unlikely) for port in layer.inputs if port.source for unlikely in self._varying(port)]
        unlikely: dict[tuple[int, int, int], tuple[Port, int, int, int]] = {item[1:]: item for item in reversed(own)}
        graph = owner_of(layer)
        for other in reversed(list(takewhile(lambda other: other is not layer, graph.layers))):
            for port in other.outputs:
                for item in self._varying(port) if port in self._before else ():
                    unlikely.setdefault(item, (port, *item))
        likely = next((self._grows_as(one, number) for _, axis, one, number in own if axis == hint), None)

        def unlikeliness(item: tuple[Port, int, int, int]) -> tuple[bool, bool]:
            """Return whether a size follows another size of the inputs than the axis, or is one of another axis."""
            return likely is not None and self._grows_as(*item[2:]) != likely, item[1] != hint

        own.sort(key=unlikeliness)
        every = [item for item in (*own, *sorted(unlikely.values(), key=unlikeliness)) if item[2]]
        for port, axis, one, number in every:
            if one == old:
                yield Size(((port, axis),)), number
        for port, axis, one, number in every:
            common = gcd(one, old)
            factor, divisor = old // common, one // common
            if 1 in (factor, divisor) and (number % divisor == 0 or divisor == 2):  # a half is rounded down
                yield Size(((port, axis),), factor, divisor), number * factor // divisor
        for port, axis, one, number in every:
            if axis == hint and abs(old - one) <= MOST_OFFSET:
                yield Size(((port, axis),), offset=old - one), number + old - one
        for (port, axis, one, number), (port2, axis2, one2, number2) in combinations(every, 2):
            if old % (one * one2) == 0:
                factor = old // (one * one2)
                yield Size(((port, axis), (port2, axis2)), factor), number * number2 * factor

    def _grows_as(self, old: int, new: int) -> tuple[int, int]:
        """Return the old and the trial size of the axis of an input that grows most nearly as a size does."""
        pairs = {(size, self._trial[i][axis]) for i, axes in self._old.items() for axis, size in axes.items()}
        return min(pairs, key=lambda pair: abs(log(max(new, 1) / max(old, 1)) - log(max(pair[1], 1) / max(pair[0], 1))))

    def _fits(self, layer: Layer, outputs: Types) -> bool:
        """Return whether the outputs of a layer have as many axes as before."""
        return all(before.rank == shape.rank for before, shape in self._moves(layer, outputs))

    def _moves(self, layer: Layer, outputs: Types) -> list[tuple[PartialShape, PartialShape]]:
        """Return the old and the trial shape of each output of a layer of the model before."""
        pairs = zip(layer.outputs, outputs, strict=False)
        return [(self._before[port], tensor.shape) for port, tensor in pairs if port in self._before]

    # ----- what is lost

    def _pins(self, layer: Layer, outputs: Sequence[TensorType]) -> list[Pin]:
        """Return inputs that give the old size as a length, and axes of the result that do not vary with the data."""
        op = layer.operator
        if op is None or isinstance(op, Reshape) or not self._fixed(layer):
            return []
        found: list[Pin] = list(self._counts(layer))
        for port, tensor in zip(layer.outputs, outputs, strict=False):
            data = self._data_of(layer, port)
            pairs = [self._pair(*dims) for dims in zip(self._before[port], tensor.shape, strict=True)] if data else []
            for axis, *moved in self._varying(data) if data is not None else ():
                old, new = pairs[axis]
                is_lost = old == new > 1 and tuple(moved) not in pairs
                if is_lost and (port.index == 0 or layer.bodies) and axis not in found:
                    found.append(axis)
            if isinstance(op, REPEATING) and data is not None:  # a row for each element of another axis
                sizes, lengths = self._dims(data), {old for _, old, _ in self._varying(data)}
                found += [a for a, (old, new) in enumerate(pairs) if sizes[a] == (1, 1) and old == new in lengths]
        return found

    def _data_of(self, layer: Layer, output: Port) -> Port | None:
        """Return the first input that varies and has as many axes as an output."""
        rank = self._before[output].rank if output in self._before else None
        return next((port for port in layer.inputs if self._varying(port) and len(self._dims(port)) == rank), None)

    def _counts(self, layer: Layer) -> dict[str, tuple[Port, Port, int, int]]:
        """Return the inputs of a layer that have the old size of an axis as a length, or positions along nearly all of
        it, with the tensor that has the axis, the axis, and by how much the largest number differs from its size."""
        op, found = layer.operator, dict[str, tuple[Port, Port, int, int]]()
        names = () if op is None else input_names(type(op))
        for name, port in zip(names, layer.inputs, strict=False):
            rule = None if op is None else op.domains.get(name)
            of = rule.into if isinstance(rule, Index) else rule.of if isinstance(rule, Length) else None
            if isinstance(op, Loop) and port.index == 0:
                axes = [(other, *sizes) for other in layer.inputs for sizes in self._varying(other)]
            elif op is not None and isinstance(rule, (Index, Length)) and of in names and rule.axis is not None:
                data = layer.inputs[names.index(of)]
                axis = axis_of(op, op.named([own.type for own in layer.inputs]), rule.axis)
                places = () if axis is None else (axis, axis + len(self._dims(data)))
                axes = [(data, *sizes) for sizes in self._varying(data) if sizes[0] in places]
            else:
                continue
            known = self._array(port) if axes and not self._varying(port) else None
            if known is None or not known.size:
                continue
            for data, axis, old, _ in axes:
                most = int(known.max())
                is_most = 4 * most >= 3 * old or most == old - 1 > 0
                if is_most if isinstance(rule, Index) else (known == old).all():
                    found.setdefault(name, (port, data, axis, most - old))
        return found

    def _is_whole(self, layer: Layer, axis: int) -> bool:
        """Return whether the result probably had all of an axis, or nearly all, or what another tensor has there."""
        data, size = self._data_of(layer, layer.outputs[0]), self._before[layer.outputs[0]][axis].lower
        old = self._dims(data)[axis][0] if data is not None else 0
        if layer.type == "Interpolate" or (old - size <= MOST_OFFSET and 4 * size >= 3 * old):
            return True
        equal = (candidate for candidate, _ in self._candidates(layer, size, axis))
        return any(candidate.is_plain and candidate.places[0][1] == axis for candidate in islice(equal, 1))

    # ----- Reshape

    def _made_of(self, port: Port) -> list[Factors]:
        """Return what each axis of an input is made of."""
        source = read_by(port)
        return [
            self._factors.get((source, axis)) or ((Factor(old, new),) if (old, new) != (1, 1) else ())
            for axis, (old, new) in enumerate(self._dims(port))
        ]

    def _follow_factors(self, layer: Layer) -> None:
        """Record what the axes of the outputs are made of: what an equal axis of an input, or of any, is made of."""
        known = self._made | {
            self._dims(port)[axis]: factors
            for port in reversed(layer.inputs)
            if port.source is not None
            for axis, factors in enumerate(self._made_of(port))
            if len(factors) > 1 or any(factor.parts for factor in factors)
        }
        for port in layer.outputs:
            for axis, old, new in self._varying(port) if port in self._before else ():
                factors = known.get((old, new))
                if (
                    factors is None
                    and isinstance(layer.operator, Concat)
                    and axis == layer.operator.axis % len(port.shape)
                ):
                    factors = (Factor(old, new, tuple(self._made_of(own)[axis] for own in layer.inputs)),)
                if factors is not None:
                    self._factors[port, axis] = self._made[old, new] = factors
                else:
                    self._factors.pop((port, axis), None)

    def _reshaped(self, layer: Layer) -> Iterator[bool]:
        """Infer a Reshape in each of the ways to make the axes of its result of those of its data."""
        mark, output = len(self._trail), layer.outputs[0]
        found = self._ways(layer)
        for way in found:
            wanted, repair = [new_size(factors) for factors in way], list[tuple[int, Layer]]()
            outputs, _ = self._attempt(layer)
            if outputs is None or not self._has_sizes(output, outputs[0].shape, wanted):
                target = self._target(layer, way)
                if target is None:
                    continue
                repair = [(1, target)]
                outputs, _ = self._attempt(layer, repair)
            if (
                outputs is None
                or not self._has_sizes(output, outputs[0].shape, wanted)
                or not self._fits(layer, outputs)
            ):
                continue
            self._apply(layer, repair)
            set_outputs(layer, outputs)
            for axis, factors in enumerate(way):
                self._factors[output, axis] = factors
            self._made.update({(prod(own.old for own in made), new_size(made)): made for made in way if len(made) > 1})
            yield True
            self._undo(mark)

    def _has_sizes(self, output: Port, shape: PartialShape, wanted: Sequence[int]) -> bool:
        return shape.rank == len(wanted) and all(
            not dim.is_static or dim.lower == size for dim, size in zip(shape, wanted, strict=True)
        )

    def _ways(self, layer: Layer) -> list[list[Factors]]:
        """Return what the axes of the result of a Reshape may be made of, the likely ways first."""
        data, (factors, sizes) = self._made_of(layer.inputs[0]), self._factors_and_sizes(layer)
        found = ways(factors, sizes)
        if self.mixes and not any(are_whole(way, factors) for way in found):
            found = [*mixed_ways(factors, sizes), *found]
        ones = [(axis, factor) for axis, own in enumerate(data) for factor in own if factor.old == 1]
        for axis, one in ones:
            likely = self._likely_axes(layer, axis, one, found)
            found.sort(key=lambda way: min(likely.index(a) for a, made in enumerate(way) if one in made))
        if len(ones) > 1:  # several sizes of 1 rather stay apart
            found.sort(key=lambda way: not all((one,) in map(tuple, way) for _, one in ones))
        return found

    def _factors_and_sizes(self, layer: Layer) -> tuple[Factors, list[int]]:
        """Return what the data of a Reshape is made of, and the old sizes of the axes of its result."""
        factors = tuple(chain.from_iterable(self._made_of(layer.inputs[0])))
        before = self._before[layer.outputs[0]]
        sizes = [self._pair(dim, dim)[0] for dim in before]
        total, known = prod(factor.old for factor in factors), {factor.old for factor in factors}
        unknown = [a for a, dim in enumerate(before) if not dim.is_static and sizes[a] not in known]
        if len(unknown) == 1:
            others = prod(size for a, size in enumerate(sizes) if a != unknown[0])
            sizes[unknown[0]] = total // max(others, 1)
        return factors, sizes

    def _likely_axes(self, layer: Layer, axis: int, one: Factor, found: list[list[Factors]]) -> list[int]:
        """Return the axes that may hold what was an axis of size 1, the likely ones first.

        It does not go to the last axes if these keep their sizes, and rather to an axis of its own, or to one whose
        size the target leaves open, than to others.
        """
        before, after = self._before[layer.inputs[0]].dims, self._before[layer.outputs[0]].dims
        places = {(a, made.index(one)) for way in found for a, made in enumerate(way) if one in made}
        first = sorted({a for a, index in places if index == 0})
        inside = sorted({a for a, index in places if index > 0} - set(first))
        every = [*first, *reversed(inside)]
        kept = before[axis + 1 :]
        if kept and after[-len(kept) :] == kept and any(a < len(after) - len(kept) for a in every):
            every.sort(key=lambda a: a >= len(after) - len(kept))
            first = [a for a in first if a < len(after) - len(kept)]
        target = layer.inputs[1].type.constant
        opened = [] if target is None else [a for a in np.flatnonzero(target == -1).tolist() if a in every]
        own = [a for a in first if after[a].is_static and after[a].lower == 1]
        if axis not in first:
            likely = [*own, *opened]
        elif axis in own or after[axis] == before[axis]:
            likely = [axis]
        else:
            likely = [*opened, axis]
        return [*likely, *every]

    def _target(self, layer: Layer, way: Sequence[Factors]) -> Layer | None:
        """Return the layer that gives a Reshape the sizes of the axes that vary: 0, -1, or a size that is computed."""
        op, port = layer.operator, layer.inputs[1]
        assert isinstance(op, Reshape)
        known, data = port.type.constant, self._dims(layer.inputs[0])
        after = self._before[layer.outputs[0]]
        pairs = [(prod(factor.old for factor in made), new_size(made)) for made in way]
        varying = [a for a, (old, new) in enumerate(pairs) if old != new]
        is_fixed = known is not None and constant_layers(read_by(port).layer) is not None
        target = known.copy() if known is not None and is_fixed else None
        if target is not None:
            copied = [a for a in varying if op.special_zero and a < len(data) and data[a] == pairs[a]]
            target[copied] = 0
            rest = [a for a in varying if a not in copied]
            opened = np.flatnonzero(target == -1).tolist()
            kept = [a for a in opened if a not in varying and not after[a].is_static]
            inferred = next(iter((*kept, *(a for a in (*opened, *rest) if a in rest))), None)
            for a in opened:
                if a != inferred and a not in varying and inferred is not None:
                    target[a] = after[a].lower
            if inferred is not None:
                target[inferred] = -1
            varying = [a for a in rest if a != inferred]
            base: Any = _target_constant(Const.of(target, port.element_type), layer)
        else:
            base = read_by(port)
            varying = [a for a in varying if known is None or known[a] != pairs[a][1]]
        sizes: dict[int, Size] = {}
        for a in varying:
            size_of_axis = next((size for size, _ in self._candidates(layer, pairs[a][0], a, pairs[a][1])), None)
            if size_of_axis is None:
                return None
            sizes[a] = size_of_axis
        return with_sizes(base, port, sizes) if sizes else base if isinstance(base, Layer) else None

    # ----- other repairs

    def _last_parts(self, layer: Layer, axis: int) -> Iterator[Repair]:
        """Yield repairs with which a slice up to the end of an axis stays one; a last half or third begins later."""
        data = layer.inputs[0]
        if layer.type not in SLICING or self._data_of(layer, layer.outputs[0]) is not data:
            return
        begin, end, *along = (port.type.constant for port in (*layer.inputs[1:3], *layer.inputs[4:]))
        axes = range(len(self._dims(data))) if not along or along[0] is None else along[0] % len(self._dims(data))
        size, whole = self._dims(data)[axis][0], ((read_by(data), axis),)
        place = next((place for place, own in enumerate(axes) if own == axis), size)
        if begin is None or end is None or place >= end.size or end[place] != size:
            return
        number, begins = int(begin[place]), list[Size | None]([None])
        if 2 * number == size:
            begins = [Size(whole, divisor=2), Size(whole, -1, 2)]
        elif 3 * number >= 2 * size:
            begins = [Size(whole, offset=number - size)]
        for start in begins:
            sizes = ((layer.inputs[1], start), (layer.inputs[2], Size(whole)))
            yield [(port.index, with_sizes(read_by(port), port, {place: new})) for port, new in sizes if new]

    def _equal_parts(self, layer: Layer) -> Repair | None:
        """Return the repair with which a division into parts of equal lengths stays one."""
        if layer.type != "VariadicSplit":
            return None
        data, axis, lengths = layer.inputs[0], *(port.type.constant for port in layer.inputs[1:])
        if axis is None or lengths is None or len(set(lengths.tolist())) > 1 or len(lengths) < 2:
            return None
        part = Size(((read_by(data), int(axis.item()) % len(self._dims(data))),), divisor=len(lengths))
        sizes = dict.fromkeys(range(len(lengths) - 1), part)
        return [(2, with_sizes(np.full_like(lengths, -1), layer.inputs[2], sizes))]

    def _repairs(self, layer: Layer, pin: Pin | None) -> Iterator[Repair]:
        """Yield new sources for inputs of a layer that may be pinned to an old size."""
        if isinstance(pin, str):
            given, counted, axis, offset = self._counts(layer)[pin]
            is_index = layer.operator is not None and isinstance(layer.operator.domains.get(pin), Index)
            count = prod(given.shape.to_tuple())
            if is_index and count > 1:
                yield from ([(given.index, make())] for make in self._data(layer, given))
                return
            size = Size(((read_by(counted), axis),), offset=offset)
            yield [(given.index, with_sizes(read_by(given), given, dict.fromkeys(range(count), size)))]
            return
        free = self._fixed(layer)
        if not any(self._varying(port) for port in layer.inputs):
            return
        yield from self._filled(layer)
        if (parts := self._equal_parts(layer)) is not None:
            yield parts
        numbers: list[tuple[Port, int, int]] = []
        begin = layer.inputs[1] if layer.type in SLICING and isinstance(pin, int) else None
        for port in free:
            if port is begin:
                continue
            numbers += [(port, place, entry) for place, entry in enumerate(self._list(port)) if entry > 0]
            if len(exact := self._exact(layer, port)) > 1:
                yield [(port.index, with_sizes(read_by(port), port, exact))]
        if isinstance(pin, int):  # what is nearest to the sizes of the axis is likely
            output = layer.outputs[0]
            data = self._data_of(layer, output)
            sizes = self._before[output][pin].lower, 0 if data is None else self._dims(data)[pin][0]
            numbers.sort(key=lambda item: min(abs(item[2] - size) for size in sizes))
        for port, place, entry in numbers:
            hint = self._axis_for(layer, place, prod(port.shape.to_tuple()))
            for size, _ in self._candidates(layer, entry, pin if isinstance(pin, int) else hint):
                yield [(port.index, with_sizes(read_by(port), port, {place: size}))]
        made = [(port, new) for port in free[:MOST_INPUTS] for new in self._data(layer, port)]
        yield from _together(made, range(1, len(made) + 1))

    def _list(self, port: Port) -> list[int]:
        """Return the integers of an input that is a list of them, or one; none for others."""
        known = port.type.constant
        is_list = known is not None and known.ndim <= 1 and known.dtype.kind in "iu" and self._reads_value(port)
        return known.reshape(-1).tolist() if known is not None and is_list else []

    def _axis_for(self, layer: Layer, place: int, count: int) -> int:
        """Return the axis for which one of some numbers is likely to be: one that is named, or one of the last ones."""
        names = () if layer.operator is None else input_names(type(layer.operator))
        axes = next((port for name, port in zip(names, layer.inputs, strict=False) if name == "axes"), None)
        rank = len(self._dims(layer.outputs[0]))
        known = None if axes is None else axes.type.constant
        if known is not None and known.size == count:
            return int(known.reshape(-1)[place]) % rank
        return place if layer.type in SLICING else place + rank - count

    def _exact(self, layer: Layer, port: Port) -> dict[int, Size]:
        """Return the sizes that numbers of a list are, by their places; where data is repeated, of the same axis."""
        entries, found = self._list(port), dict[int, Size]()
        for place, entry in enumerate(entries):
            hint = self._axis_for(layer, place, len(entries))
            sizes = (size for size, _ in self._candidates(layer, entry, hint) if size.is_plain and entry > 1)
            if isinstance(layer.operator, REPEATING):
                sizes = (size for size in sizes if size.places[0][1] == hint)
            if (size := next(sizes, None)) is not None:
                found[place] = size
        return found

    def _followed(self, layer: Layer) -> Iterator[Repair]:
        """Yield repairs that let the result of a layer vary where no input does, those of the most inputs first."""
        if any(self._varying(port) for port in layer.inputs):
            return
        made: list[tuple[Port, Callable[[], Layer]]] = []
        for port in layer.inputs[:MOST_INPUTS]:
            if exact := self._exact(layer, port):
                made.append((port, partial(with_sizes, read_by(port), port, exact)))
            made += [(port, new) for new in self._data(layer, port)]
        yield from _together(made, range(len(made), 0, -1))

    def _fills(self, layer: Layer) -> dict[int, list[int]]:
        """Return the numbers, likely ones first, of which the pads of a layer may fill up axes to a multiple, each with
        these axes."""
        if not isinstance(layer.operator, Pad1):
            return {}
        pads = list(zip(*map(self._list, layer.inputs[1:3]), strict=False))
        sizes = [dim.lower for dim in self._before[layer.outputs[0]]]
        fixed, axes_of_number, filled = any(map(any, pads)), dict[int, list[int]](), set[tuple[int, ...]]()
        for axis, old, _ in self._varying(layer.inputs[0]) if pads else ():
            begin, end = pads[axis]
            size, is_likely = old + begin + end, begin * end == 0 or end - begin in (0, 1)
            for n in range(max(begin + end, 1) + 1, size + 1) if min(begin, end) >= 0 and is_likely else ():
                is_round = n >= LEAST_ROUND and n.bit_count() == 1  # windows have pads at the beginning, too
                if size % n == 0 and (begin == 0 or is_round):
                    axes_of_number.setdefault(n, []).append(axis)
                    filled |= {(prod(sizes[:axis]), size // n, n)} if begin or end or not fixed else set()
        reshapes = (other for other in self._layers if isinstance(other.operator, Reshape))
        targets = [[dim.lower for dim in self._before[other.outputs[0]]] for other in reshapes]
        divided = {(prod(own[:i]), *own[i : i + 2]) for own in targets for i in range(len(own))} & filled
        numbers = {n: (all(n != own[-1] for own in divided), -len(axes_of_number[n]), n) for *_, n in filled}
        return {n: axes_of_number[n] for n in sorted(numbers, key=numbers.__getitem__)}

    def _filled(self, layer: Layer) -> Iterator[Repair]:
        """Yield repairs with which pads fill up axes to a multiple of a number."""
        for n, axes in self._fills(layer).items():
            data, begin, end = layer.inputs[0], *map(self._list, layer.inputs[1:3])
            sizes: dict[int, dict[int, Size]] = {1: {}, 2: {}}
            for axis in axes:
                whole = ((read_by(data), axis),)
                if begin[axis] and end[axis]:
                    sizes[1][axis], sizes[2][axis] = (Size(whole, divisor=2, offset=more, modulus=n) for more in (0, 1))
                else:
                    sizes[1 if begin[axis] else 2][axis] = Size(whole, modulus=n)
            ports = [(layer.inputs[i], own) for i, own in sizes.items() if own]
            yield [(port.index, with_sizes(read_by(port), port, own)) for port, own in ports]

    def _data(self, layer: Layer, port: Port) -> Iterator[Callable[[], Layer]]:
        """Yield functions that make the data of a constant for other sizes."""
        array = self._array(port)
        if (
            array is None
            or self._list(port)
            or (array.size > MOST_FOLLOWED and not any(map(self._varying, layer.inputs)))
        ):
            return
        for axes in self._data_axes(layer, port):
            if isinstance(layer.operator, (ConvolutionBase, MatMul)) and any(array.shape[a] == 1 for a in axes):
                continue  # weights of one channel are learned
            if all(np.array_equal(array, array.take([0] * array.shape[a], a)) for a in axes):
                yield partial(self._repeated, port, {a: size for a, (size, _) in axes.items()})
                continue
            sizes = {(made[0].old, made[0].new): size for size, made in axes.values() if len(made) == 1}

            def find(factor: Factor, sizes: Mapping[tuple[int, int], Size] = sizes) -> Size | None:
                candidates = self._candidates(layer, factor.old, 0, factor.new)
                return sizes.get((factor.old, factor.new)) or next((size for size, _ in candidates), None)

            made = positional(array, port.element_type, {a: made for a, (_, made) in axes.items()}, find)
            if made is not None:
                yield partial(_given, made)

    def _data_axes(self, layer: Layer, port: Port) -> Iterator[dict[int, tuple[Size, Factors]]]:
        """Yield axes of a constant that may vary, with their sizes and what they are made of: those that axes of other
        inputs are laid on, and each one alone."""
        rank, aligned = len(self._dims(port)), dict[int, tuple[Size, Factors]]()
        for other in layer.inputs:
            for axis, old, _ in self._varying(other):
                place = axis - len(self._dims(other)) + rank
                if 0 <= place < rank and self._dims(port)[place][0] == old:
                    aligned.setdefault(place, (Size(((read_by(other), axis),)), self._made_of(other)[axis]))
        if aligned:
            yield aligned
        for place, (own, _) in sorted(enumerate(self._dims(port)), key=lambda item: -item[1][0]):
            for size, new in self._candidates(layer, own, place) if own > 1 else ():
                if aligned.keys() != {place} and (size.is_plain or any(map(self._varying, layer.inputs))):
                    yield {place: (size, (Factor(own, new),))}

    def _array(self, port: Port) -> Array | None:
        """Return the data of a constant, or of what is computed from constants alone."""
        source, graph = read_by(port), owner_of(port.layer)
        if port.type.constant is not None:
            return port.type.constant
        if constant_layers(source.layer) is None:
            return None
        if graph not in self._known:
            self._known[graph] = known_tensors(graph)
        return self._known[graph].get(source)

    def _repeated(self, port: Port, axes: Mapping[int, Size]) -> Layer:
        """Return the layer that repeats the first rows of some axes."""
        data: Any = read_by(port)
        shape = self._before.get(port, port.shape)
        for axis in axes:
            rows = self._rows_of(shape[axis].lower)
            if rows != shape[axis].lower:
                data = create_layer("Slice", [data, *(np.array([n]) for n in (0, rows, 1, axis))], version="opset8")
        return create_layer(
            "Tile", [data, with_sizes(np.ones(shape.rank or 0, np.int64), None, axes)], version="opset1"
        )

    def _rows_of(self, size: int) -> int:
        """Return how many rows are repeated to make an axis of this size."""
        return 1


def are_whole(way: Sequence[Factors], factors: Factors) -> bool:
    """Return whether axes are made of factors of which none was divided."""
    return set(factors) <= set(chain.from_iterable(way))


def _together(made: Sequence[tuple[Port, Callable[[], Layer]]], numbers: Iterable[int]) -> Iterator[Repair]:
    """Yield choices of so many new sources, one for each input."""
    for chosen in islice(chain.from_iterable(combinations(made, number) for number in numbers), MOST_TRIED):
        if len({port for port, _ in chosen}) == len(chosen):
            yield [(port.index, make()) for port, make in chosen]


def _given(layer: Layer) -> Layer:
    return layer


def _target_constant(operator: Const, reader: Layer) -> Layer:
    """Return the Const for the target of a Reshape."""
    graph = owner_of(reader)
    name = free_name(f"{reader.name}/target", {other.name for other in graph.layers})
    new = new_constant(graph.next_id, name, operator)
    set_outputs(new, (operator.infer(),))
    return new


def next_prime(number: int) -> int:
    """Return the least prime above a number."""
    return next(n for n in count(number + 1) if all(n % k for k in range(2, isqrt(n) + 1)))
