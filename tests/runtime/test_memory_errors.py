"""Memory that the system does not grant gives an error with layer and size, wherever a run allocates."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir import opset13 as ops
from ovir.runtime import failures

ROWS, COLUMNS = 3, 833_333_333
SIZE = "takes 10.0 GB"
"""The size of f32[3,833333333]."""
LIMIT = 5 << 30
"""Bytes of memory that the process with the cases may take."""
TARGET = np.int64([ROWS, COLUMNS])
ONE = np.ones(1, np.float32)


def enlarged(target: tuple[int, int], net: Net) -> tuple[int, int]:
    x = net.parameter("x", "1")
    return net.op("Broadcast", x, target, opset=3, mode="numpy", name="large")


def fed(compiled: ovir.CompiledModel, *inputs: Any, **options: Any) -> None:
    compiled.create_infer_request().infer(list(inputs), **options)


def of_static_shape(net: Net) -> None:
    net.result(enlarged(net.const(TARGET), net))
    fed(net.compiled(), ONE)


def of_emulated_layers(net: Net) -> None:
    net.result(net.op("ReLU", enlarged(net.const(TARGET), net)))
    fed(net.compiled(emulate="f16"), ONE)


def of_a_shape_that_the_run_shows(net: Net) -> None:
    net.result(enlarged(net.parameter("target", "2", "i64"), net))
    fed(net.compiled(), TARGET, ONE)


def after_small_runs(net: Net) -> None:
    net.result(enlarged(net.parameter("target", "2", "i64"), net))
    request = net.compiled().create_infer_request()
    for _ in range(4):
        request.infer([np.int64([2, 2]), ONE])
    request.infer([TARGET, ONE])


def with_taps(net: Net) -> None:
    net.result(enlarged(net.parameter("target", "2", "i64"), net))
    fed(net.compiled(), TARGET, ONE, taps=["large"])


def that_could_be_folded(net: Net) -> None:
    one = net.const(np.float32(1))
    large = net.op("Broadcast", one, net.const(TARGET), opset=3, mode="numpy", name="large")
    total = net.op("ReduceSum", large, net.const(np.int64([0, 1])))
    net.result(net.op("Add", total, net.parameter("x", "1")))
    fed(net.compiled(), ONE)


def of_variables(net: Net) -> None:
    shape = f"{ROWS},{COLUMNS}"
    attributes = {"variable_id": "v", "variable_type": "f32", "variable_shape": shape}
    net.result(net.op("ReadValue", opset=6, name="large", **attributes))
    fed(net.compiled())


def of_inputs(net: Net) -> None:
    net.result(net.op("ReLU", net.parameter("large", f"{ROWS},{COLUMNS}")))
    fed(net.compiled(), np.broadcast_to(np.float32(1), (ROWS, COLUMNS)))


def of_converted_inputs(net: Net) -> None:
    net.result(net.op("ReLU", net.parameter("large", f"{ROWS},{COLUMNS}")))
    fed(net.compiled(), np.broadcast_to(np.float64(1), (ROWS, COLUMNS)))


def of_random_inputs(net: Net) -> None:
    net.result(net.op("ReLU", net.parameter("large", f"{ROWS},{COLUMNS}")))
    ovir.random_inputs(net.model())


CASES: list[Callable[[Net], None]] = [
    of_static_shape,
    of_emulated_layers,
    of_a_shape_that_the_run_shows,
    after_small_runs,
    with_taps,
    that_could_be_folded,
    of_variables,
    of_inputs,
    of_converted_inputs,
    of_random_inputs,
]


@pytest.fixture(scope="module")
def errors() -> dict[str, str]:
    pytest.importorskip("resource", reason="limits of memory are those of Unix")
    command = [sys.executable, __file__]
    tests = Path(__file__).parents[1]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env={"PYTHONPATH": f"{tests}:{tests.parent}"}, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(line.split("\t", 1) for line in done.stdout.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_memory_that_is_not_granted(case: Callable[[Net], None], errors: dict[str, str]) -> None:
    error = errors[case.__name__]
    assert error.startswith(("RunError error[OVIR801] layer ", "RunError error[OVIR412] layer "))
    assert "'large'" in error
    assert f"f32[{ROWS},{COLUMNS}]" in error
    assert SIZE in error or "OVIR412" in error


@pytest.mark.parametrize("place", ["ovir.runtime.arena.Arena.take", "ovir.runtime.executor.contiguous_copy"])
def test_a_memory_error_without_words(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> None:
        raise MemoryError

    net = Net()
    net.result(net.op("Exp", net.parameter("x", "?,3"), name="exp"))
    request = net.compiled().create_infer_request()
    monkeypatch.setattr(place, refuse)
    with pytest.raises(ovir.RunError, match=r"'exp' .*out of memory: its output f32\[2,3\] takes 24 bytes$"):
        request.infer([np.zeros((2, 3), np.float32)])
    monkeypatch.undo()
    np.testing.assert_array_equal(request.infer([np.zeros((2, 3), np.float32)])[0], np.ones((2, 3)))


@pytest.mark.parametrize("shape", ["1000,3", "?,3"])
def test_tensors_that_exceed_the_memory(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    net = Net()
    net.result(net.op("Exp", net.parameter("x", shape), name="exp"))
    monkeypatch.setattr("ovir.runtime.memory.physical_memory", lambda: 10_000)
    words = r"OVIR412.*'exp' .*take 12.0 kB \(12,000 bytes\) at once; this machine has 10.0 kB; the largest"
    with pytest.raises(ovir.RunError, match=words):
        fed(net.compiled(), np.zeros((1000, 3), np.float32))


@pytest.mark.parametrize(
    ("beyond", "words"),
    [(-1, "1.0 kB; no room"), (0, "1.0 kB"), (4095, "1.0 kB"), (4096, "1.0 kB; no room"), (None, "1.0 kB; no room")],
)
def test_the_size_of_an_output_is_said_once(beyond: int | None, words: str) -> None:
    error = MemoryError("no room")
    if beyond is not None:  # as NumPy's error
        error.shape, error.dtype = (1000 + beyond,), np.dtype(np.uint8)  # type: ignore[attr-defined]
    layer = ops.parameter([1000], "u8")
    found = failures.out_of_memory(layer, error, [layer[0].type]).diagnostic.message
    assert found == f"out of memory: its output u8[1000] takes {words}"


def test_weights_that_are_decompressed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> None:
        raise MemoryError

    net = Net()
    codes = net.op("Convert", net.const(np.ones((64, 64), np.int8)), destination_type="f16")
    scaled = net.op("Multiply", codes, net.const(np.float16(0.5)))
    weights = net.op("Convert", scaled, destination_type="f32", name="weights")
    net.result(net.op("MatMul", net.parameter("x", "2,64"), weights))
    monkeypatch.setattr("ovir.runtime.decompression.ConstantWeights.whole", refuse)
    with pytest.raises(ovir.RunError, match=r"'weights' .*out of memory: its output f32\[64,64\] takes 16.4 kB"):
        net.compiled()([np.ones((2, 64), np.float32)])


def _print_errors() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    for case in CASES:
        try:
            case(Net())
        except Exception as error:
            message = " | ".join(str(error).splitlines())
            print(case.__name__, f"{type(error).__name__} {message}", sep="\t")


if __name__ == "__main__":
    _print_errors()


def test_a_range_that_no_machine_can_hold() -> None:
    net = Net()
    inputs = [net.parameter(name, "[]", "f32") for name in ("start", "stop", "step")]
    net.result(net.op("Range", *inputs, opset=4, output_type="f32"))
    with pytest.raises(ovir.RunError, match="out of memory"):
        fed(net.compiled(), np.float32(0), np.float32(3e38), np.float32(1))
