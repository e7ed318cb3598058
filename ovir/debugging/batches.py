"""Other sides of a comparison that compute the tensors of many layers in one run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from ovir.debugging.others import Answer, OtherBase
from ovir.diagnostics.errors import ModelError, RunError

MOST_BYTES = 32 << 20
"""The most bytes of tensors that one run takes and returns, unless a single layer has more."""

Item = TypeVar("Item")
"""The data of a layer that waits to be run."""


class BatchedBase(OtherBase, Generic[Item]):
    """A side on which layers wait for others to be run with."""

    most_layers: float = math.inf
    """The most layers of one run."""

    def __init__(self) -> None:
        self._waiting: list[Item] = []
        self._bytes = 0

    def wait(self, item: Item, size: int) -> Iterator[Answer]:
        """Keep a layer whose tensors have ``size`` bytes; return the answers for earlier ones if these have to be run
        before."""
        if self._waiting and (self._bytes + size > MOST_BYTES or len(self._waiting) >= self.most_layers):
            yield from self.finish()
        self._waiting.append(item)
        self._bytes += size

    def finish(self) -> Iterator[Answer]:
        waiting, self._waiting, self._bytes = self._waiting, [], 0
        if waiting:
            yield from self.run(waiting)

    def run(self, items: Sequence[Item]) -> Iterable[Answer]:
        """Return the answers for layers, which one run computes."""
        raise NotImplementedError


class HalvedBase(BatchedBase[Item]):
    """A side that runs layers in halves if it fails on all of them, until the layer at fault is found."""

    def run(self, items: Sequence[Item]) -> Iterator[Answer]:
        try:
            answers = self.run_together(items)
        except (RunError, ModelError) as error:
            if len(items) == 1:
                answers = [self.failed(items[0], error)]
            else:
                half = len(items) // 2
                yield from self.run(items[:half])
                yield from self.run(items[half:])
                return
        yield from answers

    def run_together(self, items: Sequence[Item]) -> Sequence[Answer]:
        """Return the answers for layers from one run; raise RunError or ModelError if it fails."""
        raise NotImplementedError

    def failed(self, item: Item, error: RunError | ModelError) -> Answer:
        """Return the answer for a layer whose run has failed."""
        raise NotImplementedError
