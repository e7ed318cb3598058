"""ONNX models: ovir against onnxruntime and onnx's ReferenceEvaluator, in turns in one process.

    python -m benchmarks.peers [FOLDER] [--rounds N] [--threads N] [--write]

Measures models that are made here, and the ``.onnx`` files in and below FOLDER. OpenVINO converts them to IR for ovir.
Prints for each model the medians, ovir's ratio to onnxruntime, how many times as long the ReferenceEvaluator takes, and
the largest difference to onnxruntime, relative to the largest output; at the end the geometric means.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import openvino
from onnx.reference import ReferenceEvaluator

import ovir
from benchmarks.common import Run, geometric_mean, in_turns, largest_difference, write_figures
from benchmarks.peer_models import MODELS
from ovir.core.arrays import Array
from ovir.kernels import parallel

SLOW_ROUNDS = 3
"""Rounds of the ReferenceEvaluator, which takes much longer than the others."""
Figures = dict[str, tuple[float, float, float | None, float]]
"""By model: the medians of ovir, onnxruntime and the ReferenceEvaluator in seconds (None if it fails), and the
difference."""


class Peers:
    """One ONNX model in ovir, onnxruntime and the ReferenceEvaluator, with inputs."""

    def __init__(self, model: onnx.ModelProto, threads: int) -> None:
        data = model.SerializeToString()
        self._session = onnxruntime.InferenceSession(data, _settings(threads), providers=["CPUExecutionProvider"])
        self.inputs = {port.name: _random_input(port) for port in self._session.get_inputs()}
        self._names = [port.name for port in self._session.get_outputs()]
        self._request = _converted(model).create_infer_request()
        self._reference = ReferenceEvaluator(model)

    def run_ovir(self) -> Any:
        return self._request.infer(self.inputs, share_outputs=True)

    def run_onnxruntime(self) -> list[Array]:
        found: list[Array] = self._session.run(None, self.inputs)
        return found

    def run_reference(self) -> Any:
        return self._reference.run(None, self.inputs)

    def error(self) -> float:
        """Return the largest difference between ovir and onnxruntime."""
        results = self.run_ovir()
        pairs = zip(self._names, self.run_onnxruntime(), strict=True)
        return max(largest_difference(np.asarray(results[name]), theirs) for name, theirs in pairs)


def _settings(threads: int) -> onnxruntime.SessionOptions:
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads, settings.inter_op_num_threads = threads, 1
    settings.log_severity_level = 3
    return settings


def _converted(model: onnx.ModelProto) -> ovir.CompiledModel:
    """Return the model that OpenVINO reads and saves as IR, compiled by ovir."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "model.onnx", Path(folder) / "model.xml"
        onnx.save(model, source)
        openvino.save_model(openvino.Core().read_model(source), target, compress_to_fp16=False)
        return ovir.compile_model(target)


def _random_input(port: onnxruntime.NodeArg) -> Array:
    """Return random numbers of the type and shape of an input, whose unknown dimensions are 1."""
    shape = [size if isinstance(size, int) else 1 for size in port.shape]
    rng = np.random.default_rng(0)
    if port.type == "tensor(float)":
        return rng.standard_normal(shape).astype(np.float32)
    dtype = {"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_}.get(port.type)
    if dtype is None:
        raise ValueError(f"there are no random inputs of type {port.type}")
    return rng.integers(0, 2, shape).astype(dtype)


def peers(folder: Path | None, threads: int) -> Iterator[tuple[str, Peers]]:
    """Yield the models that are made here, and those of a folder that ovir and onnxruntime take."""
    for name, make in MODELS.items():
        yield name, Peers(make(), threads)
    for path in sorted(folder.rglob("*.onnx")) if folder is not None else ():
        try:
            yield path.stem, Peers(onnx.load(path), threads)
        except Exception as error:  # each of four programs has exceptions of its own
            print(f"{path.stem:<28} skipped: {str(error).strip().splitlines()[0][:90]}")


def measure(folder: Path | None, rounds: int, threads: int) -> Figures:
    """Print and return the figures of all models."""
    print(f"{'model':<28}{'ovir ms':>10}{'ort ms':>10}{'ratio':>8}{'reference ms':>14}{'times':>8}{'error':>10}")
    found: Figures = {}
    for name, model in peers(folder, threads):
        error = model.error()
        runs: Mapping[str, Run] = {"ovir": model.run_ovir, "onnxruntime": model.run_onnxruntime}
        with parallel.limit(threads):
            medians = {side: statistics.median(times) for side, times in in_turns(runs, rounds).items()}
        ours, theirs = medians["ovir"], medians["onnxruntime"]
        slow = _reference_seconds(name, model)
        found[name] = ours, theirs, slow, error
        shown = f"{slow * 1e3:>14.2f}{slow / ours:>8.1f}" if slow is not None else f"{'-':>14}{'-':>8}"
        print(
            f"{name:<28}{ours * 1e3:>10.3f}{theirs * 1e3:>10.3f}{ours / theirs:>8.2f}{shown}{error:>10.1e}", flush=True
        )
    return found


def _reference_seconds(name: str, model: Peers) -> float | None:
    try:
        return statistics.median(in_turns({"reference": model.run_reference}, SLOW_ROUNDS)["reference"])
    except Exception as error:  # it raises whatever its NumPy code raises
        print(f"{name}: the ReferenceEvaluator failed: {str(error).strip().splitlines()[0][:90]}")
        return None


def summarize(found: Figures) -> tuple[float, float]:
    """Print and return the geometric means of the ratios to onnxruntime, and of the ReferenceEvaluator to ovir."""
    ratio = geometric_mean([ours / theirs for ours, theirs, _, _ in found.values()])
    slower = geometric_mean([slow / ours for ours, _, slow, _ in found.values() if slow is not None])
    worst = max(ours / theirs for ours, theirs, _, _ in found.values())
    print(f"geometric mean of ovir : onnxruntime        {ratio:6.2f}   worst {worst:6.2f}")
    print(f"geometric mean of ReferenceEvaluator : ovir {slower:6.1f}")
    return ratio, slower


def table(found: Figures, means: tuple[float, float]) -> list[str]:
    """Return the figures as a table of docs/performance.md."""
    lines = ["| model | ovir, ms | onnxruntime, ms | ratio | ReferenceEvaluator : ovir |", "|---|---|---|---|---|"]
    for name, (ours, theirs, slow, _) in found.items():
        times = f"{slow / ours:.1f}" if slow is not None else ""
        lines.append(f"| {name} | {ours * 1e3:.2f} | {theirs * 1e3:.2f} | {ours / theirs:.2f} | {times} |")
    lines.append(f"| geometric mean | | | {means[0]:.2f} | {means[1]:.1f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="more models")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of ovir and onnxruntime")
    parser.add_argument("--write", action="store_true", help="write the figures to docs/performance.md")
    options = parser.parse_args()
    found = measure(options.folder, options.rounds, options.threads)
    means = summarize(found)
    if options.write:
        write_figures("peers", table(found, means))


if __name__ == "__main__":
    main()
