"""How long `ovir check` takes on large files, beside OpenVINO's `read_model` on the same.

    python -m benchmarks.checking [--layers 12000] [--rounds 7] [--only NAME]

Both sides read a file in one process by turns; the processor's time is compared, as others may have the machine, too.
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

from ovir.checks.checker import check


def blocks(path: Path, layers: int) -> None:
    """Blocks of a product, a bias, an activation, a Reshape to a computed shape and a Transpose; 18 layers each."""
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
    """Sums with numbers that all differ, and activations; every tensor has a name."""
    data = ops.parameter([1, 64, 32, 32], np.float32, name="data")
    x = data
    for i in range(layers // 3):
        x = ops.add(x, ops.constant(np.float32(i)))
        x.output(0).set_names({f"/block.{i}/add"})
        x = ops.relu(x)
        x.output(0).set_names({f"/block.{i}/relu"})
    openvino.save_model(openvino.Model([x], [data]), path, compress_to_fp16=False)


def annotated(path: Path, layers: int) -> None:
    """The chain with an <rt_info> in every layer, as older releases wrote it."""
    chain(path, layers)
    count = 0

    def annotate(match: re.Match[str]) -> str:
        nonlocal count
        count += 1
        info = f'<attribute name="fused_names" version="0" value="op_{count}" />'
        return f"{match[0]}\n\t\t\t<rt_info>\n\t\t\t\t{info}\n\t\t\t</rt_info>"

    path.write_text(re.sub(r'<data [^>]*/>|<layer [^>]*type="ReLU"[^>]*>', annotate, path.read_text()))


def convolutions(path: Path, layers: int) -> None:
    """Blocks of a convolution with weights in f16, a bias, an activation and a sum; 7 layers each."""
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
    """Sums with 64 numbers that are others in each, and activations."""
    data = ops.parameter([1, 64], np.float32, name="data")
    rng = np.random.default_rng(0)
    x = data
    for _ in range(layers // 3):
        x = ops.relu(ops.add(x, ops.constant(rng.standard_normal((1, 64)).astype(np.float32))))
    openvino.save_model(openvino.Model([x], [data]), path, compress_to_fp16=False)


def distinct(path: Path, layers: int) -> None:
    """Layers of which hardly two are alike: each slope, pattern and shape of data occurs once; 5 layers a turn."""
    data = ops.parameter([1, 1], np.float32, name="data")
    x = data
    size = 1
    for i in range(1, layers // 5):
        x = ops.concat([ops.elu(x, 1 + i / layers), ops.constant(np.zeros((1, i), np.float32))], 1)
        size += i
        x = ops.reshape(x, ops.constant(np.array([1, size])), False)
    openvino.save_model(openvino.Model([x], [data]), path, compress_to_fp16=False)


def reordered(path: Path, layers: int) -> None:
    """The blocks, the attributes of each element in the reverse of the order in which OpenVINO writes them."""
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
    print("model            ratio  OpenVINO      ovir   reading inference rules, ms")
    for write in MODELS:
        if arguments.only not in (None, write.__name__):
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "large.xml"
            write(path, arguments.layers)
            times: list[tuple[float, float]] = []
            stages: dict[str, list[float]] = {}
            for turn in range(arguments.rounds + 1):
                start = process_time()
                core.read_model(path)
                read = process_time()
                check(path, clock=lambda stage, seconds: stages.setdefault(stage, []).append(seconds))  # noqa: B023
                if turn:  # the first is to warm up
                    times.append((read - start, process_time() - read))
        theirs, ours = (median(side) * 1e3 for side in zip(*times, strict=True))
        columns = [median(b / a for a, b in times), theirs, ours, *(median(times) * 1e3 for times in stages.values())]
        shown = "".join(f"{value:10.2f}" if value < 10 else f"{value:10.0f}" for value in columns)
        print(f"{write.__name__:12}{shown}")


if __name__ == "__main__":
    main()
