"""Which boxes non-maximum suppression keeps: known answers, and those of a loop over all pairs.

The reference and the fast form give the same ones.
"""

from typing import Any

import numpy as np
import pytest

from ovir.core.arrays import Array
from ovir.fast.suppression import BlockedSuppression
from ovir.kernels.boxes import Overlaps
from ovir.kernels.suppression import Suppression, candidates


@pytest.fixture(params=[Suppression, BlockedSuppression])
def suppression(request: pytest.FixtureRequest) -> Suppression:
    made: Suppression = request.param()
    return made


def rows(suppression: Suppression, scores: list[list[float]], least: float, most: int | None = None) -> list[list[int]]:
    array = np.array(scores, np.float32)
    row, column, found = candidates(array > least, array)
    order = suppression.ranked(row, found, most)
    return [column[order][row[order] == k].tolist() for k in range(len(array))]


def test_ranked(suppression: Suppression) -> None:
    scores = [[1, 3, 2, 3], [0, 0, 0, 0], [-1, -3, -0.0, 0]]
    assert rows(suppression, scores, 0.5) == [[1, 3, 2, 0], [], []]
    assert rows(suppression, scores, -5, 2) == [[1, 3], [0, 1], [2, 3]]
    assert rows(suppression, scores, -5, 0) == [[], [], []]
    assert rows(suppression, [[], []], 0) == [[], []]


@pytest.mark.parametrize("length", [200, 900])  # few and many are ordered in different ways
def test_ranked_is_a_stable_sort_of_each_row(suppression: Suppression, length: int) -> None:
    scores = np.random.default_rng(0).integers(-9, 9, (2, length)).astype(np.float32) / 3
    scores[0, :2] = np.inf, -np.inf
    row = np.arange(2).repeat(length)
    expected = np.argsort(-scores, axis=1, kind="stable") + np.array([[0], [length]])
    assert suppression.ranked(row, scores.ravel()).tolist() == expected.ravel().tolist()
    assert suppression.ranked(row, scores.ravel(), 50).tolist() == expected[:, :50].ravel().tolist()
    mixed = np.random.default_rng(1).permutation(2 * length)
    order = mixed[suppression.ranked(row[mixed], scores.ravel()[mixed])]
    assert row[order].tolist() == row.tolist()
    assert scores.ravel()[order].tolist() == scores.ravel()[expected.ravel()].tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [7, 5000])  # few and many are ordered in different ways
def test_nan_is_last_whatever_its_sign(suppression: Suppression, dtype: Any, count: int) -> None:
    scores = np.zeros(count, dtype)
    scores[:6] = np.nan, -np.nan, -np.inf, 1, np.inf, -0.0
    zeros = list(range(5, count))
    assert suppression.descending(scores).tolist() == [4, 3, *zeros, 2, 0, 1]


def of_pairs(overlap: Array) -> Overlaps:
    return lambda some, others: overlap[some[..., np.newaxis], others[..., np.newaxis, :]]


LENGTHS = {
    "none": [],
    "one": [1],
    "a block": [128],
    "more than a block": [129],
    "several blocks": [900],
    "few in each row": [3, 0, 9, 1, 0, 40],
    "rows of any length": [200, 0, 7, 300, 130, 1, 128, 90, 0, 0, 3],
    "many rows": [*range(20, 45), *range(10)],
}


@pytest.mark.slow
@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("limit", [0, 1, 5, 130, 10_000])
@pytest.mark.parametrize("last", [0.9, 0.5])
@pytest.mark.parametrize("power", [300, 20, 2])  # from few overlaps to many
def test_keep_apart(suppression: Suppression, lengths: list[int], limit: int, last: float, power: int) -> None:
    row = np.arange(len(lengths)).repeat(np.array(lengths, int))
    overlap = np.random.default_rng(row.size).random((row.size, row.size)) ** power
    overlap = np.maximum(overlap, overlap.T)
    thresholds = np.linspace(0.9, last, limit)
    expected: list[int] = []
    for number in range(len(lengths)):
        kept: list[int] = []
        for i in np.flatnonzero(row == number).tolist():
            own = overlap[i, kept[:limit]]
            if len(kept) < limit and not (own > thresholds[: own.size]).any():
                kept.append(i)
        expected.extend(kept)
    assert suppression.keep_apart(row, limit, of_pairs(overlap), thresholds).tolist() == expected
    assert row.size < 2 or 0 < len(expected) < row.size or not limit
    if last == 0.9:
        assert suppression.keep_apart(row, limit, of_pairs(overlap), 0.9).tolist() == expected


@pytest.mark.parametrize("lengths", [[], [45], [46], [20, 0, 18, 16], [1, 2] * 21 + [1], [1, 2] * 21 + [2]])
@pytest.mark.parametrize("limit", [0, 2, 10_000])
def test_few_pairs_and_many_keep_what_the_reference_keeps(lengths: list[int], limit: int) -> None:
    row = np.arange(len(lengths)).repeat(np.array(lengths, int))
    for power in (0.1, 1, 20):
        overlap = np.random.default_rng(0).random((row.size, row.size), np.float32) ** power
        expected = Suppression().keep_apart(row, limit, of_pairs(overlap), 0.5)
        kept = BlockedSuppression().keep_apart(row, limit, of_pairs(overlap), 0.5)
        assert kept.dtype == expected.dtype
        assert kept.tolist() == expected.tolist()


def test_thresholds_may_rise(suppression: Suppression) -> None:
    """Of the first two boxes the second excludes less, so that the third is kept."""
    overlap = np.array([[1, 0, 0], [0, 1, 0.5], [0, 0.5, 1]])
    for second, expected in ((0.4, [0, 1]), (0.6, [0, 1, 2])):
        assert (
            suppression.keep_apart(np.zeros(3, int), 3, of_pairs(overlap), np.array([0.1, second, 1])).tolist()
            == expected
        )


def test_the_overlap_must_be_above_the_threshold(suppression: Suppression) -> None:
    overlap = np.array([[1, 0.5, 0.51], [0.5, 1, 0], [0.51, 0, 1]])
    assert suppression.keep_apart(np.zeros(3, int), 3, of_pairs(overlap), 0.5).tolist() == [0, 1]


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
def test_soften(
    suppression: Suppression, removing: float, least: float, limit: int, indices: list[int], scores: list[float]
) -> None:
    overlap = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]], np.float32)
    taken, final = suppression.soften(
        np.zeros(3, int),
        np.array([0.9, 0.8, 0.6], np.float32),
        of_pairs(overlap),
        0.5,
        least=least,
        limit=limit,
        removing=removing,
    )
    assert taken.tolist() == indices
    np.testing.assert_allclose(final, scores, rtol=1e-6)


@pytest.mark.parametrize("limit", [3, 100])
def test_soften_treats_each_row_by_itself(suppression: Suppression, limit: int) -> None:
    rng = np.random.default_rng(0)
    row = np.repeat([0, 2, 3, 4], [30, 1, 2000, 17])
    scores = rng.random(row.size, np.float32)
    overlap = rng.random((row.size, row.size), np.float32) ** 8
    options = {"sigma": 0.3, "least": 0.2, "limit": limit, "removing": 0.8}
    expected = []
    for number in np.unique(row):
        own = np.flatnonzero(row == number)
        alone = of_pairs(overlap[np.ix_(own, own)])
        taken, final = suppression.soften(np.zeros(own.size, int), scores[own], alone, **options)  # type: ignore[arg-type]
        expected.extend(zip(own[taken].tolist(), final.tolist(), strict=True))
    taken, final = suppression.soften(row, scores, of_pairs(overlap), **options)  # type: ignore[arg-type]
    assert list(zip(taken.tolist(), final.tolist(), strict=True)) == expected


@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
def test_scores_decay_by_the_best_of_all_overlaps(suppression: Suppression, lengths: list[int]) -> None:
    row = np.arange(len(lengths)).repeat(np.array(lengths, int))
    overlap = np.random.default_rng(row.size).random((row.size, row.size), np.float32)
    expected = np.ones(row.size, np.float32)
    greatest = np.zeros(row.size, np.float32)
    for i in range(row.size):
        better = np.flatnonzero(row[:i] == row[i])
        greatest[i] = overlap[i, better].max(initial=0)
        expected[i] = (overlap[i, better] - greatest[better]).min(initial=1)
    found = suppression.decays(row, of_pairs(overlap), np.subtract)
    np.testing.assert_array_equal(found, expected)
