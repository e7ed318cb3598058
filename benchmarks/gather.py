"""Gather-8 and GatherElements-6: ovir against OpenVINO's CPU plugin, onnxruntime, NumPy's own function and a copy.

    python -m benchmarks.gather [--rounds N] [--only REGEX]

All sides run in one process, in turn within each round, on the same arrays; ovir and OpenVINO through an infer request
each, with shared outputs. A number is the median over the rounds of the ratio of ovir's time to the other side's: below
1, ovir is the faster.
"""

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import nan
from statistics import median
from typing import Any

import numpy as np
import onnx
import onnxruntime
import openvino
from openvino import opset8

from benchmarks.common import Run, geometric_mean, in_turns, infer_requests

Array = np.ndarray[Any, np.dtype[Any]]

SIDES = ("openvino", "onnxruntime", "numpy", "copy")


@dataclass(frozen=True)
class Case:
    operation: str
    data: tuple[int, ...]
    indices: tuple[int, ...]
    axis: int
    batch_dims: int = 0
    data_type: str = "f4"
    index_type: str = "i4"
    lowest: int = 0
    """-1 if some indices are negative."""

    def __str__(self) -> str:
        shapes = " ".join("x".join(map(str, shape)) or "scalar" for shape in (self.data, self.indices))
        batch = f" batch_dims {self.batch_dims}" if self.batch_dims else ""
        negative = " negative" if self.lowest < 0 else ""
        name = f"{self.operation} {np.dtype(self.data_type).name}/{np.dtype(self.index_type).name}"
        return f"{name} {shapes} axis {self.axis}{batch}{negative}"


def cases() -> Iterator[Case]:
    gathers: list[dict[str, Any]] = [
        {"data": (10,), "indices": (10,), "axis": 0},
        {"data": (2, 5), "indices": (), "axis": 1},
        {"data": (4, 3, 8), "indices": (2,), "axis": 1},
        {"data": (30_000, 768), "indices": (128,), "axis": 0},
        {"data": (30_000, 768), "indices": (512,), "axis": 0},
        {"data": (30_000, 768), "indices": (8, 512), "axis": 0},
        {"data": (30_000, 768), "indices": (8, 512), "axis": 0, "data_type": "f2"},
        {"data": (1000, 64), "indices": (16, 256), "axis": 0, "lowest": -1},
        {"data": (64, 128, 256), "indices": (), "axis": 1},
        {"data": (3, 1024, 1024), "indices": (), "axis": 0},
        {"data": (64, 128, 256), "indices": (200,), "axis": 0},
        {"data": (64, 128, 256), "indices": (200,), "axis": 1},
        {"data": (64, 128, 256), "indices": (200,), "axis": 2},
        {"data": (64, 128, 256), "indices": (200,), "axis": 2, "data_type": "u1"},
        {"data": (64, 128, 256), "indices": (3,), "axis": 2},
        {"data": (1_000_000,), "indices": (1_000_000,), "axis": 0},
        {"data": (1_000_000,), "indices": (1_000_000,), "axis": 0, "data_type": "i8"},
        {"data": (1_000_000,), "indices": (1_000_000,), "axis": 0, "lowest": -1},
        {"data": (8, 1000, 64), "indices": (8, 200), "axis": 1, "batch_dims": 1},
        {"data": (4096, 100), "indices": (4096, 20), "axis": 1, "batch_dims": 1},
        {"data": (16, 12, 128, 64), "indices": (16, 40), "axis": 2, "batch_dims": 1},
    ]
    elements: list[dict[str, Any]] = [
        {"data": (10,), "indices": (10,), "axis": 0},
        {"data": (2, 5), "indices": (2, 5), "axis": 1},
        {"data": (5, 4, 5), "indices": (5, 4, 5), "axis": 1},
        {"data": (30, 30, 30), "indices": (30, 30, 30), "axis": 0},
        {"data": (30, 30, 30), "indices": (30, 30, 30), "axis": 1},
        {"data": (30, 30, 30), "indices": (30, 30, 30), "axis": 2},
        {"data": (100, 100, 100), "indices": (100, 100, 100), "axis": 0},
        {"data": (100, 100, 100), "indices": (100, 100, 100), "axis": 1},
        {"data": (100, 100, 100), "indices": (100, 100, 100), "axis": 2},
        {"data": (100, 100, 100), "indices": (100, 100, 100), "axis": 1, "data_type": "f2"},
        {"data": (100, 100, 100), "indices": (100, 100, 100), "axis": 1, "data_type": "i8"},
        {"data": (100, 100, 100), "indices": (100, 100, 100), "axis": 1, "data_type": "u1"},
        {"data": (100, 100, 100), "indices": (100, 100, 100), "axis": 1, "lowest": -1},
        {"data": (1_000_000,), "indices": (1_000_000,), "axis": 0},
        {"data": (8, 16, 64, 64), "indices": (8, 16, 32, 64), "axis": 2},
        {"data": (10, 10, 100, 1000), "indices": (10, 10, 100, 1000), "axis": 0},
        {"data": (10, 10, 100, 1000), "indices": (10, 10, 100, 1000), "axis": 1},
        {"data": (10, 10, 100, 1000), "indices": (10, 10, 100, 1000), "axis": 2},
        {"data": (10, 10, 100, 1000), "indices": (10, 10, 100, 1000), "axis": 3},
    ]
    for operation, group in (("Gather", gathers), ("GatherElements", elements)):
        for settings in group:
            for index_type in ("i4", "i8"):
                yield Case(operation, index_type=index_type, **settings)


def openvino_model(case: Case, data: Array, indices: Array) -> openvino.Model:
    inputs = [opset8.parameter(array.shape, array.dtype) for array in (data, indices)]
    if case.operation == "Gather":
        node = opset8.gather(*inputs, np.int64(case.axis), batch_dims=case.batch_dims)
    else:
        node = opset8.gather_elements(*inputs, case.axis)
    return openvino.Model([node], inputs)


def with_onnxruntime(case: Case, data: Array, indices: Array) -> Run | None:
    if case.batch_dims:
        return None
    types = [onnx.helper.np_dtype_to_tensor_dtype(array.dtype) for array in (data, indices)]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(case.operation, ["data", "indices"], ["result"], axis=case.axis)],
        "gather",
        [
            onnx.helper.make_tensor_value_info("data", types[0], data.shape),
            onnx.helper.make_tensor_value_info("indices", types[1], indices.shape),
        ],
        [onnx.helper.make_tensor_value_info("result", types[0], None)],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    options = onnxruntime.SessionOptions()
    # Otherwise its threads spin while the next side is measured.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    feed = {"data": data, "indices": indices}
    return lambda: session.run(None, feed)[0]


def with_numpy(case: Case, data: Array, indices: Array) -> Run:
    if case.operation == "Gather" and not case.batch_dims:
        return lambda: np.take(data, indices, case.axis)
    if case.operation == "Gather":
        # take_along_axis needs these to pick whole rows.
        rank = data.ndim
        shape = (*indices.shape[:1], *(1,) * (case.axis - 1), *indices.shape[1:], *(1,) * (rank - case.axis - 1))
        indices = indices.reshape(shape)
    return lambda: np.take_along_axis(data, indices, case.axis)


def measure(case: Case, rounds: int) -> tuple[float, dict[str, float]]:
    """Return the seconds that ovir needs, and the ratio to each other side."""
    rng = np.random.default_rng(0)
    size = case.data[case.axis]
    data = rng.integers(0, 100, case.data).astype(case.data_type)
    indices = rng.integers(case.lowest, size, case.indices).astype(case.index_type)
    model = openvino_model(case, data, indices)
    both = infer_requests(model, [data, indices], openvino.Core())
    expected = np.array(both["openvino"]()[0])
    out, source = np.zeros_like(expected), np.zeros_like(expected)
    np.testing.assert_array_equal(both["ovir"]()[0], expected)

    sides: dict[str, Run | None] = {
        "onnxruntime": with_onnxruntime(case, data, indices),
        "numpy": with_numpy(case, data, indices),
        "copy": lambda: np.copyto(out, source),
    }
    runs: dict[str, Run] = both | {name: side for name, side in sides.items() if side is not None}
    times = in_turns(runs, rounds)
    ratios = dict.fromkeys(SIDES, nan)
    for name in runs.keys() & ratios.keys():
        ratios[name] = median(ours / other for ours, other in zip(times["ovir"], times[name], strict=True))
    return median(times["ovir"]), ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", type=re.compile, default=re.compile(""), metavar="REGEX", help="cases, by their name")
    arguments = parser.parse_args()

    print(f"{'ovir':>10}  " + "".join(f"/{side:<11}" for side in SIDES))
    collected: dict[str, list[float]] = {side: [] for side in SIDES}
    for case in cases():
        if not arguments.only.search(str(case)):
            continue
        ours, ratios = measure(case, arguments.rounds)
        cells = "".join(f"{ratio:<12.2f}" if ratio == ratio else f"{'-':<12}" for ratio in ratios.values())
        print(f"{ours * 1e6:8.1f}us   {cells}{case}", flush=True)
        for side, ratio in ratios.items():
            if ratio == ratio:
                collected[side].append(ratio)
    for title, summary in (("geometric mean", geometric_mean), ("maximum", max)):
        cells = "".join(f"{summary(values):<12.2f}" if values else f"{'-':<12}" for values in collected.values())
        print(" " * 13 + cells + title)


if __name__ == "__main__":
    main()
