"""The first call of models with static inputs, and what a profile says of later calls.

    python -m benchmarks.first_call [FOLDER] [--only REGEX] [--rounds N] [--write]

FOLDER holds ``<name>/model.xml`` and ``<name>/inputs.npz``; models with a dynamic input are left out. Two models of
real size with random weights are added: an encoder of six layers, and a residual network. Prints for each model

- the time to bind, which makes the arrays and the calls of all steps,
- the first run after that, and the median of later runs,
- their ratio, which shall be at most 1.5,
- the sum of a profile (``ovir run --profile``) over the median run without one, which shall be between 0.8 and 1.2.

Each round compiles the model anew, and the medians of the rounds are printed. A star marks models outside of the
limits; in both, 0.1 ms are granted for what is no step, and for code that a processor runs the first time.
"""

from __future__ import annotations

import argparse
import gc
import re
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

import ovir
from benchmarks.common import write_figures
from benchmarks.models import MODELS
from ovir import opset13 as ops
from ovir.analysis.profile import profile_runs

MOST_FIRST = 1.5
"""The largest ratio of the first run, after binding, and later runs."""
MOST_APART = 0.2
"""The largest difference of the sum of a profile from the median run, relative to the run."""
GRANTED = 1e-4
"""Seconds by which a time may exceed its limit."""
Layer = Any
Inputs = dict[str, Any]


class Times(NamedTuple):
    """Seconds, except for the last number."""

    bind: float
    first: float
    """The first run once all is bound."""
    later: float
    profile: float
    """The sum of a profile relative to a run."""

    @property
    def ratio(self) -> float:
        return self.first / self.later

    @property
    def holds(self) -> bool:
        apart = abs(self.profile - 1) * self.later
        return self.first <= MOST_FIRST * self.later + GRANTED and apart <= MOST_APART * self.later + GRANTED


# --------------------------------------------------------------------------- models of real size


class Weights:
    """Random weights, which keep the size of activations."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(0)

    def __call__(self, *shape: int, inputs: int) -> Any:
        return self._random.standard_normal(shape, np.float32) / np.float32(inputs**0.5)


def encoder(layers: int = 6, width: int = 384, heads: int = 12, length: int = 128) -> tuple[ovir.Model, Inputs]:
    """Return an encoder like BERT, of the size of MiniLM, and its inputs."""
    weights = Weights()
    tokens = ops.parameter([1, length], "i64", name="tokens")
    x = ops.gather(weights(30_000, width, inputs=1), tokens, 0)
    for _ in range(layers):
        x = _normalized(ops.add(x, _attention(x, weights, width, heads, length)))
        wide = ops.gelu(_dense(x, weights, width, 4 * width), "erf")
        x = _normalized(ops.add(x, _dense(wide, weights, 4 * width, width)))
    inputs = {"tokens": np.arange(length, dtype=np.int64)[np.newaxis] * 37 % 30_000}
    return ovir.Model([x], [tokens], "encoder"), inputs


def _attention(x: Layer, weights: Weights, width: int, heads: int, length: int) -> Layer:
    def split(part: Layer) -> Layer:
        return ops.transpose(ops.reshape(part, [1, length, heads, width // heads], False), [0, 2, 1, 3])

    q, k, v = (split(_dense(x, weights, width, width)) for _ in range(3))
    scores = ops.softmax(ops.multiply(ops.matmul(q, k, False, True), np.float32((width / heads) ** -0.5)), -1)
    mixed = ops.transpose(ops.matmul(scores, v, False, False), [0, 2, 1, 3])
    return _dense(ops.reshape(mixed, [1, length, width], False), weights, width, width)


def _dense(x: Layer, weights: Weights, inputs: int, outputs: int) -> Layer:
    return ops.add(ops.matmul(x, weights(inputs, outputs, inputs=inputs), False, False), _bias(outputs))


def _bias(size: int) -> Any:
    return np.linspace(-0.1, 0.1, size, dtype=np.float32)


def _normalized(x: Layer) -> Layer:
    return ops.mvn(x, [-1], True, 1e-5, "inside_sqrt")


def residual_network(size: int = 224) -> tuple[ovir.Model, Inputs]:
    """Return a network like ResNet-18 for images of a size, and its inputs."""
    weights = Weights()
    image = ops.parameter([1, 3, size, size], "f32", name="image")
    x: Layer = ops.relu(_convolution(image, weights, 3, 64, 7, 2))
    x = ops.max_pool(x, [2, 2], [1, 1], [1, 1], [1, 1], [3, 3])[0]
    channels = 64
    for outputs in (64, 64, 128, 128, 256, 256, 512, 512):
        stride = outputs // channels
        inner = ops.relu(_convolution(x, weights, channels, outputs, 3, stride))
        other = x if stride == 1 else _convolution(x, weights, channels, outputs, 1, stride)
        x = ops.relu(ops.add(_convolution(inner, weights, outputs, outputs, 3, 1), other))
        channels = outputs
    features = ops.reshape(ops.reduce_mean(x, [2, 3]), [1, channels], False)
    result = _dense(features, weights, channels, 1000)
    inputs = {"image": np.random.default_rng(1).standard_normal((1, 3, size, size), np.float32)}
    return ovir.Model([result], [image], "residual network"), inputs


def _convolution(x: Layer, weights: Weights, inputs: int, outputs: int, kernel: int, stride: int) -> Layer:
    filters = weights(outputs, inputs, kernel, kernel, inputs=inputs * kernel * kernel)
    pads = [kernel // 2] * 2
    found = ops.convolution(x, filters, [stride, stride], pads, pads, [1, 1])
    return ops.add(found, _bias(outputs).reshape(1, -1, 1, 1))


# --------------------------------------------------------------------------- measurement


def models(folder: Path, only: str) -> Iterator[tuple[str, ovir.Model, Inputs]]:
    """Yield the models with static inputs, each with its name and inputs."""
    for name, make in (("encoder", encoder), ("residual network", residual_network)):
        if re.search(only, name):
            yield name, *make()
    for path in sorted(folder.glob("*/model.xml")):
        if re.search(only, path.parent.name):
            model = ovir.read_model(path)
            if all(port.shape.is_static for port in model.inputs):
                yield path.parent.name, model, dict(np.load(path.parent / "inputs.npz"))


def measure(model: ovir.Model, inputs: Inputs, rounds: int) -> Times:
    """Return the times of a model."""
    binds, firsts, laters, profiles = [], [], [], []
    for _ in range(rounds):
        compiled = ovir.compile_model(model)
        request = compiled.create_infer_request()
        arrays = request._collect(inputs)
        gc.collect()
        start = time.perf_counter()
        request._bindings.executor_for(arrays)
        binds.append(time.perf_counter() - start)
        firsts.append(_seconds(request, inputs))
        for _ in range(3):  # steps that see their shapes for the second time bind themselves
            _seconds(request, inputs)
        later = [_seconds(request, inputs) for _ in range(15)]
        profile, _ = profile_runs(compiled, inputs)
        later += [_seconds(request, inputs) for _ in range(15)]
        laters.append(median(later))
        profiles.append(profile.seconds / laters[-1])
    return Times(median(binds), median(firsts), median(laters), median(profiles))


def _seconds(request: ovir.InferRequest, inputs: Inputs) -> float:
    request.reset_state()
    start = time.perf_counter()
    request.infer(inputs, share_outputs=True)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=MODELS)
    parser.add_argument("--only", default="", help="a regular expression for the names of models")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="write the figures to docs/performance.md")
    options = parser.parse_args()
    print(f"{'model':<28}{'bind ms':>10}{'first ms':>10}{'later ms':>10}{'ratio':>8}{'profile':>9}")
    lines = ["| model | bind, ms | first run, ms | later run, ms | ratio | profile |", "|---|---|---|---|---|---|"]
    count = failed = 0
    for name, model, inputs in models(options.folder, options.only):
        times = measure(model, inputs, options.rounds)
        count, failed = count + 1, failed + (not times.holds)
        shown = f"{times.bind * 1e3:>10.2f}{times.first * 1e3:>10.3f}{times.later * 1e3:>10.3f}"
        print(f"{name:<28}{shown}{times.ratio:>8.2f}{times.profile:>9.2f}{'' if times.holds else '  *'}", flush=True)
        figures = f"{times.bind * 1e3:.1f} | {times.first * 1e3:.2f} | {times.later * 1e3:.2f}"
        lines.append(f"| {name} | {figures} | {times.ratio:.2f} | {times.profile:.2f} |")
    print(f"{count - failed} of {count} models within both limits")
    if options.write:
        write_figures("first_call", lines)


if __name__ == "__main__":
    main()
