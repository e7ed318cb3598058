"""Matrix products, which BLAS computes in f32 or f64."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binding import Binder
from ovir.fast.base.products import bind_constant_product, bind_product, readable
from ovir.fast.registry import fast
from ovir.ops.matmul import MatMul, in_integers, is_integer, matrix_product, oriented


@fast(MatMul, in_f32=True)
def matmul(op: MatMul, binder: Binder, *inputs: Array) -> bool:
    if any(not array.size for array in inputs):
        return False
    a, b = (oriented(x, t) for x, t in zip(inputs, (op.transpose_a, op.transpose_b), strict=True))
    out = binder.output()
    if is_integer(a.dtype):
        binder.call(integer_product, a, b, out)
        return True
    a, b = (a[np.newaxis] if a.ndim == 1 else a), (b[:, np.newaxis] if b.ndim == 1 else b)
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    matrices = out.reshape(*lead, a.shape[-2], b.shape[-1])
    a = readable(binder, a, "a" if binder.is_constant(0) else None)
    if binder.is_constant(1):
        bind_constant_product(binder, a, b, matrices)
    else:
        bind_product(binder, a, readable(binder, b), matrices)
    return True


def integer_product(a: Array, b: Array, out: Array) -> None:
    """Multiply integers with BLAS, in the smallest floating-point type that represents every sum exactly."""
    largest = float(a.shape[-1]) * _magnitude(a) * _magnitude(b)
    for dtype, exact in ((np.float32, 1 << 24), (np.float64, 1 << 53)):
        if largest <= exact:
            product = np.matmul(a.astype(dtype), b.astype(dtype))
            np.copyto(out, in_integers(product.astype(np.int64), out.dtype))
            return
    np.copyto(out, matrix_product(a, b))


def _magnitude(x: Array) -> float:
    wide = x if x.dtype.kind in "iu" else x.astype(np.int8)
    return max(abs(float(wide.max())), abs(float(wide.min())))
