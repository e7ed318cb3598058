"""TopK in long rows: which elements are selected before they are sorted."""

from typing import Any

import numpy as np
import pytest

from ovir.fast.sorting import _sorted_first


@pytest.mark.parametrize(
    ("shape", "count", "dtype", "selects"),
    [
        ((16, 64), 32, np.float32, True),
        ((16, 64), 33, np.float32, False),
        ((15, 68), 4, np.float32, False),  # 1020 elements
        ((23, 48), 2, np.float32, True),
        ((23, 47), 2, np.float32, False),
        ((23, 48), 1, np.float32, False),
        ((23, 48), 4, np.int16, True),
        ((23, 48), 4, np.int8, False),
        ((2, 3, 400), 4, np.int64, True),
    ],
)
def test_selected_elements(
    shape: tuple[int, ...], count: int, dtype: Any, selects: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, partition = [], np.partition
    monkeypatch.setattr(np, "partition", lambda *given, **named: found.append(1) or partition(*given, **named))
    keys = np.random.default_rng(0).integers(-20, 20, shape).astype(dtype)
    np.testing.assert_array_equal(_sorted_first(keys, count), keys.argsort(-1, kind="stable")[..., :count])
    assert bool(found) == selects
