"""Whole models: ovir against OpenVINO's CPU plugin (f32, latency mode), in turns in one process.

    python -m benchmarks.models [FOLDER] [--only REGEX] [--rounds N] [--engine ENGINE] [--busy N] [--layers NAME]
                                [--write]

FOLDER holds ``<name>/model.xml`` and ``<name>/inputs.npz``. Prints for each model the medians, their ratio and the
largest difference of the outputs, relative to the largest one; at the end the geometric means for models that take
OpenVINO less and more than 2 ms. With ``--engine onnxruntime``, ovir runs models in onnxruntime, and the last column
shows its time divided by that of the NumPy kernels. With ``--busy`` so many other processes keep cores busy.
``--layers`` prints which operations of one model take the time.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import openvino

import ovir
from benchmarks.common import geometric_mean, in_turns, write_figures
from ovir.core.arrays import Array
from ovir.core.blas import single_thread
from ovir.runtime.executor import Executor

MODELS = Path(__file__).parents[2] / "shared" / "models"
Figures = dict[str, tuple[float, float, float]]
"""By model: the medians of ovir and OpenVINO in seconds, and the difference of their outputs."""
SMALL = 0.002
"""Seconds that OpenVINO takes for what counts as a small model."""


class Pair:
    """One model on both sides, with its inputs."""

    def __init__(self, folder: Path, core: openvino.Core, engine: str = "numpy") -> None:
        self.name = folder.name
        self.inputs = dict(np.load(folder / "inputs.npz"))
        self.path = folder / "model.xml"
        self.ours = ovir.compile_model(self.path, engine=engine).create_infer_request()
        self.by_numpy = ovir.compile_model(self.path).create_infer_request() if engine != "numpy" else None
        settings = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
        compiled = core.compile_model(core.read_model(folder / "model.xml"), "CPU", settings)
        self.theirs = compiled.create_infer_request()
        self.their_inputs = {_key(compiled, name): array for name, array in self.inputs.items()}

    def run_ours(self) -> Any:
        return self._run(self.ours)

    def run_by_numpy(self) -> Any:
        assert self.by_numpy is not None
        return self._run(self.by_numpy)

    def _run(self, request: ovir.InferRequest) -> Any:
        request.reset_state()
        return request.infer(self.inputs, share_outputs=True)

    def run_theirs(self) -> Any:
        self.theirs.reset_state()
        return self.theirs.infer(self.their_inputs, share_inputs=True, share_outputs=True)

    def error(self) -> float:
        """Return the largest difference between the outputs of both sides, in the third run of ovir."""
        self.run_ours()
        self.run_ours()
        ours, theirs = self.run_ours().to_dict().values(), self.run_theirs().values()
        return max((_difference(np.asarray(b), a) for a, b in zip(ours, theirs, strict=True)), default=0.0)

    @property
    def bound(self) -> Executor:
        return next(iter(self.ours._bindings._bound.values()))


def _key(compiled: openvino.CompiledModel, name: str) -> int:
    """Return the position of an input by its tensor name or the name of its Parameter."""
    for index, port in enumerate(compiled.inputs):
        if name in port.get_names() or name == port.get_node().get_friendly_name():
            return index
    raise KeyError(name)


def _difference(a: Array, b: Array) -> float:
    if a.dtype.kind != "f" or a.shape != b.shape:
        return 0.0 if np.array_equal(a, b) else float("inf")
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)):
        return float("inf")
    return float(np.abs(a[finite] - b[finite]).max(initial=0) / max(np.abs(a[finite]).max(initial=0), 1e-30))


def pairs(folder: Path, only: str, engine: str = "numpy") -> Iterator[Pair]:
    """Yield the models that both sides run."""
    core = openvino.Core()
    for path in sorted(folder.glob("*/model.xml")):
        if re.search(only, path.parent.name):
            try:
                yield Pair(path.parent, core, engine)
            except (RuntimeError, ovir.OvirError) as error:
                print(f"{path.parent.name:<34} skipped: {str(error).splitlines()[0][:80]}")


def measure(folder: Path, only: str, rounds: int, engine: str = "numpy") -> Figures:
    """Print and return the figures of all models."""
    last = "" if engine == "numpy" else f"{'to numpy':>10}"
    print(f"{'model':<34}{'ovir ms':>10}{'openvino ms':>13}{'ratio':>8}{'error':>10}{last}")
    found: Figures = {}
    for pair in pairs(folder, only, engine):
        error = pair.error()
        sides = {"ovir": pair.run_ours, "openvino": pair.run_theirs}
        if pair.by_numpy is not None:
            sides["numpy"] = pair.run_by_numpy
        times = in_turns(sides, rounds)
        ours, theirs = statistics.median(times["ovir"]), statistics.median(times["openvino"])
        found[pair.name] = ours, theirs, error
        last = f"{ours / statistics.median(times['numpy']):>10.2f}" if "numpy" in times else ""
        row = f"{pair.name:<34}{ours * 1e3:>10.3f}{theirs * 1e3:>13.3f}{ours / theirs:>8.2f}{error:>10.1e}{last}"
        print(row, flush=True)
    return found


def summarize(found: Figures) -> dict[str, tuple[float, float]]:
    """Print and return the geometric mean and the largest ratio of small models, of larger ones, and of all."""
    small = [a / b for a, b, _ in found.values() if b < SMALL]
    large = [a / b for a, b, _ in found.values() if b >= SMALL]
    groups = {"below 2 ms": small, "above 2 ms": large, "all": small + large}
    means = {name: (geometric_mean(ratios), max(ratios)) for name, ratios in groups.items() if ratios}
    for name, (mean, worst) in means.items():
        print(f"geometric mean, {name:<12} {mean:6.2f}   worst {worst:6.2f}")
    return means


def table(found: Figures, means: dict[str, tuple[float, float]]) -> list[str]:
    """Return the figures as a table of docs/performance.md."""
    lines = ["| model | ovir, ms | OpenVINO, ms | ratio | error |", "|---|---|---|---|---|"]
    for name, (ours, theirs, error) in found.items():
        lines.append(f"| {name} | {ours * 1e3:.2f} | {theirs * 1e3:.2f} | {ours / theirs:.2f} | {error:.0e} |")
    for name, (mean, worst) in means.items():
        lines.append(f"| geometric mean, {name} | | | {mean:.2f} (worst {worst:.2f}) | |")
    return lines


def layers(pair: Pair, runs: int = 200) -> None:
    """Print the time of the calls of a bound plan by the type of their operation."""
    pair.error()
    bound = pair.bound
    spent: dict[str, float] = defaultdict(float)
    calls: dict[str, int] = defaultdict(int)
    single: dict[int, float] = defaultdict(float)
    with single_thread, np.errstate(all="ignore"):
        for _ in range(runs):
            for index, (function, arguments) in enumerate(bound._calls):
                begin = time.perf_counter()
                function(*arguments)
                single[index] += time.perf_counter() - begin
    for index, (step, (function, _)) in enumerate(zip(bound._owners, bound._calls, strict=True)):
        name = f"{step.layer.type} {getattr(function, '__name__', type(function).__name__)}"
        spent[name] += single[index] / runs
        calls[name] += 1
    for name, seconds in sorted(spent.items(), key=lambda item: -item[1])[:40]:
        print(f"{seconds * 1e6:10.1f} us {calls[name]:5d} calls  {name}")


_BUSY = "while True: sum(range(10000))"


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keep as many processes busy while the context lasts."""
    running = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=MODELS)
    parser.add_argument("--only", default="", help="a regular expression for the names of models")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--write", action="store_true", help="write the figures to docs/performance.md")
    parser.add_argument("--engine", default="numpy", help="the engine of ovir: numpy or onnxruntime")
    parser.add_argument("--busy", type=int, default=0, metavar="N", help="the number of busy processes (default 0)")
    parser.add_argument("--layers", help="the name of one model")
    options = parser.parse_args()
    if options.layers:
        for pair in pairs(options.folder, f"^{options.layers}$"):
            layers(pair)
        return
    with busy(options.busy):
        found = measure(options.folder, options.only, options.rounds, options.engine)
    means = summarize(found)
    if options.write:
        name = "models" if options.engine == "numpy" else options.engine
        write_figures("load" if options.busy else name, table(found, means))


if __name__ == "__main__":
    main()
