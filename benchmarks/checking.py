"""How long `ovir check` takes on a large file, beside OpenVINO's `read_model` on the same.

    python -m benchmarks.checking [--layers 12000] [--rounds 7]

The model is made of blocks of a product, a bias, an activation, a Reshape to a computed shape and a Transpose. Both
sides read it in one process by turns; the processor's time is compared, as other processes may have the machine too.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np
import openvino
import openvino.opset13 as ops

from ovir.checks.checker import check


def write_model(path: Path, layers: int) -> int:
    """Write a model of about so many layers; how many there are."""
    data = ops.parameter([-1, 64], np.float32, name="data")
    rng = np.random.default_rng(0)
    x = data
    count = 2
    while count < layers:
        x = ops.matmul(x, ops.constant(rng.standard_normal((64, 64)).astype(np.float32)), False, False)
        x = ops.relu(ops.add(x, ops.constant(rng.standard_normal((1, 64)).astype(np.float32))))
        batch = ops.gather(ops.shape_of(x, "i64"), ops.constant(np.array([0])), ops.constant(0))
        matrix = ops.reshape(x, ops.concat([batch, ops.constant(np.array([4, 16]))], 0), False)
        turned = ops.transpose(matrix, ops.constant(np.array([0, 2, 1])))
        x = ops.multiply(ops.reshape(turned, ops.constant(np.array([0, 64])), True), ops.constant(np.float32(0.5)))
        count += 18
    openvino.save_model(openvino.Model([x], [data]), path, compress_to_fp16=False)
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=12_000)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    core = openvino.Core()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.xml"
        layers = write_model(path, arguments.layers)
        ratios: list[float] = []
        stages: dict[str, list[float]] = {}
        for turn in range(arguments.rounds + 1):
            start = process_time()
            core.read_model(path)
            read = process_time()
            found = check(path, clock=lambda stage, seconds: stages.setdefault(stage, []).append(seconds))
            if turn:  # the first is to warm up
                ratios.append((process_time() - read) / (read - start))
    print(f"{layers} layers, {len(found)} findings; ovir check takes {median(ratios):.1f} times as long as read_model")
    for stage, seconds in stages.items():
        print(f"{stage:<10} {median(seconds) * 1e3:7.0f} ms")


if __name__ == "__main__":
    main()
