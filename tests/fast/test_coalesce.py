"""Views with as few axes as possible."""

import numpy as np
import pytest

from ovir.fast.base.coalesce import coalesced


@pytest.mark.parametrize(
    ("shape", "other", "order", "ranks"),
    [
        ((2, 3, 4), (2, 3, 4), (0, 1, 2), (1, 1)),
        ((2, 3, 4), (4,), (0, 1, 2), (2, 2)),
        ((2, 3, 4, 5), (3, 1, 1), (0, 2, 3, 1), (2, 2)),
        ((2, 3), (1,), (0, 1), (0, 1)),
        ((1, 1), (1, 1), (0, 1), (1, 1)),
        ((), (), (), (1, 1)),
    ],
)
def test_views_of_the_same_elements(
    shape: tuple[int, ...], other: tuple[int, ...], order: tuple[int, ...], ranks: tuple[int, int]
) -> None:
    memory = np.zeros([shape[axis] for axis in order])
    out = memory.transpose(np.argsort(order).tolist())
    added = np.arange(np.prod(other), dtype=float).reshape(other)
    views = coalesced(added, out)
    assert tuple(view.ndim for view in views) == ranks
    np.add(views[0], 1, views[1])
    np.testing.assert_array_equal(out, np.broadcast_to(added + 1, shape))


def test_nothing_is_written_for_empty_arrays() -> None:
    empty = np.full_like(np.ones((0, 4)), 1)
    assert coalesced(np.ones((1, 4)), empty)[1].size == 0
