"""Other sizes of the inputs: constants that hold an old size follow the inputs, and the verdict says what was shown."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ovir.core.shapes import ShapeLike
from ovir.diagnostics.codes import CHANGED_RESULTS
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import ModelError, OvirError
from ovir.diagnostics.wording import plural
from ovir.editing.effect import measured
from ovir.editing.guesses import Guessing
from ovir.editing.keys import refuse
from ovir.editing.other_exports import counterparts, is_like
from ovir.editing.proof import ProvenEdit
from ovir.editing.size_fitting import Fitting, Sizes, next_prime, set_sizes, shapes_text
from ovir.editing.transaction import editing, with_types
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer
from ovir.inference.models import infer_model, reshape, reshaped_parameters
from ovir.inference.pinned_sizes import pinned_layers
from ovir.ops.base.domains import Index
from ovir.ops.base.traits import input_names
from ovir.ops.control_flow import IterationBase, Loop
from ovir.ops.infrastructure import Const

LEAST_TRIAL = 12
"""Trial sizes are primes above this and above the old sizes, so that no other size is likely to be a multiple."""
ARITHMETIC = {"Add", "Subtract", "Multiply", "Divide", "Mod", "FloorMod"}
"""Operations in which a constant beside the data may be a size."""
MOST_SMALL = 4
"""An old size up to this one may be equal by chance to a number that means something else."""
MOST_RUN = 4
"""The adapted model is run for the wanted sizes only if none is more than this many times the old one."""


class Axis(NamedTuple):
    """An axis that varies; axes of several inputs in which all three numbers are equal vary together."""

    position: int
    old: int
    """The old size."""
    wanted: int
    """The wanted size, -1 for any."""


Numbers = Mapping[Axis, int]
"""A size for each axis that varies."""


def adapt(
    model: LayerGraph, shapes: Mapping[Any, ShapeLike] | ShapeLike, verify: bool, like: LayerGraph | None
) -> ProvenEdit:
    """Give inputs other shapes, and let constants follow; see ``Model.reshape``."""
    if model.holder is not None:
        refuse("the inputs of a body cannot be reshaped: they come from the model around it")
    with_types(model)
    parameters = reshaped_parameters(model, shapes)
    axes: dict[int, list[Axis]] = {}
    for i, port in enumerate(model.inputs):
        if port.layer not in parameters:
            continue
        old, new = port.shape, parameters[port.layer].shape
        if new.rank is None or old.rank != new.rank:
            refuse(f"input '{port.any_name}' of shape {old} cannot be adapted to {new}: the rank differs", port.layer)
        for axis, (size, wanted) in enumerate(zip(old, new, strict=True)):
            if size.is_static and size != wanted:
                axes.setdefault(i, []).append(Axis(axis, size.lower, wanted.lower if wanted.is_static else -1))
    if not axes and (found := next(pinned_layers(model), None)) is not None:
        message = f"nothing says for which size this constant is made: input '{found[2].any_name}' has {found[2].shape}"
        refuse(message, found[0], "give the shape of the export first, and adapt the model from that")
    edit, sizes = ProvenEdit(), _Adapted(model, axes)
    if not axes:
        edit.verdict = "nothing to prove: no size changes that the inputs had"
    with measured(model) as edit.effect:
        before = model.clone()
        if axes:
            edit.layers = sizes.fit(like)
        if axes and verify:
            edit.verdict = sizes.shown(before, like)
            if sizes.doubts:
                edit.verdict += f"; notes tell {plural(len(sizes.doubts), 'constant')} with another meaning that fits"
        reshape(model, shapes)
        try:
            with_types(model)
        except ModelError as error:
            hint = sizes.fitting_text() or error.diagnostic.hint
            raise ModelError(replace(error.diagnostic, hint=hint)) from None
        if axes:
            sizes.require_fit()
    if kept := [key for key in sizes.kept if key not in sizes.doubts]:
        edit.notes.append(f"a constant or a window decides on sizes that do not follow in {', '.join(kept)}")
    if sizes.reduced:
        names = ", ".join(layer.key for layer in sizes.reduced)
        edit.notes.append(f"a window that was as large as the image is now the whole image in {names}")
    if sizes.numbers:
        edit.notes.append(f"sizes, or numbers that follow from one, may be what stays in {', '.join(sizes.numbers)}")
    if sizes.small:
        edit.notes.append(f"other numbers may be equal by chance to the old size of {' and '.join(sizes.small)}")
    if sizes.too_large:
        numbers = " and ".join(f"{size} in axis {axis.position}" for axis, size in sizes.too_large.items())
        edit.notes.append(f"larger sizes do not fit, such as {numbers}")
    if sizes.rows:
        names = ", ".join(sizes.rows)
        edit.notes.append(f"one row for an axis of size 1, which may be meant for this size, is repeated in {names}")
    edit.notes += [note for note in (*sizes.doubts.values(), sizes.fitting_text(), *sizes.shared()) if note]
    return edit


class _Adapted:
    """A model whose constants follow the sizes of some axes of its inputs."""

    def __init__(self, model: LayerGraph, axes: Mapping[int, Sequence[Axis]]) -> None:
        self._model = model
        self._of_inputs = axes
        self._axes = list(dict.fromkeys(axis for found in axes.values() for axis in found))
        self._old = self._sizes({axis: axis.old for axis in self._axes})
        self._constants = [layer for layer in model.walk() if isinstance(layer.operator, Const)]
        self._groups = [[key] for key in self._axes]
        """Groups of axes, each of which has one size in common."""
        self._multiples = dict.fromkeys(self._axes, 1)
        """The number of which each size must be a multiple."""
        self.too_large: dict[Axis, int] = {}
        """Multiples of the old sizes that do not fit; empty if some do."""
        self.kept: list[str] = []
        """The keys of the layers that keep a size."""
        self.reduced: list[Layer] = []
        """The layers that reduce a whole image in place of pools."""
        self.rows: list[str] = []
        """The names of constants with one row where the old size is 1."""
        self.small: list[str] = []
        """The axes that have so few elements that other numbers may be equal by chance."""
        self.numbers: list[str] = []
        """The names of constants that hold an old size for arithmetic, and stay."""
        self.doubts: dict[str, str] = {}
        """Which numbers may be meant otherwise, by the keys of the layers."""

    def fit(self, like: LayerGraph | None) -> list[Layer]:
        """Let constants follow; return the layers that were changed. The model has the old sizes then.

        The trial sizes are primes; if these do not fit, primes just above the old sizes, for which a table may have
        enough rows; then multiples of the old sizes, which all windows divide; then the same again with one size for
        all axes of equal sizes. At last come the sizes and the shapes of ``like``; before them, trial sizes that lead
        to other shapes than it has are left out. If no sizes fit, the error is that of the ones that came farthest.
        """
        first, reached, original = None, -1, self._model.clone()
        for numbers, other in self._trials(like):
            fitting = Guessing(self._model, self._old, self._sizes(numbers), other)
            try:
                if like is not None and other is None and not self._agrees(numbers, like):
                    continue
                layers = fitting.run(self._require_more_or_less)
                like_sizes = {} if like is None else self._numbers_of(like)
                decided = like is not None and all(axis.old != size for axis, size in like_sizes.items())
                every = fitting.sizes()
                self._reset(self._model)
                self.rows = [] if decided else fitting.rows
                small = [axis for axis in self._axes if 1 < axis.old <= MOST_SMALL and not decided]
                self.small = [f"{axis.old} in axis {axis.position}" for axis in small]
                kept = (layer for layer in self._constants if layer.owner is not None and not decided)
                self.numbers = [layer.name for layer in kept if self._is_size(layer, every)]
                if fitting.suspects and not decided:
                    self.kept = [layer.key for layer in fitting.kept]
                    with editing(original):
                        self.doubts = dict(Guessing(original, self._old, self._sizes(numbers)).doubts())
                        self._reset(original)
            except ModelError as error:
                if fitting.reached > reached:
                    first, reached = error, fitting.reached
                self._reset(self._model)
                continue
            finally:
                self.reduced += fitting.reduced
            self._trial = self._model.clone()
            if not self._infers(self._primes()) and not self._infers(self._primes(1)):
                self._multiples = self._found_multiples()
            return [*layers, *self.reduced]
        assert first is not None
        raise first

    def _require_more_or_less(self) -> None:
        """Raise ModelError if the model takes neither larger nor smaller sizes, so that it only seemed to follow the
        trial sizes: a tensor may have kept its old size because it was rounded."""
        trial, first = self._model.clone(), None
        for eighths in (24, 7, 4):
            set_sizes(trial, self._sizes({axis: max(axis.old * eighths // 8, 1) for axis in self._axes}))
            try:
                infer_model(trial)
            except ModelError as error:
                first = first or error
            else:
                return
        assert first is not None
        raise first

    def _reset(self, model: LayerGraph) -> None:
        set_sizes(model, self._old)
        with_types(model)

    def _agrees(self, numbers: Numbers, like: LayerGraph) -> bool:
        """Return whether layers have the shapes and integers of another model, if constants follow in these sizes."""
        self._trial = self._model.clone()
        pairs = counterparts(self._trial, like)
        with editing(self._trial):
            Fitting(self._trial, self._old, self._sizes(numbers)).run()
            self._reset(self._trial)
        return self._infers(self._numbers_of(like)) and all(
            is_like([port.type for port in own.inputs], [port.type for port in own.outputs], other)
            for own, other in pairs.items()
            if own.owner is not None
        )

    def _trials(self, like: LayerGraph | None) -> Iterator[tuple[Numbers, LayerGraph | None]]:
        """Yield trial sizes, with the model whose shapes they must give."""
        kinds = dict.fromkeys(axis[1:] for axis in self._axes)
        equal = [[axis for axis in self._axes if axis[1:] == kind] for kind in kinds]
        for groups in [self._groups] if len(equal) == len(self._groups) else [self._groups, equal]:
            self._groups = groups
            yield self._primes(), None
            yield self._primes(1), None
            multiples, n = dict[Axis, int](), 3
            for group in groups:
                multiples |= {axis: axis.old * n for axis in group}
                n = next_prime(3 * n)
            yield multiples, None
        if like is not None:
            yield self._numbers_of(like), like

    def _primes(self, times: float = 5 / 3) -> dict[Axis, int]:
        """Return a prime for each axis, so far above its old size and the other primes that parts of them differ."""
        found: dict[Axis, int] = {}
        for group in self._groups:
            least = max(LEAST_TRIAL, int(group[0].old * times), 3 * max(found.values(), default=0))
            found |= dict.fromkeys(group, next_prime(least))
        return found

    def _numbers_of(self, like: LayerGraph) -> dict[Axis, int]:
        """Return the sizes of another model."""
        found = {}
        for i, axes in self._of_inputs.items():
            shape = like.inputs[like.input_index(self._model.inputs[i].any_name)].shape
            for axis in axes:
                place = axis.position
                if shape.rank is None or shape.rank <= place or not shape[place].is_static:
                    refuse(f"the other model must have a size in axis {place} of its input of shape {shape}")
                found[axis] = shape[place].lower
        if all(axis.old == size for axis, size in found.items()):
            refuse("the other model has the sizes of this one: an export for other sizes is needed")
        return found

    def _is_size(self, layer: Layer, every: set[int]) -> bool:
        """Return whether all numbers of a small constant for arithmetic may be sizes, or 1 divided by sizes.

        The sizes are the old ones of the axes, one less than these, products of sizes of an input, and for integers,
        such as positions, ``every`` old size of a tensor.
        """
        readers = {port.layer.type for own in layer.outputs for port in own.readers}
        if not isinstance(layer.operator, Const) or not readers & ARITHMETIC or not 1 <= layer.operator.data.size <= 4:
            return False
        sizes = {axis.old - less for axis in self._axes for less in (0, 1)}
        is_whole = layer.operator.data.dtype.kind in "iu"
        sizes |= every if is_whole else set()
        for i, axes in self._of_inputs.items():
            dims = self._model.inputs[i].shape
            sizes |= {prod(axis.old for axis in axes), prod(dim.lower for dim in dims if dim.is_static)}
        values = np.abs(layer.operator.data.astype(np.float64)).reshape(-1, 1)
        likely = np.array([size for size in sizes if size > 2 - is_whole])
        return bool((np.isclose(values, likely, 1e-5) | np.isclose(values * likely, 1, 1e-5)).any(1).all())

    def _sizes(self, numbers: Numbers) -> Sizes:
        """Return sizes of the inputs."""
        return {i: {axis.position: numbers[axis] for axis in axes} for i, axes in self._of_inputs.items()}

    def _infers(self, numbers: Numbers) -> bool:
        set_sizes(self._trial, self._sizes(numbers))
        try:
            infer_model(self._trial)
        except ModelError:
            return False
        return all(map(_suffices, self._trial.walk()))

    def require_fit(self) -> None:
        """Raise ModelError if a loop reads parts that do not divide a wanted size, or if a table has too few rows."""
        set_sizes(self._trial, self._sizes({axis: axis.old if axis.wanted < 0 else axis.wanted for axis in self._axes}))
        infer_model(self._trial)
        layer = next((layer for layer in self._trial.walk() if not _suffices(layer)), None)
        if layer is not None:
            message = "the size is no multiple of the parts that the loop reads"
            if not isinstance(layer.operator, IterationBase):
                message = f"the data of shape {layer.inputs[0].shape} has fewer rows than the size needs"
            raise ModelError(diagnose(CHANGED_RESULTS, message, layer.place, hint=self.fitting_text() or None))

    def _ends(self, numbers: Numbers) -> bool:
        """Return whether the model can be inferred for these sizes, and no loop would run for ever."""
        if not self._infers(numbers):
            return False
        counts = [layer.inputs[0].type.constant for layer in self._trial.walk() if isinstance(layer.operator, Loop)]
        return all(count is None or (count >= 0).all() for count in counts)

    def _found_multiples(self) -> dict[Axis, int]:
        """Return the least divisors of the old sizes of which other sizes must be multiples; 1 if these do not fit
        either."""
        found = {axis: axis.old for axis in self._axes}
        larger = [{axis: n * p for axis, n in found.items()} for p in (3, 5)]
        if not any(map(self._infers, larger)):
            self.too_large = larger[0]
            return dict.fromkeys(found, 1)
        for group in self._groups:
            for prime in _prime_factors(group[0].old):
                less = {**found, **{key: found[key] // prime for key in group}}
                if all(self._infers({key: n * p for key, n in less.items()}) for p in (3, 5)):
                    found = less
        return found

    def fitting_text(self) -> str:
        """Return which sizes fit; an empty text if all may."""
        listed = [f"multiples of {n} in axis {axis.position}" for axis, n in self._multiples.items() if n > 1]
        return f"the sizes that fit are {' and '.join(listed)}" if listed else ""

    def shared(self) -> Iterator[str]:
        """Yield which axes of several inputs may have any size, but one together."""
        for axis in self._axes:
            names = [self._model.inputs[i].any_name for i, axes in self._of_inputs.items() if axis in axes]
            if axis.wanted < 0 and len(names) > 1:
                yield f"axis {axis.position} of {', '.join(names)} is taken for the same size"

    def shown(self, before: LayerGraph, like: LayerGraph | None) -> str:
        """Return what runs show: in the old sizes, in the least ones, in primes, in large or the wanted ones."""
        ovir = sys.modules["ovir"]
        model = self._model
        is_equal = self._is_equal(before)
        if not is_equal and not (proof := ovir.prove_edit(before, model.clone(), samples=1)):
            return str(proof)
        ran = []
        for numbers in self._shown_sizes():
            text = shapes_text(self._trial, self._sizes(numbers))
            try:
                ovir.compile_model(self._trial)(list(ovir.random_inputs(self._trial, 1).values()))
            except OvirError as error:
                message = f"the adapted model does not run for {text}: {error.diagnostic.message}"
                raise ModelError(replace(error.diagnostic, code=CHANGED_RESULTS.id, message=message)) from None
            ran.append(text)
        text = "to the last bit" if is_equal else "within the tolerance"
        verdict = f"proven for {shapes_text(before, self._old)}: the results are equal {text}"
        verdict += f"; the model also runs, with the inferred sizes, for {', '.join(ran)}" if ran else ""
        asked = self._sizes({axis: axis.old if axis.wanted < 0 else axis.wanted for axis in self._axes})
        if (text := shapes_text(before, asked)) not in (*ran, shapes_text(before, self._old)):
            verdict += f"; {text} was not run"
        if like is not None:
            sizes = self._numbers_of(like)
            self._infers(sizes)
            try:
                ovir.prove_edit(like, self._trial.clone())
            except ModelError as error:
                raise ModelError(replace(error.diagnostic, hint=self._differing(like))) from None
            text = shapes_text(self._trial, self._sizes(sizes))
            verdict += f"; for {text}, the results are those of the other model"
        elif self._are_items(before):
            verdict += "; one call equals calls with fewer items"
        return verdict

    def _is_equal(self, before: LayerGraph) -> bool:
        """Return whether the results in the old sizes are the same to the last bit; False if the model does not run."""
        ovir = sys.modules["ovir"]
        try:
            inputs = list(ovir.random_inputs(before, 1).values())
            results = [ovir.compile_model(part)(inputs).values() for part in (before, self._model.clone())]
        except OvirError:
            return False
        return all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in zip(*results, strict=True))

    def _differing(self, like: LayerGraph) -> str | None:
        """Return a hint that names the constants that differ from those of another model; None if all are equal."""
        data = {layer.key: layer.operator.data for layer in like.walk() if isinstance(layer.operator, Const)}
        names = [
            f"'{layer.name}'"
            for layer in self._trial.walk()
            if isinstance(layer.operator, Const)
            and not np.array_equal(data.get(layer.key, layer.operator.data), layer.operator.data)
        ]
        return f"these constants differ in the other model: {', '.join(names)}" if names else None

    def _shown_sizes(self) -> Iterator[dict[Axis, int]]:
        """Yield the sizes for which the model is run; it is inferred for each of them."""
        multiples = self._multiples
        small = ({axis: min(n << k, axis.old) for axis, n in multiples.items()} for k in range(0, 7, 2))
        yield from islice(filter(self._ends, small), 1)
        others = [{axis: n * next_prime(max(axis.old // n - 1, 2)) for axis, n in multiples.items()}]
        if all(axis.wanted <= MOST_RUN * axis.old for axis in multiples):
            large = {axis: n * (2 * axis.old // n + 1) for axis, n in multiples.items()}
            others.append({axis: large[axis] if axis.wanted < 0 else axis.wanted for axis in multiples})
        yield from filter(self._ends, others)

    def _are_items(self, before: LayerGraph) -> bool:
        """Return whether the first axes have items that do not depend on each other."""
        if [axis.position for axis in self._axes] != [0]:
            return False
        self._infers({axis: 2 * axis.old for axis in self._axes})
        try:
            return bool(sys.modules["ovir"].prove_edit(before, self._trial.clone(), batch=dict.fromkeys(self._old, 0)))
        except ModelError:
            return False


def _suffices(layer: Layer) -> bool:
    """Return whether the data of a layer is enough for known indices, and a loop reads it in parts without a rest."""
    op, types = layer.operator, [port.type for port in layer.inputs]
    if op is None:
        return True
    for item in op.wiring["body"].inputs if isinstance(op, IterationBase) else ():
        if item.axis is not None and item.external >= 0:
            dim = types[item.external].shape[item.axis]
            if dim.is_static and (dim.lower - item.part_size) % abs(item.stride):
                return False
    for name, tensor in zip(input_names(type(op)), types, strict=False):
        rule, known = op.domains.get(name), tensor.constant
        parts = rule.parts(op, op.named(types), known) if isinstance(rule, Index) and known is not None else ()
        if any(own.max(initial=0) >= size for own, size in parts):
            return False
    return True


def _prime_factors(number: int) -> Iterator[int]:
    """Yield the prime factors of a number, each as often as it divides the number."""
    prime = 2
    while number > 1:
        if number % prime:
            prime += 1
        else:
            number //= prime
            yield prime
