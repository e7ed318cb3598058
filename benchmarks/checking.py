"""Time `ovir.read_model` and `ovir.check` on large files, against OpenVINO's `read_model`.

    python -m benchmarks.checking [--layers 12000] [--rounds 7] [--only NAME]

All read a file in one process by turns. Processor time is compared, because others may use the machine as well. The
first two columns are medians of ratios to OpenVINO's time; the others are medians in ms, the last three of the stages
of `ovir.check`.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np
import openvino
import openvino.opset13 as ops

import ovir


def blocks(path: Path, layers: int) -> None:
    """Write blocks of a product, a bias, an activation, a Reshape to a computed shape and a Transpose; 18 layers
    each."""
    data = ops.parameter([-1, 64], np.float32, name="data")
    rng = np.random.default_rng(0)
    x = data
    for _ in range(layers // 18):
        x = ops.matmul(x, ops.constant(rng.standard_normal((64, 64)).astype(np.float32)), False, False)
        x = ops.relu(ops.add(x, ops.constant(rng.standard_normal((1, 64)).astype(np.float32))))
        batch = ops.gather(ops.shape_of(x, "i64"), ops.constant(np.array([0])), ops.constant(0))
        matrix = ops.reshape(x, ops.concat([batch, ops.constant(np.array([4, 16]))], 0), False)
        turned = ops.transpose(matrix, ops.constant(np.array([0, 2, 1])))
        x = ops.multiply(ops.reshape(turned, ops.constant(np.array([0, 64])), True), ops.constant(np.float32(0.5)))
    openvino.save_model(openvino.Model([x], [data]), path, compress_to_fp16=False)


def chain(path: Path, layers: int) -> None:
    """Write additions of distinct numbers, and activations; every tensor has a name."""
    data = ops.parameter([1, 64, 32, 32], np.float32, name="data")
    x = data
    for i in range(layers // 3):
        x = ops.add(x, ops.constant(np.float32(i)))
        x.output(0).set_names({f"/block.{i}/add"})
        x = ops.relu(x)
        x.output(0).set_names({f"/block.{i}/relu"})
    openvino.save_model(openvino.Model([x], [data]), path, compress_to_fp16=False)


def annotated(path: Path, layers: int) -> None:
    """Write the chain with an <rt_info> in every layer, as older releases do."""
    chain(path, layers)
    count = 0

    def annotate(match: re.Match[str]) -> str:
        nonlocal count
        count += 1
        info = f'<attribute name="fused_names" version="0" value="op_{count}" />'
        return f"{match[0]}\n\t\t\t<rt_info>\n\t\t\t\t{info}\n\t\t\t</rt_info>"

    path.write_text(re.sub(r'<data [^>]*/>|<layer [^>]*type="ReLU"[^>]*>', annotate, path.read_text()))


def convolutions(path: Path, layers: int) -> None:
    """Write blocks of a convolution with f16 weights, a bias, an activation and a sum; 7 layers each."""
    data = ops.parameter([1, 32, 16, 16], np.float32, name="data")
    rng = np.random.default_rng(0)
    x = data
    for _ in range(layers // 7):
        weights = ops.convert(ops.constant(rng.standard_normal((32, 32, 3, 3)).astype(np.float16)), "f32")
        y = ops.convolution(x, weights, [1, 1], [1, 1], [1, 1], [1, 1])
        y = ops.add(y, ops.constant(rng.standard_normal((1, 32, 1, 1)).astype(np.float32)))
        x = ops.add(ops.relu(y), x)
    openvino.save_model(openvino.Model([x], [data]), path, compress_to_fp16=False)


def numbers(path: Path, layers: int) -> None:
    """Write additions of 64 numbers that differ in each layer, and activations."""
    data = ops.parameter([1, 64], np.float32, name="data")
    rng = np.random.default_rng(0)
    x = data
    for _ in range(layers // 3):
        x = ops.relu(ops.add(x, ops.constant(rng.standard_normal((1, 64)).astype(np.float32))))
    openvino.save_model(openvino.Model([x], [data]), path, compress_to_fp16=False)


def distinct(path: Path, layers: int) -> None:
    """Write layers hardly two of which are alike: each slope, pattern and shape of data occurs once; 5 layers a
    turn."""
    data = ops.parameter([1, 1], np.float32, name="data")
    x = data
    size = 1
    for i in range(1, layers // 5):
        x = ops.concat([ops.elu(x, 1 + i / layers), ops.constant(np.zeros((1, i), np.float32))], 1)
        size += i
        x = ops.reshape(x, ops.constant(np.array([1, size])), False)
    openvino.save_model(openvino.Model([x], [data]), path, compress_to_fp16=False)


def reordered(path: Path, layers: int) -> None:
    """Write the blocks with the attributes of each element in reverse order."""
    blocks(path, layers)

    def turn(match: re.Match[str]) -> str:
        return "".join([match[1], *reversed(re.findall(r' [\w-]+="[^"]*"', match[2])), match[3]])

    path.write_text(re.sub(r'(<(?:layer|data|port|edge))((?: [\w-]+="[^"]*")+)( ?/?>)', turn, path.read_text()))


MODELS: list[Callable[[Path, int], None]] = [blocks, chain, numbers, annotated, convolutions, distinct, reordered]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=12_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", choices=[write.__name__ for write in MODELS])
    arguments = parser.parse_args()
    core = openvino.Core()
    print("model         read_model     check  OpenVINO read_model     check   reading inference     rules")
    for write in MODELS:
        if arguments.only in (None, write.__name__):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "large.xml"
                write(path, arguments.layers)
                print(f"{write.__name__:14}{_row(core, path, arguments.rounds)}")


def _row(core: openvino.Core, path: Path, rounds: int) -> str:
    """Return the columns for one file."""
    times: dict[str, list[float]] = {"OpenVINO": [], "read_model": [], "check": []}
    stages: dict[str, list[float]] = {}
    for turn in range(rounds + 1):
        runs: dict[str, Callable[[], object]] = {
            "OpenVINO": lambda: core.read_model(path),
            "read_model": lambda: ovir.read_model(path).dispose(),
            "check": lambda: ovir.check(
                path, clock=lambda stage, seconds: stages.setdefault(stage, []).append(seconds)
            ),
        }
        for name, run in runs.items():
            start = process_time()
            run()
            if turn:  # the first round is a warm-up
                times[name].append(process_time() - start)
    theirs = times["OpenVINO"]
    ratios = [median(b / a for a, b in zip(theirs, times[name], strict=True)) for name in ("read_model", "check")]
    figures = [median(values) * 1e3 for values in (*times.values(), *(found[1:] for found in stages.values()))]
    return "".join(f"{ratio:10.2f}" for ratio in ratios) + "".join(f"{figure:10.0f}" for figure in figures)


if __name__ == "__main__":
    main()
