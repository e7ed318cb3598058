"""ROIAlign in calls for all regions: the results of ``run``, in several runs, and the end of a list of regions."""

import re
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from support.binding import bound_results
from support.tensors import applied_to

from ovir.diagnostics.errors import OperatorError
from ovir.ops.roi_align import ROIAlign9

random = np.random.default_rng(0)


def regions(count: int, dtype: Any = np.float32) -> Any:
    rois = random.uniform(-6, 26, (count, 4))
    special = np.array([[np.nan, 3, np.inf, 5], [4, 4, 4, 4], [-4, -4, 0, 0]])  # the last one with a sample at -1
    rois[:3] = special[:count]
    return rois.astype(dtype)


def aligned(inputs: Any, **attributes: Any) -> tuple[Any, Any]:
    """Return what ``run`` gives and what the calls give."""
    op = applied_to(ROIAlign9(spatial_scale=0.5, **attributes), *inputs)
    expected = op.run(*inputs)
    found = bound_results(op, inputs, [expected], set())
    assert found is not None
    return expected, found[0]


@pytest.mark.parametrize(("mode", "ratio"), [*product(("avg", "max"), (1, 2, 3))])
@pytest.mark.parametrize("aligned_mode", ["asymmetric", "half_pixel_for_nn", "half_pixel"])
@pytest.mark.parametrize(
    "layout", [np.ascontiguousarray, lambda x: x.transpose(0, 2, 3, 1).copy().transpose(0, 3, 1, 2)]
)
def test_all_modes(mode: str, ratio: int, aligned_mode: str, layout: Callable[[Any], Any]) -> None:
    for bins, dtype, index in (((2, 3), np.float32, np.int32), ((1, 1), np.float64, np.uint64)):
        data = layout(random.standard_normal((2, 5, 7, 9)).astype(dtype))
        inputs = data, regions(6, dtype), random.integers(0, 2, 6).astype(index)
        sizes = {"pooled_h": bins[0], "pooled_w": bins[1], "sampling_ratio": ratio}
        expected, found = aligned(inputs, mode=mode, aligned_mode=aligned_mode, **sizes)
        assert expected.any()
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("shape", "count", "ratio"), [((2, 3, 0, 4), 4, 2), ((2, 3, 4, 4), 0, 2), ((2, 3, 4, 4), 4, 0)]
)
def test_what_runs_the_kernel(shape: tuple[int, ...], count: int, ratio: int) -> None:
    """There is nothing to bind without pixels or regions, or if the size of each region gives its samples."""
    inputs = np.zeros(shape, np.float32), regions(count), np.zeros(count, np.int64)
    op = applied_to(ROIAlign9(mode="avg", pooled_h=2, pooled_w=2, sampling_ratio=ratio, spatial_scale=1), *inputs)
    assert bound_results(op, inputs, [op.run(*inputs)], set()) is None


def test_the_end_of_a_list() -> None:
    numbers = np.int64([1, 0, -1, 5])
    data = np.full((2, 3, 4, 4), np.nan, np.float32)
    expected, found = aligned((data, regions(4), numbers), mode="avg", pooled_h=2, pooled_w=2, sampling_ratio=2)
    assert not found[2:].any()
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("number", [2, -2, 2**62])
def test_images_that_do_not_exist(number: int) -> None:
    inputs = np.zeros((2, 3, 4, 4), np.float32), regions(2), np.int64([1, number])
    op = applied_to(ROIAlign9(mode="avg", pooled_h=2, pooled_w=2, sampling_ratio=2, spatial_scale=1), *inputs)
    with pytest.raises(OperatorError) as refused:
        op.run(*inputs)
    with pytest.raises(OperatorError, match=re.escape(str(refused.value))):
        bound_results(op, inputs, [np.zeros((2, 3, 2, 2), np.float32)], set())
