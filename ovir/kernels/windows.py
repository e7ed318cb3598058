"""Sliding windows: which of their taps meet data, and where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from ovir.core.arrays import Array


def extent(kernel: int, dilation: int) -> int:
    """Return the number of positions that a dilated window covers, from its first tap to its last."""
    return (kernel - 1) * dilation + 1


@dataclass(frozen=True, slots=True)
class Window:
    """A sliding window on one axis of known size, with resolved pads."""

    kernel: int
    stride: int
    dilation: int
    pad_begin: int
    pad_end: int

    def count(self, size: int, rounding: str = "floor") -> int:
        """Return the number of windows on an axis of ``size``; it is below 1 if no window fits.

        ``ceil`` adds a last window that extends beyond the padded data; ``ceil_torch`` does so only if that window
        starts before the end padding.
        """
        room = size + self.pad_begin + self.pad_end - extent(self.kernel, self.dilation)
        if rounding == "floor":
            return room // self.stride + 1
        last = -(-room // self.stride)
        return last if rounding == "ceil_torch" and last * self.stride >= size + self.pad_begin else last + 1

    def positions(self, windows: int) -> Array:
        """Return the positions in the data that the taps of each window read, [windows, kernel]; some may lie
        outside."""
        return np.add.outer(np.arange(windows) * self.stride - self.pad_begin, np.arange(self.kernel) * self.dilation)

    def trimmed(self, size: int, windows: int) -> Window:
        """Return the window without the taps at its ends that meet none of ``size`` elements; one tap is always
        left."""
        latest = (windows - 1) * self.stride - self.pad_begin  # where the first tap of the last window is
        last = min(self.kernel - 1, max((size - 1 + self.pad_begin) // self.dilation, 0))
        first = min(max(-(latest // self.dilation), 0), last)
        return replace(self, kernel=last - first + 1, pad_begin=self.pad_begin - first * self.dilation)

    def taps(self, size: int, windows: int) -> list[tuple[int, slice, slice]]:
        """Yield each tap that meets data: its number, the windows in which it does, and the positions in the data.

        The two slices select equally many elements, so ``out[..., windows] += data[..., positions]`` adds the tap's
        part.
        """
        found = []
        for tap in range(self.kernel):
            offset = tap * self.dilation - self.pad_begin  # position of window 0; window w reads offset + w * stride
            first = max(-(offset // self.stride), 0)
            last = min((size - 1 - offset) // self.stride, windows - 1)
            if first <= last:
                start = offset + first * self.stride
                stop = offset + last * self.stride + 1
                found.append((tap, slice(first, last + 1), slice(start, stop, self.stride)))
        return found


Place = tuple[Any, ...]
"""Indices or slices, one for each axis."""


def box_taps(
    windows: Sequence[Window], sizes: Sequence[int], counts: Sequence[int]
) -> Iterator[tuple[Place, Place, Place]]:
    """Yield each tap of windows on several axes that meets data of ``sizes``: its position in the window, the windows
    in which it does, and the positions in the data.

    ``counts`` are the numbers of windows. As in ``Window.taps``, the slices select equally many elements.
    """
    per_axis = [window.taps(size, count) for window, size, count in zip(windows, sizes, counts, strict=True)]
    for taps in product(*per_axis):
        numbers, chosen, positions = zip(*taps, strict=True)
        yield numbers, chosen, positions


def reduced_windows(combine: np.ufunc, data: Array, axis: int, window: Window, count: int, start: float = 0) -> Array:
    """Return the result of ``combine``, such as ``np.add``, for ``start`` and the elements of each of ``count`` windows
    along an axis of the data."""
    x = np.moveaxis(data, axis, 0)
    result = np.full((count, *x.shape[1:]), start, data.dtype)
    for _, chosen, positions in window.taps(len(x), count):
        result[chosen] = combine(result[chosen], x[positions])
    return np.moveaxis(result, 0, axis)
