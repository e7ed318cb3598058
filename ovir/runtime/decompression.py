"""Compressed weights: constants of few bits, with the arithmetic that restores them.

A file says (codes - zero_point) * scale in f16 and converts the result to f32. Devices that compute in f32 do the
arithmetic in f32 as well; so does the plan, which thus neither rounds on the way nor keeps what stands between.

Weights are restored once, when the plan is made; or, with ``keep_compressed``, at each use, and then by slices along
their first axis wherever the layer that reads them can work so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, bf16, f16, f32
from ovir.core.values import MAX_ELEMENTS
from ovir.graph.layers import Layer, Port
from ovir.graph.model import Model
from ovir.ops.base.elementwise import ElementwiseBase
from ovir.ops.convert import Convert
from ovir.ops.infrastructure import Const
from ovir.runtime.failures import applied_operator

Selection = slice | Array
"""Slices along the first axis: a range (start and stop given), or one for each index of a 1-D array."""

BLOCK = 1 << 18
"""Elements that are restored together, so that they and what they are made from stay in a cache."""

_MOST_LAYERS = 100
"""Layers that together restore one result, each counted once for every reader among them. Exporters write fewer than
ten; a limit keeps hostile chains from exhausting the stack, and diamonds from being computed again and again."""

_ARITHMETIC = ("Subtract", "Multiply", "Add", "Divide")
_FLATTENING = ("Reshape", "Squeeze", "Unsqueeze")  # the elements keep their order
_MOVEMENT = (*_FLATTENING, "Transpose")
_NARROW = (f16, bf16)
_TO_F32 = Convert(destination_type=f32)


# --------------------------------------------------------------------------- what restores them


@dataclass(frozen=True, eq=False)
class CompressedWeights:
    """What comes out of ``port``, which depends on constants alone: in f32, or as it stands if they are its own."""

    port: Port

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return self.port.shape.to_tuple()

    @cached_property
    def has_slices(self) -> bool:
        """Whether slices along the first axis can be had without the rest."""
        return bool(self.shape) and self.shape[0] > 1 and _has_slices(self.port)

    def slices(self, which: Selection) -> Array:
        op = self.port.layer.operator
        if isinstance(op, Const):
            return op.slices(which)
        if not isinstance(which, slice):
            return _restored(self.port, which)
        out = np.empty((which.stop - which.start, *self.shape[1:]), np.float32)
        for block in self.blocks(which, BLOCK):
            np.copyto(out[block.start - which.start : block.stop - which.start], _restored(self.port, block))
        return out

    def blocks(self, which: slice, elements: int) -> Iterator[slice]:
        """A range of slices in parts of about so many elements."""
        step = max(elements // max(prod(self.shape[1:]), 1), 1)
        return (slice(i, min(i + step, which.stop)) for i in range(which.start, which.stop, step))

    @property
    def all(self) -> slice:
        return slice(0, self.shape[0])

    def whole(self) -> Array:
        if self.has_slices:
            return self.slices(self.all)
        op = self.port.layer.operator
        return op.decoded() if isinstance(op, Const) else _restored(self.port, None)


def _has_slices(port: Port) -> bool:
    layer, op, shape = port.layer, port.layer.operator, port.shape.to_tuple()
    sources = _sources(layer)
    if isinstance(op, Const):
        return op.has_slices
    if layer.type in _ARITHMETIC:
        numpy_rules = isinstance(op, ElementwiseBase) and op.auto_broadcast == "numpy"
        return numpy_rules and all(_has_slices(source) for source in sources if _runs_along(source, shape))
    if layer.type == "Transpose":
        order = sources[1].type.constant
        return order is not None and order.size > 0 and order[0] == 0 and _has_slices(sources[0])
    if layer.type in _FLATTENING:
        inner = sources[0].shape.to_tuple()
        return bool(inner) and prod(shape[1:]) % max(prod(inner[1:]), 1) == 0 and _has_slices(sources[0])
    return _has_slices(sources[0])


def _runs_along(source: Port, shape: tuple[int, ...]) -> bool:
    """Whether a source of elementwise arithmetic has slices of its own for those of the result."""
    given = source.shape.to_tuple()
    return bool(shape) and len(given) == len(shape) and given[0] == shape[0]


def _restored(port: Port, which: Selection | None) -> Array:
    """The slices chosen of what comes out of a port, all of them for None; in f32."""
    layer, op = port.layer, port.layer.operator
    sources = _sources(layer)
    assert op is not None
    op = applied_operator(layer, op)
    if isinstance(op, Const):
        return _as_f32(op.decoded() if which is None else op.slices(which), port.element_type)
    if layer.type == "Convert":
        return _restored(sources[0], which)
    if layer.type in _ARITHMETIC:
        shape = port.shape.to_tuple()
        parts = [_restored(source, which if _runs_along(source, shape) else None) for source in sources]
        first = parts[0]
        # The parts are nobody else's, so that the first may become the result.
        fits = first.flags.c_contiguous and np.broadcast_shapes(*(part.shape for part in parts)) == first.shape
        result = op.run(*parts, out=first if fits else None)
    elif which is None:
        result = op.run(_restored(sources[0], None), *(source.type.constant for source in sources[1:]))
    elif layer.type == "Transpose":
        result = _restored(sources[0], which).transpose(sources[1].type.constant)
    else:
        result = _flattened(port, sources[0], which)
    assert isinstance(result, np.ndarray)
    return result


def _flattened(port: Port, source: Port, which: Selection) -> Array:
    """Slices behind a Reshape, each of which is made of as many of its source's."""
    shape, inner = port.shape.to_tuple(), source.shape.to_tuple()
    count = prod(shape[1:]) // max(prod(inner[1:]), 1)
    if isinstance(which, slice):
        parts = _restored(source, slice(which.start * count, which.stop * count))
        return parts.reshape(which.stop - which.start, *shape[1:])
    parts = _restored(source, (which[:, np.newaxis] * count + np.arange(count)).reshape(-1))
    return parts.reshape(len(which), *shape[1:])


def _as_f32(array: Array, element_type: ElementType) -> Array:
    return _TO_F32.converted(array, element_type, f32, None)


# --------------------------------------------------------------------------- where they stand


@dataclass
class Decompressions:
    """The compressed weights of a model."""

    folded: dict[Layer, CompressedWeights] = field(default_factory=dict)
    """By the layer at which they come out: those that are restored when the plan is made."""
    kept: dict[Layer, CompressedWeights] = field(default_factory=dict)
    """Those that are restored at each use."""
    absorbed: set[Layer] = field(default_factory=set)
    """The layers before them, where nothing else reads their results."""


def find_decompressions(model: Model, shown: Callable[[Layer], bool], keep_compressed: bool = False) -> Decompressions:
    """All that the model holds; layers that are ``shown`` for themselves are not absorbed."""
    restoring: dict[Layer, int] = {}  # how many layers are run to restore what comes out of each
    for layer in model.layers:
        if _restores(layer, restoring):
            count = 1 + sum(restoring[source.layer] for source in _restoring_sources(layer))
            if count <= _MOST_LAYERS:
                restoring[layer] = count
    readers: dict[Layer, set[Layer]] = {}
    for layer in model.layers:
        for source in _sources(layer):
            readers.setdefault(source.layer, set()).add(layer)
    found = Decompressions()

    def absorb(ends: dict[Layer, CompressedWeights]) -> None:
        parts = set().union(*map(_before, ends)) - ends.keys()
        for layer in reversed(restoring):
            if layer in parts and not shown(layer) and readers[layer] <= ends.keys() | found.absorbed:
                found.absorbed.add(layer)

    if keep_compressed:
        for layer in restoring:
            if readers.get(layer, set()) - restoring.keys() and _is_worth_keeping(layer):
                found.kept[layer] = CompressedWeights(layer.outputs[0])
        absorb(found.kept)
    for layer in restoring:
        if layer in found.kept or layer in found.absorbed or not _converts_to_f32(layer):
            continue
        if any(part.type in _ARITHMETIC for part in _before(layer)):
            found.folded[layer] = CompressedWeights(layer.outputs[0])
    absorb(found.folded)
    return found


def _restores(layer: Layer, restoring: Collection[Layer]) -> bool:
    """Whether a layer has a part in restoring, as the layers before it have."""
    sources = _sources(layer)
    if isinstance(layer.operator, Const):
        return layer.operator.element_type.is_real or layer.operator.element_type.is_integral
    if layer.operator is None or not sources or not layer.outputs:
        return False
    if layer.outputs[0].element_type not in (*_NARROW, f32):
        return False
    if not all(port.shape.is_static for port in (layer.outputs[0], *sources)):
        return False
    if layer.type == "Convert":
        direct = isinstance(sources[0].layer.operator, Const) or _converts_to_f32(layer)
        return direct and sources[0].layer in restoring
    if layer.type in _MOVEMENT:
        return sources[0].layer in restoring and all(source.type.constant is not None for source in sources[1:])
    return layer.type in _ARITHMETIC and all(source.layer in restoring for source in sources)


def _converts_to_f32(layer: Layer) -> bool:
    if not isinstance(layer.operator, Convert) or not _sources(layer):
        return False
    return layer.inputs[0].element_type in _NARROW and layer.outputs[0].element_type == f32


def _is_worth_keeping(layer: Layer) -> bool:
    """Whether it takes less memory to hold what the layer's result is made from; small results are no matter."""
    port = layer.outputs[0]
    # Inference folds what is not larger than this.
    if not port.shape.is_static or prod(port.shape.to_tuple()) <= 16 * MAX_ELEMENTS:
        return False
    if isinstance(layer.operator, Const):
        return port.element_type.bits < 8
    stored = sum(_bits(part.outputs[0]) for part in _before(layer) if isinstance(part.operator, Const))
    return port.element_type == f32 and stored < _bits(port)


def _bits(port: Port) -> int:
    return prod(port.shape.to_tuple()) * port.element_type.bits


def _before(layer: Layer) -> set[Layer]:
    """The layers that restore what a layer's result is made from."""
    found: set[Layer] = set()
    to_visit = [layer]
    while to_visit:
        for source in _restoring_sources(to_visit.pop()):
            if source.layer not in found:
                found.add(source.layer)
                to_visit.append(source.layer)
    return found


def _restoring_sources(layer: Layer) -> Iterable[Port]:
    """Where the content comes from; what else a movement reads tells its shape or order."""
    sources = _sources(layer)
    return sources[:1] if layer.type in _MOVEMENT else sources


def _sources(layer: Layer) -> list[Port]:
    return [port.source for port in layer.inputs if port.source is not None]
