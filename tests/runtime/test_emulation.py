"""Emulation of f16 and bf16: what is rounded and what is not."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.bodies import looped

import ovir
from ovir import opset13 as ops
from ovir.core.arrays import Array
from ovir.runtime.emulation import Emulation

DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
RNG = np.random.default_rng(5)


def rounded(array: Array, element_type: str) -> Array:
    with np.errstate(over="ignore"):
        return array.astype(DTYPES[element_type]).astype(np.float32)


def run_all_ways(model: ovir.Model, feeds: Any, emulate: str | Emulation) -> list[Array]:
    """Return the outputs, which must not depend on the way in which the plan runs."""
    compiled = ovir.compile_model(model, emulate=emulate)
    first = [array.copy() for array in compiled(feeds).values()]  # step by step
    keys = [layer.key for layer in model.walk() if layer.type != "Result"]
    for others in (compiled(feeds), compiled(feeds), compiled(feeds, taps=keys)):  # bound, and with constants as steps
        for one, other in zip(first, others.values(), strict=True):
            np.testing.assert_array_equal(one, other)
    return first


@pytest.mark.parametrize("element_type", DTYPES)
def test_weights_inputs_and_results_are_rounded_and_sums_are_not(element_type: str) -> None:
    weights = RNG.standard_normal((64, 8)).astype(np.float32)
    data = RNG.standard_normal((3, 64)).astype(np.float32)
    x = ops.parameter([3, 64], "f32", name="x")
    model = ovir.Model([ops.matmul(x, ops.constant(weights), False, False)], [x], "product")
    (found,) = run_all_ways(model, [data], element_type)
    exact = rounded(data, element_type).astype(np.float64) @ rounded(weights, element_type).astype(np.float64)
    np.testing.assert_array_equal(found, rounded(found, element_type))
    step = {"f16": 2.0**-10, "bf16": 2.0**-7}[element_type]
    np.testing.assert_allclose(found, exact, rtol=step, atol=1e-5)  # a sum in f16 would be further off


def test_scores_inside_of_attention_overflow_in_f16_only() -> None:
    inputs = [ops.parameter([1, 1, 1, 1], "f32", name=name) for name in ("query", "key", "value")]
    model = ovir.Model([ops.scaled_dot_product_attention(*inputs)], inputs, "attention")
    data = [np.full((1, 1, 1, 1), number, np.float32) for number in (300, 300, 2)]
    assert np.isnan(run_all_ways(model, data, "f16")[0]).all()  # from the exponential of infinity
    assert run_all_ways(model, data, "bf16")[0].item() == 2


def test_constants_are_clipped_to_the_range_of_f16() -> None:
    x = ops.parameter([3], "f32", name="x")
    mask = np.float32([np.finfo(np.float32).min, 1e6, -np.inf])
    model = ovir.Model([ops.multiply(x, ops.constant(mask))], [x], "mask")
    found = run_all_ways(model, [np.float32([1, 1, 1])], "f16")[0]
    assert found.tolist() == [-65504, 65504, -np.inf]


def test_constants_are_folded_before_they_are_rounded() -> None:
    third = np.float32(1) / np.float32(3)
    weights = ops.multiply(ops.constant(np.float32([3])), ops.constant(np.float32([third])), name="folded")
    x = ops.parameter([1], "f32", name="x")
    model = ovir.Model([ops.add(x, weights)], [x], "folding")
    assert run_all_ways(model, [np.float32([0])], "bf16")[0].tolist() == [1.0]


def test_integers_sizes_and_narrow_types_stay_as_they_are() -> None:
    x = ops.parameter([-1, 4], "f32", name="x")
    ids = ops.parameter([3], "i64", name="ids")
    length = ops.convert(ops.shape_of(x), "f32")
    # 2049 is not a number of f16 or bf16.
    sizes = ops.convert(ops.multiply(length, ops.constant(np.float32([2049, 1]))), "i64")
    grown = ops.broadcast(ops.constant(np.float32([[1.0]])), sizes, broadcast_spec="numpy")
    half = ops.convert(x, "f16", name="half")
    model = ovir.Model([grown, ops.add(ids, ops.constant(np.int64([70001, 0, 1]))), half], [x, ids], "sizes")
    feeds = {"x": np.ones((1, 4), np.float32), "ids": np.array([1, 2, 3])}
    found = run_all_ways(model, feeds, "bf16")
    assert found[0].shape == (2049, 4)
    assert found[1].tolist() == [70002, 2, 4]
    assert found[2].dtype == np.float16


def of_a_loop(x: Any) -> Any:
    state = ops.parameter([1], "f32")
    loop = ops.loop(ops.constant(np.int64(1)), ops.constant(np.array(True)))
    loop.set_function(ovir.Model([state, ops.constant(np.array(True))], [state], "body"))
    loop.set_special_body_ports([-1, 1])
    loop.set_merged_input(state, ops.constant(np.float32([2049])).output(0), state.output(0))
    return loop.get_iter_value(state.output(0), -1)


SIZES: dict[str, Callable[[Any], Any]] = {
    "shape": lambda x: ops.multiply(ops.convert(ops.shape_of(x), "f32"), ops.constant(np.float32([2049]))),
    "input": lambda x: x,
    "variable": lambda x: ops.read_value(ops.constant(np.float32([2049])), "v", "f32", [1]),
    "loop": of_a_loop,
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_exact_where_they_follow_from_shapes(name: str) -> None:
    x = ops.parameter([-1], "f32", name="x")
    size = ops.convert(ops.reduce_max(SIZES[name](x), np.int64([0]), True), "i64")
    model = ovir.Model([ops.broadcast(ops.constant(np.float32([1])), size)], [x], "sizes")
    compiled = ovir.compile_model(model, emulate="bf16")
    for count in (1, 2, 1, 2):
        found = compiled([np.full(count, 2049, np.float32)])[0].size
        assert found == (2049 * count if name == "shape" else 2048)


def test_shapes_that_become_data_are_rounded() -> None:
    x = ops.parameter([2, 3], "f32", name="x")
    length = ops.convert(ops.shape_of(x, name="shape"), "f32", name="length")
    seventh = ops.divide(length, ops.constant(np.float32(7)))
    model = ovir.Model([ops.concat([seventh, ops.reduce_max(x, [0])], 0)], [x], "data")
    found = run_all_ways(model, [np.zeros((2, 3), np.float32)], "bf16")[0]
    np.testing.assert_array_equal(found, [*rounded(np.float32([2, 3]) / np.float32(7), "bf16"), 0, 0, 0])


def test_a_tensor_is_not_changed_for_the_layers_that_stay_in_f32() -> None:
    data = np.float32([1 + 2**-12, 70000])
    x = ops.parameter([2], "f32", name="x")
    doubled = ops.multiply(x, ops.constant(np.float32(2)), name="doubled")
    kept = ops.multiply(doubled, ops.constant(np.float32(0.5)), name="kept")
    model = ovir.Model([ops.reshape(kept, ops.constant([2, 1]), False, name="out"), ops.relu(doubled)], [x], "kept")
    out, other = run_all_ways(model, [data], Emulation("f16", ["doubled", "kept", "out"]))
    assert out.ravel().tolist() == data.tolist()
    assert other.tolist() == [2, np.inf]
    assert run_all_ways(model, [data], "f16")[0].ravel().tolist() == [1, np.inf]


def test_layers_in_bodies_are_emulated() -> None:
    model = looped(lambda state: ops.multiply(state, ops.constant(np.float32(100)), name="grown"), 1)
    assert run_all_ways(model, [np.float32([1])], "f16")[0].tolist() == [np.inf]
    key = next(layer.key for layer in model.walk() if layer.name == "grown")
    assert run_all_ways(model, [np.float32([1])], Emulation("f16", [key, "out"]))[0].tolist() == [1e6]


def test_states_hold_rounded_values() -> None:
    x = ops.parameter([1], "f32", name="x")
    variable = ovir.opset6.read_value(ops.constant(np.float32([0.1])), "v", "f32", [1])
    total = ops.add(variable, x, name="total")
    sink = ovir.opset6.assign(total, "v")
    model = ovir.Model([ops.relu(total)], [x], "state", sinks=[sink])
    request = ovir.compile_model(model, emulate="f16").create_infer_request()
    for _ in range(3):
        found = request.infer([np.float32([0.01])])[0]
    expected = np.float16(0.1)
    for _ in range(3):
        expected = np.float16(np.float32(expected) + np.float32(np.float16(0.01)))
    assert found.tolist() == [float(expected)]


@ovir.register("Table", version="emulation")
class Table(ovir.Operator):
    """An operation that returns an array of its own."""

    numbers = np.float32([1 / 3])

    def infer(self, x: Any) -> Any:
        return x

    def run(self, x: Array) -> Array:
        return self.numbers


def test_arrays_that_outlive_a_run_are_not_rounded() -> None:
    x, third = ops.parameter([1], "f32", name="x"), np.float32([1 / 3])
    variable = ops.read_value(ops.constant(np.float32([0])), "v", "f32", [1])
    table = ovir.create_layer("Table", [x], version="emulation")
    model = ovir.Model([ops.add(ops.add(x, variable), table)], [x], "kept", sinks=[ops.assign(variable, "v")])
    request = ovir.compile_model(model, emulate="bf16").create_infer_request()
    (state,) = request.query_state()
    state.value = third
    before = request._variables.named("v").value
    for _ in range(4):
        request.infer([third])
        assert (before, Table.numbers) == (third, third)


def test_weights_that_are_decompressed_are_rounded() -> None:
    codes = RNG.integers(-128, 128, (16, 8)).astype(np.int8)
    scale = RNG.random((16, 1)).astype(np.float16)
    weights = ops.multiply(ops.convert(ops.constant(codes), "f16"), ops.constant(scale))
    x = ops.parameter([2, 16], "f32", name="x")
    product = ops.matmul(x, ops.convert(weights, "f32"), False, False)
    model = ovir.Model([product], [x], "compressed")
    data = np.eye(2, 16, dtype=np.float32)
    (found,) = run_all_ways(model, [data], "bf16")
    np.testing.assert_array_equal(found, rounded((codes.astype(np.float32) * scale)[:2], "bf16"))


@pytest.mark.parametrize("option", ["f8", "int8", 16])
def test_other_types_are_refused(option: Any) -> None:
    x = ops.parameter([1], "f32", name="x")
    model = ovir.Model([ops.relu(x)], [x], "m")
    with pytest.raises(ovir.InputError, match="the types are f16 and bf16"):
        ovir.compile_model(model, emulate=option)
    with pytest.raises(ovir.InputError, match="emulate keeps rounded weights as f32"):
        ovir.compile_model(model, emulate="f16", keep_compressed=True)
