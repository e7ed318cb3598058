"""Measures how much more a comparison with a device costs than one run on each side.

    python -m benchmarks.compare FOLDER [--only REGEX] [--rounds N]

FOLDER holds ``<name>/model.xml``. Each measurement is a process of its own, from start to end: a run in ovir, a run in
OpenVINO, a comparison of the outputs, and one of each layer alone. Times are the fastest of all rounds, taken in turns.
*times* is the time of the comparison of all layers divided by the sum of both runs; *memory* is the peak of its process
divided by the peak of a run in ovir. A comparison runs the device in a process of its own, whose memory does not count.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.common import PEAK, geometric_mean

_PROCESS = """
import sys
import ovir
path = sys.argv[1]
inputs = list(ovir.random_inputs(path).values())
config = {"INFERENCE_PRECISION_HINT": "f32"}
"""
_MEASURED = {
    "ovir": "ovir.compile_model(path)(inputs)",
    "OpenVINO": "import openvino; openvino.Core().compile_model(path, 'CPU', config)(inputs)",
    "outputs": "ovir.compare(path, inputs=inputs, config=config)",
    "layers": "ovir.compare(path, inputs=inputs, config=config, mode='isolated')",
}


def measured(kind: str, path: Path) -> tuple[float, float]:
    """Return the seconds that a process takes, and the peak of its memory in MB."""
    program = f"{PEAK}{_PROCESS}{_MEASURED[kind]}\nprint(peak())"
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    return time.perf_counter() - start, int(done.stdout.splitlines()[-1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", metavar="REGEX", help="names of models")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    titles = "".join(f"{kind + ' s':>12}" for kind in _MEASURED)
    print(f"{'model':32}{titles}{'times':>8}{'ovir MB':>9}{'memory':>8}")
    ratios: list[tuple[float, float]] = []
    for path in sorted(options.folder.glob("*/model.xml")):
        if not re.search(options.only, path.parent.name):
            continue
        rounds = [{kind: measured(kind, path) for kind in _MEASURED} for _ in range(options.rounds)]
        seconds = {kind: min(one[kind][0] for one in rounds) for kind in _MEASURED}
        peaks = {kind: min(one[kind][1] for one in rounds) for kind in _MEASURED}
        times = seconds["layers"] / (seconds["ovir"] + seconds["OpenVINO"])
        memory = max(peaks["outputs"], peaks["layers"]) / peaks["ovir"]
        ratios.append((times, memory))
        columns = "".join(f"{value:12.3f}" for value in seconds.values())
        print(f"{path.parent.name:32}{columns}{times:8.2f}{peaks['ovir']:9.0f}{memory:8.2f}", flush=True)
    means = [geometric_mean([ratio[side] for ratio in ratios]) for side in (0, 1)]
    print(f"geometric means: times {means[0]:.2f}, memory {means[1]:.2f}")


if __name__ == "__main__":
    main()
