"""Sums and maxima of chosen pixels: rows too long to be fetched together, groups, and corners of places."""

import itertools

import numpy as np
import pytest

from ovir.kernels.roi import (
    _blocks,
    add_rows,
    equal_groups,
    largest_rows,
    largest_sums,
    neighbors,
    pool_boxes,
    pool_groups,
)

rng = np.random.default_rng(8)


@pytest.mark.parametrize("channels", [1, 5, 1 << 17])
def test_sums_and_maxima_in_blocks(channels: int) -> None:
    """Of the longest rows two are fetched at a time."""
    rows = rng.normal(size=(6, channels)).astype(np.float32)
    index, weight = rng.integers(0, 6, (3, 5)), rng.uniform(size=(3, 5)).astype(np.float32)
    out = np.empty((3, channels), np.float32)
    add_rows(rows, index, weight, out)
    np.testing.assert_allclose(out, np.einsum("pk,pkc->pc", weight, rows[index]), 1e-5, 1e-6)
    largest_rows(rows, index.T, out)
    assert (out == rows[index].max(axis=1)).all()
    corner_index, corner_weight = np.stack([index, index[:, ::-1]], -1), np.stack([weight, 1 - weight], -1)
    out[...] = 0
    largest_sums(rows, corner_index, corner_weight, out)
    sums = (rows[corner_index] * corner_weight[..., np.newaxis]).sum(axis=2)
    np.testing.assert_allclose(out, np.maximum(sums.max(axis=1), 0), 1e-5, 1e-6)


def test_groups_of_equal_keys() -> None:
    first, second = np.array([1, 2, 1, 1, 2]), np.array([3, 3, 4, 3, 3])
    assert sorted(group.tolist() for group in equal_groups(first, second)) == [[0, 3], [1, 4], [2]]
    assert equal_groups(first[:0], second[:0]) == []


def test_groups_are_pooled_in_parts() -> None:
    seen: list[list[int]] = []
    pool_groups(lambda part: seen.append(part.tolist()), [np.arange(5), np.arange(5, 7)], [1 << 17, 1 << 30])
    assert seen == [[0, 1], [2, 3], [4], [5], [6]]


def test_neighbors_of_places() -> None:
    y, x = np.array([0.25, -0.5, 7, np.nan]), np.array([1.0, 0.5, 2.75, 0])
    found = neighbors(y, x, 4, 3, start=100, beyond=4)
    assert found.index.tolist() == [
        [101, 101, 104, 104],
        [100, 101, 100, 101],
        [111, 111, 111, 111],
        [100, 100, 100, 100],
    ]
    assert found.weight.tolist() == [[0.75, 0, 0.25, 0], [0.5, 0.5, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]


@pytest.mark.parametrize(("mean", "expected"), [(True, [0, 5.5]), (False, [0, 11])])
def test_boxes_of_several_sizes(mean: bool, expected: list[float]) -> None:
    pixels = np.arange(12, dtype=np.float32)[:, np.newaxis]  # 3 rows of 4
    ends = np.array([[[0, 0], [0, 0]], [[1, 1], [3, 4]]])  # of the row and the column of the one bin of two regions
    out = np.empty((2, 1, 1, 1), np.float32)
    pool_boxes(np.zeros((2, 1), np.intp), ends, (3, 4), pixels, out, mean=mean)
    assert out.ravel().tolist() == expected


def test_boxes_of_pixels() -> None:
    pixels = np.arange(12, dtype=np.float32)[:, np.newaxis]  # 3 rows of 4
    ends = np.array([[[0, 1, -5, 2]], [[2, 1, 2, np.nan]]])  # of two rows and of two columns of bins
    out = np.empty((1, 2, 2, 1), np.float32)
    pool_boxes(np.zeros((1, 1), np.intp), ends, (3, 4), pixels, out, mean=True)
    assert out[0, :, :, 0].tolist() == [[2.5, 0], [0, 0]]
    pool_boxes(np.zeros((1, 1), np.intp), ends, (3, 4), pixels, out, mean=False)
    assert out[0, :, :, 0].tolist() == [[5, 0], [0, 0]]


@pytest.mark.parametrize("elements", [0, 1, 5, 8, 9])
def test_blocks_are_all_rows_in_parts_of_bounded_size(elements: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ovir.kernels.roi._FETCHED", 8)
    for bins, taps in itertools.product(range(5), range(1, 5)):
        seen = np.zeros((bins, taps), int)
        for part in _blocks(bins, taps, elements):
            seen[part] += 1
            assert seen[part].size * elements <= max(8, elements)
        assert (seen == 1).all()
