"""Gather and GatherElements: ovir against OpenVINO's CPU plugin, onnxruntime, NumPy's own function and a copy.

    python -m benchmarks.gather [--only REGEX] [--rounds N] [--write]

All sides run in one process, in turns, on the same arrays; ovir and OpenVINO through an infer request each, with shared
outputs. A number is the ratio of ovir's median time to that of the other side: below 1, ovir is the faster.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import onnxruntime
import openvino

import ovir
from benchmarks.cases import made
from benchmarks.common import PRECISE, Rows, Run, in_turns, report
from ovir import opset8 as ops
from ovir.core.arrays import Array

HEAD = ["case", "ovir, µs", "OpenVINO", "onnxruntime", "NumPy's own function", "copy of the output"]


@dataclass(frozen=True)
class Case:
    """Shapes of data and indices, and the axis; ``lowest`` is -1 if some indices are negative."""

    data: tuple[int, ...]
    indices: tuple[int, ...]
    axis: int
    batch_dims: int = 0
    data_type: str = "f4"
    lowest: int = 0

    def title(self, operation: str, index_type: str) -> str:
        shapes = " ".join("x".join(map(str, shape)) or "scalar" for shape in (self.data, self.indices))
        batch = f" batch_dims {self.batch_dims}" if self.batch_dims else ""
        negative = " negative" if self.lowest < 0 else ""
        types = f"{np.dtype(self.data_type).name}/{np.dtype(index_type).name}"
        return f"{operation} {types} {shapes} axis {self.axis}{batch}{negative}"


CUBE, HUNDREDS = (30, 30, 30), (100, 100, 100)
CASES = {
    "Gather": [
        Case((10,), (10,), 0),
        Case((2, 5), (), 1),
        Case((4, 3, 8), (2,), 1),
        Case((30_000, 768), (128,), 0),
        Case((30_000, 768), (512,), 0),
        Case((30_000, 768), (8, 512), 0),
        Case((30_000, 768), (8, 512), 0, data_type="f2"),
        Case((1000, 64), (16, 256), 0, lowest=-1),
        Case((64, 128, 256), (), 1),
        Case((3, 1024, 1024), (), 0),
        *(Case((64, 128, 256), (200,), axis) for axis in range(3)),
        Case((64, 128, 256), (200,), 2, data_type="u1"),
        Case((64, 128, 256), (3,), 2),
        Case((1_000_000,), (1_000_000,), 0),
        Case((1_000_000,), (1_000_000,), 0, data_type="i8"),
        Case((1_000_000,), (1_000_000,), 0, lowest=-1),
        Case((8, 1000, 64), (8, 200), 1, batch_dims=1),
        Case((4096, 100), (4096, 20), 1, batch_dims=1),
        Case((16, 12, 128, 64), (16, 40), 2, batch_dims=1),
    ],
    "GatherElements": [
        Case((10,), (10,), 0),
        Case((2, 5), (2, 5), 1),
        Case((5, 4, 5), (5, 4, 5), 1),
        *(Case(CUBE, CUBE, axis) for axis in range(3)),
        *(Case(HUNDREDS, HUNDREDS, axis) for axis in range(3)),
        *(Case(HUNDREDS, HUNDREDS, 1, data_type=kind) for kind in ("f2", "i8", "u1")),
        Case(HUNDREDS, HUNDREDS, 1, lowest=-1),
        Case((1_000_000,), (1_000_000,), 0),
        Case((8, 16, 64, 64), (8, 16, 32, 64), 2),
        *(Case((10, 10, 100, 1000), (10, 10, 100, 1000), axis) for axis in range(4)),
    ],
}


def cases() -> Iterator[tuple[str, Case, str]]:
    for operation, members in CASES.items():
        for case in members:
            for index_type in ("i4", "i8"):
                yield operation, case, index_type


def with_onnxruntime(path: Path, data: Array, indices: Array) -> Run:
    options = onnxruntime.SessionOptions()
    # Otherwise its threads spin while the next side is measured.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
    names = [port.name for port in session.get_inputs()]
    feed = dict(zip(names, (data, indices), strict=True))
    return lambda: session.run(None, feed)[0]


def with_numpy(operation: str, case: Case, data: Array, indices: Array) -> Run:
    if operation == "Gather" and not case.batch_dims:
        return lambda: np.take(data, indices, case.axis)
    if operation == "Gather":
        # take_along_axis needs these to pick whole rows.
        ones = (1,) * (case.axis - 1), (1,) * (data.ndim - case.axis - 1)
        indices = indices.reshape(*indices.shape[:1], *ones[0], *indices.shape[1:], *ones[1])
    return lambda: np.take_along_axis(data, indices, case.axis)


def calls(operation: str, case: Case, index_type: str, core: openvino.Core) -> dict[str, Run]:
    """Return the calls of all sides, which copy neither inputs nor outputs where they need not."""
    rng = np.random.default_rng(0)
    data = rng.integers(0, 100, case.data).astype(case.data_type)
    indices = rng.integers(case.lowest, case.data[case.axis], case.indices).astype(index_type)
    if operation == "Gather":
        build = partial(ops.gather, axis=np.int64(case.axis), batch_dims=case.batch_dims)
    else:
        build = partial(ops.gather_elements, axis=case.axis)
    model, _ = made(build, data=data, indices=indices)
    arrays, runs = [data, indices], dict[str, Run]()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        ovir.save_model(model, path)
        ours = ovir.compile_model(path).create_infer_request()
        theirs = core.compile_model(core.read_model(path), "CPU", PRECISE).create_infer_request()
        if not case.batch_dims:
            ovir.export_onnx(model, path.with_suffix(".onnx"))
            runs["onnxruntime"] = with_onnxruntime(path.with_suffix(".onnx"), data, indices)
    runs["ovir"] = lambda: ours.infer(arrays, share_outputs=True)
    runs["openvino"] = lambda: theirs.infer(arrays, share_inputs=True, share_outputs=True)
    expected = np.array(runs["openvino"]()[0])
    np.testing.assert_array_equal(runs["ovir"]()[0], expected)
    out = np.zeros_like(expected)
    return runs | {"numpy": with_numpy(operation, case, data, indices), "copy": lambda: np.copyto(out, expected)}


def measure(options: argparse.Namespace) -> Rows:
    core = openvino.Core()
    for operation, case, index_type in cases():
        if re.search(options.only, title := case.title(operation, index_type)):
            times = in_turns(calls(operation, case, index_type, core), options.rounds)
            ours = times.pop("ovir")
            others = [
                ours / times[side] if side in times else "" for side in ("openvino", "onnxruntime", "numpy", "copy")
            ]
            yield [title, ours * 1e6, *others]


if __name__ == "__main__":
    report(__doc__, "gather", HEAD, measure, rounds=9, passes=3, means=HEAD[2:], keep=lambda row: row["OpenVINO"] > 1.3)
