"""Time models in one state of ovir: the program of the processes that ``benchmarks.regressions`` starts.

    python -P regressions_child.py MODEL.xml ...

It uses only what older states of ovir have as well. It prints the seconds of each figure as JSON: for each model, from
the compilation to the end of the second call, and the fastest of the later calls. If a file with the ending ``.read``
is beside it, reading and shape inference, too.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import ovir

SECONDS = 0.05
"""What the later calls of one model take together."""
LARGE = 100_000
"""Bytes of a file whose reading takes long enough to be measured."""


def timed(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def figures(path: Path) -> dict[str, float]:
    found = {}
    if path.stat().st_size > LARGE:
        model = ovir.read_model(path)
        found["read"] = min(timed(lambda: ovir.read_model(path)) for _ in range(2))
        found["infer shapes"] = min(timed(model.infer_shapes) for _ in range(2))
    archive = np.load(path.with_name("inputs.npz"))
    inputs = {name: archive[name] for name in archive.files}
    request: Any = None

    def start() -> None:
        nonlocal request
        request = ovir.compile_model(path).create_infer_request()
        call()
        call()

    def call() -> None:
        request.reset_state()
        request.infer(inputs, share_outputs=True)

    found["compile and 2 calls"] = timed(start)
    later = [timed(call) for _ in range(4)]
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        later.append(timed(call))
    found["call"] = min(later)
    return found


def main() -> None:
    found = {}
    for path in sys.argv[1:]:
        try:
            found[path] = figures(Path(path))
        except ovir.OvirError as error:  # an older state may not know what a new case is about
            print(f"{path}: {error}", file=sys.stderr)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
