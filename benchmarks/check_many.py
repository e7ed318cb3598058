"""Time `ovir check` on a folder of small files with one worker and with several.

    python -m benchmarks.check_many [--files 10000] [--workers 2] [--rounds 3]

The commands take turns in one process. Wall-clock time is compared, starting the workers included; the first column
is the time of one worker divided by the time of several, by round. The median counts.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

import ovir
from ovir import opset13 as ops
from ovir.cli.main import main as command


def write_files(folder: Path, count: int) -> None:
    """Write files of 12 layers each, which differ in their sizes, in folders of 100."""
    for number in range(count):
        x = data = ops.parameter([1, 8 + number % 50], "f32", name="data")
        for _ in range(5):
            x = ops.relu(ops.add(x, ops.constant(1.5)))
        model = ovir.Model([x], [data], f"model{number}")
        path = folder / str(number // 100) / f"{number}.xml"
        path.parent.mkdir(exist_ok=True)
        ovir.save_model(model, path)


def seconds(folder: Path, workers: int) -> float:
    """Return the time that the command takes."""
    start = perf_counter()
    with contextlib.redirect_stderr(io.StringIO()) as said, contextlib.redirect_stdout(io.StringIO()):
        status = command(["check", str(folder), "--workers", str(workers), "--no-config"])
    assert status == 0, said.getvalue()
    return perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, arguments.files)
        ratios = []
        for _ in range(arguments.rounds):
            one, several = seconds(folder, 1), seconds(folder, arguments.workers)
            ratios.append(one / several)
            print(f"{one / several:.2f}  1 worker {one:.2f} s  {arguments.workers} workers {several:.2f} s", flush=True)
    print(f"{arguments.files:,} files, {arguments.workers} workers: {median(ratios):.2f} times as fast as one")


if __name__ == "__main__":
    main()
