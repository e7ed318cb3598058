"""Which boxes non-maximum suppression keeps: known answers, and those of a loop over all pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ovir.kernels.suppression import descending, keep_apart, ranked, ranked_one, soften


def rows(scores: list[list[float]], least: float, most: int | None = None) -> list[tuple[int, list[int]]]:
    array = np.array(scores, np.float32)
    return [(row, indices.tolist()) for row, indices in ranked(array, array > least, most)]


def test_ranked() -> None:
    scores = [[1, 3, 2, 3], [0, 0, 0, 0], [-1, -3, -0.0, 0]]
    assert rows(scores, 0.5) == [(0, [1, 3, 2, 0])]
    assert rows(scores, -5, 2) == [(0, [1, 3]), (1, [0, 1]), (2, [2, 3])]
    assert rows(scores, -5, 0) == []
    assert rows([[], []], 0) == []


def test_ranked_is_a_stable_sort() -> None:
    scores = np.random.default_rng(0).integers(-9, 9, (2, 500)).astype(np.float32) / 3
    scores[0, :2] = np.inf, -np.inf
    for row, indices in ranked(scores, np.ones(scores.shape, bool)):
        assert indices.tolist() == np.argsort(-scores[row], kind="stable").tolist()


def test_ranked_one() -> None:
    scores = np.float32([1, 3, 2, 3])
    assert ranked_one(scores).tolist() == [1, 3, 2, 0]
    assert ranked_one(scores, most=2).tolist() == [1, 3]
    assert ranked_one(scores, scores != 2, 2).tolist() == [1, 3]
    assert ranked_one(scores, scores < 3).tolist() == [2, 0]
    assert ranked_one(scores, scores > 3).tolist() == []


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [7, 5000])  # few and many are ordered in different ways
def test_nan_is_last_whatever_its_sign(dtype: Any, count: int) -> None:
    scores = np.zeros(count, dtype)
    scores[:6] = np.nan, -np.nan, -np.inf, 1, np.inf, -0.0
    zeros = list(range(5, count))
    assert descending(scores).tolist() == [4, 3, *zeros, 2, 0, 1]


@pytest.mark.parametrize("count", [0, 1, 128, 129, 900])  # on both sides of a block's edge, and several blocks
@pytest.mark.parametrize("limit", [0, 1, 130, 10_000])
@pytest.mark.parametrize("last", [0.9, 0.5])
def test_keep_apart(count: int, limit: int, last: float) -> None:
    overlap = np.random.default_rng(count).random((count, count)) ** 300
    overlap = np.maximum(overlap, overlap.T)
    thresholds = np.linspace(0.9, last, limit)
    expected: list[int] = []
    for i in range(count):
        if len(expected) < limit and not any(overlap[i, j] > t for j, t in zip(expected, thresholds, strict=False)):
            expected.append(i)
    assert keep_apart(count, limit, lambda i, j: overlap[np.ix_(i, j)], thresholds).tolist() == expected
    assert count < 2 or 0 < len(expected) < count or not limit
    if last == 0.9:
        assert keep_apart(count, limit, lambda i, j: overlap[np.ix_(i, j)], 0.9).tolist() == expected


def test_thresholds_may_rise() -> None:
    """Of the first two boxes the second excludes less, so that the third is kept."""
    overlap = np.array([[1, 0, 0], [0, 1, 0.5], [0, 0.5, 1]])
    for second, expected in ((0.4, [0, 1]), (0.6, [0, 1, 2])):
        assert keep_apart(3, 3, lambda i, j: overlap[np.ix_(i, j)], np.array([0.1, second, 1])).tolist() == expected


def test_the_overlap_must_be_above_the_threshold() -> None:
    overlap = np.array([[1, 0.5, 0.51], [0.5, 1, 0], [0.51, 0, 1]])
    assert keep_apart(3, 3, lambda i, j: overlap[np.ix_(i, j)], 0.5).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("removing", "least", "limit", "indices", "scores"),
    [
        (np.inf, 0, 9, [0, 2, 1], [0.9, 0.6, 0.8 * np.exp(-1)]),
        (np.inf, 0.3, 9, [0, 2], [0.9, 0.6]),
        (np.inf, 0, 2, [0, 2], [0.9, 0.6]),
        (0.9, 0, 9, [0, 2], [0.9, 0.6]),
        (0.9, -1, 9, [0, 2], [0.9, 0.6]),
        (1, 0, 9, [0, 2, 1], [0.9, 0.6, 0.8 * np.exp(-1)]),
        (np.inf, 0.9, 9, [], []),
    ],
)
def test_soften(removing: float, least: float, limit: int, indices: list[int], scores: list[float]) -> None:
    overlap = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]], np.float32)
    taken, final = soften(
        np.array([0.9, 0.8, 0.6], np.float32),
        lambda i, j: overlap[np.ix_(i, j)],
        0.5,
        least=least,
        limit=limit,
        removing=removing,
    )
    assert taken.tolist() == indices
    np.testing.assert_allclose(final, scores, rtol=1e-6)
