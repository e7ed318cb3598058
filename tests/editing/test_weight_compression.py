"""Weights as integers of 4 or 8 bits with scales: within one step of what they were, and the same in a saved file."""

from pathlib import Path

import numpy as np
import pytest

import ovir
from ovir import opset13 as ops
from ovir.editing.weight_compression import WeightType, compress, compress_weights, compressible

TYPES = ["int4", "int4:asym", "int4:sym:16", "int4:asym:24", "int8:sym", "int8:asym:32"]


def product(weights: np.ndarray, *, transposed: bool = False) -> ovir.Model:
    rows = weights.shape[-1 if transposed else -2]
    x = ops.parameter([*weights.shape[:-2], 3, rows], "f32", name="x")
    return ovir.Model([ops.matmul(x, ops.constant(weights), False, transposed, name="product")], [x], "product")


def weights_of(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("shape", [(5,), (2, 7)])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    ("text", "rows", "group"),
    [
        ("int4", 256, 128),
        ("int4", 96, 32),  # the largest power of two that divides the row
        ("int4:asym", 50, 50),  # at least 16, or the whole row
        ("int4:sym:16", 48, 16),
        ("int4:asym:24", 48, 24),
        ("int4:asym:24", 32, 16),
        ("int8:sym", 48, 48),
        ("int8:asym:32", 96, 32),
    ],
)
def test_weights_are_within_one_step_and_a_saved_model_has_the_same(
    text: str, rows: int, group: int, transposed: bool, shape: tuple[int, ...], tmp_path: Path
) -> None:
    """Each group has its own scale: the error of a number is bounded by the range of its group."""
    array = weights_of((*shape[:-1], rows, shape[-1])) * np.float32(3)
    array[..., 0, 0] = 40
    if transposed:
        array = np.ascontiguousarray(array.swapaxes(-1, -2))
    model, kind = product(array, transposed=transposed), WeightType.of(text)
    assert kind is not None
    (weights,) = compressible(model)
    found = compress(weights, kind)
    axis = -1 if transposed else -2
    parts = np.moveaxis(array, axis, -1).reshape(-1, group)
    errors = np.moveaxis(found.array - array, axis, -1).reshape(-1, group)
    low, high = np.minimum(parts.min(1), 0), np.maximum(parts.max(1), 0)
    steps = (np.maximum(high, -low) / 2 ** (kind.bits - 1)) if kind.is_symmetric else (high - low) / (2**kind.bits - 1)
    assert (np.abs(errors).max(1) <= steps * 1.01).all()
    assert found.scale.size == parts.shape[0]
    assert found.bytes == array.size * kind.bits // 8 + parts.shape[0] * 2 + (
        0 if kind.is_symmetric else -(-parts.shape[0] * kind.bits // 8)
    )
    compress_weights(model, {("product", 1): kind})
    ovir.save_model(model, tmp_path / "compressed.xml")
    saved = ovir.read_model(tmp_path / "compressed.xml")
    assert [weight.array.tolist() for weight in compressible(saved)] == [found.array.tolist()]
    assert not any(layer.operator.special_zero for layer in saved.layers if layer.type == "Reshape")
    assert not [d for d in ovir.check(tmp_path / "compressed.xml") if d.severity != ovir.Severity.INFO]
    x = np.random.default_rng(1).standard_normal(saved.inputs[0].shape.to_tuple()).astype(np.float32)
    expected = x @ (found.array.swapaxes(-1, -2) if transposed else found.array)
    np.testing.assert_allclose(ovir.compile_model(saved)([x])[0], expected, rtol=1e-5, atol=1e-4)


def test_single_values() -> None:
    """Zeros, numbers below what f16 holds, and rows of one sign."""
    array = np.stack([np.zeros(32), np.full(32, 1e-9), np.full(32, -3.0), np.full(32, 7.5)]).astype(np.float32)
    (weights,) = compressible(product(array, transposed=True))
    for text in TYPES:
        kind = WeightType.of(text)
        assert kind is not None
        np.testing.assert_allclose(compress(weights, kind).array, array, rtol=2e-3, atol=1e-8)
    array[0, 0] = np.inf
    assert compressible(product(array)) == []
