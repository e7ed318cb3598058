"""Compare the time of a call of every operation in two states of ovir, and print what is slower.

    python -m benchmarks.sweep [BASE] [--only REGEX] [--seconds N] [--over 1.1] [--repository FOLDER]

The models are those of ``ovir fuzz``: for each operation version the first ones of its recipe that run. They are small,
so that calls show what each operation costs besides its arithmetic, and what takes another way than before. States,
rounds and figures are those of ``benchmarks.regressions``: the base is that in the file ``base_commit``, and a figure
is the smallest time of alternating rounds. It is a report: the exit status is 0 whatever the ratios are.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import ovir
from benchmarks.common import geometric_mean
from benchmarks.regressions import State, compare, extract, parsed, slower, table
from ovir.fuzzing.cases import make_case
from ovir.fuzzing.making import VERSIONS

ROOT = Path(__file__).parents[1]
EACH = 2
"""The models of an operation version."""
ATTEMPTS = 8
"""The models that are tried, because some do not run."""


def write(kind: str, opset: int, folder: Path) -> dict[str, Path]:
    """Write the models of an operation version and their inputs, and return their paths by name."""
    found: dict[str, Path] = {}
    for number in range(ATTEMPTS):
        if len(found) == EACH:
            break
        case = make_case(number * len(VERSIONS) + VERSIONS.index((kind, opset)))
        if not case.feeds or not all(a.dtype.kind in "biuf" and a.dtype.isbuiltin == 1 for a in case.feeds):
            continue  # constants alone are folded, and a file of NumPy holds no other types
        try:
            model = ovir.read_model(case.text, case.weights)
            inputs: dict[str, Any] = dict(zip((port.any_name for port in model.inputs), case.feeds, strict=True))
            ovir.compile_model(model)(inputs)
        except ovir.OvirError:  # some recipes also draw what only a run refuses
            continue
        path = folder / f"{kind}-{opset}-{number}" / "model.xml"
        path.parent.mkdir()
        path.write_bytes(case.text)
        path.with_suffix(".bin").write_bytes(case.weights)
        np.savez(path.with_name("inputs.npz"), **inputs)
        found[f"{kind}-{opset}, model {number}"] = path
    return found


def report(states: Sequence[State], base: str, over: float) -> Iterator[str]:
    """Yield the lines of the table of ratios above a number, and the mean of all."""
    yield from table(states, base, over)
    ratios = [*slower(states, 0).values()]
    count, mean = len(slower(states, over)), geometric_mean(ratios)
    yield f"{count} of {len(ratios)} figures are above {over}; the geometric mean is {mean:.3f}"


def main() -> None:
    options = parsed(__doc__, seconds=20.0, over=1.1)
    with tempfile.TemporaryDirectory(prefix="ovir-sweep-") as name:
        folder = Path(name)
        models: dict[str, Path] = {}
        for kind, opset in VERSIONS:
            if re.search(options.only, f"{kind}-{opset}"):
                models |= write(kind, opset, folder)
        tree = folder / "old"
        tree.mkdir()
        base = extract(options.base, options.repository, tree)
        states = State(tree, folder / "bytecode", "--calls"), State(ROOT, folder / "new-bytecode", "--calls")
        compare(states, models, set(models), options)
    print(*report(states, base, options.over), sep="\n")


if __name__ == "__main__":
    main()
