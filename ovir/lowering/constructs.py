"""Constructs that a release reads but does not run, or runs wrongly, and equivalent constructs that it runs.

All of them were measured with published packages, on their CPU devices. A release that was not measured counts as one
that fails if it lies between two measured ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from math import copysign, isfinite, isnan, prod
from typing import TypeAlias

import numpy as np

from ovir import opset8 as ops
from ovir.core.arrays import Array
from ovir.core.element_types import boolean, i4, i8, i32, i64, u4, u8
from ovir.graph.layers import Layer, LayerOrPort, Port, layers_after, sources_of
from ovir.lowering.decompose import decomposed, is_newer, new_layers, refusing_misfits
from ovir.lowering.einsum import needs_products, products
from ovir.lowering.registry import NotLowered, refuse
from ovir.lowering.releases import Release, newest_opset_for
from ovir.lowering.sizes import constant, older, reshaped, scalar
from ovir.ops.activation import Clamp
from ovir.ops.convolution import ForwardConvolutionBase
from ovir.ops.fourier import FourierBase
from ovir.ops.interpolate import Interpolate4Base
from ovir.ops.matmul import Einsum

Changes: TypeAlias = Mapping[Port, LayerOrPort]
"""New tensors by the port whose tensor they take the place of: an input of the layer or of one that reads it, or an
output of the layer, which is replaced then."""


@dataclass(frozen=True)
class Construct:
    """A construct that releases from ``first`` to ``last`` fail at."""

    types: frozenset[str]
    """The operations that may be it; empty if all may be."""
    first: Release
    last: Release
    reason: str
    rewrite: Callable[[Layer], Changes]
    """Returns the changes to a layer of these types, empty if it is not the construct, or calls ``refuse``."""


CONSTRUCTS: list[Construct] = []


def changes_for(layer: Layer, release: Release) -> Changes:
    """Return the changes to a layer for a release that fails at it; empty for most layers.

    Raises NotLowered with the reason if no change makes the release run it.
    """
    for construct in _concerning(layer.type, release):
        with refusing_misfits():
            if changes := construct.rewrite(layer):
                return changes
    return {}


@cache
def _concerning(kind: str, release: Release) -> list[Construct]:
    """Return the constructs that layers of a type may be, for a release that fails at them."""
    return [c for c in CONSTRUCTS if c.first <= release <= c.last and (not c.types or kind in c.types)]


def why_not_lowered(layer: Layer, release: Release) -> NotLowered | None:
    """Return the reason why a layer cannot be rewritten for a release, with a hint; None if it can or need not be."""
    newest = newest_opset_for(layer, release)
    try:
        parts = [layer] if not is_newer(layer, newest) else new_layers(decomposed(layer, newest))
        for part in parts:
            changes_for(part, release)
    except NotLowered as error:
        return error
    return None


def _given(layer: Layer, index: int) -> Array | None:
    """Return the array of an input that is known before any run, None for others."""
    source = layer.inputs[index].source
    return None if source is None else constant(source)


Rewrite: TypeAlias = Callable[[Layer], Changes]


def fails_at(*types: str, first: Release, last: Release, reason: str) -> Callable[[Rewrite], Rewrite]:
    """Register how to rewrite a construct that releases fail at for a reason, of any operation if none is given."""

    def add(rewrite: Rewrite) -> Rewrite:
        CONSTRUCTS.append(Construct(frozenset(types), first, last, reason, rewrite))
        return rewrite

    return add


@fails_at(
    "ScaledDotProductAttention",
    first=(2023, 3),
    last=(2025, 2),
    reason="boolean masks that are computed become u8, which attention refuses, or adds to the scores as numbers",
)
def boolean_mask(layer: Layer) -> Changes:
    """Add the mask as numbers: 0 for keys that are attended to, -inf for others."""
    mask = layer.inputs[3].source if len(layer.inputs) > 3 else None
    if mask is None or mask.element_type != boolean:
        return {}
    kind = layer.outputs[0].element_type
    return {layer.inputs[3]: ops.select(mask, scalar(0, kind), scalar(-np.inf, kind))}


@fails_at(
    "Split",
    "VariadicSplit",
    first=(2022, 1),
    last=(2022, 3),
    reason='"Cannot get descriptor for edge": parts along the first axis of a tensor of known sizes are views of it, '
    "which elementwise operations of unknown sizes cannot read",
)
def parts_along_the_first_axis(layer: Layer) -> Changes:
    """Gather each part of the tensor."""
    data, axis = layer.inputs[0].source, _given(layer, 1)
    shape = layer.inputs[0].shape
    if data is None or axis is None or shape.is_dynamic or not shape.rank or int(axis.ravel()[0]) % shape.rank:
        return {}
    lengths = [port.shape[0] for port in layer.outputs]
    readers = layers_after(layer)
    if shape.rank > 1 and not any(port.shape.is_dynamic for reader in readers for port in reader.outputs):
        return {}
    ends = accumulate((length.length for length in lengths), initial=0)
    return {
        port: ops.gather(data, np.arange(start, end), 0)
        for port, (start, end) in zip(layer.outputs, pairwise(ends), strict=True)
        if port.readers
    }


@fails_at(
    "Result",
    first=(2022, 2),
    last=(2023, 2),
    reason='"Cannot find blob with name": outputs lose their names where a loop over a recurrent cell that they '
    "read directly becomes one operation",
)
def output_of_a_loop(layer: Layer) -> Changes:
    """Copy the tensor."""
    source = layer.inputs[0].source
    if source is None or source.layer.type != "TensorIterator":
        return {}
    return {layer.inputs[0]: ops.convert(source, source.element_type)}


@fails_at("Unsqueeze", first=(2021, 1), last=(2021, 4), reason='"Axes to add must be a vector"')
def axis_that_is_a_scalar(layer: Layer) -> Changes:
    """Make a list of it."""
    source = layer.inputs[1].source
    if source is None or source.shape.rank != 0:
        return {}
    return {layer.inputs[1]: reshaped(source, [1])}


@fails_at("Pad", first=(2021, 1), last=(2022, 1), reason='it refuses "REFLECT" for tensors with a size of 1 anywhere')
def reflection_beside_a_size_of_1(layer: Layer) -> Changes:
    """Leave out the dimensions of size 1 that are not padded."""
    op, data = layer.operator, layer.inputs[0].source
    if op is None or data is None or getattr(op, "pad_mode", "") != "reflect" or data.shape.rank is None:
        return {}
    pads = [array.ravel().astype(np.int64) for index in (1, 2) if (array := _given(layer, index)) is not None]
    if len(pads) < 2:
        return {}
    begin, end = pads
    ones = [axis for axis, size in enumerate(data.shape) if size == 1 and not begin[axis] and not end[axis]]
    if not ones:
        return {}
    others = [axis for axis in range(data.shape.rank) if axis not in ones]
    padded = ops.pad(ops.squeeze(data, ones), begin[others], end[others], "reflect")
    return {layer.outputs[0]: ops.unsqueeze(padded, ones)}


@fails_at("TopK", first=(2022, 1), last=(2022, 1), reason="it hangs at the largest number along a last axis")
def largest_along_the_last_axis(layer: Layer) -> Changes:
    """Add a dimension behind the axis."""
    op, data = layer.operator, layer.inputs[0].source
    count = _given(layer, 1)
    if op is None or data is None or count is None or count.item() != 1 or data.shape.is_static:
        return {}
    axis, rank = op.axis, data.shape.rank  # type: ignore[attr-defined]
    if rank is None or axis % rank != rank - 1:
        return {}
    result = older(op, op.opset, ops.unsqueeze(data, [-1]), 1, axis=rank - 1)
    return {port: ops.squeeze(result.outputs[port.index], [-1]) for port in layer.outputs if port.readers}


@fails_at(
    "ROIAlign",
    first=(2022, 1),
    last=(2022, 3),
    reason="it leaves the channels that fill up a block of 8 or 16 as memory holds them; where that is NaN, products "
    "of the next layers with these channels, whose weights are 0, are NaN as well",
)
def regions_of_unknown_number(layer: Layer) -> Changes:
    """Clamp its output to the finite numbers."""
    port = layer.outputs[0]
    readers = [reader for reader in port.readers if reader.layer.type != "Clamp"]
    if port.shape.is_static or not readers or str(port.element_type) != "f32":
        return {}
    largest = float(np.finfo(np.float32).max)
    clamped = ops.clamp(port, -largest, largest)
    return dict.fromkeys(readers, clamped)


@fails_at(
    "NonZero", first=(2022, 1), last=(2022, 1), reason='it has an "incorrect number of output edges" if two read it'
)
def positions_read_twice(layer: Layer) -> Changes:
    """Let one read it, the maximum with 0, for all others."""
    port = layer.outputs[0]
    copied = ops.maximum(port, scalar(0, port.element_type))
    return dict.fromkeys(port.readers, copied) if len(port.readers) > 1 else {}


@fails_at("Gather", first=(2022, 1), last=(2022, 1), reason="it may crash where batch_dims is not 0")
def gather_in_batches(layer: Layer) -> Changes:
    """Gather from all batches at once, with indices that count through them; sizes must be known."""
    op, data, indices = layer.operator, layer.inputs[0].source, layer.inputs[1].source
    if op is None or data is None or indices is None or data.shape.is_dynamic or indices.shape.is_dynamic:
        return {}
    axis = _given(layer, 2)
    count = getattr(op, "batch_dims", 0) % (indices.shape.rank or 1)
    if not count or axis is None or int(axis.ravel()[0]) % (data.shape.rank or 1) != count:
        return {}
    (*sizes, length), others = data.shape.to_tuple()[: count + 1], data.shape.to_tuple()[count + 1 :]
    batches = int(np.prod(sizes))
    first = (np.arange(batches) * length).reshape(*sizes, *[1] * ((indices.shape.rank or 0) - count))
    within = ops.floor_mod(indices, scalar(length, indices.element_type)) if op.opset >= 8 else indices
    rows = reshaped(data, [batches * length, *others])
    return {layer.outputs[0]: ops.gather(rows, ops.add(within, ops.constant(first, indices.element_type)), 0)}


_STORED = 1 << 22
"""The number of elements up to which the matrix of a transform is stored."""


@fails_at(
    "DFT",
    "IDFT",
    "RDFT",
    "IRDFT",
    first=(2022, 1),
    last=(2022, 3),
    reason='Fourier transforms do not "support op with dynamic shapes"',
)
def transform_of_unknown_sizes(layer: Layer) -> Changes:
    """Multiply by the matrix of a transform along the last axis."""
    op, data = layer.operator, layer.inputs[0].source
    constants = [_given(layer, index) for index in range(1, len(layer.inputs))]
    if not isinstance(op, FourierBase) or data is None or data.shape.is_static or data.shape.rank is None:
        return {}
    own, result = (2 if pairs else 1 for pairs in (op.of_pairs, op.to_pairs))
    rank, out = data.shape.rank, layer.outputs[0].shape
    inner, outer = data.shape[rank - own :], out[(out.rank or 0) - result :]
    along = [int(axis) for array in constants[:1] if array is not None for axis in array.ravel()]
    signal_rank = rank - (own - 1)
    known = all(array is not None for array in constants) and inner.is_static and outer.is_static
    is_last = len(along) == 1 and along[0] % signal_rank == signal_rank - 1
    if not known or not is_last or prod(inner.to_tuple()) * prod(outer.to_tuple()) > _STORED:
        refuse("its CPU device transforms no tensor of unknown sizes", "--shape gives inputs exact sizes")
    count = prod(inner.to_tuple())
    unit = np.eye(count, dtype=np.float64).reshape(count, *inner.to_tuple())
    axes = np.array([len(unit.shape) - own])
    matrix = op.run(unit, axes, *(array for array in constants[1:] if array is not None)).reshape(count, -1)
    rows = ops.reshape(data, [*[0] * (rank - own), count], special_zero=True)
    product = ops.matmul(rows, ops.constant(matrix, data.element_type), transpose_a=False, transpose_b=False)
    return {layer.outputs[0]: ops.reshape(product, [*[0] * (rank - own), *outer.to_tuple()], special_zero=True)}


def _in_parts(layer: Layer, opset: int) -> Changes:
    (port,) = decomposed(layer, opset)
    assert port is not None
    return {layer.outputs[0]: port.layer}


@fails_at(
    "GridSample",
    first=(2022, 2),
    last=(2022, 3),
    reason='"There should be only one instance of RegistersPool per thread": a process compiles one GridSample',
)
def sampled_grid(layer: Layer) -> Changes:
    """Gather the pixels around each position."""
    return _in_parts(layer, 8)


@fails_at(
    "SoftSign",
    first=(2022, 2),
    last=(2025, 3),
    reason="it gives wrong numbers where it is computed together with the elementwise operation before it",
)
def softsign_behind_others(layer: Layer) -> Changes:
    """Divide by 1 + |x|."""
    return _in_parts(layer, 8)


@fails_at(
    "GroupNormalization",
    first=(2024, 0),
    last=(2025, 4),
    reason='"Unsupported operation of type: GroupNormalization" in bodies',
)
def groups_in_a_body(layer: Layer) -> Changes:
    """Normalize each group by MVN."""
    return _in_parts(layer, 11) if layer.scope else {}


@fails_at("Const", first=(2021, 1), last=(2023, 2), reason="4-bit numbers are taken in pairs of the other order")
def numbers_of_4_bits(layer: Layer) -> Changes:
    """Hold them in 8 bits."""
    port = layer.outputs[0]
    array = constant(port) if port.element_type in (i4, u4) else None
    if array is None:
        return {}
    if any(reader.layer.type != "Convert" for reader in port.readers):
        refuse("swaps its numbers, which another operation than Convert reads", "--decompress replaces them by reals")
    return {port: ops.constant(array, i8 if port.element_type == i4 else u8)}


@fails_at(
    "Select",
    first=(2022, 2),
    last=(2022, 3),
    reason="the process crashes where a constant condition is the same for all elements",
)
def selection_of_one_input(layer: Layer) -> Changes:
    """Broadcast the input that is selected."""
    condition, chosen, other = (port.source for port in layer.inputs)
    constant = _given(layer, 0)
    if constant is None or not constant.size or constant.min() != constant.max() or None in (condition, chosen, other):
        return {}
    if not constant.flat[0]:
        chosen, other = other, chosen
    assert condition is not None
    assert chosen is not None
    result: LayerOrPort = chosen
    for beside in (condition, other):
        if beside is not None and beside.shape.rank != 0:
            result = ops.broadcast(result, ops.shape_of(beside), broadcast_spec="bidirectional")
    return {layer.outputs[0]: result}


@fails_at(
    "AdaptiveMaxPool", first=(2022, 1), last=(2025, 4), reason='"CPU plugin does not support i64" for its positions'
)
def positions_of_64_bits(layer: Layer) -> Changes:
    """Compute positions of i32 and convert them."""
    op, (data, sizes) = layer.operator, (port.source for port in layer.inputs)
    pooled, positions = layer.outputs
    if op is None or positions.element_type != i64:
        return {}
    pooling = older(op, 8, data, sizes, index_element_type=i32)
    return {pooled: pooling, positions: ops.convert(pooling.outputs[1], i64)}


_CONVOLUTIONS = "Convolution", "GroupConvolution"
_SMALL_WINDOW = "it compiles convolutions of unknown sizes with sizes of 64, for which this window is too large"


@fails_at(*_CONVOLUTIONS, first=(2022, 1), last=(2022, 1), reason=_SMALL_WINDOW)
def window_of_unknown_sizes(layer: Layer) -> Changes:
    """Pad the end with zeros, and leave out the elements that come of them."""
    return _with_larger_pads(layer, 1)


@fails_at(
    *_CONVOLUTIONS,
    first=(2022, 2),
    last=(2025, 3),
    reason="it compiles convolutions of unknown sizes with sizes of 64 or as long as the filter without its dilations",
)
def dilated_window_of_unknown_sizes(layer: Layer) -> Changes:
    """Pad the end with zeros, and leave out the elements that come of them."""
    return _with_larger_pads(layer, 2)


def _with_larger_pads(layer: Layer, least_dilation: int) -> Changes:
    """Return a convolution whose padded data holds a window where the device takes unknown sizes to be 64."""
    op, data, filters = layer.operator, *(port.source for port in layer.inputs)
    if not isinstance(op, ForwardConvolutionBase) or op.auto_pad.startswith("same") or data is None or filters is None:
        return {}
    shape, window = data.shape, filters.shape
    if shape.rank is None or window.rank is None:
        return {}
    begins, ends = ((0,) * len(op.strides), (0,) * len(op.strides))
    if op.auto_pad != "valid":
        begins, ends = op.pads_begin, op.pads_end
    further = []
    for axis, dilation in enumerate(op.dilations):
        length, taps = shape[2 + axis], window[axis - len(op.dilations)]
        span = (taps.min_length - 1) * dilation + 1
        missing = span - max(64, length.min_length) - begins[axis] - ends[axis]
        concerns = not length.is_static and dilation >= least_dilation and missing > 0
        further.append(-(-missing // op.strides[axis]) if concerns else 0)
    if not any(further):
        return {}
    pads = [end + count * stride for end, count, stride in zip(ends, further, op.strides, strict=True)]
    longer = older(op, op.opset, data, filters, auto_pad="explicit", pads_begin=begins, pads_end=pads)
    whole = [1, 1, *(int(count == 0) for count in further)]
    stops = [0, 0, *(-count for count in further)]
    result = ops.strided_slice(longer, [0] * len(stops), stops, [1] * len(stops), [1] * len(stops), whole)
    return {layer.outputs[0]: result}


_RESIZED = '"Interpolate layer only supports resize on spatial dimensions"'


@fails_at("Interpolate", first=(2021, 1), last=(2021, 4), reason=f"{_RESIZED}: those from the third one on")
def resized_first_axes(layer: Layer) -> Changes:
    """Transpose the axes that are resized to the end."""
    return _resized_at_the_end(layer)


@fails_at("Interpolate", first=(2022, 1), last=(2025, 4), reason=f"{_RESIZED}: of three dimensions, only the last one")
def resized_axes_of_three(layer: Layer) -> Changes:
    """Transpose the axes that are resized to the end, behind a further dimension."""
    return _resized_at_the_end(layer) if layer.inputs[0].shape.rank == 3 else {}


def _resized_at_the_end(layer: Layer) -> Changes:
    op, data, after = layer.operator, layer.inputs[0].source, layer.outputs[0].shape
    if not isinstance(op, Interpolate4Base) or data is None or data.shape.rank is None or data.shape.rank < 3:
        return {}
    rank = data.shape.rank
    position = 3 if op.opset == 4 else 2
    listed = _given(layer, position) if len(layer.inputs) > position else np.arange(rank)
    if listed is None:
        return {}
    axes = [int(axis) % rank for axis in listed]
    pairs = zip(data.shape, after, strict=True)
    resized = [i for i, (old, new) in enumerate(pairs) if i in axes and not (old.is_static and old == new)]
    others = [axis for axis in range(rank) if axis not in resized]
    if not resized or resized[0] >= 2 or len(resized) > 3:
        return {}
    order = [*others, *resized]
    ahead = list(range(2 - len(others)))
    image = ops.unsqueeze(ops.transpose(data, order), ahead) if ahead else ops.transpose(data, order)
    moved = [order.index(axis) + len(ahead) for axis in axes]
    begins, ends = (
        [0] * len(ahead) + [(*pads, *[0] * rank)[axis] for axis in order] for pads in (op.pads_begin, op.pads_end)
    )
    sizes = [port.source for port in layer.inputs[1:position]]
    larger = older(op, op.opset, image, *sizes, moved, pads_begin=begins, pads_end=ends)
    squeezed = ops.squeeze(larger, ahead) if ahead else larger
    return {layer.outputs[0]: ops.transpose(squeezed, np.argsort(order))}


@fails_at(
    "Einsum",
    first=(2021, 1),
    last=(2025, 3),
    reason='it does not decompose equations with "...", diagonals, scalars or different sizes of a letter: "evaluate() '
    'is not implemented"',
)
def other_equations(layer: Layer) -> Changes:
    """Multiply matrices."""
    op, inputs = layer.operator, sources_of(layer)
    if not isinstance(op, Einsum) or not needs_products(op, inputs):
        return {}
    return {layer.outputs[0]: products(op, inputs)}


_NOT_FINITE = "it reads attributes that are infinite or NaN as 0"


@fails_at("Clamp", first=(2021, 1), last=(2026, 3), reason=_NOT_FINITE)
def clamp_without_an_end(layer: Layer) -> Changes:
    """Take the maximum with the other end, or the minimum."""
    op, data = layer.operator, layer.inputs[0].source
    if not isinstance(op, Clamp) or data is None or (isfinite(op.min) and isfinite(op.max)):
        return {}
    low, high = op.ends(data.element_type)
    result: LayerOrPort = data
    if isfinite(op.min):
        result = ops.maximum(result, ops.constant(low, data.element_type))
    if isfinite(op.max):
        result = ops.minimum(result, ops.constant(high, data.element_type))
    return {layer.outputs[0]: result}


_ENDS = frozenset(
    ("clip", "confidence_threshold", "iou_threshold", "max_delta_log_wh", "nms_thresh", "nms_threshold",
     "objectness_score", "post_threshold", "score_threshold")
)  # fmt: skip
"""The attributes, by their names in files, that numbers are only compared with."""


@fails_at(first=(2021, 1), last=(2026, 3), reason=_NOT_FINITE)
def attribute_that_is_not_finite(layer: Layer) -> Changes:
    """Give thresholds and the like the largest finite number, and refuse other attributes."""
    op = layer.operator
    if op is None or not op.opset:
        return {}
    changes = {}
    for name, spec in op.attributes.items():
        if spec.type not in (float, tuple[float, ...]):
            continue
        values = getattr(op, spec.field)
        numbers = values if isinstance(values, tuple) else (values,)
        if all(map(isfinite, numbers)):
            continue
        if name not in _ENDS or isnan(numbers[0]):
            refuse(f"reads its attribute '{name}' of {spec.format(values)} as 0", "give it a finite number")
        changes[name] = copysign(float(np.finfo(np.float32).max), numbers[0])
    if not changes:
        return {}
    finite = older(op, op.opset, *(port.source for port in layer.inputs), **changes)
    first, *others = layer.outputs
    return {first: finite, **{port: ops.convert(finite.outputs[port.index], port.element_type) for port in others}}


@fails_at(
    "Parameter",
    "Result",
    first=(2021, 1),
    last=(2022, 3),
    reason='inputs and outputs with a "zero dimension which is not allowed"',
)
def tensor_of_size_0(layer: Layer) -> Changes:
    """Refuse it."""
    shape = (layer.outputs or layer.inputs)[0].shape
    if not layer.scope and shape.rank and any(size == 0 for size in shape):
        refuse("not with a size of 0, as it is an input or output of the model", "--shape gives inputs other sizes")
    return {}


@fails_at("ReadValue", first=(2021, 1), last=(2023, 0), reason="variables of unknown sizes fail when they are assigned")
def variable_of_unknown_sizes(layer: Layer) -> Changes:
    """Refuse it."""
    if layer.outputs[0].shape.is_dynamic:
        refuse("its CPU device runs no variable of unknown sizes", "--states-to-inputs makes it an input and an output")
    return {}
