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
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import openvino
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import ovir
from benchmarks.common import Run, geometric_mean, in_turns, largest_difference, write_figures
from ovir.core import parallel
from ovir.core.arrays import Array

# --------------------------------------------------------------------------- models of common kinds, random weights


class Builder:
    """Collects the nodes of a graph; each method returns the name of an output."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._rng = np.random.default_rng(0)

    def input(self, *shape: int) -> str:
        name = f"x{len(self._inputs)}"
        self._inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return name

    def constant(self, array: Array | Sequence[int] | float, dtype: Any = None) -> str:
        name = f"c{len(self._constants)}"
        values = np.asarray(array, dtype or (np.int64 if isinstance(array, list) else np.float32))
        self._constants.append(numpy_helper.from_array(values, name))
        return name

    def weights(self, *shape: int) -> str:
        """Add weights, scaled so that sums over all axes but the first keep the size of numbers."""
        return self.constant(self._rng.standard_normal(shape) / sqrt(prod(shape[1:])))

    def add(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        names = [f"{kind}{len(self._nodes)}_{index}" for index in range(outputs)]
        self._nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def linear(self, x: str, size: int, count: int) -> str:
        product = self.add("MatMul", x, self.constant(self._rng.standard_normal((size, count)) / sqrt(size)))
        return str(self.add("Add", product, self.weights(count)))

    def convolution(self, x: str, channels: int, count: int, kernel: int, stride: int = 1, group: int = 1) -> str:
        filters = self.weights(count, channels // group, kernel, kernel), self.weights(count)
        return str(self.add("Conv", x, *filters, strides=[stride] * 2, pads=[kernel // 2] * 4, group=group))

    def model(self, *results: str) -> onnx.ModelProto:
        outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in results]
        graph = helper.make_graph(self._nodes, "peer", self._inputs, outputs, self._constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return onnx.shape_inference.infer_shapes(model, strict_mode=True)


def perceptron() -> onnx.ModelProto:
    """Return three layers of 512 units for a batch of 8."""
    b = Builder()
    x = b.input(8, 256)
    for size, count in ((256, 512), (512, 512), (512, 512)):
        x = b.add("Relu", b.linear(x, size, count))
    return b.model(b.add("Softmax", b.linear(x, 512, 10), axis=-1))


def mobile_network() -> onnx.ModelProto:
    """Return a network of inverted bottlenecks with depthwise convolutions and squeeze-and-excitation."""
    b = Builder()
    x = b.add("HardSwish", b.convolution(b.input(1, 3, 160, 160), 3, 16, 3, stride=2))
    channels = 16
    for count, kernel, stride in ((24, 3, 2), (24, 3, 1), (40, 5, 2), (40, 5, 1), (96, 5, 2), (96, 5, 1)):
        wide = channels * 4
        y = b.add("HardSwish", b.convolution(x, channels, wide, 1))
        y = b.add("HardSwish", b.convolution(y, wide, wide, kernel, stride, group=wide))
        gate = b.add("Relu", b.convolution(b.add("GlobalAveragePool", y), wide, wide // 4, 1))
        gate = b.add("HardSigmoid", b.convolution(gate, wide // 4, wide, 1))
        y = b.convolution(b.add("Mul", y, gate), wide, count, 1)
        x = b.add("Add", x, y) if stride == 1 else y
        channels = count
    pooled = b.add("Flatten", b.add("GlobalAveragePool", x))
    return b.model(b.linear(pooled, channels, 100))


def residual_network() -> onnx.ModelProto:
    """Return a network of residual blocks with convolutions of all channels."""
    b = Builder()
    x = b.add("Relu", b.convolution(b.input(1, 3, 112, 112), 3, 32, 7, stride=2))
    x = b.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for channels, count in ((32, 32), (32, 64), (64, 128)):
        stride = 1 if channels == count else 2
        y = b.convolution(b.add("Relu", b.convolution(x, channels, count, 3, stride)), count, count, 3)
        short = x if stride == 1 else b.convolution(x, channels, count, 1, stride)
        x = b.add("Relu", b.add("Add", y, short))
    return b.model(b.linear(b.add("Flatten", b.add("GlobalAveragePool", x)), 128, 100))


def encoder() -> onnx.ModelProto:
    """Return two blocks of a transformer, 64 tokens of 256 numbers and 4 heads."""
    b = Builder()
    x = b.input(1, 64, 256)
    for _ in range(2):
        x = b.add("Add", x, _attention(b, _normalized(b, x)))
        y = b.linear(_normalized(b, x), 256, 1024)
        erf = b.add("Erf", b.add("Mul", y, b.constant(0.5**0.5)))
        y = b.add("Mul", b.add("Mul", y, b.add("Add", erf, b.constant(1.0))), b.constant(0.5))
        x = b.add("Add", x, b.linear(y, 1024, 256))
    return b.model(_normalized(b, x))


def _normalized(b: Builder, x: str) -> str:
    scale, shift = b.constant(np.ones(256)), b.constant(np.zeros(256))
    return str(b.add("LayerNormalization", x, scale, shift, axis=-1))


def _attention(b: Builder, x: str) -> str:
    heads = b.constant([1, 64, 4, 64])
    parts = [b.add("Reshape", b.linear(x, 256, 256), heads) for _ in range(3)]
    query, key, value = (b.add("Transpose", p, perm=m) for p, m in zip(parts, _TURNS, strict=True))
    scores = b.add("Mul", b.add("MatMul", query, key), b.constant(0.125))
    joined = b.add("MatMul", b.add("Softmax", scores, axis=-1), value)
    rows = b.add("Reshape", b.add("Transpose", joined, perm=[0, 2, 1, 3]), b.constant([1, 64, 256]))
    return b.linear(rows, 256, 256)


_TURNS = ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])


def recurrent_network() -> onnx.ModelProto:
    """Return an LSTM of 128 units in both directions over 50 steps, and a product."""
    b = Builder()
    gates = b.weights(2, 4 * 128, 64), b.weights(2, 4 * 128, 128), b.weights(2, 8 * 128)
    y, _, _ = b.add("LSTM", b.input(50, 1, 64), *gates, outputs=3, hidden_size=128, direction="bidirectional")
    rows = b.add("Reshape", b.add("Transpose", y, perm=[0, 2, 1, 3]), b.constant([50, 256]))
    return b.model(b.linear(rows, 256, 32))


def detection_head() -> onnx.ModelProto:
    """Return a neck that joins two scales, and heads that give boxes and scores of all positions."""
    b = Builder()
    fine, coarse = b.input(1, 64, 40, 40), b.input(1, 128, 20, 20)
    up = b.add("Resize", b.convolution(coarse, 128, 64, 1), "", b.constant([1, 1, 2, 2], np.float32), mode="nearest")
    fine = _silu(b, b.convolution(b.add("Concat", fine, up, axis=1), 128, 64, 3))
    down = b.convolution(fine, 64, 64, 3, stride=2)
    coarse = _silu(b, b.convolution(b.add("Concat", coarse, down, axis=1), 192, 128, 1))
    boxes, scores = [], []
    for x, channels, places in ((fine, 64, 1600), (coarse, 128, 400)):
        y = _silu(b, b.convolution(x, channels, channels, 3))
        boxes.append(b.add("Reshape", b.convolution(y, channels, 4, 1), b.constant([1, 4, places])))
        scores.append(b.add("Reshape", b.convolution(y, channels, 20, 1), b.constant([1, 20, places])))
    probabilities = b.add("Sigmoid", b.add("Concat", *scores, axis=2))
    best, _ = b.add("TopK", b.add("ReduceMax", probabilities, axes=[1], keepdims=0), b.constant([100]), outputs=2)
    return b.model(b.add("Transpose", b.add("Concat", *boxes, axis=2), perm=[0, 2, 1]), probabilities, best)


def _silu(b: Builder, x: str) -> str:
    return str(b.add("Mul", x, b.add("Sigmoid", x)))


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "perceptron": perceptron,
    "mobile network": mobile_network,
    "residual network": residual_network,
    "encoder": encoder,
    "recurrent network": recurrent_network,
    "detection head": detection_head,
}


# --------------------------------------------------------------------------- measurement

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
