"""What counts as a fault of the other side, and under which signature."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ovir.core.arrays import Array
from ovir.debugging.repeats import WAYS
from ovir.fuzzing.findings import Finding, alike, operations_of, signature_of
from ovir.fuzzing.fuzz import Fuzzing, read_known, write_known
from ovir.fuzzing.judging import Fault, Judge
from ovir.fuzzing.left_open import decided, depends_on_open
from ovir.fuzzing.net import Net
from ovir.fuzzing.reference import Reference
from ovir.fuzzing.targets import Function
from ovir.model import Model

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def added() -> Model:
    """Return a model with the outputs x + 1 and x - 1."""
    net = Net()
    x, one = net.parameter("x", "2,3"), net.const(np.float32(1))
    for kind in ("Add", "Subtract"):
        net.result(net.op(kind, x, one))
    return net.model()


def judge_of(runs: Sequence[Callable[[list[Array]], Any]], counted: list[int]) -> Judge:
    """Return the judge of a side whose runs change the right outputs, and are counted."""

    def run(path: str, inputs: Sequence[Array]) -> Any:
        counted.append(len(counted))
        return runs[min(len(counted), len(runs)) - 1]([inputs[0] + 1, inputs[0] - 1])

    return Judge(Function(run), "")


def judged(*runs: Callable[[list[Array]], Any], anew: bool = False) -> tuple[Fault | None, int]:
    """Return the fault of a side, and the number of its runs."""
    counted: list[int] = []
    return judge_of(runs, counted).fault(added(), [X], anew=anew), len(counted)


def right(outputs: list[Array]) -> list[Array]:
    return outputs


def second_is(value: float, place: tuple[int, int] = (1, 2)) -> Callable[[list[Array]], Any]:
    def changed(outputs: list[Array]) -> list[Array]:
        outputs[1] = outputs[1].copy()
        outputs[1][place] = value
        return outputs

    return changed


@pytest.mark.parametrize(
    ("runs", "kind", "message"),
    [
        ([right], None, ""),
        ([second_is(9)], "values", "output 1 of f32 differs: 1 of 6 elements, at [1,2] 9.0 in place of 4"),
        ([second_is(4 + 1e-6)], None, ""),
        ([right, second_is(9)], "second run", "in a later run, output 1 of f32 differs: 1 of 6 elements, at [1,2] 9.0 in place"),
        ([lambda found: found[:1]], "shape", "1 outputs, not 2"),
        ([lambda found: [*found, X]], "shape", "3 outputs, not 2"),
        ([right, lambda found: [*found, X]], "second run", "in a later run, 3 outputs, not 2"),
        ([lambda found: [found[0], found[1][:1]]], "shape", "output 1 has shape [1, 3], not [2, 3]"),
        ([lambda found: [found[0].astype("f8"), found[1]]], "type", "output 0 is of float64, not float32"),
    ],
)  # fmt: skip
def test_kinds_of_faults(runs: list[Any], kind: str | None, message: str) -> None:
    fault, count = judged(*runs)
    assert count == 2
    assert (fault is None) == (kind is None)
    if fault is not None:
        assert (fault.kind, fault.message[: len(message)]) == (kind, message)
        assert fault.in_later_run == (kind == "second run")
        assert [array.tolist() for array in fault.expected] == [(X + 1).tolist(), (X - 1).tolist()]
        assert len(fault.tolerances) == 2
        assert fault.known is None
        assert len(fault.actual) == (0 if "outputs, not" in message else 2)


def test_a_fault_in_the_last_of_all_runs() -> None:
    runs = 3 * len(WAYS)
    fault, count = judged(*[right] * (runs - 1), second_is(9), anew=True)
    assert (fault is not None and fault.kind, count) == ("second run", runs)
    assert judged(right, anew=True) == (None, runs)


def test_numbers_that_are_denormal_may_be_0() -> None:
    net = Net()
    net.result(net.op("Abs", net.parameter("x", "2")))
    smallest = np.float32([1e-39, 1e-37])
    for flushed, is_fault in (([0, 1e-37], False), ([1e-39, 0], True)):
        judge = Judge(Function(lambda path, inputs, flushed=flushed: [np.float32(flushed)]), "")
        assert (judge.fault(net.model(), [smallest]) is not None) == is_fault


def test_both_sides_take_time() -> None:
    judge = Judge(Function(lambda path, inputs: [X + 1, X - 1]), "")
    judge.fault(added(), [X])
    first = dict(judge.seconds)
    judge.fault(added(), [X])
    assert all(0 < first[side] < judge.seconds[side] < 60 for side in ("ovir", "target"))


def test_a_model_of_random_numbers_runs_once() -> None:
    net = Net()
    limits = [net.const(np.float32(value)) for value in (0, 1)]
    net.result(net.op("RandomUniform", net.const([3], "i64"), *limits, opset=8, output_type="f32"))
    calls: list[str] = []
    Judge(Function(lambda path, inputs: calls.append(path) or [np.zeros(3, "f4")]), "").fault(net.model(), [])
    assert len(calls) == 1
    assert Reference.of(added(), [X]).is_repeatable


@pytest.mark.parametrize(
    ("runs", "kind", "seen"),
    [([second_is(9)], "values", 9), ([right, second_is(9)], "values", 8), ([right, second_is(9)], "second run", 8),
     ([right], "values", 0), ([second_is(9)], "shape", 0)],
)  # fmt: skip
def test_in_how_many_runs_a_fault_shows(runs: list[Any], kind: str, seen: int) -> None:
    assert judge_of(runs, []).appearances(added(), [X], Fault(kind, "")) == (seen, 3 * len(WAYS))


def test_signatures_group_faults_with_one_cause() -> None:
    model = added()
    assert operations_of(model) == ["Add-1", "Subtract-1"]
    values, refusal = Fault("values", "output 0: 3 of 4"), Fault("refusal", "node 'a' at f.cpp:12: " + "x" * 300)
    assert signature_of(model, values) == "values: Add-1 Subtract-1"
    found = signature_of(model, refusal)
    assert found == f"refusal: Add-1 Subtract-1: node at f.cpp:#: {'x' * (200 - len('node  at f.cpp:#: '))}"
    assert alike(values, Fault("values", "another")) is True
    assert alike(values, Fault("shape", values.message)) is False
    assert alike(refusal, Fault("refusal", refusal.message.replace("12", "13"))) is True
    assert alike(refusal, Fault("refusal", "another")) is False
    assert alike(Fault("ovir", "one"), Fault("ovir", "other")) is False


def test_known_signatures_are_added_to_a_file(tmp_path: Path) -> None:
    path = tmp_path / "known.txt"
    found = Fuzzing([Finding(name, "values", ["Add-1"], "", 0, 1) for name in ("b", "a", "c")])
    write_known(path, found)
    assert path.read_text() == "a\nb\nc\n"
    path.write_text("# mine\n\n  b \nd")
    assert read_known(path) == {"b", "d"}
    write_known(path, found)
    assert path.read_text() == "# mine\n\n  b \nd\na\nc\n"


def test_figures_of_a_search() -> None:
    finding = Finding("a", "values", ["Add-1"], "", 0, 1, seen=2, runs=9, unsteady=True)
    found = Fuzzing([finding], models=10, compared=6, refused=1, seconds=4.0)
    assert (found.unsupported_models, found.rate, bool(found)) == (3, 2.5, False)
    assert (finding.steadiness, Finding("a", "values", [], "", 0, 1).steadiness) == (
        "unsteady: in 2 of 9 runs",
        "in 1 of 1 run",
    )
    assert [bool(Fuzzing(compared=compared)) for compared in (0, 1)] == [False, True]
    assert Fuzzing().rate == 0
    found.unsupported["Abs-1"] += 3
    found.map.record([("Add-1", "f32")], "differs", "a")
    again = Fuzzing.of(found.to_dict())
    assert again.to_dict() == found.to_dict()
    assert again.unsupported["Sin-1"] == 0


@pytest.mark.parametrize(
    ("data", "sort", "stable", "is_open"),
    [
        ([4, 1, 3, 2], "value", False, False),
        ([4, 1, 4, 2], "value", False, True),
        ([4, 1, 4, 2], "index", True, False),
        ([4, 1, 3, 2], "none", True, True),
        ([4, 1, 3, 2], "none", False, True),
    ],
)
def test_what_topk_leaves_open(data: list[float], sort: str, stable: bool, is_open: bool) -> None:
    net = Net()
    attributes = {"axis": "0", "mode": "max", "sort": sort, "stable": str(stable).lower()}
    top = net.op("TopK", net.parameter("x", "4"), net.const(3, "i64"), opset=11, outputs=2, **attributes)
    net.result(top)
    net.result((top[0], top[1] + 1))
    net.result(net.op("Exp", top))
    reference = Reference.of(net.model(), [np.float32(data)])
    values, indices, _ = reference.outputs
    assert [depends_on_open(reference, index) for index in range(3)] == [False, False, is_open]
    expected = sorted(values.tolist()) if sort != "value" else values.tolist()
    assert decided(reference, 0, values).tolist() == (expected if is_open else values.tolist())
    assert decided(reference, 1, indices).tolist() == (expected if is_open else indices.tolist())
    if is_open:
        for outside in (-1, 4):
            odd = np.array([0, 1, outside], indices.dtype)
            assert decided(reference, 1, odd) is odd
