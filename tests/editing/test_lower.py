"""Model.lower: names, bodies, files, what is refused, and what remains unchanged."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.newer_models import attention, faulty, versions

import ovir
from ovir import opset13 as ops
from ovir.lowering.registry import LOWERED_FROM


def newest_pooling() -> ovir.Model:
    """Return a model with a MaxPool-14, which becomes a MaxPool-8 first."""
    x = ops.parameter([1, 2, 9, 9], "f32", name="x")
    pool = ovir.opset14.max_pool(x, [2, 2], [1, 1], [0, 0], [0, 0], [2, 2], rounding_type="ceil_torch", name="pool")
    return ovir.Model([pool], [x])


def pooling(**changes: Any) -> ovir.Model:
    """Return a model with a MaxPool-8 whose positions are not read."""
    given = {"strides": [2, 2], "dilations": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "kernel_shape": [3, 3]}
    x = ops.parameter([1, 2, 9, 9], "f32", name="x")
    return ovir.Model([ops.max_pool(x, **{**given, **changes}, name="pool")], [x])


def test_the_last_layer_takes_the_names_and_all_say_what_they_were() -> None:
    model = attention()
    (last,) = model.lower("2022.3")
    assert (last.name, last.type, last.outputs[0].names) == ("attn", "MatMul", frozenset({"context"}))
    assert model.layer("relu").inputs[0].source is last.outputs[0]
    parts = [layer.name for layer in model.layers if layer.name.startswith("attn/")]
    assert {"attn/MatMul", "attn/SoftMax", "attn/Add"} <= set(parts)
    assert len(parts) == len(set(parts))
    assert str(model.layer("relu").shape) == "[?,4,8]"
    assert model.layer("attn").rt_info[LOWERED_FROM] == "ScaledDotProductAttention-13"
    assert model.layer("attn/SoftMax").rt_info[LOWERED_FROM] == "ScaledDotProductAttention-13"
    assert LOWERED_FROM not in model.layer("relu").rt_info
    model.lower("2021.4")
    assert model.layer("attn/SoftMax").version == "opset1"


def test_runtime_information_is_kept() -> None:
    x = ops.parameter([2, 3], "f32")
    model = ovir.Model([ops.softmax(x, -1, name="soft", rt_info={"fused_names": "a,b"})], [x])
    model.lower("2021.4")
    assert model.layer("soft").rt_info.to_dict() == {"fused_names": "a,b", LOWERED_FROM: "SoftMax-8"}


def test_a_model_that_needs_nothing_is_saved_as_before(tmp_path: Path) -> None:
    model = pooling()
    ovir.save_model(model, tmp_path / "before.xml")
    assert model.lower("2022.3") == []
    ovir.save_model(model, tmp_path / "after.xml")
    assert (tmp_path / "after.xml").read_bytes() == (tmp_path / "before.xml").read_bytes()


def test_an_opset_stands_for_its_first_release() -> None:
    model = attention()
    model.lower(8)
    assert model.layer("attn/SoftMax").version == "opset8"
    assert not {"ScaledDotProductAttention-13"} & versions(model)


def test_a_later_name_of_an_old_version_is_replaced() -> None:
    x = ops.parameter([2], "f32")
    relu = ovir.create_layer("ReLU", [x], version="opset13", name="relu")
    model = ovir.Model([relu], [x])
    assert model.lower("2022.3") == []
    assert model.layer("relu").version == "opset1"


def test_bodies_are_lowered() -> None:
    x, chosen = ops.parameter([2, 3], "f32", name="x"), ops.parameter([], "boolean", name="chosen")
    layer = ops.if_op(chosen, name="if")
    bodies = []
    for function in (ops.softsign, ops.relu):
        inside = ops.parameter([2, 3], "f32", name="inside")
        bodies.append(ovir.Model([function(inside, name="inner")], [inside]))
    layer.set_then_body(bodies[0])
    layer.set_else_body(bodies[1])
    layer.set_input(x, bodies[0].inputs[0], bodies[1].inputs[0])
    model = ovir.Model([layer.set_output(bodies[0].outputs[0], bodies[1].outputs[0])], [x, chosen])
    (last,) = model.lower("2022.1")
    assert last.key == "if/then/inner"
    data = np.array([[-1, 0, 3], [1, 2, -8]], np.float32)
    np.testing.assert_allclose(ovir.compile_model(model)([data, np.True_])[0], data / (1 + abs(data)))


@pytest.mark.parametrize("model", [pooling(), newest_pooling()], ids=["8", "14"])
def test_outputs_that_nothing_reads_need_no_decomposition(model: ovir.Model) -> None:
    data = np.random.default_rng(0).normal(size=(1, 2, 9, 9)).astype(np.float32)
    before = ovir.compile_model(model)([data])[0]
    model.lower("2021.4")
    assert model.layer("pool").version == "opset1"
    np.testing.assert_array_equal(ovir.compile_model(model)([data])[0], before)


def test_inputs_that_are_passed_on_keep_the_name_of_the_layer() -> None:
    x = ops.parameter([2, 3], "f32", name="x")
    identity = ovir.create_layer("Identity", [x], version="opset16", name="same", tensor_names="same_out")
    model = ovir.Model([identity], [x])
    model.lower("2024.6")
    assert model.layer("same").type == "Convert"
    assert model.outputs[0].names == {"same_out"}


def test_constants_that_only_the_layer_read_are_removed() -> None:
    x = ops.parameter([1, 3], "f32")
    axes = ops.constant([0], "i64", name="axes")
    model = ovir.Model([ovir.create_layer("Squeeze", [x, axes], version="opset15")], [x])
    model.lower("2022.3")
    assert [layer.name for layer in model.layers if layer.name == "axes"] == []


def test_all_layers_are_refused_at_once_and_nothing_changes() -> None:
    model = faulty()
    before = [(layer.id, layer.name, layer.version) for layer in model.layers]
    with pytest.raises(ovir.ExportError) as caught:
        model.lower("2022.3")
    messages = [diagnostic.message for diagnostic in caught.value.diagnostics]
    assert len(messages) == 2
    assert "round to f8" in messages[0]
    assert "draw the numbers" in messages[1]
    assert caught.value.diagnostics[0].hint == "OpenVINO knows it from release 2023.3"
    assert [(layer.id, layer.name, layer.version) for layer in model.layers] == before


def test_element_types_are_refused_with_what_helps() -> None:
    x, codes = ops.parameter([2, 4], "f32"), ops.constant(np.zeros((4, 4), np.uint8), "nf4", name="codes")
    model = ovir.Model([ops.matmul(x, ops.convert(codes, "f32"), transpose_a=False, transpose_b=False)], [x])
    with pytest.raises(ovir.ExportError, match="nf4") as caught:
        model.lower("2022.3")
    assert "--decompress" in str(caught.value.diagnostics[0].hint)
    model.decompress()
    assert model.lower("2022.3") == []


def test_unknown_sizes_are_refused_with_what_helps() -> None:
    x = ops.parameter([1, 1, -1, 9], "f32")
    pool = ovir.opset14.max_pool(x, [3, 3], [1, 1], [0, 0], [0, 0], [2, 2], rounding_type="ceil_torch")
    model = ovir.Model([pool], [x])
    with pytest.raises(ovir.ExportError) as caught:
        model.lower("2022.3")
    assert caught.value.diagnostics[0].hint.startswith("--shape")  # type: ignore[union-attr]
    model.reshape([1, 1, 9, 9])
    model.lower("2022.3")


def test_version_10_holds_exact_sizes(tmp_path: Path) -> None:
    model = attention()
    with pytest.raises(ovir.ModelError, match="exact sizes"):
        ovir.save_model(model, tmp_path / "old.xml", version=10)
    model.reshape({"query": [2, 4, 8], "key": [2, 5, 8]})
    model.lower("2021.4")
    ovir.save_model(model, tmp_path / "old.xml", version=10)
    again = ovir.read_model(tmp_path / "old.xml")
    assert again.version == 10
    assert [d.code for d in ovir.check(tmp_path / "old.xml", runtime="2021.4") if d.code == "OVIR701"] == []


def test_only_two_versions_are_written(tmp_path: Path) -> None:
    with pytest.raises(ovir.InputError, match="version"):
        ovir.save_model(pooling(), tmp_path / "x.xml", version=9)


@pytest.mark.parametrize(("kind", "first", "before"), [("nf4", "2023.2", "2023.1"), ("u2", "2024.5", "2024.4")])
@pytest.mark.parametrize("is_constant", [True, False])
def test_element_types_that_a_release_lacks(kind: str, first: str, before: str, is_constant: bool) -> None:
    source = ops.constant(np.zeros((2, 3)), kind, name="w") if is_constant else ops.parameter([2, 3], kind, name="w")
    model = ovir.Model([ops.unsqueeze(source, 0)], [] if is_constant else [source])
    assert model.lower(first) == []
    message = f"'w' .*: OpenVINO {before} does not support the element type {kind}"
    start = "--decompress .* replaces compressed weights by numbers; " if is_constant else ""
    with pytest.raises(
        ovir.OvirError, match=f"{message}\n  hint: {start}OpenVINO supports {kind} from release {first}"
    ):
        model.lower(before)
