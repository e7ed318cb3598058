"""Time whole processes of both sides, in turns: ``python -m benchmarks.startup [--rounds N]``.

``import ovir`` is compared with ``import numpy``; the commands with the shortest openvino script that reads the same
file (for ``ovir run``: that compiles the model and infers the same inputs). A first round, which is not measured,
writes bytecode. The times are wall times of processes, from start to end.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common import with_bytecode

_FILE = "examples/xml/digits.xml"
_INPUTS = "examples/xml/digits_input.npz"

_READ = f"import openvino; openvino.Core().read_model({_FILE!r})"
_INFER = f"import numpy, openvino; openvino.Core().compile_model({_FILE!r}, 'CPU')(dict(numpy.load({_INPUTS!r})))"

PAIRS: dict[str, tuple[Sequence[str], Sequence[str], float]] = {
    "import ovir": (("-c", "import ovir"), ("-c", "import numpy"), 1.6),
    "from ovir import *": (("-c", "from ovir import *"), ("-c", "import numpy"), 1.6),
    "ovir check": (("-m", "ovir", "check", _FILE), ("-c", _READ), 0.65),
    "ovir infer": (("-m", "ovir", "infer", _FILE), ("-c", _READ), 0.65),
    "ovir run": (("-m", "ovir", "run", _FILE, "--input", _INPUTS), ("-c", _INFER), 0.65),
}
"""The arguments of Python on either side, and the target of the ratio, by name."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description="Compare start-up times.")
    parser.add_argument("--rounds", type=int, default=20, help="processes of each kind (default 20)")
    rounds = parser.parse_args().rounds
    root = Path(__file__).parent.parent
    print(f"{'':<20}{'ovir ms':>18}{'other ms':>18}{'ratio':>16}  target")
    print(f"{'':<20}{'median':>10}{'min':>8}{'median':>10}{'min':>8}{'median':>8}{'min':>8}")
    with with_bytecode() as environment:
        for name, (ours, theirs, target) in PAIRS.items():
            times = _in_turns((ours, theirs), rounds, root, environment)
            (a, least_a), (b, least_b) = ((statistics.median(t) * 1e3, min(t) * 1e3) for t in times)
            print(
                f"{name:<20}{a:>10.0f}{least_a:>8.0f}{b:>10.0f}{least_b:>8.0f}"
                f"{a / b:>8.2f}{least_a / least_b:>8.2f}  {target}"
            )


def _in_turns(
    commands: Sequence[Sequence[str]], rounds: int, folder: Path, environment: dict[str, str]
) -> list[list[float]]:
    """Return the seconds of each command in each round, after one round that is not measured."""
    times: list[list[float]] = [[] for _ in commands]
    for number in range(rounds + 1):
        for found, command in zip(times, commands, strict=True):
            begin = time.perf_counter()
            subprocess.run(
                [sys.executable, *command], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )  # fmt: skip
            if number:
                found.append(time.perf_counter() - begin)
    return times


if __name__ == "__main__":
    main()
