"""Time models in one state of ovir: the program of the processes that ``benchmarks.regressions`` starts.

    python -P regressions_child.py [--calls] MODEL.xml ...

It uses only what older states of ovir have as well. It prints the seconds of each figure as JSON: for each model, from
the compilation to the end of the second call, of later calls, and, if an input is large, of calls with another array in
each; for large files, of reading and shape inference, too; with --calls, of later calls alone, in less time.
Each is that of the fastest repetition. Later calls are measured in real time, because they use threads; the others in
processor time, which does not count while other programs run.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

import ovir

SECONDS, SECONDS_OF_CALLS = 0.04, 0.004
"""How long an action is repeated, and with --calls; each is done once at least."""
LARGE = 100_000
"""Bytes of a file whose reading takes long enough to be measured, and of an input that may be read where it is."""


def fastest(run: Callable[[], Any], clock: Callable[[], float] = time.process_time, seconds: float = SECONDS) -> float:
    """Return the seconds of the fastest run."""
    end, best = time.perf_counter() + seconds, float("inf")
    while True:
        start = clock()
        run()
        best = min(best, clock() - start)
        if time.perf_counter() > end:
            return best


def figures(path: Path, only_calls: bool) -> dict[str, float]:
    found = {}
    if not only_calls and path.stat().st_size > LARGE:
        found["read"] = fastest(lambda: ovir.read_model(path))
        found["infer shapes"] = fastest(ovir.read_model(path).infer_shapes)
    archive = np.load(path.with_name("inputs.npz"))
    one, other = ({name: archive[name] for name in archive.files} for _ in range(2))
    inputs = cycle([one])
    request: Any = None

    def start() -> None:
        nonlocal request
        request = ovir.compile_model(path).create_infer_request()
        call()
        call()

    def call() -> None:
        request.reset_state()
        request.infer(next(inputs), share_outputs=True)

    if only_calls:
        start()
        call()
        return {"call": fastest(call, time.perf_counter, SECONDS_OF_CALLS)}
    found["compile and 2 calls"] = fastest(start)
    call()  # after which all steps are bound
    found["call"] = fastest(call, time.perf_counter)
    if max(array.nbytes for array in one.values()) > LARGE:
        inputs = cycle([other, one])
        call()
        found["call with another array"] = fastest(call, time.perf_counter)
    return found


def main() -> None:
    found = {}
    only_calls = sys.argv[1:2] == ["--calls"]
    paths = sys.argv[1 + only_calls :]
    for path in (*paths[:1], *paths):  # the first one loads modules, so it is measured again
        try:
            found[path] = figures(Path(path), only_calls)
        except ovir.OvirError as error:  # an older state may not know what a new case is about
            print(f"{path}: {error}", file=sys.stderr)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
