"""ScaledDotProductAttention against the plain formula, whole and in blocks."""

from itertools import product
from typing import Any

import numpy as np
import pytest

import ovir
from ovir import opset13 as ops
from ovir.fast import attention
from ovir.ops.attention import ScaledDotProductAttention

random = np.random.default_rng(0)


def normal(*shape: int) -> Any:
    return random.standard_normal(shape).astype(np.float32)


def formula(q: Any, k: Any, v: Any, bias: Any, scale: float, sink: Any = None) -> Any:
    scores = (q @ k.swapaxes(-1, -2)).astype(np.float64) * scale + bias
    if sink is not None:
        scores = np.concatenate([scores, np.broadcast_to(sink, (*scores.shape[:-1], 1))], -1)
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    return weights[..., : k.shape[-2]] @ v


@pytest.mark.parametrize("block", [20, 1 << 20])
@pytest.mark.parametrize(
    ("query", "key", "value", "mask"),
    [
        ((2, 3, 4), (2, 5, 4), (2, 5, 6), (3, 5)),
        ((1, 3, 4), (1, 5, 4), (2, 5, 6), (1, 5)),
        ((2, 2, 3, 4), (2, 1, 5, 4), (1, 2, 5, 6), (2, 1, 1, 5)),
        ((3, 70, 4), (3, 9, 4), (3, 9, 2), (70, 9)),
        ((3, 1, 4), (3, 5, 4), (3, 5, 6), (2, 3, 7, 5)),
    ],
)
def test_formula(block: int, query: Any, key: Any, value: Any, mask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "_BLOCK_SCORES", block)
    q, k, v, m = normal(*query), normal(*key), normal(*value), normal(*mask)
    default = 1 / query[-1] ** 0.5
    triangle = np.triu(np.full((query[-2], key[-2]), -np.inf), 1)
    kept = m > -0.5
    kept[..., 0] = True
    op, causal = ScaledDotProductAttention(), ScaledDotProductAttention(causal=True)
    cases: tuple[tuple[ScaledDotProductAttention, tuple[Any, ...], Any], ...] = (
        (op, (), formula(q, k, v, 0, default)),
        (op, (m, np.array(0.3)), formula(q, k, v, m, 0.3)),
        (op, (kept,), formula(q, k, v, np.where(kept, 0, -np.inf), default)),
        (op, (np.array(0.0), np.array([0.3])), formula(q, k, v, 0, 0.3)),
        (op, (m[..., :1],), formula(q, k, v, m[..., :1], default)),
        (op, (None, None, np.array([0.7])), formula(q, k, v, 0, default, 0.7)),
        (causal, (m,), formula(q, k, v, triangle, default)),
        (causal, (None, None, np.array([0.7])), formula(q, k, v, triangle, default, 0.7)),
    )
    for attend, others, expected in cases:
        for result in (attend.run(q, k, v, *others), attention.few_scores(attend)(q, k, v, *others)):
            assert isinstance(result, np.ndarray)
            np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["f2", "f4"])
@pytest.mark.parametrize("sizes", [(0, 3, 5), (2, 0, 5), (2, 3, 0), (2, 3, 5)])
@pytest.mark.parametrize("masked", [False, True])
def test_few_scores_are_computed_as_many(dtype: str, sizes: tuple[int, int, int], masked: bool) -> None:
    rows, keys, width = sizes
    inputs = [random.standard_normal((2, size, width)).astype(dtype) for size in (rows, keys, keys)]
    mask = [np.zeros((rows, keys), dtype)] if masked else []
    op = ScaledDotProductAttention()
    expected, found = op.run(*inputs, *mask), attention.few_scores(op)(*inputs, *mask)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, expected)


def test_a_row_without_a_key_is_nan() -> None:
    q, k, v = normal(1, 2, 4), normal(1, 3, 4), normal(1, 3, 4)
    result = ScaledDotProductAttention().run(q, k, v, np.array([[True, True, True], [False, False, False]]))
    np.testing.assert_array_equal(np.isnan(result[0, :, 0]), [False, True])


def masked(mask: str, rows: int) -> ovir.Model:
    """Return attention of some rows that reads six keys and masks those after each row in one of several ways."""
    inputs = [ops.parameter([1, 2, size, 4], "f32", name=name) for name, size in zip("qkv", (rows, 6, 6), strict=True)]
    seen = np.tri(rows, 6, dtype=np.bool_)
    masks = {"boolean": seen, "added": np.where(seen, 0, -np.inf).astype(np.float32)}
    found = [ops.constant(masks[mask])] if mask in masks else []
    return ovir.Model([ops.scaled_dot_product_attention(*inputs, *found, causal=mask == "causal", name="o")], inputs)


def _exported(model: ovir.Model, opset: int) -> Any:
    for package in ("onnx", "onnx_ir", "onnxruntime"):
        pytest.importorskip(package, reason=f"{package}, which an export needs to run, is not installed")
    from ovir.export.model_exporter import export_model
    from ovir.export.session import OnnxRuntimeSession

    exported = export_model(model, opset)
    session = OnnxRuntimeSession(exported)
    return lambda arrays: session.run(arrays, exported.outputs)[0]


def _lowered(model: ovir.Model) -> Any:
    model.lower("2022.3")
    return lambda arrays: ovir.compile_model(model)(arrays)["o"]


FORMS: dict[str, Any] = {
    "reference": lambda model: (
        lambda arrays: model.layer("o").operator.run(
            *arrays.values(), *(port.source.type.constant for port in model.layer("o").inputs[3:])
        )
    ),
    "fast": lambda model: lambda arrays: ovir.compile_model(model)(arrays)["o"],
    "lowered": _lowered,
    "opset 17": lambda model: _exported(model, 17),
    "opset 23": lambda model: _exported(model, 23),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("rows", [6, 3])
@pytest.mark.parametrize("mask", ["causal", "boolean", "added"])
@pytest.mark.parametrize("form", FORMS)
def test_masked_numbers_that_are_not_finite(form: str, mask: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "_BLOCK_SCORES", 12)
    monkeypatch.setattr(attention, "_LEAST_ROWS", 2)
    compute = FORMS[form](masked(mask, rows))
    bias = np.where(np.tri(rows, 6, dtype=np.bool_), 0, -np.inf)
    for where, place, number in product("kv", (2, 5), (np.nan, np.inf, -np.inf, 1e30)):
        if form == "opset 23" and where == "k" and not np.isnan(number):
            continue  # Attention of ONNX adds the lowest number, not -inf
        arrays = {name: normal(1, 2, size, 4) for name, size in zip("qkv", (rows, 6, 6), strict=True)}
        arrays[where][0, 0, place] = number
        if where == "k":
            arrays["q"][0, 0] = np.abs(arrays["q"][0, 0]) * 1e10
        scores = (arrays["q"] * np.float32(0.5)) @ arrays["k"].swapaxes(-1, -2) + bias
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        expected = weights / weights.sum(-1, keepdims=True) @ arrays["v"]
        np.testing.assert_allclose(compute(arrays), expected, rtol=1e-4, atol=1e-4, err_msg=f"{where} {place} {number}")


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("extra", ["nothing", "mask", "numbers", "scale", "sink"])
@pytest.mark.parametrize("at_a_time", [0, 3 * 5 * 7, 1000])
def test_attention_in_steps_is_the_same(
    causal: bool, extra: str, at_a_time: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ovir.ops.attention._SCORES", at_a_time)
    rng = np.random.default_rng(2)
    query, key, value = (rng.standard_normal(s).astype(np.float32) for s in ((2, 3, 5, 8), (3, 7, 8), (2, 1, 7, 4)))
    rest = {
        "nothing": [],
        "mask": [rng.random((5, 7)) < 0.7],
        "numbers": [rng.standard_normal((3, 1, 7)).astype(np.float32)],
        "scale": [np.zeros((1, 1), np.float32), np.float32(0.3).reshape(())],
        "sink": [np.zeros((1, 1), np.float32), np.float32(0.3).reshape(()), rng.random((3, 5, 1)).astype(np.float32)],
    }[extra]
    seen = {"scores": np.zeros((2, 3)), "masked scores": np.zeros((2, 3)), "weights": np.zeros((2, 3))}

    def step(name: str, where: tuple[int, ...], array: Any) -> Any:
        assert array.shape[-2:] == (5, 7)
        seen[name][where] += 1
        return array

    op = ScaledDotProductAttention(causal=causal)
    found = op.run_in_steps(step, query, key, value, *rest)
    np.testing.assert_allclose(found, op.run(query, key, value, *rest), rtol=2e-5, atol=1e-6)
    assert (seen["scores"] == 1).all()
    assert (seen["weights"] == 1).all()
