"""Reading and checking large files: `ovir.read_model` and `ovir.check` against OpenVINO's `read_model`.

    python -m benchmarks.checking [--only REGEX] [--rounds N] [--write]

Files have 12,000 layers. All sides read a file in one process by turns, and processor time is compared.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import openvino
import openvino.opset13 as ops

import ovir
from benchmarks.common import Rows, Run, in_turns, report

LAYERS = 12_000
HEAD = ["model", "OpenVINO, ms", "`ovir.read_model`", "`ovir.check`"]
_random = np.random.default_rng(0)


def _numbers(*shape: int) -> Any:
    return ops.constant(_random.standard_normal(shape).astype(np.float32))


def blocks(x: Any) -> Any:
    """Blocks of a product, a bias, an activation, a Reshape to a computed shape and a Transpose; 18 layers each."""
    for _ in range(LAYERS // 18):
        x = ops.relu(ops.add(ops.matmul(x, _numbers(64, 64), False, False), _numbers(1, 64)))
        batch = ops.gather(ops.shape_of(x, "i64"), ops.constant(np.array([0])), ops.constant(0))
        matrix = ops.reshape(x, ops.concat([batch, ops.constant(np.array([4, 16]))], 0), False)
        turned = ops.transpose(matrix, ops.constant(np.array([0, 2, 1])))
        x = ops.multiply(ops.reshape(turned, ops.constant(np.array([0, 64])), True), ops.constant(np.float32(0.5)))
    return x


def chain(x: Any) -> Any:
    """Additions of 64 numbers that differ in each layer, and activations; every tensor has a name."""
    for i in range(LAYERS // 3):
        x = ops.add(x, _numbers(1, 64))
        x.output(0).set_names({f"/block.{i}/add"})
        x = ops.relu(x)
        x.output(0).set_names({f"/block.{i}/relu"})
    return x


def convolutions(x: Any) -> Any:
    """Blocks of a convolution with f16 weights, a bias, an activation and a sum; 7 layers each."""
    for _ in range(LAYERS // 7):
        weights = ops.constant(_random.standard_normal((32, 32, 3, 3)).astype(np.float16))
        y = ops.convolution(x, ops.convert(weights, "f32"), [1, 1], [1, 1], [1, 1], [1, 1])
        x = ops.add(ops.relu(ops.add(y, _numbers(1, 32, 1, 1))), x)
    return x


def distinct(x: Any) -> Any:
    """Layers hardly two of which are alike: each slope, pattern and shape of data occurs once; 5 layers a turn."""
    size = 1
    for i in range(1, LAYERS // 5):
        x = ops.concat([ops.elu(x, 1 + i / LAYERS), ops.constant(np.zeros((1, i), np.float32))], 1)
        size += i
        x = ops.reshape(x, ops.constant(np.array([1, size])), False)
    return x


MODELS: Mapping[Callable[[Any], Any], list[int]] = {
    blocks: [-1, 64],
    chain: [1, 64],
    convolutions: [1, 32, 16, 16],
    distinct: [1, 1],
}
"""The functions that build models, and the shapes of their inputs."""


def measure(options: argparse.Namespace) -> Rows:
    core = openvino.Core()
    for build, shape in MODELS.items():
        if re.search(options.only, build.__name__):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "large.xml"
                data = ops.parameter(shape, np.float32, name="data")
                openvino.save_model(openvino.Model([build(data)], [data]), path, compress_to_fp16=False)
                runs: dict[str, Run] = {
                    "openvino": partial(core.read_model, path),
                    "read": partial(_read, path),
                    "check": partial(ovir.check, path),
                }
                theirs, read, check = in_turns(runs, options.rounds, process_time).values()
            yield [build.__name__, theirs * 1e3, read / theirs, check / theirs]


def _read(path: Path) -> None:
    ovir.read_model(path).dispose()


if __name__ == "__main__":
    report(__doc__, "checking", HEAD, measure, rounds=5)
