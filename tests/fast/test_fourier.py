"""Short frames of a signal, which are transformed in blocks."""

from typing import Any

import numpy as np
import pytest

from ovir.core import parallel
from ovir.fast import fourier


def test_blocks_of_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fourier, "_BLOCK_ELEMENTS", 70)
    blocks, rfft = [], np.fft.rfft

    def counted(frames: Any, **options: Any) -> Any:
        blocks.append(len(frames))
        return rfft(frames, **options)

    monkeypatch.setattr(np.fft, "rfft", counted)
    frames, window = np.random.default_rng(0).standard_normal((2, 10, 16)), np.linspace(0, 1, 16)
    out = np.empty((2, 10, 9), np.complex128)
    with parallel.limit(1):
        fourier._transform_frames(frames, window, out)
    assert blocks == [4, 4, 2, 4, 4, 2]
    np.testing.assert_allclose(out, rfft(frames * window))
