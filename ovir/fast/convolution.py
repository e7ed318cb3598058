"""Convolutions: products with the windows of images as rows of a matrix, or a special form.

One copy makes each window of the image a row of a matrix, and one product with the filters gives all channels of each
output position. Filters with few outputs are taken side by side: a wider window holds several neighboring ones, and a
matrix with zeros gives the outputs of all of them. Images of few channels are copied by planes, and so are those of few
windows, which many filters multiply as they lie in the file. Filters of 3x3 with many channels are applied to tiles
(``base/tiles.py``), and filters of a single channel are sums of products along rows of the image
(``base/depthwise.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.core.fast_calls import Call, number
from ovir.core.parallel import contiguous_copy, threads
from ovir.fast.base.binder_protocol import Binder, call_elementwise, call_shares, is_native, tiled
from ovir.fast.base.depthwise import bind_depthwise
from ovir.fast.base.images import (
    EXACT,
    Axis,
    channels_last,
    channels_last_order,
    computed_image,
    filter_copy,
    is_mostly_padding,
    padded_image,
    padded_planes,
    plane_windows,
    position_rows,
    product_dtype,
    redo_if_inexact,
    store_sums,
    windows,
)
from ovir.fast.base.moves import bind_copy
from ovir.fast.base.products import SHARED, Product, bind_product, filter_product, product_with, stays_by_columns
from ovir.fast.base.tiles import bind_tiles, whole_tiles
from ovir.fast.registry import fast
from ovir.ops import convolution as ops
from ovir.ops.base.traits import input_names

_BLOCK_BYTES = 1 << 20
"""Columns of a block of windows, and the rows that the product makes of them, stay in a cache. With one block for the
whole image, basic_pitch_onnx takes 1.32 times as long."""

_DEEP, _PRODUCTS, _SHALLOW_PRODUCTS = 64, 1 << 18, 1 << 13
"""From so many input channels on, the taps of a transposed convolution are multiplied several at a time, with so many
elements of products: a tap at a time takes 1.3 to 1.5 times as long. With fewer channels the products should stay in a
near cache: with more elements, 16 channels take 1.4 times as long."""

_FEW_CHANNELS = 16
"""Images are copied by planes if the rows of their windows have at most so many elements, for all channels together.
Without planes, omz_yolo_region_reorg takes 1.25 times as long, and mtcnn_pnet 1.19 times."""


def _axes(op: ops.ForwardConvolutionBase, data: Array, grouped: Array) -> list[Axis] | None:
    """Return the axes of a convolution with filters [groups, outputs, inputs, *kernel]; None if ``run`` is better."""
    spans, counts = op.windows(data.shape[2:], grouped.shape[3:])
    axes = [Axis(w.kernel, w.stride, w.dilation, w.pad_begin, n) for w, n in zip(spans, counts, strict=True)]
    return None if any(a.pad_begin < 0 for a in axes) or is_mostly_padding(axes, data.shape[2:]) else axes


_LEAST_BYTES, _LEAST_TAPS = 1 << 16, 64
"""To bind a form for a single run pays from so many bytes of all inputs on, or from so many taps of the filters, each
of which takes a product of ``run``. A model for sound with convolutions of 256 taps takes 0.2 times as long where each
call brings another length."""


def _pays_at_once(op: ops.ConvolutionBase, *inputs: Array) -> bool:
    data, filters = inputs[0], inputs[input_names(type(op)).index("filters")]
    return sum(array.nbytes for array in inputs) >= _LEAST_BYTES or prod(filters.shape[2 - data.ndim :]) >= _LEAST_TAPS


@fast(ops.Convolution, ops.GroupConvolution, in_f32=True, at_once=_pays_at_once)
def convolution(op: ops.ForwardConvolutionBase, binder: Binder, *inputs: Array) -> bool:
    data, filters = inputs
    dtype = product_dtype(data.dtype)
    if dtype is None or not data.size or not filters.size or 0 in binder.output_shape():
        return False
    is_constant = binder.is_constant(1)
    grouped = op.grouped(filters.astype(dtype, copy=False) if is_constant else filters)
    axes = _axes(op, data, grouped)
    if axes is None:
        return False
    meets_zeros = any(a.kernel > 1 or a.padded(size) > size for a, size in zip(axes, data.shape[2:], strict=True))
    if is_constant and meets_zeros and not np.isfinite(grouped).all():
        return False  # zeros around the data times infinity are NaN
    image = computed_image(binder, data, dtype)
    by_planes = _has_few_windows(binder, image, grouped, axes)
    out = binder.output(order=None if by_planes else channels_last_order(data.ndim))
    sums = channels_last(out)
    if out.dtype != dtype:
        sums = binder.scratch(sums.shape, dtype)
    if grouped.shape[1] == grouped.shape[2] == 1 < len(grouped):
        bind_depthwise(binder, image, np.moveaxis(grouped[:, 0, 0], 0, -1), axes, sums)
        is_exact = is_constant
    else:
        is_exact = _bind_dense(binder, image, grouped, axes, sums)
    if out.dtype != dtype:
        binder.call(store_sums, sums, channels_last(out))
    if data.dtype.kind in "iu":
        _redo_wide_integers(binder, op, grouped[0, 0].size, inputs, out)
    elif not is_exact:
        binder.call(_redo_if_not_finite, sums.reshape(-1), op.run, inputs, out)
    return True


@fast(ops.BinaryConvolution, in_f32=True, at_once=_pays_at_once)
def binary_convolution(op: ops.BinaryConvolution, binder: Binder, *inputs: Array) -> bool:
    data, filters = inputs
    if not is_native(data) or not data.size or not filters.size or not binder.is_constant(1):
        return False
    grouped = op.grouped(filters)
    axes = _axes(op, data, grouped)
    if axes is None:
        return False
    image = channels_last(data)
    is_one, signs = binder.scratch(image.shape, np.bool_), binder.scratch(image.shape)
    call_elementwise(binder, np.greater, image, np.zeros((), data.dtype), is_one)
    call_elementwise(binder, np.multiply, is_one, number(2, signs), signs)
    call_elementwise(binder, np.subtract, signs, number(1 + op.pad_value, signs), signs)
    out = channels_last(binder.output(order=channels_last_order(data.ndim)))
    sums = binder.scratch(out.shape)
    _bind_dense(binder, signs, grouped, axes, sums)
    padding = op.pad_value * grouped.sum(axis=(0, 2, 3, 4))
    call_elementwise(binder, np.add, sums, tiled(padding, sums), sums)
    binder.call(store_sums, sums, out)
    return True


_SAMPLED = 1 << 18
"""The most elements that samples have; more of them take longer than the calls of ``run``."""


@fast(ops.DeformableConvolution8, at_once=_pays_at_once)
def deformable_convolution(op: ops.DeformableConvolution8, binder: Binder, *inputs: Array) -> bool:
    data, offsets, filters, *masks = inputs
    images, channels, *spatial = data.shape
    spans, sizes = op.windows(spatial, filters.shape[2:])
    taps, parts = prod(filters.shape[2:]), op.deformable_group
    samples, depth = (images, prod(sizes), taps, parts), channels // parts  # each part of the channels moves on its own
    is_f32 = all(array.dtype == np.float32 for array in inputs) and binder.is_constant(2)
    is_small = 0 < prod(samples) * depth <= _SAMPLED and len(filters) > 0
    if not op.bilinear_interpolation_pad or op.group > 1 or not is_f32 or not is_small:
        return False
    # Places outside read zeros: a row and a column before the data, and two after it.
    image = padded_image(binder, channels_last(data), [Axis(1, 1, 1, 1, size + 3) for size in spatial])
    places, low, shares = (binder.scratch((2, *samples, *more)) for more in ((), (), (2,)))
    begins, numbers = binder.scratch((2, *samples), np.intp), binder.scratch((*samples, 4), np.intp)
    weights, pixels, sums = (binder.scratch((*samples, *more)) for more in ((2, 2), (4, depth), (1, depth)))
    rows, columns = (w.positions(count) for w, count in zip(spans, sizes, strict=True))
    unmoved = np.stack(np.broadcast_arrays(rows[:, np.newaxis, :, np.newaxis], columns[:, np.newaxis]))
    moves = offsets.reshape(images, parts, taps, 2, -1).transpose(3, 0, 4, 2, 1)
    binder.call(np.add, unmoved.reshape(2, 1, -1, taps, 1).astype(np.float32), moves, places)
    binder.call(np.fmax, places, number(-1, places), places)  # NaN is outside, too
    binder.call(np.fmin, places, np.array(spatial, np.float32).reshape(2, 1, 1, 1, 1), places)
    binder.call(np.floor, places, low)
    binder.call(np.subtract, places, low, shares[..., 1])
    binder.call(np.subtract, number(1, places), shares[..., 1], shares[..., 0])
    binder.call(np.multiply, shares[0, ..., np.newaxis], shares[1, ..., np.newaxis, :], weights)
    for mask in masks:
        scale = mask.reshape(images, parts, taps, -1, 1, 1).transpose(0, 3, 2, 1, 4, 5)
        binder.call(np.multiply, weights, scale, weights)
    # The four pixels around a place come after the first of them, whose row and column are ``low``.
    size = (*image.shape[:-1], parts)
    around = np.ravel_multi_index(np.ix_(range(images), (1, 2), (1, 2), range(parts)), size).transpose(0, 3, 1, 2)
    binder.call(np.copyto, begins, low, "unsafe")
    binder.call(np.multiply, begins, np.array([size[2] * parts, parts]).reshape(2, 1, 1, 1, 1), begins)
    binder.call(np.add, begins[0], begins[1], begins[0])
    binder.call(np.add, begins[0, ..., np.newaxis], around.reshape(images, 1, 1, parts, 4), numbers)
    binder.call(image.reshape(-1, depth).take, numbers, 0, pixels, "clip")
    binder.call(np.matmul, weights.reshape(*samples, 1, 4), pixels, sums)
    out = channels_last(binder.output(order=channels_last_order(4)))
    matrix = binder.prepared("by taps", lambda: _matrices(filters[np.newaxis])[0])
    bind_product(binder, sums.reshape(-1, taps * channels), matrix, out.reshape(-1, len(filters)))
    return True


def _redo_wide_integers(
    binder: Binder, op: ops.ConvolutionBase, count: int, inputs: Sequence[Array], out: Array
) -> None:
    """Bind ``redo_if_inexact`` where sums of ``count`` products of integers of the type of the inputs may be too large
    for f64."""
    if count << 2 * 8 * inputs[0].itemsize > EXACT:
        binder.call(redo_if_inexact, count, op.run, inputs, out)


def _redo_if_not_finite(flat: Array, run: Callable[..., Array], inputs: Sequence[Array], out: Array) -> None:
    """Compute ``out`` again by ``run`` if its sums ``flat`` have NaN or infinities, which may be wrong.

    BLAS adds squares in a quarter of the time of NumPy's sum. Where they overflow, the result is the same.
    """
    if not np.isfinite(np.dot(flat, flat)):
        np.copyto(out, run(*inputs))


# --------------------------------------------------------------------------- dense filters


def _bind_dense(binder: Binder, image: Array, filters: Array, axes: Sequence[Axis], out: Array) -> bool:
    """Bind a convolution of an image [N, *spatial, C] with filters [groups, outputs, C / groups, *kernel] to out
    [N, *windows, outputs of all groups].

    Return whether the result is right for all data: windows that are taken together multiply the data of each other by
    zero, outputs of a tile share their sums, and computed filters may be infinite. A result that is not right is not
    finite.
    """
    groups, outputs, channels, *kernel = filters.shape
    is_constant = binder.is_constant(1)
    is_pointwise = all(a.kernel == 1 and a.stride == 1 and not a.pad_begin for a in axes) and groups == 1
    if is_pointwise and all(a.windows == size for a, size in zip(axes, image.shape[1:-1], strict=True)):
        rows = position_rows(image)
        if rows is not None:
            multiply = _product(binder, "rows", filters, _matrices, outputs, rows)
            call_shares(binder, [multiply(rows, out.reshape(-1, outputs), True)])
            return is_constant
    if is_constant and (tiles := whole_tiles(axes, filters.shape)) is not None:
        bind_tiles(binder, image, filters, tiles, out)
        return False
    if _has_few_windows(binder, image, filters, axes):
        _bind_whole_planes(binder, np.moveaxis(image, -1, 1), filters, axes, out)
        return True
    if is_constant and groups == 1 and image.shape[-2] > 1 and channels * kernel[-1] <= _FEW_CHANNELS:
        _bind_planes(binder, np.moveaxis(image, -1, 1), filters, axes, out)
        return True
    *others, last = axes
    count = _windows_at_once(last, outputs, channels * prod(kernel[:-1])) if groups == 1 and is_constant else 1
    if count == 1:

        def product_of(rows: Array) -> Product:
            return _product(binder, "rows", filters, _matrices, outputs, rows)

        _bind_columns(binder, image, axes, product_of, groups, out)
        return is_constant
    wide = _widened(last, count)
    is_whole = last.windows % count == 0
    target = out if is_whole else binder.scratch((*out.shape[:-2], wide.windows * count, outputs), out.dtype)
    grouped = target.reshape(*out.shape[:-2], wide.windows, count * outputs)

    def wide_product_of(rows: Array) -> Product:
        form, make = f"{count} windows at a time", partial(_side_by_side, axis=last, count=count)
        return _product(binder, form, filters, make, count * outputs, rows)

    _bind_columns(binder, image, [*others, wide], wide_product_of, 1, grouped)
    if not is_whole:
        binder.call(np.copyto, out, target[..., : last.windows, :])
    return False


def _product(
    binder: Binder, form: str, filters: Array, make: Callable[[Array], Array], depth: int, rows: Array
) -> Product:
    """Return the product of rows with ``make(filters)``, matrices [groups, length, depth] whose name is ``form``."""
    if binder.is_constant(1):
        return filter_product(binder, form, lambda: make(filters), depth, rows)
    ordered = np.moveaxis(filters, (1, 2), (-1, -2))  # the same as _matrices, in each run
    weights = filter_copy(binder, form, ordered, rows.dtype).reshape(len(filters), -1, depth)
    return product_with(weights if rows.ndim > 2 else weights[0])


def _matrices(filters: Array) -> Array:
    """Return filters [groups, outputs, inputs, *kernel] as matrices [groups, *kernel * inputs, outputs]."""
    groups, outputs, inputs, *kernel = filters.shape
    ordered = np.moveaxis(filters, (1, 2), (-1, -2))
    if prod(kernel) > 1:
        ordered = contiguous_copy(ordered)
    return ordered.reshape(groups, prod(kernel) * inputs, outputs)


# --------------------------------------------------------------------------- several windows at a time

_COPY, _VECTOR = 20, 8
"""The copy of an element costs as much as its product with so many columns of filters, and BLAS computes columns in
vectors of so many. Without windows that are taken together, basic_pitch_onnx takes 1.4 times as long."""
_MOST_WINDOWS, _LARGEST_MATRIX, _GAIN = 64, 1 << 20, 1.25
"""More windows at a time, and larger matrices, do not pay; nor does a gain smaller than this."""


def _windows_at_once(axis: Axis, outputs: int, others: int) -> int:
    """Return the number of windows along the last axis that are best taken together.

    ``others`` is the number of elements that a window has for each tap along the axis.
    """

    def cost(count: int) -> float:
        wide = _widened(axis, count)
        columns = -(-count * outputs // _VECTOR) * _VECTOR
        copied = 0 if axis.windows % count == 0 else 2 * axis.windows * outputs
        return wide.windows * wide.kernel * others * (_COPY + columns) + copied * _COPY

    def size(count: int) -> int:
        return _widened(axis, count).kernel * others * count * outputs

    counts = [n for n in range(2, min(axis.windows, _MOST_WINDOWS) + 1) if size(n) <= _LARGEST_MATRIX]
    best = min(counts, key=cost, default=1)
    return best if cost(best) * _GAIN < cost(1) else 1


def _widened(axis: Axis, count: int) -> Axis:
    """Return the axis with wider windows, each of which holds ``count`` neighboring ones."""
    if count == 1:
        return axis
    kernel = (axis.kernel - 1) * axis.dilation + 1 + (count - 1) * axis.stride
    return Axis(kernel, count * axis.stride, 1, axis.pad_begin, -(-axis.windows // count))


def _side_by_side(filters: Array, axis: Axis, count: int) -> Array:
    """Return the filters [1, outputs, inputs, *kernel] for ``count`` windows at a time, as one matrix [1, *wide kernel
    * inputs, count * outputs]."""
    _, outputs, inputs, *kernel = filters.shape
    ordered = np.moveaxis(filters[0], (0, 1), (-1, -2))
    wide = np.zeros((*kernel[:-1], _widened(axis, count).kernel, inputs, count, outputs), filters.dtype)
    span = (axis.kernel - 1) * axis.dilation + 1
    for window in range(count):
        start = window * axis.stride
        wide[..., start : start + span : axis.dilation, :, window, :] = ordered
    return wide.reshape(1, -1, count * outputs)


# --------------------------------------------------------------------------- copies of windows and products


def _bind_columns(
    binder: Binder,
    image: Array,
    axes: Sequence[Axis],
    product_of: Callable[[Array], Product],
    groups: int,
    out: Array,
) -> None:
    """Bind the copy of windows [N, *windows, *kernel, C] to rows, and the products that ``product_of`` returns for
    them."""
    view = windows(padded_image(binder, image, axes), axes)
    spatial = len(axes)
    split = (*view.shape[:-1], groups, view.shape[-1] // groups)
    view = np.moveaxis(view.reshape(split), -2, 1 + spatial)
    length = prod(view.shape[2 + spatial :])
    depth = out.shape[-1] // groups
    multiply: Product | None = None
    shares: list[list[Call]] = []
    row_bytes = prod(view.shape[2 : 2 + spatial]) * (length + depth) * view.itemsize
    for places in _shares(view.shape[0], view.shape[1], row_bytes, out.size * length):
        most = max(place.stop - place.start for _, place in places)
        memory = binder.scratch((most * prod(view.shape[2:]),), view.dtype)
        shares.append([])
        for place in places:
            source = view[place]
            target = memory[: source.size].reshape(source.shape)
            columns, result = target.reshape(-1, groups, length), out[place].reshape(-1, groups, depth)
            if groups == 1:
                columns, result = columns[:, 0], result[:, 0]
            else:
                columns, result = columns.swapaxes(0, 1), result.swapaxes(0, 1)
            multiply = multiply or product_of(columns)
            shares[-1] += [(np.copyto, (target, source)), *multiply(columns, result, False)]
    call_shares(binder, shares)


def _shares(images: int, count: int, row_bytes: int, work: int) -> list[list[tuple[int, slice]]]:
    """Return for each thread the images and blocks along the first spatial axis that it takes.

    ``count`` is the number of windows along this axis, of each of which the columns and results take ``row_bytes``;
    ``work`` is the number of multiply-accumulates.
    """
    workers = max(min(work // SHARED, threads()), 1)
    step = max(min(_BLOCK_BYTES // row_bytes, -(-count // workers)), 1)
    places = [(n, slice(i, min(i + step, count))) for n in range(images) for i in range(0, count, step)]
    return [places[first::workers] for first in range(min(workers, len(places)))]


# --------------------------------------------------------------------------- few channels


def _bind_planes(binder: Binder, data: Array, filters: Array, axes: Sequence[Axis], out: Array) -> None:
    """Bind a convolution of data [N, C, *spatial] with filters [1, outputs, C, *kernel] to out [N, *windows, outputs].

    The elements that a tap reads for all windows make a column of a matrix, so that NumPy copies long runs, and no copy
    with the channels last is needed.
    """
    view = plane_windows(padded_planes(binder, data, axes), axes)
    outputs, length = filters.shape[1], prod(filters.shape[2:])
    first = 2 + len(axes)  # the axis of view with the windows along the first spatial axis
    rest = prod(view.shape[first + 1 :])
    multiply: Product | None = None
    shares: list[list[Call]] = []
    for places in _shares(view.shape[0], view.shape[first], rest * length * view.itemsize, out.size * length):
        most = max(place.stop - place.start for _, place in places)
        memory = binder.scratch((length, most * rest), view.dtype)
        shares.append([])
        for n, place in places:
            source = view[n][(slice(None),) * (first - 1) + (place,)]
            result = out[n, place].reshape(-1, outputs)
            columns = memory[:, : len(result)]
            multiply = multiply or _product(binder, "planes", filters, _by_planes, outputs, columns.T)
            copy: Call = np.copyto, (columns.reshape(source.shape), source)
            shares[-1] += [copy, *multiply(columns.T, result, False)]
    call_shares(binder, shares)


def _by_planes(filters: Array) -> Array:
    """Return filters [1, outputs, inputs, *kernel] as a matrix [1, inputs * kernel, outputs], a view of them."""
    return filters.reshape(1, filters.shape[1], -1).swapaxes(1, 2)


# --------------------------------------------------------------------------- few windows


def _has_few_windows(binder: Binder, image: Array, filters: Array, axes: Sequence[Axis]) -> bool:
    """Return whether all windows of one image are multiplied at once with constant filters as they lie [1, outputs,
    inputs, *kernel]: the product of these with windows by planes is the output by planes.

    In another order, binding ResNet-50 takes 1.5 times as long, and a run the same time.
    """
    if not binder.is_constant(1) or len(image) > 1 or len(filters) > 1 or not filters.flags.c_contiguous:
        return False
    return stays_by_columns(prod(a.windows for a in axes), _by_planes(filters)[0])


def _bind_whole_planes(binder: Binder, data: Array, filters: Array, axes: Sequence[Axis], out: Array) -> None:
    """Bind a convolution of data [1, C, *spatial] with filters [1, outputs, C, *kernel] to out [1, *windows, outputs]
    that lies by planes."""
    view = plane_windows(padded_planes(binder, data, axes), axes)[0]
    columns = binder.scratch(view.shape, view.dtype)
    bind_copy(binder, view, columns)
    rows = columns.reshape(filters[0, 0].size, -1).T
    multiply = _product(binder, "planes", filters, _by_planes, filters.shape[1], rows)
    call_shares(binder, [multiply(rows, out.reshape(-1, filters.shape[1]), True)])


# --------------------------------------------------------------------------- transposed convolutions


@fast(ops.TransposedConvolutionBase, in_f32=True, at_once=_pays_at_once)
def transposed_convolution(op: ops.TransposedConvolutionBase, binder: Binder, *inputs: Array) -> bool:
    data, filters, *sizes = inputs
    dtype = product_dtype(data.dtype)
    if dtype is None or not all(map(binder.is_constant, range(2, len(inputs)))):
        return False
    grouped = op.grouped(filters)
    groups, depth, outputs, *kernel = grouped.shape
    if not data.size or not filters.size or 0 in binder.output_shape() or depth == outputs == 1:
        return False
    windows, _ = op.windows_of_output(data.shape[2:], kernel, sizes[0] if sizes else None)
    image = computed_image(binder, data, dtype)
    rows = position_rows(image)
    if rows is None:
        rows = binder.scratch(image.shape, dtype)
        binder.call(np.copyto, rows, image)
    factors = rows.reshape(-1, groups, depth).swapaxes(0, 1)
    weights = filter_copy(binder, "taps", np.moveaxis(grouped, 2, -1), dtype).reshape(groups, depth, -1)
    out = binder.output(order=channels_last_order(data.ndim))
    sums = channels_last(out)
    if out.dtype != dtype:
        sums = binder.scratch(sums.shape, dtype)
    binder.call(sums.fill, 0)
    target = sums.reshape(*sums.shape[:-1], groups, outputs)
    axes = [w.taps(size, n) for w, size, n in zip(windows, sums.shape[1:-1], data.shape[2:], strict=True)]
    reached = {tap: places for tap, *places in (zip(*taps, strict=True) for taps in product(*axes))}
    taps = list(product(*map(range, kernel)))
    elements_at_once = _PRODUCTS if depth >= _DEEP else _SHALLOW_PRODUCTS
    most = max(elements_at_once // (factors[..., 0].size * outputs), 1)
    products = binder.scratch((*factors.shape[:-1], min(most, len(taps)) * outputs), dtype)
    for first in range(0, len(taps), most):
        some = taps[first : first + most]
        columns = products[..., : len(some) * outputs]
        bind_product(binder, factors, weights[..., first * outputs :][..., : len(some) * outputs], columns)
        by_tap = np.moveaxis(columns.reshape(groups, *image.shape[:-1], len(some), outputs), 0, -2)
        for i, tap in enumerate(some):
            if tap in reached:
                elements, places = reached[tap]
                into = target[slice(None), *places]
                call_elementwise(binder, np.add, into, by_tap[slice(None), *elements, i], into)
    if out.dtype != dtype:
        binder.call(store_sums, sums, channels_last(out))
    if data.dtype.kind in "iu":
        _redo_wide_integers(binder, op, depth * prod(kernel), inputs, out)
    return True
