"""Faults that come and go, and devices that do not agree with themselves."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

import ovir
from fuzz.faulty import compiler
from ovir.core.arrays import Array
from ovir.fuzzing.fuzz import Fuzzing
from ovir.reports.fuzz_page import fuzz_page

FLOOR: dict[str, Any] = {"ops": "Floor-1", "types": ["f32"]}
RUNS = 9
"""The runs of a finding: three in one request, in new requests, and after new compilations."""

Planted = Callable[[str, Sequence[Array]], list[Array]]


def wrong_in(calls: Collection[int], error: float = 1.0, *, of_each_model: bool = False) -> Planted:
    """Return a device that is wrong in some of its calls by number, or in some of those with one model."""
    whole, counts = count(), Counter[str]()

    def run(path: str, inputs: Sequence[Array]) -> list[Array]:
        number = counts[path] if of_each_model else next(whole)
        counts[path] += 1
        off = error if number in calls else 0.0
        return [np.asarray(x + x.dtype.type(off)) for x in compiler({})(path, inputs)]

    return run


def test_a_fault_in_each_run_is_steady() -> None:
    (finding,) = ovir.fuzz(wrong_in(range(10**6)), models=3, **FLOOR).findings
    assert (finding.seen, finding.runs, finding.unsteady) == (RUNS, RUNS, False)
    assert finding.steadiness == "in 9 of 9 runs"


def test_a_fault_that_comes_and_goes_is_unsteady(tmp_path: Path) -> None:
    found = ovir.fuzz(wrong_in(range(0, 10**6, 3)), models=3, output=tmp_path, **FLOOR)
    assert len(found.findings) >= 1
    for finding in found.findings:
        assert (finding.seen, finding.runs, finding.unsteady) == (3, RUNS, True)
        report = (tmp_path / str(finding.folder) / "report.md").read_text()
        assert "Seen unsteady: in 3 of 9 runs: in one request" in report
        assert "It comes and goes" in report
        assert json.loads((tmp_path / "fuzz.json").read_text())["findings"][0]["unsteady"]
    (table,) = (part.blocks[0] for part in fuzz_page(found).sections if part.title == "Findings")
    place = [column.name for column in table.columns].index("seen")  # type: ignore[union-attr]
    assert {row[place] for row in table.rows} == {"unsteady: in 3 of 9 runs"}  # type: ignore[union-attr]


def test_a_fault_in_later_runs_of_a_model_is_found_in_every_fifth() -> None:
    """The fourth run is the first in a new request, which only one model of five has."""
    found = ovir.fuzz(wrong_in({3, 4, 6}, of_each_model=True), models=20, **FLOOR)
    (finding,) = found.findings
    assert (finding.kind, finding.seen, finding.unsteady) == ("second run", 3, True)
    assert finding.message.startswith("in a later run, output 0 of f32")
    assert 0 < finding.count < found.models / 2


def test_bits_that_vary_within_tolerance_are_no_finding() -> None:
    assert ovir.fuzz(wrong_in(range(0, 10**6, 2), 1e-6), models=20, ops="Exp-1", types=["f32"])  # none is all 0


def test_the_result_of_an_earlier_release_is_read() -> None:
    state = ovir.fuzz(wrong_in(range(10**6)), models=2, **FLOOR).to_dict()
    for finding in state["findings"]:
        for name in ("seen", "runs", "unsteady"):
            del finding[name]
    assert not Fuzzing.of(state).findings[0].unsteady
