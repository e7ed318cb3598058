"""Products of matrices: which of them BLAS reads as they lie, and how constant ones are laid."""

import numpy as np
import pytest
from support.binding import LoneBinder

from ovir.fast.base import products
from ovir.fast.base.products import _block_height, by_rows, is_readable, prepared_matrices
from ovir.fast.matmul import integer_product


@pytest.mark.parametrize(
    ("shape", "strides", "expected"),  # in elements, or parts of them
    [
        ((3, 4), (4, 1), True),
        ((3, 4), (6, 1), True),
        ((3, 4), (3, 1), False),  # rows overlap
        ((3, 4), (4.5, 1), False),
        ((3, 4), (1, 3), True),
        ((3, 4), (1, 5), True),
        ((3, 4), (1, 2), False),
        ((3, 4), (1, 3.5), False),
        ((3, 4), (8, 2), False),
        ((3, 4), (0, 1), False),
        ((3, 1), (2, 5), True),
        ((3, 1), (0, 5), False),
        ((3, 1), (1, 0), True),
        ((3, 2), (2, 5), False),
        ((1, 4), (0, 1), True),
        ((1, 4), (7, 2), True),
        ((1, 4), (7, 0), False),
        ((2, 4), (7, 2), False),
    ],
)
def test_matrices_that_blas_reads(shape: tuple[int, int], strides: tuple[float, float], expected: bool) -> None:
    memory = np.zeros(40, np.float32)
    matrix = np.lib.stride_tricks.as_strided(memory, shape, [int(4 * stride) for stride in strides])
    assert is_readable(matrix) == expected


@pytest.mark.parametrize("is_large", [False, True])
def test_only_large_constants_stay_by_columns(is_large: bool) -> None:
    by_columns, gaps = np.ones((6, 4), np.float32).T, np.ones((6, 8), np.float32)[:, ::2].T
    assert (by_rows(by_columns, is_large) is by_columns) == is_large
    for matrix in (by_columns, gaps):
        assert by_rows(matrix, is_large).flags.c_contiguous == (matrix is gaps or not is_large)
    assert by_rows(gaps.base, is_large) is gaps.base


@pytest.mark.parametrize(("rows", "large"), [(2, [False, False, True]), (4, [False, True, True])])
def test_fewer_constants_are_copied_for_many_rows(
    rows: int, large: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "_MANY_ROWS", 4)
    monkeypatch.setattr(products, "_LARGEST_COPY_FOR_MANY_ROWS", 80)
    monkeypatch.setattr(products, "_LARGEST_COPY", 100)
    for length, is_large in zip((5, 6, 7), large, strict=True):
        matrix = np.ones((4, length), np.float32).T
        found = prepared_matrices(LoneBinder((), [], set()), "b", lambda matrix=matrix: matrix, matrix.nbytes, rows)
        assert (found is matrix) == is_large


@pytest.mark.parametrize("most", [8, 39, 96, 200])
def test_blocks_divide_rows_evenly_or_have_a_multiple_of_four(most: int) -> None:
    for rows in range(1, 300):
        height, limit = _block_height(rows, most), min(most, 96, rows)
        larger = [h for h in range(height + 1, limit + 1) if rows % h == 0]
        assert limit // 2 < height <= limit
        assert not larger
        assert rows % height == 0 or (height % 4 == 0 and height > limit - 4)


@pytest.mark.parametrize(("number", "length"), [(4097, 1), (2049, 5), (94_906_267, 1), (42_443_381, 5), (2**31, 2)])
def test_sums_of_integers_beyond_24_and_53_bits(number: int, length: int) -> None:
    row, out = np.full((1, length), number), np.empty((1, 1), np.int64)
    integer_product(row, -row.T, out)
    assert out.item() == -length * number**2
