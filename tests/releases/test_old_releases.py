"""Old releases of OpenVINO run the models that are lowered for them, and refuse the models as they were."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ovir
from benchmarks.releases import OldRuntime
from ovir import opset1, opset8, opset9, opset11, opset12, opset13, opset14, opset16
from ovir.core.arrays import Array
from ovir.debugging.engines.process import EngineDiedError, EngineError
from ovir.graph.layers import Layer
from ovir.lowering.releases import IR_VERSION_11, newest_opset, parse_release

pytestmark = pytest.mark.releases

Inputs = list[dict[str, Array]]
random = np.random.default_rng(31)


def numbers(*shape: int) -> Array:
    return random.standard_normal(shape).astype(np.float32)


# --------------------------------------------------------------------------- models


def image_model() -> tuple[ovir.Model, Inputs]:
    """Pooling, padding, normalization and interpolation of opsets 11 to 14."""
    x = opset1.parameter([1, 4, 9, 11], "f32", name="x")
    pooled = opset14.max_pool(x, [2, 2], [1, 1], [0, 0], [0, 0], [2, 2], rounding_type="ceil_torch", name="pooled")
    padded = opset12.pad(pooled.outputs[0], [0, 0, 1, -1], [0, 0, 2, 1], "constant", arg_pad_value=np.float32(0.5))
    grouped = opset12.group_normalization(padded, numbers(4), numbers(4), 2, 1e-5, name="grouped")
    scales = np.float32([2, 1.5])
    larger = opset11.interpolate(grouped, scales, "linear_onnx", "scales", axes=[2, 3], name="larger")
    return ovir.Model([larger], [x], "image"), [{"x": numbers(1, 4, 9, 11)}]


def attention() -> tuple[ovir.Model, Inputs]:
    """Attention with a mask of truth values that arithmetic of shapes makes, as exported transformers have it."""
    heads = [opset1.parameter([1, 2, 6, 8], "f32", name=name) for name in ("q", "k", "v")]
    mask = opset1.parameter([1, 6], "i64", name="mask")
    seen = opset1.unsqueeze(opset1.convert(mask, "boolean"), [1, 2])
    steps = opset8.constant(np.arange(6))
    causal = opset1.less_equal(opset1.unsqueeze(steps, [0]), opset1.unsqueeze(steps, [1]))
    both = opset13.bitwise_and(seen, causal, "numpy", name="both")
    out = opset13.scaled_dot_product_attention(*heads, both, causal=False, name="attention")
    inputs = {name: numbers(1, 2, 6, 8) for name in "qkv"}
    return ovir.Model([out], [*heads, mask], "attention"), [{**inputs, "mask": np.int64([[1, 1, 1, 1, 1, 0]])}]


def body() -> tuple[ovir.Model, Inputs]:
    """An If with newer operations in its bodies."""
    x = opset1.parameter([3, 4], "f32", name="x")
    condition = opset1.parameter([], "boolean", name="condition")

    def branch(compute: Callable[[Layer], Layer]) -> ovir.Model:
        inner = opset1.parameter([3, 4], "f32", name="inner")
        return ovir.Model([compute(inner)], [inner])

    chosen = opset8.if_op(condition, name="chosen")
    then = branch(lambda inner: opset9.softsign(inner, name="softsign"))
    other = branch(lambda inner: opset16.identity(opset1.abs(inner), name="identity"))
    chosen.set_then_body(then)
    chosen.set_else_body(other)
    chosen.set_input(x, then.inputs[0], other.inputs[0])
    out = chosen.set_output(then.outputs[0], other.outputs[0])
    inputs = {"x": numbers(3, 4)}
    return ovir.Model([out], [x, condition], "body"), [{**inputs, "condition": np.bool_(c)} for c in (True, False)]


def sums() -> tuple[ovir.Model, Inputs]:
    """Sums of products with an ellipsis and a diagonal, and a Clamp without an upper end."""
    x, y = opset1.parameter([2, 3, 4], "f32", name="x"), opset1.parameter([4, 4], "f32", name="y")
    found = opset8.einsum([x, y], "...i,ii->i...", name="sums")
    return ovir.Model([opset8.clamp(found, -0.5, np.inf, name="clamped")], [x, y], "sums"), [
        {"x": numbers(2, 3, 4), "y": numbers(4, 4)}
    ]


MODELS = {"sums": sums, "image": image_model, "attention": attention, "body": body}

# --------------------------------------------------------------------------- what releases do with them


def save(model: ovir.Model, release: str, path: Path) -> Path:
    ovir.save_model(model, path, version=11 if parse_release(release) >= IR_VERSION_11 else 10)
    return path


@pytest.mark.parametrize("name", MODELS)
def test_a_release_runs_what_is_lowered_for_it(name: str, runtime: OldRuntime, tmp_path: Path) -> None:
    model, steps = MODELS[name]()
    if runtime.release == "2021.4" and any(layer.type == "If" for layer in model.layers):
        pytest.skip("OpenVINO 2021.4 has no If")
    expected = [list(ovir.compile_model(model)(inputs).values()) for inputs in steps]
    model.lower(runtime.release)
    found = runtime.run(save(model, runtime.release, tmp_path / "lowered.xml"), model, steps)
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got[0], wanted[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_a_release_refuses_operations_that_are_newer(name: str, runtime: OldRuntime, tmp_path: Path) -> None:
    model, steps = MODELS[name]()
    newest = max(int(layer.version.removeprefix("opset")) for layer in model.walk())
    if newest <= newest_opset(parse_release(runtime.release)):
        pytest.skip(f"OpenVINO {runtime.release} knows opset{newest}")
    path = save(model, runtime.release, tmp_path / "model.xml")
    with pytest.raises(EngineError, match=r"cannot (compile|run) the model"):
        runtime.run(path, model, steps)


@pytest.mark.parametrize("threshold", [0.0, 0.95])
def test_a_release_runs_a_suppression_whose_size_depends_on_data(
    threshold: float, runtime: OldRuntime, tmp_path: Path
) -> None:
    """A file of version 10 holds the upper bound of the size; up to there, the rows of such releases are -1."""
    boxes, scores = (
        opset1.parameter(shape, "f32", name=n) for n, shape in (("boxes", [1, 6, 4]), ("scores", [1, 2, 6]))
    )
    chosen = opset9.non_max_suppression(boxes, scores, np.int64(3), np.float32(0.4), np.float32(threshold))
    model = ovir.Model([chosen.outputs[1]], [boxes, scores])
    corners = np.sort(np.random.default_rng(3).random((1, 6, 2, 2), np.float32), axis=2).reshape(1, 6, 4)
    steps = [{"boxes": corners, "scores": np.linspace(0, 1, 12, dtype=np.float32).reshape(1, 2, 6)}]
    expected = ovir.compile_model(model)(steps[0])[0]
    assert len(expected) < 6 or threshold == 0
    model.lower(runtime.release)
    ((found,),) = runtime.run(save(model, runtime.release, tmp_path / "model.xml"), model, steps)
    np.testing.assert_allclose(found[: len(expected)], expected, rtol=1e-5)
    assert (found[len(expected) :] == -1).all()


def test_a_release_runs_after_a_crash(runtime: OldRuntime, tmp_path: Path) -> None:
    x = opset1.parameter([2], "f32", name="x")
    model = ovir.Model([opset1.abs(x)], [x])
    model.lower(runtime.release)
    path = save(model, runtime.release, tmp_path / "model.xml")
    steps = [{"x": np.float32([-1, 2])}]
    runtime.run(path, model, steps)
    assert runtime._process is not None
    runtime._process.kill()
    with pytest.raises(EngineDiedError, match="the process ended"):
        runtime.run(path, model, steps)
    assert runtime.run(path, model, steps)[0][0].tolist() == [1, 2]


def test_random_models_are_lowered_for_a_release(runtime: OldRuntime) -> None:
    if parse_release(runtime.release) < IR_VERSION_11:
        pytest.skip("OpenVINO before 2022.1 has another Python interface")
    found = ovir.fuzz(f"runtime:{runtime.release}={runtime.interpreter}", ops="^(Sigmoid|Tanh)-1$", models=6)
    assert runtime.release in found.description
    assert found.compared > 3
