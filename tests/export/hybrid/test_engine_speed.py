"""What the engine onnxruntime does for speed leaves results as they are."""

import numpy as np
import pytest

import ovir
from ovir import opset13 as ops

for package in ("onnx", "onnx_ir", "onnxruntime"):
    pytest.importorskip(package, reason=f"the engine onnxruntime needs {package}")

from ovir.compiling import compile_model  # noqa: E402
from ovir.core.arrays import Array  # noqa: E402  (after the check for the packages)


def both(model: ovir.Model, array: Array) -> tuple[Array, Array]:
    """Return the first output with NumPy and with onnxruntime."""
    ours, theirs = (compile_model(model, engine=engine)(array)[0] for engine in ("numpy", "onnxruntime"))
    return ours, theirs


@pytest.mark.parametrize("slopes", [[0.5, -0.25, 2.0], [np.inf, 1.0, 0.0]], ids=["finite", "infinite"])
def test_prelu_is_exact(slopes: list[float]) -> None:
    x = ops.parameter([1, 3, -1], "f32", name="x")
    model = ovir.Model([ops.prelu(x, np.array(slopes, np.float32))], [x], "prelu")
    values = np.array([-np.inf, -3, -0.5, 0, 0.25, 7, np.inf, np.nan], np.float32)
    ours, theirs = both(model, np.tile(values, (1, 3, 1)))
    np.testing.assert_array_equal(theirs, ours)


@pytest.mark.parametrize("channels", [1, 5, 600])
def test_lrn_along_channels(channels: int) -> None:
    x = ops.parameter([1, channels, 2, 3], "f32", name="x")
    model = ovir.Model([ops.lrn(x, np.array([1]), 0.1, 0.75, 1.0, 5)], [x], "lrn")
    ours, theirs = both(model, np.random.default_rng(0).standard_normal((1, channels, 2, 3), np.float32) * 4)
    np.testing.assert_allclose(theirs, ours, rtol=1e-5, atol=1e-6)


def test_a_growing_state_is_that_of_numpy() -> None:
    x = ops.parameter([-1, 2], "f32", name="x")
    past = ops.read_value(ops.constant(np.zeros((0, 2), np.float32)), "cache", "f32", [-1, 2])
    joined = ops.concat([past, ops.exp(x)], 0)
    model = ovir.Model([ops.softmax(joined, 0), joined], [x], "cache", sinks=[ops.assign(joined, "cache")])
    requests = [compile_model(model, engine=engine).create_infer_request() for engine in ("numpy", "onnxruntime")]
    for step in range(4):
        array = np.full((step % 2 + 1, 2), step / 4, np.float32)
        ours, theirs = (request.infer(array, share_outputs=True) for request in requests)
        np.testing.assert_allclose(theirs[0], ours[0], rtol=1e-6)
        theirs[1][:] = 7  # which is not the state
        values = [request.query_state()[0].value for request in requests]
        np.testing.assert_allclose(values[1], values[0], rtol=1e-6)
    for request in requests:
        request.reset_state()
    assert [len(request.infer(np.ones((1, 2), np.float32))[1]) for request in requests] == [1, 1]


@pytest.mark.parametrize("bits", [4, 8])
def test_activations_are_rounded_on_request(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ovir.export.ops.matmul._LEAST_CODES", 1000)
    x = ops.parameter([-1, 90], "f32", name="x")
    random = np.random.default_rng(0)
    codes = ops.convert(ops.constant(random.integers(0, 1 << bits, (33, 90), np.uint8), f"u{bits}"), "f16")
    points = ops.convert(ops.constant(random.integers(0, 1 << bits, (33, 1), np.uint8), f"u{bits}"), "f16")
    scale = np.full((33, 1), 2.0**-bits, np.float16)
    weights = ops.convert(ops.multiply(ops.subtract(codes, points), scale), "f32")
    model = ovir.Model([ops.matmul(x, weights, False, True)], [x], "product")
    array = random.standard_normal((40, 90), np.float32)
    expected = compile_model(model)(array)[0]
    for rounds in (False, True):
        found = compile_model(model, engine="onnxruntime", quantize_activations=rounds)(array)[0]
        difference = np.abs(found - expected).max() / np.abs(expected).max()
        assert 1e-4 < difference < 0.05 if rounds else difference < 1e-5


def test_rounding_needs_the_engine() -> None:
    x = ops.parameter([1], "f32", name="x")
    with pytest.raises(ovir.InputError, match="quantize_activations needs the engine 'onnxruntime'"):
        compile_model(ovir.Model([ops.relu(x)], [x], "m"), quantize_activations=True)
