"""Gather and GatherElements against OpenVINO's CPU plugin, on random shapes, axes, types and indices.

Left out are the cases in which the plugin is known to differ from the specification or its own reference; each
is in docs/divergences.md: negative indices of Gather-1 and -7, axes of size 0, i64 indices beyond 32 bits, empty
indices.
"""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from support.builder import Net

import ovir

pytest.importorskip("openvino", reason="openvino, the oracle, is not installed")
pytestmark = pytest.mark.oracle
CASES = 60


@dataclass
class Case:
    net: Net
    feeds: dict[str, np.ndarray]


def _dims(rng: np.random.Generator, shape: tuple[int, ...]) -> str:
    """The shape as a Parameter may declare it: exact, unknown or as an interval."""
    forms = [lambda n: str(n), lambda n: str(n), lambda n: "?", lambda n: f"{max(n - 1, 1)}..{n + 2}"]
    return ",".join(forms[rng.integers(len(forms))](n) for n in shape)


def _shape(rng: np.random.Generator, rank: int) -> tuple[int, ...]:
    return tuple(int(n) for n in rng.integers(1, 6, rank))


def _data(rng: np.random.Generator, shape: tuple[int, ...], element_type: str) -> np.ndarray:
    dtype = {"f32": np.float32, "f16": np.float16, "i32": np.int32, "u8": np.uint8, "i8": np.int8}[element_type]
    return rng.integers(0, 100, shape).astype(dtype)


def gather(rng: np.random.Generator) -> Case:
    opset = int(rng.choice([1, 7, 8]))
    rank = int(rng.integers(1, 5))
    shape = _shape(rng, rank)
    axis = int(rng.integers(rank))
    batch = int(rng.integers(axis + 1)) if opset > 1 else 0
    indices_shape = shape[:batch] + _shape(rng, int(rng.integers(0 if batch == 0 else 1, 3)))
    low = -shape[axis] if opset == 8 else 0
    index_type = str(rng.choice(["i32", "i64"]))
    indices = rng.integers(low, shape[axis], indices_shape).astype("int" + index_type[1:])
    element_type = str(rng.choice(["f32", "f16", "i32", "u8", "i8"]))
    net = Net()
    data = net.parameter("data", _dims(rng, shape), element_type)
    where = net.parameter("indices", _dims(rng, indices_shape), index_type)
    declared_axis = axis - rank if rng.random() < 0.5 else axis
    attributes = {} if opset == 1 else {"batch_dims": batch}
    net.result(net.op("Gather", data, where, net.const(np.int64(declared_axis)), opset=opset, **attributes))
    return Case(net, {"data": _data(rng, shape, element_type), "indices": indices})


def gather_elements(rng: np.random.Generator) -> Case:
    rank = int(rng.integers(1, 5))
    shape = _shape(rng, rank)
    axis = int(rng.integers(rank))
    indices_shape = (*shape[:axis], int(rng.integers(1, 7)), *shape[axis + 1 :])
    index_type = str(rng.choice(["i32", "i64"]))
    indices = rng.integers(-shape[axis], shape[axis], indices_shape).astype("int" + index_type[1:])
    element_type = str(rng.choice(["f32", "i32", "u8", "i8"]))
    net = Net()
    data = net.parameter("data", _dims(rng, shape), element_type)
    where = net.parameter("indices", _dims(rng, indices_shape), index_type)
    net.result(net.op("GatherElements", data, where, opset=6, axis=axis - rank if rng.random() < 0.5 else axis))
    return Case(net, {"data": _data(rng, shape, element_type), "indices": indices})


@pytest.mark.parametrize("make", [gather, gather_elements])
def test_same_as_openvino(make, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    cases = [make(rng) for _ in range(CASES)]
    for number, case in enumerate(cases):
        folder = tmp_path / f"{number:03}"
        folder.mkdir()
        case.net.write(folder)
        np.savez(folder / "inputs.npz", **case.feeds)
    worker = Path(__file__).with_name("openvino_worker.py")
    subprocess.run([sys.executable, str(worker), str(tmp_path)], check=True, timeout=240)
    for number, case in enumerate(cases):
        folder = tmp_path / f"{number:03}"
        model = ovir.read_model(folder / "model.xml")
        assert str(model.outputs[0].shape) == (folder / "shape.txt").read_text(), folder
        result = ovir.compile_model(model)(case.feeds)[0]
        expected = np.load(folder / "expected.npz")["out0"]
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)
