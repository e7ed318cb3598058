"""What is slower than the base in every round fails, and what only seems so in a busy moment does not."""

import argparse
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import regressions, sweep


class State:
    """A state of ovir whose calls take what a function of the number of the round says."""

    def __init__(self, seconds: Callable[[int], float]) -> None:
        self.times: dict[str, float] = {}
        self.seconds, self.rounds = seconds, 0

    def measure(self, names: set[str], models: object) -> None:
        for name in names:
            seconds = self.seconds(self.rounds) if name == "watched" else 1.0
            self.times[f"{name}: call"] = min(seconds, self.times.get(f"{name}: call", seconds))
        self.rounds += 1


@pytest.mark.parametrize(
    ("new", "slower", "rounds"),
    [
        (lambda number: 1.4, [], 3),
        (lambda number: 2.0, ["watched: call"], 23),
        (lambda number: 2.0 if number < 5 else 1.1, [], 6),
        (lambda number: 1.0 if number == 2 else 9.0, [], 3),
    ],
    ids=["little", "slower", "busy at first", "busy but once"],
)
def test_a_slowdown_must_last(new: Callable[[int], float], slower: list[str], rounds: int) -> None:
    states = State(lambda number: 1.0), State(new)
    options = argparse.Namespace(seconds=0.0, over=1.5)
    regressions.compare(states, {}, {"watched", "other"}, options)  # type: ignore[arg-type]
    assert list(regressions.slower(states, 1.5)) == slower  # type: ignore[arg-type]
    assert states[0].rounds == states[1].rounds == rounds


def test_the_base_is_a_full_name_of_a_commit() -> None:
    text = (Path(regressions.__file__).with_name("base_commit")).read_text()
    assert re.fullmatch(r"[0-9a-f]{40}\n", text)


def test_the_sweep_reports_what_is_slower_and_does_not_fail(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Tree(State):
        def __init__(self, tree: Path, bytecode: Path, option: str) -> None:
            assert option == "--calls"
            super().__init__(lambda number: 1.0 if tree.name == "old" else 1.2)

        def measure(self, names: set[str], models: dict[str, Path]) -> None:
            assert names <= models.keys()
            assert all(path.is_file() and path.with_name("inputs.npz").is_file() for path in models.values())
            self.times |= {f"{name}: call": self.seconds(0) if "Add-1" in name else 1.0 for name in names}

    monkeypatch.setattr(sweep, "State", Tree)
    monkeypatch.setattr(sweep, "extract", lambda commit, repository, target: commit)
    monkeypatch.setattr("sys.argv", ["sweep", "old", "--only", "^(Add|Gather|TopK)-", "--seconds", "0"])
    sweep.main()
    printed = capsys.readouterr().out
    assert printed.count("| 1.20 | 1200.000 | Add-1, model ") == sweep.EACH
    assert f"{sweep.EACH} of {7 * sweep.EACH} figures are above 1.1; the geometric mean is 1.026" in printed


def test_the_child_measures_calls_alone_in_less_time(tmp_path: Path) -> None:
    path, *_ = sweep.write("ReduceMax", 1, tmp_path).values()
    for options, kinds in (((), {"compile and 2 calls", "call"}), (("--calls",), {"call"})):
        state = regressions.State(sweep.ROOT, tmp_path / "bytecode", *options)
        state.measure({"one"}, {"one": path})
        assert {figure.removeprefix("one: ") for figure in state.times} == kinds
