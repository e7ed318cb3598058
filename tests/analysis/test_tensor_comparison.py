"""Tests of the comparison of two tensors."""

import math
from unittest.mock import MagicMock

import ml_dtypes
import numpy as np
import pytest

import ovir
from ovir.analysis import tensor_comparison
from ovir.analysis.tensor_comparison import (
    EXACT,
    Criterion,
    Depth,
    Tolerance,
    compare_tensors,
    default_tolerance,
    noise,
    output_error,
    tensor_error,
)  # fmt: skip
from ovir.core.element_types import bf16, f16, f32, i32


def test_metrics_of_known_numbers():
    found = compare_tensors(np.float32([1.5, 2, -4]), np.float32([1, 2, -4]), Tolerance(rtol=1e-6))
    assert not found.within
    assert (found.size, found.beyond, found.position) == (3, 1, (0,))
    assert (found.actual, found.reference) == (1.5, 1.0)
    assert (found.max_abs, found.max_rel) == (0.5, 0.5)
    assert found.mean_abs == pytest.approx(0.5 / 3)
    assert found.rmse == pytest.approx(math.sqrt(0.25 / 3))
    assert found.cosine == pytest.approx(21.5 / math.sqrt(22.25 * 21))
    assert found.sqnr_db == pytest.approx(10 * math.log10(21 / 0.25))


@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (3, 2)])
def test_equal_tensors_are_within_every_tolerance(shape):
    array = np.full(shape, 2.0, np.float32)
    found = compare_tensors(array, array.copy(), EXACT)
    assert found.within
    assert found.beyond == 0
    if array.size:
        assert (found.max_abs, found.cosine, found.sqnr_db) == (0.0, 1.0, math.inf)


def test_zeros_have_the_direction_of_zeros_alone():
    zeros, ones = np.zeros(2), np.ones(2)
    pairs = ((zeros, zeros), (zeros, ones), (ones, zeros), (ones, ones), (-ones, ones))
    assert [compare_tensors(*pair, EXACT).cosine for pair in pairs] == pytest.approx([1, 0, 0, 1, -1])


def test_the_tolerance_grows_with_the_size_of_the_tensor():
    reference = np.float32([1000, 0])  # typical: 707
    actual = np.float32([1000, 5e-4])
    assert compare_tensors(actual, reference, Tolerance(rtol=1e-6)).within
    assert not compare_tensors(actual, reference, Tolerance(rtol=1e-7)).within
    assert compare_tensors(actual, reference, Tolerance(atol=1e-3)).within


def test_other_shapes_and_their_message():
    found = compare_tensors(np.zeros((2, 3)), np.zeros(6), Tolerance(1))
    assert not found.within
    assert found.problem == "has shape [2,3], but [6] was expected"


def test_nan_and_infinity_must_agree():
    reference = np.float32([np.nan, np.inf, -np.inf, 1])
    assert compare_tensors(reference.copy(), reference, EXACT).within
    for place in range(4):
        actual = reference.copy()
        actual[place] = {0: 0, 1: -np.inf, 2: np.nan, 3: np.nan}[place]
        found = compare_tensors(actual, reference, Tolerance(rtol=1e30, atol=1e30))
        assert not found.within
        assert (found.beyond, found.position) == (1, (place,))
        assert (found.lone, found.lone_text) == (1, "1 NaN or Inf")
    found = compare_tensors(np.float32([np.nan, np.nan, 1]), np.float32([np.inf, 1, -np.inf]), EXACT)
    assert (found.nan, found.inf) == ((0, 2), (2, 0))


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_large_integers_are_compared_in_all_their_digits(dtype):
    reference = np.array([2**62, 1], dtype)
    found = compare_tensors(reference + np.array([1, 0], dtype), reference, EXACT)
    assert (found.within, found.beyond, found.max_abs) == (False, 1, 1.0)
    assert compare_tensors(reference + np.array([1, 0], dtype), reference, Tolerance(atol=1)).within


def test_strings_and_small_types():
    found = compare_tensors(np.array(["a", "x"]), np.array(["a", "b"]), EXACT)
    assert (found.within, found.beyond, found.actual, found.reference) == (False, 1, "x", "b")
    assert compare_tensors(np.array([b"a"], object), np.array(["a"]), EXACT).within
    small = np.array([1, 2], ml_dtypes.bfloat16)
    assert compare_tensors(small, small + small, EXACT).max_abs == 2
    assert compare_tensors(np.array([True, False]), np.array([True, True]), EXACT).beyond == 1


@pytest.mark.parametrize("block", [1, 3, 7, 40])
def test_blocks_do_not_change_the_metrics(block):
    reference = np.random.default_rng(block).standard_normal(40).astype(np.float32)
    actual = reference[::-1].copy()
    whole = compare_tensors(actual, reference, Tolerance(1e-3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tensor_comparison, "_BLOCK", block)
        parts = compare_tensors(actual, reference, Tolerance(1e-3))
    assert (parts.within, parts.beyond, parts.position) == (whole.within, whole.beyond, whole.position)
    for name in ("max_abs", "max_rel", "rmse", "cosine"):
        assert getattr(parts, name) == pytest.approx(getattr(whole, name), rel=1e-9, abs=1e-12)


def test_default_tolerances():
    assert default_tolerance(i32, 100, 100) == EXACT
    assert default_tolerance(f32, 0, 0) == default_tolerance(f32, 1, 1) == Tolerance(2e-5)
    assert default_tolerance(f32, 10_000) == Tolerance(8 * 2**-24 * 100)
    assert default_tolerance(f16) == Tolerance(8 * 2**-11)
    assert default_tolerance(bf16, 4, 9) == Tolerance(8 * 2**-8 * 3)


def test_errors_are_counted_by_power_of_two():
    """Those that are 0 or not finite are left out."""
    reference = np.float64([1, 1, 1, 1, 1, np.nan, np.inf, 1])
    actual = reference + np.float64([0, 0.5, -0.75, 3, 2**-1022, 0, 0, np.inf])
    found = compare_tensors(actual, reference, EXACT, counts_errors=True)
    assert found.errors == {-1: 2, 1: 1}
    assert compare_tensors(np.float64([2**-1022]), np.zeros(1), EXACT, counts_errors=True).errors == {-1022: 1}
    assert compare_tensors(actual, reference, EXACT).errors is None


def test_large_numbers_do_not_make_everything_agree():
    reference = np.array([1e200, 1.0])
    assert not compare_tensors(reference * 2, reference, Tolerance(rtol=1e-3)).within


@pytest.mark.parametrize(
    ("metric", "agrees"),
    [
        ("max_abs=0.5", True), ("max_abs=0.49", False), ("max_abs=0", False),
        ("cosine=0.994", True), ("cosine=0.995", False), ("cosine=-1", True), ("cosine=1", False),
        ("sqnr_db=19", True), ("sqnr_db=20", False), ("sqnr_db=-1", True),
    ],
)  # fmt: skip
def test_a_metric_takes_the_place_of_the_tolerance(metric, agrees):
    criterion = Criterion.of(None, None, metric)
    reference = np.float32([1, 2, -4])
    tolerance = criterion.tolerance(f32, Depth())
    assert tolerance == EXACT
    assert criterion.compare(np.float32([1.5, 2, -4]), reference, tolerance).within is agrees
    assert not criterion.compare(np.float32([np.nan, 2, -4]), reference, tolerance).within
    assert not criterion.compare(np.zeros(2), reference, tolerance).within
    assert not criterion.compare(np.array(["a"]), np.array(["b"]), tolerance).within
    name, _, limit = metric.partition("=")
    assert criterion.to_dict() == {"metric": name, "limit": float(limit)}


@pytest.mark.parametrize("value", [-1, True, "1", math.nan])
def test_tolerances_are_numbers_that_are_not_negative(value):
    with pytest.raises(ovir.InputError, match="atol must be a number that is not negative"):
        Criterion.of(None, value, None)


@pytest.mark.parametrize("metric", ["cosine", "size=1", "max_abs=-0.1", "cosine=1.1", "cosine=-1.1", "rmse=nan"])
def test_metrics_have_a_limit_that_they_can_reach(metric):
    with pytest.raises(ovir.InputError, match=r"metric (must be NAME=LIMIT|\w+ is never)"):
        Criterion.of(None, None, metric)


@pytest.mark.parametrize("numbers", [(0.0, None), (None, 1.0)])
def test_a_metric_and_a_tolerance_exclude_each_other(numbers):
    with pytest.raises(ovir.InputError, match="metric takes the place of tolerances"):
        Criterion.of(*numbers, "cosine=1")


def test_the_coarser_type_counts():
    given = Criterion(rtol=0.1)
    assert (given.tolerance(f32, Depth()), given.tolerance(i32, Depth())) == (Tolerance(0.1), EXACT)
    assert given.to_dict() == {"rtol": 0.1, "atol": None}
    own = Criterion()
    assert own.tolerance(f32, Depth(1, 1, bf16)) == Tolerance(default_tolerance(bf16).rtol, rounded_to="bf16")
    assert own.tolerance(bf16, Depth(1, 1, f16)) == own.tolerance(bf16, Depth(1, 1, bf16)) == default_tolerance(bf16)
    assert own.tolerance(i32, Depth(1, 1, bf16)) == EXACT
    assert own.between(f32, np.zeros(1, np.float16), None, Depth(1, 1)) == default_tolerance(f16)
    assert own.between(f32, np.zeros(1, np.float32), "bf16", Depth(1, 1)) == default_tolerance(bf16)
    assert own.between(i32, np.zeros(1, np.int32), "bf16", Depth(1, 1)) == EXACT


@pytest.mark.parametrize(
    ("array", "reference", "error"),
    [
        ([1.0, 3.0], [1.0, 2.0], math.sqrt(1 / 5)),
        ([1, 3], [1, 2], 0.5), ([], [], 0), (["a", "b", "c"], ["a", "b", "x"], 1 / 3), ([True], [False], 1),
        ([1.0], [1.0, 2.0], math.inf), ([1], [1, 2], math.inf), ([1.0, math.nan], [1.0, 2.0], math.inf),
        ([math.nan], [math.nan], 0), ([0.0, 1e308], [1e-308, 0.0], math.inf),
        ([3.0, math.inf], [3.0, math.inf], 0), ([3.0, 1.0], [3.0, math.nan], math.inf), ([0.0], [0.0], 0), ([0.1], [0.0], math.inf),
    ],
)  # fmt: skip
def test_errors_as_shares_of_the_reference(array, reference, error):
    assert tensor_error(np.array(array), np.array(reference)) == pytest.approx(error)
    assert output_error([np.ones(1), np.array(array)], [np.ones(1), np.array(reference)]) == pytest.approx(error)


def test_errors_are_summed_up_on_one_thread(monkeypatch):
    """Threads of BLAS wait for each other, which takes a thousand times as long on a busy machine."""
    values = np.ones(100_000, np.float32)
    for summed in (tensor_error, lambda one, other: compare_tensors(one, other, Tolerance(1e-5))):
        monkeypatch.setattr(tensor_comparison, "single_thread", MagicMock())
        summed(values, values)
        tensor_comparison.single_thread.__enter__.assert_called()


def test_texts_that_differ_are_no_small_noise():
    texts = np.array(["a"]), np.array(["b"])
    assert [noise(compare_tensors(one, texts[0], EXACT)) for one in texts] == [0, math.inf]
    assert output_error([], []) == 0


def test_the_depth_keeps_the_coarsest_rounding_and_adds_up_that_of_weights():
    assert Depth().through([f32, i32]).rounded_to is None
    assert Depth().through([f16, f32]).rounded_to == f16
    assert Depth().through([bf16]).through([f16]).rounded_to == bf16
    assert Depth().through([f16]).through([bf16, f16]).rounded_to == bf16
    depth = Depth(1, 1).with_weights(f16).with_weights(f16)
    assert Criterion().tolerance(f32, depth) == Tolerance(pytest.approx(8 * 2**-12 * math.sqrt(2)), weights_in="f16")
    assert Criterion().tolerance(i32, depth) == EXACT
    assert Criterion().tolerance(f32, depth.through([bf16])).rounded_to == "bf16"
