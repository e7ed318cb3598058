"""ovir.precision with types of weights alone, and the models that it compresses."""

from pathlib import Path

import numpy as np
import pytest
from support.bodies import looped
from support.small_transformers import data, encoder

import ovir
from ovir import opset13 as ops
from ovir.analysis.tensor_comparison import output_error
from ovir.diagnostics.errors import InputError
from ovir.editing.weight_compression import compressible

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "xml"
TYPES = ["int4", "int4:asym", "int4:sym:16", "int4:asym:24", "int8:sym", "int8:asym:32"]


def weights_of(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["int4", "int4:asym:32", "int8:sym"])
def test_the_compressed_model_has_the_error_that_was_found(text: str) -> None:
    model, sets = encoder(), [{"x": data(seed)} for seed in range(2)]
    found = ovir.precision(model, text, sets, tolerance=0.004 if text == "int8:sym" else 0.05)
    assert found.kept_in == ("f32" if text == "int8:sym" else "int8")
    assert 0 < len(found.keep) < len(found.layers)
    saved = found.compressed(model)
    runs = [[list(ovir.compile_model(one)(inputs).values()) for inputs in sets] for one in (saved, model)]
    errors = [output_error(got, wanted) for got, wanted in zip(*runs, strict=True)]
    assert max(errors) == pytest.approx(found.error, rel=1e-3)
    assert found.error <= found.tolerance < found.error_before
    before, *_, after = found.choices
    assert (before.kept, before.error) == (0, found.error_before)
    assert (after.kept, after.weight_bytes > before.weight_bytes) == (len(found.layers), True)
    assert [one.kept for one in found.choices if one.error == found.error] == [len(found.keep)]
    assert found.to_dict()["choices"][0] == {"kept": 0, "error": before.error, "weight_bytes": before.weight_bytes}


def test_convolutions() -> None:
    """A convolution has 8 bits where products have 4."""
    model = ovir.read_model(EXAMPLES / "digits.xml")
    with np.load(EXAMPLES / "digits_input.npz") as file:
        found = ovir.precision(model, "int4", [dict(file)])
    kinds = {weights.layer.type: str(weights.stored_type) for weights in compressible(found.compressed(model))}
    assert kinds == {"Convolution": "u8", "MatMul": "i4"}
    assert [layer.type for layer in found.layers] == ["MatMul"]


def test_products_in_a_loop_count_together() -> None:
    """The loop is kept as a whole, and its products are named, but no other layer in it."""
    first, second = (weights_of((32, 32), seed) / 6 for seed in range(2))
    model = looped(
        lambda x: ops.tanh(ops.matmul(ops.relu(ops.matmul(x, first, False, False)), second, False, False)), 32
    )
    found = ovir.precision(model, "int4", tolerance=0.001)
    assert [layer.layer for layer in found.layers] == ["loop"]
    assert [key.rpartition("/")[2][:6] for key in found.keep] == ["MatMul", "MatMul"]
    kept = ovir.precision(model, "int4", tolerance=10)
    assert {str(weights.stored_type) for weights in compressible(kept.compressed(model))} == {"i4"}
    assert {str(weights.stored_type) for weights in compressible(found.compressed(model))} == {"u8"}


@pytest.mark.oracle
@pytest.mark.parametrize("text", TYPES)
def test_openvino_computes_the_same(text: str, tmp_path: Path) -> None:
    pytest.importorskip("openvino", reason="openvino, the oracle, is not installed")
    model = ovir.read_model(EXAMPLES / "digits.xml")
    with np.load(EXAMPLES / "digits_input.npz") as file:
        inputs = dict(file)
    ovir.save_model(ovir.precision(model, text, [inputs]).compressed(model), tmp_path / "compressed.xml")
    exact = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
    found = ovir.compare(tmp_path / "compressed.xml", against="openvino:CPU", inputs=[inputs], config=exact)
    assert found.within, found


def test_models_without_such_weights_and_unknown_types() -> None:
    x = ops.parameter([2, 4], "f32", name="x")
    model = ovir.Model([ops.relu(x)], [x], "m")
    with pytest.raises(InputError, match="no MatMul of the model has constant weights"):
        ovir.precision(model, "int4")
    with pytest.raises(InputError, match="no product or convolution of the model"):
        ovir.precision(model, "int8:sym")
    for text in ("int4:0", "int4:both", "int5", "int4:sym:", 4):
        with pytest.raises(InputError, match="expected f16, bf16, int8, int4"):
            ovir.precision(model, text)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="not a type of weights alone"):
        ovir.precision(model, "bf16").compressed(model)
