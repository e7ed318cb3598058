"""Reductions of runs of rows of different lengths, which are padded to the longest run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ovir.core.element_types import i64
from ovir.export.graph import Graph
from ovir.export.searching import positions
from ovir.export.sizes import LAST, positions_below
from ovir.export.tensors import Tensor


@dataclass
class Runs:
    """Runs of rows: where each begins, and how many rows it has; both are i64 with one dimension."""

    starts: Tensor
    counts: Tensor

    def places(self, graph: Graph, least: int = 0) -> tuple[Tensor, Tensor]:
        """Return the positions [run, row] of the rows, for as many as the longest run has, and which of them exist.

        There are at least ``least`` positions for each run.
        """
        longest = graph.ReduceMax(graph.Concat(self.counts, np.array([least]), axis=0), keepdims=0)
        steps = positions_below(graph, longest)
        exist = graph.Less(steps, graph.Unsqueeze(self.counts, [1]))
        return graph.Add(steps, graph.Unsqueeze(self.starts, [1])), exist


def runs_of_ids(graph: Graph, ids: Tensor, count: Tensor) -> Runs:
    """Return the runs of equal ids, which are sorted, for the ids from 0 to ``count``, a scalar."""
    known = graph.shaped(graph.cast(ids, i64), ids.shape if ids.rank == 1 else [-1])
    wanted = positions_below(graph, graph.Add(count, 1))
    limits = positions(graph, known, wanted, graph.Less)
    starts = graph.Slice(limits, [0], [-1])
    return Runs(starts, graph.Sub(graph.Slice(limits, [1], [LAST]), starts))


def by_run(graph: Graph, numbers: Tensor, rank: int) -> Tensor:
    """Return one number or truth value for each run with dimensions of 1 added up to a rank."""
    return graph.Unsqueeze(numbers, list(range(1, rank))) if rank > 1 else numbers
