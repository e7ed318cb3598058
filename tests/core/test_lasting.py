"""Memory of arrays that last as long as a model."""

import weakref

import numpy as np
import pytest

from ovir.core.lasting import empty_for_long


def test_neighbors_lie_in_one_chunk_without_sharing_elements() -> None:
    arrays = [empty_for_long((3, 100_001), np.dtype(np.float32)) for _ in range(40)]
    for number, array in enumerate(arrays):
        array[...] = number
    assert [array.min() for array in arrays] == [array.max() for array in arrays] == list(range(40))
    assert {array.shape for array in arrays} == {(3, 100_001)}
    assert all(array.ctypes.data % 64 == 0 and array.flags.c_contiguous for array in arrays)
    assert len({id(array.base) for array in arrays}) == 2  # 48 MB do not fit one chunk


def test_a_chunk_lives_as_long_as_its_arrays() -> None:
    first, second = (empty_for_long((1 << 20,), np.dtype(np.float16)) for _ in range(2))
    assert first.base is second.base
    chunk = weakref.ref(first.base)
    del first
    assert chunk() is not None
    second[...] = 1
    del second
    assert chunk() is None
    assert empty_for_long((1 << 20,), np.dtype(np.float16)).size == 1 << 20


@pytest.mark.parametrize("size", [0, 1000, 3 << 20])
def test_small_and_large_arrays_have_memory_of_their_own(size: int) -> None:
    array = empty_for_long((size,), np.dtype(np.float32))
    assert array.base is None
    assert array.shape == (size,)
