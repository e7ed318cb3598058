"""Time grows with the size of a model, not with its square: a short form of ``python -m benchmarks.growth``.

Ten times as large a model would take a hundred times as long if anything were quadratic. The limit is generous, because
other processes and the garbage collector disturb short measurements.
"""

from __future__ import annotations

import pytest

from benchmarks.growth import EDITS, READING, RUNNING, seconds
from benchmarks.growth_models import BAD, GOOD

SIZE, LIMIT, TRIALS = 300, 35, 3
STAGES = READING | RUNNING | EDITS
CASES = [
    *((name, "check") for name in ("split_results", "alike_results", "ports", "bodies")),
    ("alike_results", "run"),  # where a layer has many outputs, the watch over all kernels takes longer than the run
    *(("chain", stage) for stage in ("read", "infer", "compile", "run", "clone", *EDITS)),
    *((name, stage) for name in ("bodies", "equal_names") for stage in ("look up", "rename")),
    ("attributes", "check"),
    *((name, "check") for name in BAD),
]


@pytest.mark.parametrize(("name", "stage"), CASES)
def test_time_is_not_quadratic(name: str, stage: str) -> None:
    make = (GOOD | BAD)[name]
    small, large = make(SIZE), make(10 * SIZE)
    seconds(STAGES[stage], small, 1)
    for _ in range(TRIALS):
        ratio = seconds(STAGES[stage], large, 1) / max(seconds(STAGES[stage], small, 3), 0.002)
        if ratio < LIMIT:
            return
    pytest.fail(f"{stage} of {name}: ten times the size takes {ratio:.0f} times as long")
