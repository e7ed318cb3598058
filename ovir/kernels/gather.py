"""Gather and GatherElements: parts of `data`, picked by position along one axis.

The kernels rest on `ndarray.take(..., mode="clip")`. Writing into a given array, it is the fastest gather that NumPy
has, and it never reads outside `data`, whatever the indices are. Indices that "clip" would hide are found beforehand by
one reduction in the indices' own type: read as unsigned, an index is below `size` only if it is in range and not
negative.

`out` must not overlap an input. It is filled and returned if it is C-contiguous and has the result's shape and type;
otherwise a new array is returned.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.kernels.gather_blocks import BYTES_PER_THREAD, MODES, UNSIGNED, Spread, layout_of, take_blocks, take_cells
from ovir.kernels.parallel import run_blocks

Shape = tuple[int, ...]
Prepared = Callable[..., Array]

# The fewest bytes of indices that justify another thread where they are only checked. It is more than BYTES_PER_THREAD,
# because a reduction reads bytes much faster than a gather moves them.
_REDUCED_BYTES_PER_THREAD = 1 << 23
# For results up to this size mode="raise" is cheaper: it checks the indices in passing but first fills a copy of `out`.
_SMALL_BYTES = 1 << 14

# From this many elements per run on, the overhead that NumPy's strided copy has per run is negligible.
_LONG_RUN = 32


class IndexOutsideError(IndexError):
    """An index is outside [-size, size-1]; `position` is the position of the first one in row-major order."""

    def __init__(self, position: Shape, value: int, size: int) -> None:
        super().__init__(f"indices[{','.join(map(str, position))}] = {value} is outside [{-size}, {size - 1}]")
        self.position = position
        self.value = value
        self.size = size


def find_outside(indices: Array, size: int) -> tuple[Shape, int] | None:
    """Return the position and value of the first index outside [-size, size-1], or None."""
    outside = _outside(indices, size)
    if not outside.any():
        return None
    position = tuple(int(i) for i in np.unravel_index(outside.argmax(), indices.shape))
    return position, int(indices[position])


def gather(
    data: Array,
    indices: Array,
    axis: int,
    batch_dims: int = 0,
    out: Array | None = None,
    spread: Spread | None = None,
) -> Array:
    """Compute out[b, o, i, k] = data[b, o, indices[b, i], k].

    b runs over `batch_dims` axes, o over the other axes before `axis`. A negative index counts from the end; for an
    index outside [-size, size-1] the result is zero. `axis` and `batch_dims` are not negative, and the batch dimensions
    of data and indices are equal. Pass `spread` if the spread of the indices is already known.
    """
    out = _usable(out, data.shape[:axis] + indices.shape[batch_dims:] + data.shape[axis + 1 :], data.dtype)
    size = data.shape[axis]
    if out.size == 0 or size == 0:
        out[...] = _zero(out.dtype)
        return out
    contiguous = data.flags.c_contiguous
    if batch_dims == 0:
        # take would read uint64 values from 2**63 on as negative numbers, some of which are in range.
        if out.nbytes <= _SMALL_BYTES and contiguous and indices.dtype != np.uint64:
            try:
                return data.take(indices, axis, out)
            except IndexError:
                pass
        elif indices.size == 1 and _copies_well(prod(data.shape[axis + 1 :])):
            return _copy_slice(data, indices.item(), axis, out)
        elif not contiguous and data.size > out.size:
            return _gather_strided(data, indices, axis, out)

    data = np.ascontiguousarray(data)
    outer, inner = prod(data.shape[:axis]), prod(data.shape[axis + 1 :])
    flat = _flat(_repeated_over(data.shape[batch_dims:axis], indices, batch_dims))
    spread = spread or spread_of(flat, size)
    outside = None
    if spread is Spread.OUTSIDE:
        flat, outside = _normalized(flat, size)
        spread = Spread.PLAIN
    rows = out.reshape(outer, -1, inner)
    if batch_dims or outer == 1:
        layout = layout_of(outer, size, flat.size // outer, 1, inner * data.itemsize, flat.dtype)
        take_blocks(data.reshape(-1, inner), flat, spread, layout, rows[:, :, None])
    else:
        take_cells(data.reshape(outer, size, inner), flat.astype(np.intp), rows, MODES[spread])
    if outside is not None:
        rows[outside.reshape(rows.shape[:2]) if batch_dims else (slice(None), outside)] = _zero(out.dtype)
    return out


def gather_elements(data: Array, indices: Array, axis: int, out: Array | None = None) -> Array:
    """Compute out[i, j, k] = data[indices[i, j, k], j, k] for axis 0, and likewise for other axes.

    A negative index counts from the end; an index outside [-size, size-1] raises IndexOutsideError before anything is
    written. Data and indices have equal dimensions except along `axis`, which is not negative.
    """
    shape, size = indices.shape, data.shape[axis]
    out = _usable(out, shape, data.dtype)
    if out.size == 0:
        return out
    flat = _flat(indices)
    outer, inner = prod(shape[:axis]), prod(shape[axis + 1 :])
    spread = spread_of(flat, size)
    if spread is Spread.OUTSIDE:
        raise _error(indices, size)
    layout = layout_of(outer, size, shape[axis], inner, data.itemsize, flat.dtype)
    take_blocks(data.ravel(), flat, spread, layout, out.reshape(outer, -1, inner))
    return out


def prepare_gather(indices: Array, data_shape: Shape, axis: int, batch_dims: int = 0) -> Prepared:
    """Return a function (data, out=None) equivalent to `gather` for constant indices and data of a known shape."""
    shape = data_shape[:axis] + indices.shape[batch_dims:] + data_shape[axis + 1 :]
    outer, size, inner = prod(data_shape[:axis]), data_shape[axis], prod(data_shape[axis + 1 :])
    count = prod(indices.shape[batch_dims:])
    positions, outside = _normalized(_flat(_repeated_over(data_shape[batch_dims:axis], indices, batch_dims)), size)
    if batch_dims:
        positions += np.repeat(np.arange(outer) * size, count)
        outer, size = 1, outer * size
    elif outside is None and (section := _as_slice(positions)) is not None:
        whole = inner == 1 or section.step == 1
        if _copies_well(count * inner if whole else inner):
            return _prepared_slice((slice(None),) * axis + (section,), shape)
    return _prepared_take(positions, outside, (outer, size, inner), shape)


def prepare_gather_elements(indices: Array, data_shape: Shape, axis: int) -> Prepared:
    """Return a function (data, out=None) equivalent to `gather_elements` for constant indices and data of a known
    shape.

    It keeps the flat position of every result: eight bytes each.
    """
    size, inner = data_shape[axis], prod(data_shape[axis + 1 :])
    positions, outside = _normalized(indices, size)
    if outside is not None:
        raise _error(indices, size)
    positions *= inner
    positions += np.arange(prod(data_shape[:axis])).reshape(*data_shape[:axis], *(1,) * (indices.ndim - axis)) * (
        size * inner
    )
    positions += np.arange(inner).reshape(data_shape[axis + 1 :])
    return _prepared_take(positions.reshape(-1), None, (1, prod(data_shape), 1), indices.shape)


def _prepared_take(positions: Array, outside: Array | None, data_shape: Shape, shape: Shape) -> Prepared:
    rows_shape = (data_shape[0], positions.size, data_shape[2])
    nothing = 0 in data_shape or 0 in shape

    def run(data: Array, out: Array | None = None) -> Array:
        out = _usable(out, shape, data.dtype)
        if nothing:
            out[...] = _zero(out.dtype)
            return out
        rows = out.reshape(rows_shape)
        take_cells(np.ascontiguousarray(data).reshape(data_shape), positions, rows)
        if outside is not None:
            rows[:, outside] = _zero(out.dtype)
        return out

    return run


def _prepared_slice(selection: Any, shape: Shape) -> Prepared:
    def run(data: Array, out: Array | None = None) -> Array:
        out = _usable(out, shape, data.dtype)
        source = data[selection]
        _copy(source, out.reshape(source.shape))
        return out

    return run


def _usable(out: Array | None, shape: Shape, dtype: np.dtype[Any]) -> Array:
    if out is not None and out.shape == shape and out.dtype == dtype and out.flags.c_contiguous:
        return out
    return np.empty(shape, dtype)


def _zero(dtype: np.dtype[Any]) -> Any:
    return "" if dtype.kind == "O" else np.zeros((), dtype)


def _flat(indices: Array) -> Array:
    if not indices.dtype.isnative:
        indices = indices.astype(indices.dtype.newbyteorder("="))
    return indices.ravel()


def _repeated_over(dims: Shape, indices: Array, batch_dims: int) -> Array:
    """Return indices broadcast along `dims`, inserted between the batch dimensions and the others."""
    if batch_dims == 0 or prod(dims) == 1:
        return indices
    batch, rest = indices.shape[:batch_dims], indices.shape[batch_dims:]
    return np.broadcast_to(indices.reshape(batch + (1,) * len(dims) + rest), batch + dims + rest)


def _outside(indices: Array, size: int) -> Array:
    # NumPy compares a Python integer by value, also where the array's type could not hold it.
    outside: Array = indices >= size
    return outside | (indices < -size) if indices.dtype.kind == "i" else outside


def _error(indices: Array, size: int) -> IndexOutsideError:
    found = find_outside(indices, size)
    assert found is not None
    return IndexOutsideError(*found, size)


def spread_of(indices: Array, size: int) -> Spread:
    """Return how far the indices reach, computed in their own type."""
    indices = _flat(indices)
    if not indices.size:
        return Spread.PLAIN
    if _reduced(np.maximum, indices.view(UNSIGNED[indices.itemsize])) < size:
        return Spread.PLAIN
    if indices.dtype.kind == "i" and _reduced(np.maximum, indices) < size and _reduced(np.minimum, indices) >= -size:
        return Spread.NEGATIVE
    return Spread.OUTSIDE


def _reduced(function: np.ufunc, array: Array) -> int:
    """Reduce a flat array, on several threads if it is long."""
    if array.nbytes < 2 * _REDUCED_BYTES_PER_THREAD:
        return int(function.reduce(array))
    parts: list[int] = []
    run_blocks(
        lambda start, stop: parts.append(function.reduce(array[start:stop])),
        array.size,
        _REDUCED_BYTES_PER_THREAD // array.itemsize,
    )
    return int(function.reduce(parts))


def _normalized(indices: Array, size: int) -> tuple[Array, Array | None]:
    """Return positions in [0, size-1] and a mask of indices that were outside (whose position is 0); None if there are
    none."""
    outside = _outside(indices, size)
    positions = indices.astype(np.intp)
    positions += (positions >> (8 * positions.itemsize - 1)) & size  # all ones if negative
    if not outside.any():
        return positions, None
    positions[outside] = 0
    return positions, outside


def _copy_slice(data: Array, index: int, axis: int, out: Array) -> Array:
    size = data.shape[axis]
    if -size <= index < size:
        # Use a slice, because a string picked by an index would not be an array.
        first = index % size
        source = data[(slice(None),) * axis + (slice(first, first + 1),)]
        _copy(source, out.reshape(source.shape))
    else:
        out[...] = _zero(out.dtype)
    return out


def _copies_well(run: int) -> bool:
    """Return whether a strided copy is faster than take, whose overhead is per index instead of per run."""
    return run == 1 or run >= _LONG_RUN


def _copy(source: Array, target: Array) -> None:
    if target.nbytes < 2 * BYTES_PER_THREAD:
        target[...] = source
        return
    source, target = source.squeeze(), target.squeeze()
    run_blocks(
        lambda start, stop: np.copyto(target[start:stop], source[start:stop]),
        len(target),
        -(-BYTES_PER_THREAD * len(target) // target.nbytes),
    )


def _gather_strided(data: Array, indices: Array, axis: int, out: Array) -> Array:
    """Gather without the contiguous copy of all data that take would make."""
    positions, outside = _normalized(indices, data.shape[axis])
    before: Any = (slice(None),) * axis
    out[...] = data[(*before, positions)]
    if outside is not None:
        out[(*before, outside)] = _zero(out.dtype)
    return out


def _as_slice(positions: Array) -> slice | None:
    """Return the slice that selects the same elements, if there is one."""
    if positions.size == 0:
        return None
    first, last = int(positions[0]), int(positions[-1])
    if positions.size == 1:
        return slice(first, first + 1, 1)
    step = int(positions[1]) - first
    if step == 0 or (np.diff(positions) != step).any():
        return None
    end = last + step
    return slice(first, end if end >= 0 else None, step)
