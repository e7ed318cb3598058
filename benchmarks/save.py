"""Saves models with ovir and with OpenVINO in turns, and prints how long each takes and how much memory.

    python -m benchmarks.save FOLDER [--rounds N] [--fp16]

FOLDER has models, each as an .xml or as a folder with a model.xml. Models are read before; only the save is measured.
Times are the fastest of all rounds, memory is the growth of the peak of a process that saves once. The ratios are ovir
to OpenVINO: below 1, ovir takes less.
"""

from __future__ import annotations

import argparse
import gc
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import openvino

import ovir
from benchmarks.common import PEAK, geometric_mean

_MEMORY = f"""{PEAK}
import sys
side, source, weights, target, half = sys.argv[1:]
if side == "ovir":
    import ovir
    model, save = ovir.read_model(source, weights or None), ovir.save_model
else:
    import openvino
    core = openvino.Core()
    model, save = core.read_model(source, weights) if weights else core.read_model(source), openvino.save_model
before = peak()
save(model, target, compress_to_fp16=half == "True")
print(peak() - before)
"""


def weights_of(path: Path) -> Path | None:
    """Return the weights of a model whose own were replaced by others, else None: those beside it."""
    other = path.with_name("model.synth.bin")
    return other if other.exists() else None


def times_of(path: Path, folder: Path, rounds: int, half: bool) -> tuple[float, float]:
    """Return the seconds that ovir and OpenVINO take to save a model."""
    weights = weights_of(path)
    ours = ovir.read_model(path, weights)
    core = openvino.Core()
    theirs = core.read_model(path, weights) if weights else core.read_model(path)
    saves: tuple[Callable[[], object], ...] = (
        lambda: ovir.save_model(ours, folder / "a.xml", compress_to_fp16=half),
        lambda: openvino.save_model(theirs, folder / "b.xml", compress_to_fp16=half),
    )
    best = [float("inf"), float("inf")]
    gc.disable()
    for _ in range(rounds):
        for side, save in enumerate(saves):
            begin = time.perf_counter()
            save()
            best[side] = min(best[side], time.perf_counter() - begin)
    gc.enable()
    return best[0], best[1]


def memory_of(side: str, path: Path, folder: Path, half: bool) -> float:
    """Return by how many megabytes the peak of a process grows that saves a model."""
    target = folder / f"{side}.xml"
    arguments = [side, str(path), str(weights_of(path) or ""), str(target), str(half)]
    done = subprocess.run([sys.executable, "-c", _MEMORY, *arguments], capture_output=True, text=True, check=True)
    return float(done.stdout.splitlines()[-1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--fp16", action="store_true", help="compress constants to f16")
    options = parser.parse_args()
    paths = sorted([*options.folder.glob("*.xml"), *options.folder.glob("*/model.xml")])
    ratios = []
    print(f"{'model':<32}{'ovir ms':>10}{'openvino ms':>13}{'ratio':>8}{'ovir MB':>10}{'openvino MB':>13}")
    for path in paths:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            ours, theirs = times_of(path, folder, options.rounds, options.fp16)
            memory = [memory_of(side, path, folder, options.fp16) for side in ("ovir", "openvino")]
        ratios.append(ours / theirs)
        label = path.parent.name if path.name == "model.xml" else path.stem
        times = f"{ours * 1e3:>10.2f}{theirs * 1e3:>13.2f}{ratios[-1]:>8.2f}"
        print(f"{label:<32}{times}{memory[0]:>10.1f}{memory[1]:>13.1f}")
    if ratios:
        mean = geometric_mean(ratios)
        print(f"time, ovir to OpenVINO: {mean:.2f} (geometric mean), {max(ratios):.2f} at most, {len(ratios)} models")


if __name__ == "__main__":
    main()
