"""Figures go into the documentation if two runs, some time apart, agree: a single one may have seen a busy machine."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from math import isfinite
from pathlib import Path

FOLDER = Path(__file__).with_name("runs")
"""Holds for each table the run that no other one has confirmed yet; git ignores it."""
APART = 30
"""The least minutes between two runs."""
LARGEST = 0.15
"""The largest difference of two figures, as a share of the smaller one."""
LEFT_OUT = 0.1
"""The largest share of figures that may differ by more, and are left out. If more differ, the machine was busy."""


def require_agreement(table: str, state: str, figures: Mapping[str, float]) -> tuple[str, set[str]]:
    """Return the text for the documentation on two runs of a table, this one and one before, and the figures by name
    in which they do not agree.

    ``state`` says what this run has measured, when and where. Raises SystemExit if no run before has nearly all figures
    as this one has them. Then this run waits for another, unless one that waits is too young to compare.
    """
    path = FOLDER / f"{table}.json"
    again = "NOT WRITTEN: run it again in {:.0f} minutes or later, to confirm this run: {}"
    lines: list[str] = []
    if path.exists():
        before = json.loads(path.read_text("utf-8"))
        left = before["minutes"] + APART - time.time() / 60
        if left > 0:
            raise SystemExit(again.format(left + 0.5, before["state"]))
        others = before["figures"]
        names = {**others, **figures}
        differing = [name for name in names if _difference(others.get(name), figures.get(name)) > LARGEST]
        if len(differing) <= LEFT_OUT * len(names):
            path.unlink()
            left_out = "; the others are left out" if differing else ""
            agreed = f"{len(names) - len(differing)} of {len(names)} figures{left_out}"
            return f"{state} Another run agrees within {LARGEST:.0%} in {agreed}: {before['state']}", set(differing)
        both = {name: (others.get(name, "nothing"), figures.get(name, "nothing")) for name in differing}
        lines = [f"{name}: {then} before, {now} now" for name, (then, now) in both.items()]
    FOLDER.mkdir(exist_ok=True)
    run = {"minutes": time.time() / 60, "state": state, "figures": figures}
    path.write_text(json.dumps(run), "utf-8")
    raise SystemExit("\n".join([again.format(APART, state), *lines]))


def _difference(a: float | None, b: float | None) -> float:
    """Return by which share of the smaller figure two of them differ; infinity if there is only one."""
    if a == b:
        return 0.0
    if a is None or b is None or not (isfinite(a) and isfinite(b)) or min(a, b) <= 0:
        return float("inf")
    return max(a, b) / min(a, b) - 1
