"""Arrays of equal elements that lie in memory in different ways."""

from collections.abc import Callable

import numpy as np

from ovir.core.arrays import Array


class Subclass(np.ndarray):  # type: ignore[type-arg]
    """An array that is not a plain one."""


def read_only(array: Array) -> Array:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def fortran(array: Array) -> Array:
    return np.array(array, order="F")


def strided(array: Array) -> Array:
    if not array.ndim:
        return array.copy()
    view = np.zeros([2 * size for size in array.shape], array.dtype)[tuple(slice(1, None, 2) for _ in array.shape)]
    return _filled(view, array)


def backwards(array: Array) -> Array:
    if not array.ndim:
        return array.copy()
    view = np.zeros(array.shape, array.dtype)[tuple(slice(None, None, -1) for _ in array.shape)]
    return _filled(view, array)


def rotated(array: Array) -> Array:
    """The first axis lies innermost, the others in order."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 0, -1)), -1, 0) if array.ndim else array.copy()


def misaligned(array: Array) -> Array:
    if array.dtype.kind in "TO":
        return array.copy()
    return _filled(np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape), array)


def of_other_byte_order(array: Array) -> Array:
    return array.astype(array.dtype.newbyteorder("S")) if array.dtype.isbuiltin == 1 else array.copy()


def of_subclass(array: Array) -> Array:
    return array.copy().view(Subclass)


def _filled(view: Array, array: Array) -> Array:
    view[...] = array
    return view


Layout = Callable[[Array], Array]

OF_KERNELS: dict[str, Layout] = {f.__name__: f for f in (read_only, fortran, strided, backwards, rotated, misaligned)}
"""What a kernel can be given: plain arrays of this machine's byte order."""
OF_USERS: dict[str, Layout] = {**OF_KERNELS, **{f.__name__: f for f in (of_other_byte_order, of_subclass)}}
"""What a user can feed."""


def elements(array: Array) -> object:
    """All that there is in an array, to be compared: equal NaNs are equal."""
    content = array.tolist() if array.dtype.kind in "TO" else np.ascontiguousarray(array).tobytes()
    return array.shape, array.dtype, content
