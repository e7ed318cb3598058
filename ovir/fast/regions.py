"""The pooling of regions: threads share parts of them, and what depends on numbers of bins and samples is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from ovir.core.arrays import Array
from ovir.core.parallel import run_blocks
from ovir.fast.registry import fast_kernel, run_with
from ovir.kernels.roi import Pooling, crossing, layout, parts_of
from ovir.ops.base.operator import Kernel
from ovir.ops.base.regions import RegionBase

_LEAST_PER_THREAD = 1 << 20
"""Elements of fetched pixels below which another thread does not pay."""
_KEPT = 1 << 14
"""The largest number of neighbors for which the crossing is kept."""


@fast_kernel(RegionBase)
def pool_regions(op: RegionBase) -> Kernel:
    return run_with(op, pooling=SharedPooling())


class SharedPooling(Pooling):
    """The steps of such operations, shared by threads."""

    def pool_groups(
        self, pool: Callable[[Array], object], groups: Sequence[Array], pixels: Sequence[int], channels: int
    ) -> None:
        parts = parts_of(groups, pixels)
        total = sum(len(group) * count for group, count in zip(groups, pixels, strict=True)) * channels

        def run(start: int, stop: int) -> None:
            for part in parts[start:stop]:
                pool(part)

        run_blocks(run, len(parts), -(-_LEAST_PER_THREAD * len(parts) // max(total, 1)))

    layout = staticmethod(lru_cache(maxsize=64)(layout))

    @staticmethod
    def crossing(rows: int, columns: int, along_y: int, along_x: int) -> tuple[Array, Array]:
        make = _kept_crossing if 4 * rows * columns * along_y * along_x <= _KEPT else crossing
        return make(rows, columns, along_y, along_x)


_kept_crossing = lru_cache(maxsize=64)(crossing)
