"""What is slower than the base in every round fails, and what only seems so in a busy moment does not."""

import argparse
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import regressions


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
