"""Decompositions of single layers, and the names of releases."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import document, unary_net
from support.newer_models import versions

import ovir
from ovir import opset13 as ops
from ovir.lowering.decompose import decomposed
from ovir.lowering.releases import RELEASES, as_release, oldest_release, release_text

# --------------------------------------------------------------------------- refusals


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


@pytest.mark.parametrize("index_type", ["i32", "i64"])
def test_positions_in_equal_windows_are_those_of_a_pool(index_type: str) -> None:
    """No older release has them, but an export does."""
    x = ops.parameter([2, 3, 4, 6], "f32", name="x")
    pool = ops.adaptive_max_pool(x, np.array([2, 3]), index_type)
    found = ovir.Model([port for port in decomposed(pool, 8, pool.outputs) if port], [x])
    assert versions(found) == {"Parameter-1", "MaxPool-8", "Result-1"}
    data = np.random.default_rng(0).permutation(144).reshape(2, 3, 4, 6).astype(np.float32)
    ours = ovir.compile_model(found)([data]).values()
    x = ops.parameter([2, 3, 4, 6], "f32", name="x")
    pool = ops.adaptive_max_pool(x, np.array([2, 3]), index_type)
    for a, b in zip(ours, ovir.compile_model(ovir.Model(pool.outputs, [x]))([data]).values(), strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


@ovir.register("SwirlToLower", version="extension")
class SwirlToLower(ovir.Operator):
    """An operation of an extension, which no opset has."""

    def infer(self) -> Any:
        return ()


@pytest.mark.parametrize("target", ["2020.1", 1, "2026.4"])
def test_an_operation_of_an_extension_is_in_every_release(target: Any) -> None:
    layer = '<layer id="1" name="n" type="SwirlToLower" version="extension"/>'
    model = ovir.read_model(document(layer))
    assert model.lower(target) == []
    assert "SwirlToLower" in {layer.type for layer in model.layers}


def test_an_operation_that_ovir_does_not_know_is_kept_by_the_opsets_that_may_have_it() -> None:
    model = ovir.read_model(document('<layer id="1" name="n" type="Swirl" version="opset8"/>'))
    assert model.lower(8) == []
    with pytest.raises(ovir.ExportError, match=r"'n'.*: ovir does not know the operation"):
        model.lower(7)


def test_parts_of_constants_are_computed_at_once() -> None:
    matrix = ovir.opset9.eye(3, 4, 1, "f32")
    x = ops.parameter([3, 4], "f32", name="x")
    model = ovir.Model([ops.add(x, matrix)], [x])
    model.lower("2021.4")
    assert versions(model) == {"Parameter-1", "Const-1", "Add-1", "Result-1"}


@pytest.mark.parametrize("opset", [4, 16])
def test_the_oldest_release_is_the_first_that_check_accepts(tmp_path: Path, opset: int) -> None:
    path = unary_net("Mish", "2,3", version=10, opset=opset).write(tmp_path)
    release = oldest_release(ovir.read_model(path)).release
    assert release is not None
    before = max(r for r in RELEASES if r < release)
    codes = [{d.code for d in ovir.check(path, runtime=release_text(runtime))} for runtime in (before, release)]
    assert ["OVIR701" in found for found in codes] == [True, False]
