"""Blocks, threads and tables do not show in what comes out."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ovir.core.arrays import Array
from ovir.kernels import blocked
from ovir.kernels.blocked import apply, contiguous_copy, map_blocks


def sigmoid(x: Array, y: Array) -> None:
    np.copyto(y, 1 / (1 + np.exp(-x)))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, np.int8, np.uint16])
def test_a_function_of_few_bits_is_the_same_from_a_table(dtype: Any) -> None:
    codes = np.random.default_rng(0).integers(0, 256, (70, 9000), np.uint8)
    bits = codes if np.dtype(dtype).itemsize == 1 else codes.astype(np.uint16) * 257
    data = bits.view(dtype)
    whole = map_blocks(sigmoid, data.T)
    rows = np.stack([map_blocks(sigmoid, row) for row in data])
    assert whole.dtype == rows.dtype == dtype
    np.testing.assert_array_equal(whole.view(bits.dtype), rows.T.view(bits.dtype))


@pytest.mark.parametrize("block", [7, 64, 1 << 18])
def test_blocks_cover_the_whole(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BLOCK", "_HEAVY", "_LIGHT"):
        monkeypatch.setattr(blocked, name, block)
    data = np.random.default_rng(1).standard_normal((6, 50, 31)).astype(np.float32)
    np.testing.assert_array_equal(apply(np.add, (data, data[0]), heavy=True), data + data[0])


def test_copies_in_another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocked, "_COPIED", 50)
    monkeypatch.setattr(blocked, "_HEAVY", 100)
    data = np.arange(5 * 6 * 7 * 8).reshape(5, 6, 7, 8)
    for order in permutations(range(4)):
        for source in (data.transpose(order), data[::-1, :, 1:, ::3].transpose(order), data[:, :1].transpose(order)):
            copy = contiguous_copy(source)
            assert copy.flags.c_contiguous
            assert not np.shares_memory(copy, data)
            np.testing.assert_array_equal(copy, source)
    repeated = np.broadcast_to(np.arange(20)[:, np.newaxis], (20, 30))
    np.testing.assert_array_equal(contiguous_copy(repeated), repeated)
    assert contiguous_copy(np.array(3)).shape == ()
    assert contiguous_copy(np.empty((0, 3))).shape == (0, 3)
