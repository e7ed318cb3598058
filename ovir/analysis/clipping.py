"""The values that FakeQuantize layers clip, counted in runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.ops.base.operator import Operator
from ovir.runtime.executor import SeenStep


@dataclass
class Clipping:
    """The values that a FakeQuantize has clipped."""

    size: int
    """The number of all values."""
    below: int
    """The number of values below the input range."""
    above: int
    """The number of values above the input range."""
    low: tuple[float, float]
    """The least and the greatest output that values below the range become."""
    high: tuple[float, float]
    """The least and the greatest output that values above the range become."""

    @classmethod
    def of(cls, step: SeenStep) -> Clipping | None:
        """Return what a layer has clipped; None if it has no range, or reads an array that the step does not have."""
        op, arrays = step.layer.operator, [array for array in step.inputs if array is not None]
        return None if op is None or len(arrays) < len(step.inputs) else cls.by(op, arrays)

    @classmethod
    def by(cls, op: Operator, inputs: Sequence[Array], steps: float = 0) -> Clipping | None:
        """Return what an operation clips of values that are outside of its range by more than so many of its steps."""
        clipped = op.clips(inputs, steps)
        if clipped is None:
            return None
        (below, low), (above, high) = clipped
        ends = ((float(bound.min()), float(bound.max())) for bound in (low, high))
        return cls(below.size, int(np.count_nonzero(below)), int(np.count_nonzero(above)), *ends)

    def add(self, later: Clipping) -> None:
        """Add what the layer clips in another run."""
        self.size += later.size
        self.below += later.below
        self.above += later.above

    @property
    def share(self) -> float:
        """Return the share of values that are clipped."""
        return (self.below + self.above) / self.size if self.size else 0.0

    def __str__(self) -> str:
        sides = (("below", self.below, self.low), ("above", self.above, self.high))
        texts = (
            f"{count / self.size:.1%} of values {side} output {_bound(ends)}" for side, count, ends in sides if count
        )
        return ", ".join(texts)

    def to_dict(self) -> dict[str, Any]:
        """Return the counts for JSON."""
        return asdict(self)


def add_clipping(known: dict[str, Clipping], key: str, found: Clipping) -> None:
    """Add what a layer clips in a run to what it clipped in earlier ones."""
    if key in known:
        known[key].add(found)
    else:
        known[key] = found


def _bound(ends: tuple[float, float]) -> str:
    least, greatest = (f"{end:.6g}" for end in ends)
    return f"bound {least}" if least == greatest else f"bounds {least} to {greatest}"
