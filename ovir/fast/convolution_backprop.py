"""ConvolutionBackpropData and GroupConvolutionBackpropData: one product for each tap, added to where the tap lies."""

from __future__ import annotations

from itertools import product

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binding import Binder, call_elementwise
from ovir.fast.base.images import (
    channels_last,
    channels_last_order,
    computed_image,
    filter_copy,
    position_rows,
    product_dtype,
    store_sums,
)
from ovir.fast.base.products import bind_product
from ovir.fast.registry import fast
from ovir.ops.convolution_backprop import TransposedConvolutionBase


@fast(TransposedConvolutionBase, in_f32=True)
def transposed_convolution(op: TransposedConvolutionBase, binder: Binder, *inputs: Array) -> bool:
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
    weights = filter_copy(binder, "taps", np.moveaxis(grouped, (0, 1, 2), (-3, -2, -1)), dtype)
    out = binder.output(order=channels_last_order(data.ndim))
    sums = channels_last(out)
    if out.dtype != dtype:
        sums = binder.scratch(sums.shape, dtype)
    binder.call(sums.fill, 0)
    target = sums.reshape(*sums.shape[:-1], groups, outputs)
    products = binder.scratch((*factors.shape[:-1], outputs), dtype)
    by_place = np.moveaxis(products.reshape(groups, *image.shape[:-1], outputs), 0, -2)
    axes = [list(w.taps(size, n)) for w, size, n in zip(windows, sums.shape[1:-1], data.shape[2:], strict=True)]
    for taps in product(*axes):
        tap, elements, places = zip(*taps, strict=True)
        bind_product(binder, factors, weights[tap], products)
        into = target[slice(None), *places]
        call_elementwise(binder, np.add, into, by_place[slice(None), *elements], into)
    if out.dtype != dtype:
        binder.call(store_sums, sums, channels_last(out))
    return True
