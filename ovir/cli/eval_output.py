"""Output of ``ovir eval``: for people, and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ovir.analysis.evaluation import CONFIDENCE, Difference, Evaluation, Interval
from ovir.cli.failures import print_failures
from ovir.cli.output import say, say_table
from ovir.diagnostics.errors import OvirError
from ovir.diagnostics.wording import plural, readable

SHOWN = 20
"""The most classes that are printed; JSON has all."""


@dataclass
class Side:
    """A model with its evaluation, and the errors of inputs by their name."""

    name: str
    evaluation: Evaluation
    failed: dict[str, str] = field(default_factory=dict)

    def fail(self, name: str, error: OvirError) -> None:
        """Record that an input has failed."""
        texts = (str(replace(found, file=None, line=None, column=None)) for found in error.diagnostics)
        self.failed[name] = "\n".join(text.replace(f"{name}: ", "", 1) for text in texts)


def evaluation_as_json(sides: Sequence[Side]) -> dict[str, Any]:
    """Return the evaluations of one or two models, and the difference of two."""
    models = [
        {
            "model": side.name,
            **side.evaluation.to_dict(),
            "failed": [{"input": name, "error": error} for name, error in side.failed.items()],
        }
        for side in sides
    ]
    if len(sides) == 1:
        return models[0]
    difference = sides[0].evaluation.difference(sides[1].evaluation)
    return {**models[0], "against": models[1], "difference": difference.to_dict()}


def print_evaluation(sides: Sequence[Side]) -> None:
    """Print the same for people."""
    for side in sides:
        say(readable(f"{side.name}: {_value_text(side.evaluation)}"))
    if len(sides) == 2:
        first, second = (side.evaluation for side in sides)
        for line in _difference_lines(first, first.difference(second)):
            say(readable(line))
    _print_classes(sides[0].evaluation)
    for side in sides:
        prefix = f"failed in {side.name}" if len(sides) == 2 else "failed"
        print_failures(side.failed, "--json", prefix)


def _value_text(found: Evaluation) -> str:
    if found.value is None:
        return f"{found.metric.name} is not known, because all inputs failed"
    is_share = found.metric.is_share
    text = f"{found.metric.name} {_number(found.value, is_share)}{_interval_text(found.interval, is_share)}"
    samples = found.scores.size
    if is_share:
        text += f"; {int(found.scores.sum()):,} of {samples:,} right"
    else:
        text += f"; mean of {plural(samples, 'input')}, {_direction(found)}"
    return text


def _direction(found: Evaluation) -> str:
    return "higher is better" if found.metric.higher_is_better else "lower is better"


def _number(value: float, is_share: bool, sign: str = "") -> str:
    return f"{value:{sign}.2%}" if is_share else f"{value:{sign}.6g}"


def _interval_text(interval: Interval | None, is_share: bool, sign: str = "") -> str:
    if interval is None:
        return ", without an interval"
    low, high = (_number(end, is_share, sign) for end in interval[:2])
    return f", {CONFIDENCE:.0%} interval {low} to {high} ({interval.method})"


def _difference_lines(first: Evaluation, found: Difference) -> Iterator[str]:
    if found.value is None:
        yield "difference: no input ran in both"
        return
    is_share = first.metric.is_share
    text = f"difference {_number(found.value, is_share, '+')}{_interval_text(found.interval, is_share, '+')}"
    if found.only_first is not None:
        text += f"; right in the first alone {found.only_first:,}, in the second alone {found.only_second:,}"
    yield f"{text}; {plural(found.samples, 'sample')}"
    if found.p_value is None:
        return
    is_better = (found.value > 0) == first.metric.higher_is_better
    verdict = f"the first model is {'better' if is_better else 'worse'}" if found.is_shown else "no difference is shown"
    yield f"{verdict}: p = {found.p_value:.3g} ({found.test})"


def _print_classes(found: Evaluation) -> None:
    """Print how each class is recognized, if there are few."""
    classes = found.classes()
    if not 1 < len(classes) <= SHOWN:
        return
    rows = [
        (
            item.number,
            item.samples,
            item.right,
            f"{item.right / item.samples:.1%}",
            "-" if item.instead is None else f"{item.instead[0]} ({item.instead[1]:,})",
        )
        for item in classes
    ]
    say()
    say_table((">class", ">samples", ">right", ">share", "most often taken for"), rows)
