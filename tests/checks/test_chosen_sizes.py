"""Inference for chosen sizes knows as much as the inference of a model that has these sizes from the beginning."""

import contextlib
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from support.random_models import models

import ovir
from ovir import opset13 as ops
from ovir import opset15
from ovir.checks.conditions import Fact
from ovir.checks.owners import OwningEngine, _hull, _within, counted_sizes, means_open, size_of
from ovir.core.element_types import ElementType, i64
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.core.values import Value
from ovir.diagnostics.errors import Diagnostics
from ovir.fuzzing.models import Choice
from ovir.inference.models import infer_into, reshaped_parameters, set_parameters


def assert_equal_shapes(model: ovir.Model) -> None:
    """Compare both inferences for the sizes that the gate for untrusted files chooses."""
    shapes = {index: counted_sizes(port.shape) for index, port in enumerate(model.inputs)}
    whole = model.clone()
    set_parameters(reshaped_parameters(whole, shapes))
    infer_into(whole, found := Diagnostics())
    if found.fatal:
        return  # a layer keeps what is known of it
    set_parameters(reshaped_parameters(model, shapes))
    OwningEngine().infer(model)
    for layer, other in zip(model.layers, whole.layers, strict=True):
        for port, expected in zip(layer.outputs, other.outputs, strict=True):
            assert port.shape.merged_with(expected.shape) == port.shape, (layer.title, expected.shape)


def test_sizes_that_are_not_known_count_as_their_upper_bounds() -> None:
    shape = PartialShape([-1, (3, -1), (0, 5), 7])
    assert counted_sizes(shape).to_tuple() == (1, 3, 5, 7)
    large = PartialShape([(0, 1 << 30), (0, (1 << 30) - 1)])
    assert counted_sizes(large).to_tuple() == (1 << 30, (1 << 30) - 1)
    assert counted_sizes(large, is_declared=True).to_tuple() == (1, (1 << 30) - 1)


@pytest.mark.parametrize(
    ("kind", "shape", "size"),
    [
        ("f32", [2, 3], 24),
        ("u4", [3], 2),
        ("u1", [8], 1),
        ("u1", [9], 2),
        ("i64", [-1, (2, 5)], 40),
        ("boolean", [], 1),
    ],
)
def test_bytes_of_tensors(kind: str, shape: list[Any], size: int) -> None:
    assert size_of(TensorType(ElementType.parse(kind), PartialShape(shape))) == size


def test_bounds_that_mean_that_there_is_none() -> None:
    bounds = [1 << 30, *((1 << bits) + more for bits in (31, 32) for more in (-2, -1, 0, 1, 2)), (1 << 62) - 1, 1 << 62]
    assert [means_open(bound) for bound in bounds] == [False, *[False, True, True, True, False] * 2, False, True]


def test_numbers_in_an_interval() -> None:
    tensor = TensorType(i64, PartialShape([2]))
    for fact in (Fact(), Fact(5, 2)):
        assert _within(tensor, fact) is tensor
    within = _within(tensor, Fact(2, 5))
    assert within.value is not None
    assert (within.value.lower.tolist(), within.value.upper.tolist()) == ([2, 2], [5, 5])
    both = _within(within, Fact(3, 9))
    assert both.value is not None
    assert (both.value.lower.tolist(), both.value.upper.tolist()) == ([3, 3], [5, 5])
    fixed = TensorType(i64, PartialShape([2]), Value(np.int64([1, 7])))
    assert _within(fixed, Fact(2, 5)) is fixed


def test_the_longest_strings() -> None:
    """A byte that is not UTF-8 becomes a character of 3 bytes; strings of inputs count as empty."""
    begins, ends = (ops.parameter([2], "i32", name=name) for name in ("begins", "ends"))
    symbols, texts = ops.parameter([10], "u8", name="symbols"), ops.parameter([2], "string", name="texts")
    made = opset15.string_tensor_pack(begins, ends, symbols, name="made")
    fixed = ops.constant(np.array(["a", "żółw"]), name="fixed")
    joined = [ops.concat([texts, fixed], 0, name="one"), ops.concat([fixed, made], 0, name="other")]
    model = ovir.Model(joined, [begins, ends, symbols, texts])
    engine = OwningEngine()
    engine.infer(model)
    lengths = {layer.name: engine.longest(layer.outputs[0]) for layer in model.layers if layer.outputs}
    assert {name: lengths[name] for name in ("texts", "fixed", "made", "one", "other")} == {
        "texts": 0, "fixed": 7, "made": 30, "one": 7, "other": 30,
    }  # fmt: skip
    assert engine.bytes_of(joined[1].outputs[0]) == 4 * (32 + 30)
    assert engine.bytes_of(fixed.outputs[0]) == 2 * (32 + 7)


def test_the_hull_of_two_types() -> None:
    one, other, longer = (
        TensorType(i64, PartialShape([len(x)]), Value(np.int64(x))) for x in ([1, 7], [3, 2], [4] * 3)
    )
    hull = _hull(one, other)
    assert hull.value is not None
    assert (hull.value.lower.tolist(), hull.value.upper.tolist()) == ([1, 2], [3, 7])
    assert (str(_hull(one, longer)), _hull(one, longer).value) == ("i64[2..3]", None)
    assert _hull(one, TensorType(i64, one.shape)).value is None


@pytest.mark.slow
@given(models())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_models(model: ovir.Model) -> None:
    assert_equal_shapes(model)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 240, 40))
def test_operations_with_open_sizes(first: int) -> None:
    for number in range(first, first + 40):
        try:
            made = Choice().make(number)
        except ovir.OvirError:  # some random models do not fit together
            continue
        if made is None:
            continue
        for axes in (slice(0, 1), slice(None), slice(1, None)):
            model = made[0].clone()
            open_sizes = {i: list(port.shape.dims) for i, port in enumerate(model.inputs) if port.shape.rank}
            for dims in open_sizes.values():
                dims[axes] = [-1] * len(dims[axes])
            with contextlib.suppress(ovir.OvirError):
                model.reshape(open_sizes)
            assert_equal_shapes(model)
