"""Time grows with the size of a model, not with its square: a short form of ``python -m benchmarks.growth``.

Ten times as large a model would take a hundred times as long if anything were quadratic. The limit is generous, because
other processes and the garbage collector disturb short measurements.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

import ovir
from benchmarks.growth import EDITS, READING, RUNNING, seconds
from benchmarks.growth_models import BAD, GOOD, chain

pytestmark = pytest.mark.slow

SIZE, LIMIT, TRIALS = 300, 35, 3
STAGES = READING | RUNNING | EDITS
CASES = [
    *((name, "check") for name in ("split_results", "alike_results", "ports", "bodies")),
    ("alike_results", "run"),  # where a layer has many outputs, the watch over all kernels takes longer than the run
    *(("chain", stage) for stage in ("read", "infer", "compile", "run", "clone", *EDITS)),
    *((name, stage) for name in ("bodies", "equal_names") for stage in ("look up", "rename")),
    ("equal_names", "run"),
    ("variables", "connect"),
    ("attributes", "check"),
    ("contradicted", "read"),
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


@pytest.mark.parametrize(
    "act",
    [ovir.compile_model, lambda model: model.infer_shapes(), lambda model: model.reshape([3]), ovir.Model.__getstate__],
    ids=["compile", "infer", "reshape", "pickle"],
)
def test_no_garbage_is_collected_while_many_objects_are_made(act: Callable[[ovir.Model], Any]) -> None:
    """All of them stay alive, and each full collection passes over the whole model."""
    model = ovir.read_model(chain(2000).text().encode(), b"")
    collections: list[dict[str, int]] = []

    def count(phase: str, info: dict[str, int]) -> None:
        collections.append(info)

    gc.callbacks.append(count)
    try:
        made = act(model)
    finally:
        gc.callbacks.remove(count)
    assert len(collections) <= 4, "one collection may follow, and it is reported twice"
    del made
