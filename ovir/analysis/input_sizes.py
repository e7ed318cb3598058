"""Sizes for the dynamic inputs of a model: small ones in which windows, strides and resizes still have an effect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isqrt
from typing import Any

from ovir.core.shapes import Dimension, PartialShape, ShapeLike, as_shape
from ovir.diagnostics.codes import CHOSEN_SIZES, NARROW_TENSOR
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.errors import ModelError
from ovir.diagnostics.wording import and_others, escaped
from ovir.graph.constant_layers import all_constant_layers
from ovir.graph.layers import Layer
from ovir.model import Model
from ovir.ops.base.elementwise import BinaryBase
from ovir.system.progress import trials

BATCH, OTHER = 1, 8
"""The sizes that are tried first: for the first axis, and for the others."""
LONG = (2048, 4096, 8192, 16384, 32768)
SIZES = (1, 3, 2, 4, 16, 32, 64, 128, 224, 256, 512, 1024, 5, 6, 7, 9, 10, 12, 14, 20, 24, *LONG)
"""The sizes that are tried next, in this order, until inference accepts one."""
IMAGES = (224, 256, 299, 300, 320, 384, 416, 448, 512, 513, 600, 608, 640, 736, 768, 800, 896, 960, 1024, 1280)
"""The sizes that are tried for all axes together: constants of a model, such as anchors, may imply one of them."""
LARGER = (16, 32, 48, 64, 96, 128, 160, 192, *IMAGES, *LONG)
"""The sizes that are tried in this order while a window exceeds its tensor."""
MOST_BYTES = 1 << 30
"""The bytes of all tensors together for which a larger size is still chosen."""
PATIENCE = 6
"""The search ends after so many larger sizes for which no fewer windows exceed their tensors."""

Shapes = Mapping[int, PartialShape]
"""The shapes of inputs by position."""


@dataclass(frozen=True)
class NarrowTensor:
    """An axis of a tensor that is too small for a window, stride or resize to have an effect."""

    layer: Layer
    axis: int
    size: int
    needed: int

    def __str__(self) -> str:
        has = f"along axis {self.axis} of its input, which has {self.size}"
        return f"its window, stride or resize takes {self.needed} elements {has}"


@dataclass(frozen=True)
class ChosenSizes:
    """The shapes that were chosen for dynamic inputs."""

    shapes: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """By position of the input."""
    narrow: list[NarrowTensor] = field(default_factory=list)
    """The tensors that are too small for a layer nonetheless."""

    def note(self, model: Model) -> Iterator[Diagnostic]:
        """Yield a note about the sizes that were chosen, and how to give others."""
        if self.shapes:
            texts = [f"{model.inputs[i].any_name}={','.join(map(str, shape))}" for i, shape in self.shapes.items()]
            message = f"sizes were chosen for the random inputs: {' '.join(texts)}"
            hint = f"give others as in: {' '.join(f'--shape {text}' for text in texts)}"
            yield diagnose(CHOSEN_SIZES, message, Place(model.path), hint=hint)


def about_narrow(narrow: Sequence[NarrowTensor]) -> Iterator[Diagnostic]:
    """Yield one warning about tensors that are too small for the layers that read them, if there are any."""
    if narrow:
        others = and_others(len({item.layer for item in narrow}) - 1, "more layer")
        message = f"{narrow[0]}: its result hardly depends on its kernel or attributes{others}"
        yield diagnose(NARROW_TENSOR, message, narrow[0].layer.place, hint="give larger inputs, or sizes with --shape")


def narrow_axes(layer: Layer, shape: Sequence[int]) -> Iterator[NarrowTensor]:
    """Yield the dynamic axes of the first input of a layer, which has run with this shape, that are too small."""
    assert layer.operator is not None
    for axis, needed in layer.operator.least_sizes([port.type for port in layer.inputs]).items():
        if not layer.inputs[0].shape[axis].is_static and shape[axis] < needed:
            yield NarrowTensor(layer, axis, shape[axis], needed)


def with_sizes(model: Model) -> tuple[Model, ChosenSizes]:
    """Return the model, or a copy for which sizes are chosen if it is dynamic. Raise ModelError if none fit."""
    if all(port.shape.is_static for port in model.inputs):
        return model, ChosenSizes()
    model = model.clone()
    return model, fix_shapes(model)


def with_shapes(model: Model, shapes: Mapping[Any, ShapeLike]) -> Model:
    """Return the model if its inputs have these shapes, else a copy that has them. Raise ModelError if they do not
    fit."""
    if all(model.input(key).shape == as_shape(shape) for key, shape in shapes.items()):
        return model
    model = model.clone()
    model.reshape(shapes)
    return model


@trials("choosing sizes")
def fix_shapes(model: Model, given: Mapping[int, ShapeLike] | None = None) -> ChosenSizes:
    """Give every input a static shape and return the choices.

    ``given`` are shapes that the caller has chosen. The first axis becomes 1 and others 8, or the size that a given
    input has on that axis; if inference rejects that, each dynamic dimension becomes the first of ``SIZES`` that it
    accepts, or all become a size that constants imply, or one of ``IMAGES``. Where a window, stride or resize exceeds
    its tensor, the dimensions that the tensor depends on become the first of these sizes, and of ``LARGER``, in which
    all lie inside, or most. If no sizes are accepted, raise ModelError and leave the model unchanged.
    """
    before = {i: port.shape for i, port in enumerate(model.inputs)}
    fixed = {i: as_shape(shape) for i, shape in (given or {}).items()}
    open_inputs = [i for i, shape in before.items() if i not in fixed and not shape.is_static]
    if not open_inputs and all(before[i] == shape for i, shape in fixed.items()):
        return ChosenSizes()
    likely = _sizes_by_axis(before, fixed)
    windows = list(_windows(model))
    implied = _implied(model, windows)
    shapes = {**before, **fixed}
    first_choice = {i: _first_choice(before[i], likely) for i in open_inputs}
    try:
        model.reshape({**fixed, **first_choice})
    except ModelError as refused:
        if not open_inputs or not (
            _search(model, dict(shapes), open_inputs, likely) or _search_images(model, shapes, open_inputs, implied)
        ):
            model.reshape(before)
            sizes = ", ".join(f"{escaped(model.inputs[i].any_name)}={before[i]}" for i in open_inputs)
            if sizes:
                refused.add_note(f"  hint: no sizes were found for the dynamic inputs {sizes}: give them with --shape")
                together = sorted({*implied, *IMAGES})
                one = f"{len(SIZES)} sizes from 1 to {max(SIZES)} were tried for each axis in turn"
                many = f"{len(together)} from {together[0]} to {together[-1]} for all but the first together"
                refused.add_note(f"  {one}, and {many}")
            raise refused from None
    _join_batches(model, shapes, open_inputs)
    narrow = _narrow(windows)
    if narrow and open_inputs:
        narrow = _enlarge(model, shapes, open_inputs, windows, narrow, implied)
    return ChosenSizes({i: model.inputs[i].shape.to_tuple() for i in open_inputs}, narrow)


def fix_image_sizes(model: Model) -> bool:
    """Give all open axes of inputs but those of batches one size that images have, and return whether one is accepted.

    The model does not change if none is.
    """
    shapes = {i: port.shape for i, port in enumerate(model.inputs)}
    return _search_images(model, shapes, [i for i, shape in shapes.items() if not shape.is_static], ())


def _sizes_by_axis(before: Shapes, fixed: Shapes) -> dict[int, int]:
    """Return, for each axis, the size of a given input whose dimension there was dynamic."""
    sizes: dict[int, int] = {}
    for i, shape in fixed.items():
        for axis, dim in enumerate(shape.dims if shape.rank is not None else ()):
            if dim.is_static and not before[i][axis].is_static:
                sizes.setdefault(axis, dim.lower)
    return sizes


def _join_batches(model: Model, shapes: Shapes, open_inputs: Sequence[int]) -> None:
    """Give a batch that is not the first axis of its input the size of the others, as states of recurrent layers have.

    A batch of 1 may meet any size. Another size shows which axes have to equal it.
    """
    chosen = {i: port.shape for i, port in enumerate(model.inputs)}
    places = [
        (i, axis)
        for i in open_inputs
        for axis, dim in enumerate(shapes[i] if shapes[i].rank is not None else ())
        if dim.contains(_PROBE)
    ]
    first = [(i, axis) for i, axis in places if axis == 0 and chosen[i][0] == BATCH]
    apart = [(i, axis) for i, axis in places if axis and shapes[i][0].is_static and chosen[i][axis] != BATCH]
    if not first or not apart:
        return
    probed = _resized(chosen, shapes, first, _PROBE)
    groups = [], apart, *([place] for place in apart)
    joined = (group for group in groups if _accepts(model, _resized(probed, shapes, group, _PROBE)))
    model.reshape(_resized(chosen, shapes, next(joined, ()), BATCH))


_PROBE = 3
"""A batch that no other size that is tried first equals."""


def _candidates(dim: Dimension, axis: int, likely: Mapping[int, int]) -> list[int]:
    usual = BATCH if axis == 0 else OTHER
    wanted = dict.fromkeys([likely.get(axis, usual), usual, BATCH, OTHER, *SIZES])
    return [size for size in wanted if dim.contains(size)] or [dim.lower]


def _first_choice(shape: PartialShape, likely: Mapping[int, int]) -> PartialShape:
    if shape.rank is None:
        shape = PartialShape([-1, -1])
    return PartialShape(dim if dim.is_static else _candidates(dim, axis, likely)[0] for axis, dim in enumerate(shape))


# --------------------------------------------------------------------------- sizes that inference accepts


def _search(
    model: Model, shapes: dict[int, PartialShape], open_inputs: Sequence[int], likely: Mapping[int, int]
) -> bool:
    """Fix one dimension after another, with later ones open; return whether all could be fixed."""
    for i in open_inputs:
        of_ranks = (PartialShape([-1] * rank) for rank in (2, 4, 1, 3, 5, 0))
        if shapes[i].rank is None and not _first_accepted(model, shapes, i, of_ranks):
            return False
        for axis, dim in enumerate(shapes[i]):
            trials = (shapes[i].with_dim(axis, size) for size in _candidates(dim, axis, likely))
            if not dim.is_static and not _first_accepted(model, shapes, i, trials):
                return False
    return True


def _first_accepted(model: Model, shapes: dict[int, PartialShape], i: int, trials: Iterator[PartialShape]) -> bool:
    """Set the input's entry in ``shapes`` to the first of the trials that inference accepts."""
    for trial in trials:
        if _accepts(model, {**shapes, i: trial}):
            shapes[i] = trial
            return True
    return False


def _search_images(model: Model, shapes: Shapes, open_inputs: Sequence[int], implied: Iterable[int]) -> bool:
    """Give all dimensions but those of batches one size; return whether inference accepts one."""
    if any(shapes[i].rank is None for i in open_inputs):
        return False
    axes = [(i, axis) for i in open_inputs for axis, dim in enumerate(shapes[i]) if axis and not dim.is_static]
    static = {i: _first_choice(shape, {}) for i, shape in shapes.items()}
    return any(_accepts(model, _resized(static, shapes, axes, size)) for size in dict.fromkeys([*implied, *IMAGES]))


def _implied(model: Model, windows: Iterable[Window]) -> list[int]:
    """Return the sizes that constants imply where they meet a dynamic dimension, as anchors and positions do, and
    multiples of these, because windows move by more than one element.

    A number of positions may be that of a square grid, with up to two tokens before it.
    """
    candidates: dict[int, None] = {}
    for layer in model.layers:
        if isinstance(layer.operator, BinaryBase) and len(layer.inputs) == 2:
            one, other = (port.shape for port in layer.inputs)
            if one.rank is not None and other.rank is not None and one.is_static != other.is_static:
                pairs = zip(reversed(one.dims), reversed(other.dims), strict=False)
                sizes = (a.lower if a.is_static else b.lower for a, b in pairs if a.is_static != b.is_static)
                candidates.update((size, None) for size in sizes if size > 1)
    roots = ((isqrt(size - tokens), size - tokens) for size in candidates for tokens in range(3))
    sides = dict.fromkeys(root for root, square in roots if root > 1 and root * root == square)
    steps = dict.fromkeys(step for _, _, step in windows)
    return [
        *(size * factor for size in candidates for factor in _FACTORS),
        *(side * step for side in sides for step in steps),
    ]


_FACTORS = (1, 2, 4, 8, 16, 32)


def _accepts(model: Model, shapes: Shapes) -> bool:
    try:
        model.reshape(shapes)
    except ModelError:
        return False
    return True


def _resized(static: Shapes, shapes: Shapes, axes: Iterable[tuple[int, int]], size: int) -> dict[int, PartialShape]:
    """Return shapes in which axes have a size, or the size nearest to it that ``shapes`` allow there."""
    found = dict(static)
    for i, axis in axes:
        dim = shapes[i][axis]
        fitting = max(size, dim.lower) if dim.upper is None else min(max(size, dim.lower), dim.upper)
        found[i] = found[i].with_dim(axis, fitting)
    return found


# --------------------------------------------------------------------------- windows inside their tensors


Window = tuple[Layer, int, int]
"""A layer, an axis of its first input that is dynamic in the model, and the size that it needs there."""


def _windows(model: Model) -> Iterator[Window]:
    """Yield the windows, strides and resizes along dynamic axes."""
    for layer in model.walk():
        if layer.operator is None or not layer.inputs or layer.is_dead:
            continue
        for axis, needed in layer.operator.least_sizes([port.type for port in layer.inputs]).items():
            if not layer.inputs[0].shape[axis].is_static:
                yield layer, axis, needed


def _narrow(windows: Iterable[Window]) -> list[NarrowTensor]:
    """Return the windows that exceed tensors of the present shapes."""
    sizes = ((layer, axis, layer.inputs[0].shape[axis], needed) for layer, axis, needed in windows)
    return [
        NarrowTensor(a, i, dim.lower, needed) for a, i, dim, needed in sizes if dim.is_static and dim.lower < needed
    ]


def _enlarge(
    model: Model,
    shapes: Shapes,
    open_inputs: Sequence[int],
    windows: Sequence[Window],
    narrow: list[NarrowTensor],
    implied: Iterable[int],
) -> list[NarrowTensor]:
    """Choose larger sizes for the dimensions that narrow tensors depend on; return the tensors that remain narrow."""
    static = {i: port.shape for i, port in enumerate(model.inputs)}
    axes = _axes_behind(model, static, shapes, open_inputs, narrow)
    if not axes:
        model.reshape(static)
        return narrow
    best, tried, waited = static, static, 0
    least = _promising(min(static[i][axis].lower for i, axis in axes), narrow)
    for size in sorted({*LARGER, *implied}):
        trial = _resized(static, shapes, [(i, axis) for i, axis in axes if static[i][axis].lower < size], size)
        if size < least or trial == tried or not _accepts(model, trial):
            continue
        if _bytes(model) > MOST_BYTES:
            break
        tried, still_narrow, waited = trial, _narrow(windows), waited + 1
        if _lack(still_narrow) < _lack(narrow):
            best, narrow, waited = trial, still_narrow, 0
        if not narrow or waited == PATIENCE:
            break
        least = _promising(size, still_narrow)
    model.reshape(best)
    return narrow


def _lack(narrow: Sequence[NarrowTensor]) -> tuple[int, int]:
    """Return the number of tensors that are too small, and of elements that they lack."""
    return len(narrow), sum(item.needed - item.size for item in narrow)


def _promising(size: int, narrow: Sequence[NarrowTensor]) -> int:
    """Return the least size that may suffice for a narrow tensor, if sizes are proportional."""
    return min((size * (item.needed - 1) // max(item.size, 1) for item in narrow), default=0)


def _axes_behind(
    model: Model, static: Shapes, shapes: Shapes, open_inputs: Sequence[int], narrow: Sequence[NarrowTensor]
) -> list[tuple[int, int]]:
    """Return the axes of inputs, with their positions, on which narrow tensors depend."""
    found = []
    for i in open_inputs:
        for axis, dim in enumerate(shapes[i] if shapes[i].rank is not None else ()):
            if dim.is_static or not _accepts(model, {**static, i: static[i].with_dim(axis, dim)}):
                continue
            if any(not item.layer.inputs[0].shape[item.axis].is_static for item in narrow):
                found.append((i, axis))
    return found


def _bytes(model: Model) -> int:
    """Return the bytes of all tensors of known size that depend on inputs."""
    constant = all_constant_layers(model)
    ports = (port for layer in model.layers if layer not in constant for port in layer.outputs)
    return sum(size.lower * port.element_type.bits // 8 for port in ports if (size := port.shape.size()).is_static)
