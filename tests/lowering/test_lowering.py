"""Model.lower: names, bodies, what is refused, and what remains unchanged."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import document
from support.newer_models import attention, faulty

import ovir
from ovir import opset13 as ops
from ovir.lowering.registry import LOWERED_FROM
from ovir.lowering.releases import as_release, oldest_release


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


def versions(model: ovir.Model) -> set[str]:
    return {f"{layer.operator.type}-{layer.operator.opset}" for layer in model.walk() if layer.operator is not None}


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


@pytest.mark.parametrize("mask", [ops.constant(0.0, "f32"), ops.constant([[True, False, True, True, False]])])
def test_a_sink_takes_part_in_the_sum_only(mask: ovir.Layer) -> None:
    query, key, sink = (ops.parameter(shape, "f32") for shape in ([2, 3, 4], [2, 5, 4], [2, 3, 1]))
    inputs = [query, key, key, mask, ops.constant(1.0, "f32"), sink]
    attended = ovir.create_layer("ScaledDotProductAttention", inputs, {"causal": False}, version="opset13")
    model = ovir.Model([attended], [query, key, sink])
    feeds = list(ovir.random_inputs(model).values())
    before = ovir.compile_model(model)(feeds)[0]
    model.lower("2022.3")
    np.testing.assert_allclose(ovir.compile_model(model)(feeds)[0], before, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["f32", "f64", "u8", "i8", "i32"])
@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [0, 0, 1, 2]])
@pytest.mark.parametrize("size", [-1, 9])
def test_images_are_resized_as_by_pillow(kind: str, pads: list[int], size: int) -> None:
    for mode in ("bilinear_pillow", "bicubic_pillow"):
        image = ops.parameter([1, 2, size, size], kind)
        resized = ops.interpolate(image, np.array([20, 5]), mode, "sizes", pads, axes=np.array([2, 3]))
        model = ovir.Model([resized], [image])
        feeds = [np.random.default_rng(0).integers(0, 128, (1, 2, 9, 9)).astype(image.element_type.to_dtype())]
        before = ovir.compile_model(model)(feeds)[0]
        model.lower("2022.3")
        atol = 1e-4 if kind in ("f32", "f64") else 1  # sums near a half
        np.testing.assert_allclose(ovir.compile_model(model)(feeds)[0].astype(float), before.astype(float), atol=atol)


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


# --------------------------------------------------------------------------- refusals


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


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("2022.9", "there is no OpenVINO release 2022.9: that year has releases 2022.1 to 2022.3"),
        ("2022.0", "there is no OpenVINO release 2022.0"),
        ("2020.0", "reads neither IR version 10 nor 11; the first release that does is 2020.1"),
        ("2026.5", "is newer than the releases that ovir supports, up to 2026.4"),
        (0, "opset0 is not an opset: known are opset1 to opset17"),
        (18, "opset18 is not an opset"),
        (True, "expected a release, such as '2022.3', or an opset, such as 8, got True"),
    ],
)
def test_targets_that_do_not_exist(target: Any, reason: str) -> None:
    with pytest.raises(ovir.InputError, match=re.escape(reason)):
        as_release(target)


def test_the_ends_of_years_and_opsets_are_releases() -> None:
    targets = "2020.1", "2022.3.2", "2026.4", 1, 17
    assert [as_release(target) for target in targets] == [(2020, 1), (2022, 3), (2026, 4), (2020, 1), (2026, 4)]


def test_an_opset_that_no_release_has_needs_one_that_is_unknown() -> None:
    x = ops.parameter([2], "f32")
    model = ovir.Model([ops.relu(x)], [x])
    assert str(oldest_release(model)) == "OpenVINO 2022.1 or newer, because of IR version 11"
    newer = ovir.read_model(document('<layer id="1" name="n" type="Swirl" version="opset99"/>'))
    assert str(oldest_release(newer)) == "a release that this ovir does not know, because of Swirl of opset99"


# --------------------------------------------------------------------------- files


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


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_adaptive_pools_of_unknown_sizes(rank: int) -> None:
    x = ops.parameter([2, 3, *[-1] * (rank - 2)], "f32", name="x")
    counts = np.array([5, 3, 2])[: rank - 2]
    pools = ops.adaptive_avg_pool(x, counts), ops.adaptive_max_pool(x, counts)
    model = ovir.Model([port for pool in pools for port in pool.outputs], [x])
    lowered = model.clone()
    lowered.lower("2021.4")
    assert not {"AdaptiveAvgPool-8", "AdaptiveMaxPool-8"} & versions(lowered)
    sizes = 2, 3, *[7] * (rank - 2)
    data = np.random.default_rng(rank).permutation(np.prod(sizes)).reshape(sizes).astype(np.float32)
    results = (ovir.compile_model(each)([data]).values() for each in (lowered, model))
    for found, wanted in zip(*results, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_parts_of_constants_are_computed_at_once() -> None:
    matrix = ovir.opset9.eye(3, 4, 1, "f32")
    x = ops.parameter([3, 4], "f32", name="x")
    model = ovir.Model([ops.add(x, matrix)], [x])
    model.lower("2021.4")
    assert versions(model) == {"Parameter-1", "Const-1", "Add-1", "Result-1"}
