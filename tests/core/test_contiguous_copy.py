"""Copies in blocks are copies."""

from itertools import permutations

import numpy as np
import pytest

from ovir.core import parallel
from ovir.core.parallel import contiguous_copy


def test_copies_in_another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_COPIED", 50)
    monkeypatch.setattr(parallel, "_SHARED", 100)
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
