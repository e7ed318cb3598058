"""``ovir.compare`` and ``ovir.bisect`` with the real OpenVINO: they name faults of the CPU plugin in the middle of a model, and nothing else."""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from support.small_transformers import data, encoder

import ovir
from ovir import opset13 as ops
from ovir.core.arrays import Array

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(find_spec("openvino") is None, reason="OpenVINO is not installed"),
]
F32 = {"INFERENCE_PRECISION_HINT": "f32"}
Culprit = Callable[[Sequence[ovir.Layer]], ovir.Layer]


def squared_difference(x: Sequence[ovir.Layer]) -> ovir.Layer:
    a, b = (ops.convert(ops.abs(one), "u8") for one in x)
    return ops.convert(ops.squared_difference(a, b, name="culprit"), "f32")


def divide(x: Sequence[ovir.Layer]) -> ovir.Layer:
    a, b = (ops.convert(one, "i8") for one in (x[0], ops.add(ops.abs(x[1]), np.float32(2))))
    return ops.convert(ops.divide(a, b, name="culprit"), "f32")


def hard_sigmoid(x: Sequence[ovir.Layer]) -> ovir.Layer:
    return ops.hard_sigmoid(x[0], np.float32(0), np.float32(0.5), name="culprit")


def log_softmax(x: Sequence[ovir.Layer]) -> ovir.Layer:
    large = ops.exp(ops.multiply(x[0], np.float32(4)))
    return ops.log_softmax(large, 1, name="culprit")


def equality(x: Sequence[ovir.Layer]) -> ovir.Layer:
    a, b = (ops.add(ops.convert(one, "i32"), np.int32(10**9)) for one in x)
    return ops.convert(ops.equal(a, b, name="culprit"), "f32")


def sound(x: Sequence[ovir.Layer]) -> ovir.Layer:
    return ops.softmax(x[0], 1)


def model_with(culprit: Culprit) -> tuple[ovir.Model, list[Array]]:
    """Return a model with layers before and behind those of ``culprit``, and its inputs."""
    rng = np.random.default_rng(0)
    parameters = [ops.parameter([4, 16], "f32", name=name) for name in "ab"]
    weights = (rng.standard_normal((16, 16)) / 4).astype(np.float32)
    before = [ops.matmul(ops.clamp(x, -100, 100), weights, False, False) for x in parameters]
    y = culprit([ops.multiply(ops.tanh(x), np.float32(30)) for x in before])
    y = ops.add(ops.tanh(ops.multiply(y, np.float32(0.01))), before[0])
    model = ovir.Model([ops.abs(y)], parameters)  # does not mix elements, so that NaN hides no other one
    return model, [rng.standard_normal((4, 16)).astype(np.float32) * 3 for _ in parameters]


@pytest.mark.parametrize(
    ("culprit", "case"),
    [
        (squared_difference, "SquaredDifference of integers of 8 or 4 bits"),
        (divide, "Divide of negative integers with m_pythondiv"),
        (
            equality,
            "integers that f32 does not hold, such as 2^24 + 1, in divisions, products of matrices, reductions, "
            "comparisons, rounding and activations; such a number as the value of a Pad",
        ),
        (hard_sigmoid, "HardSigmoid-1 with alpha 0"),
        (log_softmax, "LogSoftmax with +inf or NaN"),
    ],
)
def test_known_faults_of_the_cpu_plugin_are_named(culprit: Culprit, case: str, tmp_path: Path) -> None:
    model, inputs = model_with(culprit)
    compared = ovir.compare(model, inputs=inputs, config=F32, mode="isolated")
    assert [layer.name for layer in compared.layers if not layer.within] == ["culprit"], compared.to_dict()
    found = ovir.bisect(model, inputs=inputs, config=F32, output=tmp_path / "part.xml")
    assert found.first is not None
    assert found.first.name == "culprit", found.to_dict()
    assert [None if x.known is None else x.known.case for x in (compared, found)] == [case, case]
    part = ovir.compare(tmp_path / "part.xml", inputs=tmp_path / "part_input.npz", config=F32)
    assert not part, "the part that is saved reproduces the fault"


@pytest.mark.parametrize("precision", ["f32", "bf16"])
def test_nothing_is_found_in_sound_models(precision: str) -> None:
    config = {"INFERENCE_PRECISION_HINT": precision}
    model, inputs = model_with(sound)
    found = ovir.bisect(model, inputs=inputs, config=config)
    assert found
    assert found.precision == found.to_dict()["precision"] == precision
    assert ovir.bisect(encoder(2), inputs=[data()], config=config)
