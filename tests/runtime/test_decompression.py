"""Compressed weights: the arithmetic that decompresses them, when the plan is made or at each use."""

import subprocess
import sys
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir import opset13 as ops
from ovir.cli.main import main
from ovir.core.element_types import ElementType
from ovir.fast import compressed as compressed_forms
from ovir.ops import compressed as compressed_operations
from ovir.ops.matmul import MatMul
from ovir.runtime import decompression
from ovir.runtime.planning import known_tensors
from ovir.runtime.rewrites import for_unwatched_runs

CODES = np.arange(250, 256, dtype=np.uint8).reshape(2, 3)
ZERO_POINT = np.uint8([[128], [100]])
SCALE = np.float16([[0.1], [0.3]])


def compressed() -> tuple[Net, tuple[int, int]]:
    """x + (codes - zero_point) * scale, and the handle of the product in f16."""
    net = Net()
    codes = net.op("Convert", net.const(CODES), destination_type="f16", name="codes")
    zero_point = net.op("Convert", net.const(ZERO_POINT), destination_type="f16")
    difference = net.op("Subtract", codes, zero_point)
    product = net.op("Multiply", difference, net.const(SCALE), name="product")
    weights = net.op("Convert", product, destination_type="f32", name="weights")
    net.result(net.op("Add", net.parameter("x", "2,3"), weights, name="sum"))
    return net, product


def decompressed() -> np.ndarray:
    difference = CODES.astype(np.float32) - ZERO_POINT.astype(np.float32)
    return difference * SCALE.astype(np.float32)


@pytest.mark.parametrize("most", [7, 8])
def test_arithmetic_of_eight_layers_is_in_f32(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decompression, "_MOST_LAYERS", most)
    net, _ = compressed()
    compiled = net.compiled()
    assert [step.layer.name for step in compiled.plan().steps] == ["sum"]
    result = compiled([np.zeros((2, 3), np.float32)])[0]
    assert np.array_equal(result, decompressed()) == (most == 8)  # or it is rounded on the way


@pytest.mark.parametrize("moved", [False, True])
def test_comparisons_see_weights_in_f32(moved: bool) -> None:
    codes = ops.convert(ops.constant(np.int8([100])), "f16")
    weights = ops.convert(ops.multiply(codes, ops.constant(np.float16([0.1]))), "f32")  # 9.9976, or 10 in f16
    x = ops.parameter(["0..10"], "f32", name="x")
    length = ops.convert(ops.shape_of(x), "f32")
    if moved:
        weights = ops.reshape(ops.add(weights, ops.constant(np.float32([0]))), np.int64([1]), False)
    model = ovir.Model([ops.greater(length, weights)], [x], "longer")
    assert model.outputs[0].type.constant == [False]  # as the file computes it
    request = ovir.compile_model(model).create_infer_request()
    assert [request.infer([np.ones(size, np.float32)])[0].item() for size in (9, 10, 9, 10)] == [False, True] * 2


def test_what_another_layer_reads_is_rounded_as_it_says() -> None:
    net, product = compressed()
    net.result(product)
    results = net.compiled()([np.zeros((2, 3), np.float32)])
    np.testing.assert_array_equal(results[0], decompressed())
    assert results[1].dtype == np.float16
    np.testing.assert_allclose(results[1].astype(np.float32), decompressed(), rtol=1e-3)


@pytest.mark.parametrize("shape", [(), (1,), (3, 0), (2, 70_000)])
def test_weights_of_any_size(shape: tuple[int, ...]) -> None:
    net = Net()
    codes = net.op("Convert", net.const(np.full(shape, 7, np.uint8)), destination_type="f16")
    half = net.op(
        "Multiply", net.const(np.float16(0.1)), net.op("Convert", net.const(np.uint8(3)), destination_type="f16")
    )
    weights = net.op("Convert", net.op("Multiply", codes, half), destination_type="f32")
    net.result(net.op("Add", weights, net.parameter("x", "1")))
    expected = np.float32(7) * (np.float32(np.float16(0.1)) * np.float32(3))
    for keep_compressed in (False, True):
        result = net.compiled(keep_compressed=keep_compressed)([np.zeros(1, np.float32)])[0]
        np.testing.assert_array_equal(result, np.full(shape or (1,), expected))


# --------------------------------------------------------------------------- kept compressed

ROWS, COLUMNS, GROUP = 272, 256, 32
KEPT = ("u8", "i8", "u4", "i4", "u2", "u3", "u6", "nf4", "f8e4m3", "f8e5m2")


def packed(net: Net, element_type: str, *shape: int) -> tuple[int, int]:
    """A constant of random bits, as they lie in a file; of floats none is infinite or NaN."""
    bits = ElementType.parse(element_type).bits
    raw = np.random.default_rng(len(net.blob)).integers(0, 256, prod(shape) * bits // 8, np.uint8)
    if element_type.startswith("f"):
        raw &= 0xB7
    offset = len(net.blob)
    net.blob += raw.tobytes()
    text = ",".join(map(str, shape))
    return net.op("Const", element_type=element_type, shape=text, offset=offset, size=raw.size)


def weights_of(net: Net, element_type: str, *, grouped: bool = False, shape: tuple[int, ...] = (ROWS, COLUMNS)) -> Any:
    """The layers that decompress weights, a scale for each slice or for each group of elements of it."""
    stored = (*shape[:-1], shape[-1] // GROUP, GROUP) if grouped else shape
    codes = net.op("Convert", packed(net, element_type, *stored), destination_type="f16", name="codes")
    if element_type.startswith("u"):
        zero_point = packed(net, element_type, *stored[:-1], 1) if grouped else net.const(np.uint8([[2]]))
        codes = net.op("Subtract", codes, net.op("Convert", zero_point, destination_type="f16"))
    scale = np.random.default_rng(1).uniform(0.01, 0.02, (*stored[:-1], 1)).astype(np.float16)
    weights = net.op("Multiply", codes, net.const(scale))
    if grouped:
        weights = net.op("Reshape", weights, net.const(np.int64(shape)), special_zero="false")
    return net.op("Convert", weights, destination_type="f32", name="weights")


def both_ways(net: Net, feeds: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """The result with weights decompressed at once, that with them kept, and the layers that run then."""
    kept = net.compiled(keep_compressed=True)
    return (
        net.compiled(keep_compressed=False)(feeds)[0],
        kept(feeds)[0],
        [step.layer.name for step in kept.plan().steps],
    )


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("element_type", KEPT)
def test_kept_weights_are_restored_by_blocks(element_type: str, grouped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decompression, "BLOCK", 10 * COLUMNS)
    net = Net()
    net.result(net.op("MatMul", net.parameter("x", "?,256"), weights_of(net, element_type, grouped=grouped),
                      transpose_b="true", name="product"))  # fmt: skip
    x = np.random.default_rng(2).standard_normal((3, COLUMNS)).astype(np.float32)
    decompressed_once, kept, steps = both_ways(net, {"x": x})
    assert steps == ["product"]
    assert np.isfinite(kept).all()
    assert kept.any()
    np.testing.assert_allclose(kept, decompressed_once, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("shape", "transposes", "weights_shape"),
    [
        ((2, 3, COLUMNS), (False, True), (ROWS, COLUMNS)),
        ((COLUMNS,), (False, True), (ROWS, COLUMNS)),
        ((COLUMNS, 2), (True, True), (ROWS, COLUMNS)),
        ((0, COLUMNS), (False, True), (ROWS, COLUMNS)),
        ((2, ROWS), (False, False), (ROWS, COLUMNS)),
        ((4, 2, 64), (False, True), (4, 512, 64)),
        ((1, 2, 512), (False, False), (4, 512, 64)),
        ((2, 64), (False, True), (4, 512, 64)),
        ((5, 4, 2, 64), (False, True), (4, 512, 64)),
    ],
)
def test_products_with_kept_weights(
    shape: tuple[int, ...],
    transposes: tuple[bool, bool],
    weights_shape: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compressed_forms, "_PANEL", 1 << 14)
    panels: list[Any] = []
    monkeypatch.setattr(compressed_forms, "blocks", lambda *of: panels.append(of) or compressed_operations.blocks(*of))
    net = Net()
    a = net.parameter("x", ",".join("?" * len(shape)))
    weights = weights_of(net, "u4", shape=weights_shape)
    transpose_a, transpose_b = (str(flag).lower() for flag in transposes)
    net.result(net.op("MatMul", a, weights, transpose_a=transpose_a, transpose_b=transpose_b))
    x = np.random.default_rng(2).standard_normal(shape).astype(np.float32)
    decompressed_once, kept, _ = both_ways(net, {"x": x})
    assert kept.shape == decompressed_once.shape
    is_by_columns = len(weights_shape) == 2 and transposes[1]
    assert bool(panels) == (len(shape) <= 3 and not is_by_columns), "the weights are not decompressed as a whole"
    np.testing.assert_allclose(kept, decompressed_once, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("element_type", ["u4", "i4", "u8", "i8", "f16", "bf16"])
@pytest.mark.parametrize("free", [0, 1 << 40])
@pytest.mark.parametrize(("limit", "size"), [("LARGE", 1 << 17), ("SMALL", 1 << 20)])
def test_what_stays_compressed_by_default(
    element_type: str, free: int, limit: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decompression, limit, size)
    monkeypatch.setattr(decompression, "free_memory", lambda: free)
    for rows in (1 << 11, 1 << 12):
        codes = [ops.convert(ops.constant(np.ones((rows, 64)), element_type), "f16") for _ in range(2)]
        table, matrix = (ops.convert(ops.multiply(c, np.full((rows, 1), 0.5, np.float16)), "f32") for c in codes)
        x, ids = ops.parameter([-1, 64], "f32"), ops.parameter([-1], "i64")
        results = [ops.matmul(x, matrix, False, True), ops.gather(table, ids, np.int64(0))]
        steps = ovir.compile_model(ovir.Model(results, [x, ids])).plan().steps
        kept = {step.layer.type: isinstance(step.operator, compressed_operations.Compressed) for step in steps}
        is_code = element_type[0] in "iu"
        assert kept == {"MatMul": rows == 1 << 12 if is_code else not free, "Gather": True}


@pytest.mark.parametrize(("columns", "kept"), [(256, False), (257, True)])
def test_weights_of_more_than_65536_elements_may_be_kept(columns: int, kept: bool) -> None:
    net = Net()
    weights = weights_of(net, "i8", shape=(256, columns))
    net.result(net.op("MatMul", net.parameter("x", f"?,{columns}"), weights, transpose_b="true"))
    (step,) = net.compiled(keep_compressed=True).plan().steps
    assert isinstance(step.operator, compressed_operations.Compressed) == kept


@pytest.mark.parametrize(("element_type", "kept"), [("i8", True), ("f16", False)])
def test_weights_may_be_kept_if_the_file_holds_them_in_fewer_bits(element_type: str, kept: bool) -> None:
    codes = ops.convert(ops.constant(np.ones((256, 257)), element_type), "f16")
    offsets = ops.constant(np.ones((256, 257), np.float16))  # of as many bits as f32, together with codes of 16 bits
    x = ops.parameter([-1, 257], "f32")
    model = ovir.Model([ops.matmul(x, ops.convert(ops.add(codes, offsets), "f32"), False, True)], [x])
    (step,) = ovir.compile_model(model, keep_compressed=True).plan().steps
    assert isinstance(step.operator, compressed_operations.Compressed) == kept


def test_weights_are_known_as_runs_use_them() -> None:
    net = Net()
    net.result(net.op("Add", weights_of(net, "u4"), net.parameter("x", "1")))
    known = {port.layer.name: array.dtype for port, array in known_tensors(net.model()).items()}
    assert (known.get("codes"), known.get("weights")) == (None, np.float32)


def test_free_memory_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = ops.convert(ops.constant(np.ones((600, 600), np.float16)), "f32")
    x = ops.parameter([-1, 600], "f32")
    compiled = ovir.compile_model(ovir.Model([ops.matmul(x, weights, False, True)], [x]))
    monkeypatch.setattr(decompression, "free_memory", lambda: 0)
    for rows in (1, 2, 2, 3, 3):
        compiled(np.ones((rows, 600), np.float32))
        plan = compiled.plan_for(((rows, 600),), {}, (), watched=False)
        assert plan is not None
        assert [array.dtype for array in plan.constants.values()] == [np.float32]


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("element_type", ["f16", "bf16"])
def test_products_with_weights_of_16_bits(element_type: str, transposed: bool) -> None:
    random = np.random.default_rng(0)
    dtype = ElementType.parse(element_type).to_dtype()
    weights = random.standard_normal((ROWS, COLUMNS) if transposed else (COLUMNS, ROWS)).astype(dtype)
    weights[0, :3] = 6e-8, -6e-8, 0  # not normal in f16
    net = Net()
    constant = net.op("Convert", net.const(weights), destination_type="f32")
    net.result(net.op("MatMul", net.parameter("x", "?,256"), constant, transpose_b=str(transposed).lower()))
    request = net.compiled(keep_compressed=True).create_infer_request()
    once = net.compiled(keep_compressed=False)
    (step,) = request.compiled.plan().steps
    np.testing.assert_array_equal(step.operator.weights.numbers, weights)
    for rows, largest in ((1, 1), (3, 1), (1, 1e30), (12, 1), (1, np.inf), (1, 1), (3, 1)):
        x = random.standard_normal((rows, COLUMNS)).astype(np.float32)
        x[0, 0] *= np.float32(largest)
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(request.infer([x])[0], once([x])[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan, -np.nan])
def test_products_with_infinite_weights(special: float) -> None:
    """Each value alone makes the weights other than finite."""
    weights = np.ones((ROWS, COLUMNS), np.float16)
    weights[1, 4] = special
    net = Net()
    constant = net.op("Convert", net.const(weights), destination_type="f32")
    net.result(net.op("MatMul", net.parameter("x", "1,256"), constant, transpose_b="true"))
    result = net.compiled(keep_compressed=True)([np.ones((1, COLUMNS), np.float32)])[0]
    np.testing.assert_array_equal(result[0, :3], np.float32([256, special, 256]))


@pytest.mark.parametrize("in_parts", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("element_type", ["u8", "i8", "u4", "i4"])
def test_products_with_codes_are_right_in_every_run(
    element_type: str, grouped: bool, in_parts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if in_parts:
        monkeypatch.setattr(compressed_forms, "_SUMS", 100)
        monkeypatch.setattr(compressed_forms, "_SHARED", 1)
        monkeypatch.setattr(compressed_forms, "_BLOCK", 3 * COLUMNS)
        monkeypatch.setattr(compressed_forms, "_LARGEST_BLOCK", 4 * COLUMNS)
    net = Net()
    weights = weights_of(net, element_type, grouped=grouped)
    net.result(net.op("MatMul", net.parameter("x", "?,?,256"), weights, transpose_b="true"))
    request = net.compiled(keep_compressed=True).create_infer_request()
    once = net.compiled(keep_compressed=False)
    random = np.random.default_rng(3)
    for shape in ((1, 1), (1, 1), (2, 3), (1, 1), (4, 5), (1, 1), (4, 5)):
        x = random.standard_normal((*shape, COLUMNS)).astype(np.float32)
        np.testing.assert_allclose(request.infer([x])[0], once([x])[0], rtol=1e-4, atol=1e-4)


class Watcher(ovir.Listener):
    """A listener that counts the products that it sees."""

    products = 0

    def did_run(self, layer: ovir.Layer, inputs: Any, outputs: Any) -> None:
        self.products += layer.type == "MatMul" and len(outputs) == 1


@pytest.mark.parametrize("in_parts", [False, True])
def test_products_of_one_tensor_are_one_step(in_parts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if in_parts:
        for name, value in (("_SUMS", 2000), ("_SHARED", 1), ("_BLOCK", 30 * COLUMNS), ("_LARGEST_BLOCK", 4 * COLUMNS)):
            monkeypatch.setattr(compressed_forms, name, value)
    net, sizes = Net(), (ROWS, 300, 259)
    x = net.parameter("x", "?,?,?")
    found = [(x, weights_of(net, "u4", grouped=True, shape=(size, COLUMNS))) for size in sizes]
    found.insert(1, (x, weights_of(net, "u4")))  # groups of another size
    found.insert(2, (net.op("ReLU", x), weights_of(net, "u4", grouped=True)))  # of another tensor
    for tensor, weights in found:
        net.result(net.op("ReLU", net.op("MatMul", tensor, weights, transpose_b="true")))
    compiled, once = net.compiled(keep_compressed=True), net.compiled(keep_compressed=False)
    plan = for_unwatched_runs(compiled.plan())
    steps = [step for step in plan.steps if step.layer.type == "MatMul"]
    assert sorted(len(step.outputs) for step in steps) == [1, 1, 3]
    assert for_unwatched_runs(compiled.plan()) is plan  # requests share what is made from the codes
    request, random, watcher = compiled.create_infer_request(), np.random.default_rng(3), Watcher()
    for shape in ((1, 1), (1, 1), (2, 3), (1, 1), (4, 5), (1, 1), (4, 5)):
        x = random.standard_normal((*shape, COLUMNS)).astype(np.float32)
        for results in (request.infer([x]), compiled([x], listeners=[watcher])):
            for result, expected in zip(results.values(), once([x]).values(), strict=True):
                np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
    assert watcher.products == 7 * len(found)
    with pytest.raises(ovir.RunError, match="255"):
        request.infer([np.ones((1, 1, 255), np.float32)])


@ovir.register("Product", version="compressed")
class Product(MatMul):
    """A product of a user."""

    def run(self, a: Any, b: Any) -> Any:
        return super().run(a, b) + 1


def test_products_of_users_run_their_own_kernels() -> None:
    net = Net()
    x = net.parameter("x", "?,256")
    for _ in range(2):
        net.result(net.op("Product", x, weights_of(net, "u8"), transpose_a="false", transpose_b="true"))
    xml = net.xml().replace('type="Product" version="opset1"', 'type="Product" version="compressed"')
    model = ovir.read_model(xml.encode(), bytes(net.blob))
    results = ovir.compile_model(model, keep_compressed=True)([np.zeros((1, COLUMNS), np.float32)])
    assert [result.min() for result in results.values()] == [1, 1]


def test_products_of_other_forms_stay_apart() -> None:
    net = Net()
    x = net.parameter("x", "?,256,256")
    for element_type, transpose_a in (("u8", "false"), ("i8", "false"), ("u8", "true")):
        weights = weights_of(net, element_type)
        net.result(net.op("MatMul", x, weights, transpose_a=transpose_a, transpose_b="true"))
    compiled = net.compiled(keep_compressed=True)
    plan = for_unwatched_runs(compiled.plan())
    assert [len(step.outputs) for step in plan.steps] == [1, 1, 1]
    array = np.random.default_rng(3).standard_normal((1, COLUMNS, COLUMNS)).astype(np.float32)
    for result, expected in zip(
        compiled([array]).values(), net.compiled(keep_compressed=False)([array]).values(), strict=True
    ):
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("element_type", "middle", "deviation"), [("u8", 128, 30), ("u4", 8, 2.5)])
@pytest.mark.parametrize("size", [128, 4096])
def test_sums_of_codes_lose_no_digits_to_the_zero_point(
    element_type: str, middle: int, deviation: float, size: int
) -> None:
    rows, columns = 64, 4096
    random = np.random.default_rng(5)
    codes = np.clip(np.round(random.normal(middle, deviation, (rows, columns // size, size))), 0, 2 * middle - 1)
    difference = ops.subtract(ops.convert(ops.constant(codes, element_type), "f32"), np.full((1, 1, 1), middle, "f4"))
    weights = ops.reshape(ops.multiply(difference, np.full((1, 1, 1), 2**-4, "f4")), np.array([rows, columns]), False)
    parameter = ops.parameter([-1, columns], "f32")
    model = ovir.Model([ops.matmul(parameter, weights, False, True)], [parameter])
    request = ovir.compile_model(model, keep_compressed=True).create_infer_request()
    for mean in (10, -100, 10):
        x = (random.standard_normal((1, columns)) + mean).astype(np.float32)
        expected = x.astype(np.float64) @ (codes.reshape(rows, columns).T - middle) / 16
        np.testing.assert_allclose(request.infer([x])[0], expected, rtol=0, atol=6e-7 * np.abs(expected).max())


@pytest.mark.parametrize("element_type", ["u4", "i4", "u8", "i8"])
@pytest.mark.parametrize("large", [5e36, -1e37, np.inf, np.nan])
def test_factors_that_codes_would_make_infinite(element_type: str, large: float) -> None:
    net = Net()
    x = net.parameter("x", "?,?")
    net.result(net.op("MatMul", x, weights_of(net, element_type, grouped=True), transpose_b="true"))
    data = np.ones((1, COLUMNS), np.float32)
    data[0, 3] = large
    decompressed_once, kept, _ = both_ways(net, {"x": data})
    assert np.isfinite(kept).sum() == np.isfinite(decompressed_once).sum()
    np.testing.assert_allclose(kept, decompressed_once, rtol=1e-4)


def test_a_product_that_does_not_fit_is_reported() -> None:
    net = Net()
    net.result(net.op("MatMul", net.parameter("x", "?,?"), weights_of(net, "u4"), transpose_b="true"))
    with pytest.raises(ovir.RunError, match="7 columns and 256 rows do not match"):
        net.compiled(keep_compressed=True)([np.zeros((1, 7), np.float32)])


def test_rows_of_kept_weights_are_gathered_and_the_head_is_tied() -> None:
    net = Net()
    weights = weights_of(net, "i4", grouped=True)
    rows = net.op("Gather", weights, net.parameter("ids", "?,?", "i64"), net.const(np.int64(0)), opset=8, name="rows")
    net.result(rows)
    net.result(net.op("MatMul", rows, weights, transpose_b="true", name="head"))
    for ids in ([[5, 271, 5], [0, 1, 7]], [[-1, 300]]):
        decompressed_once, kept, steps = both_ways(net, {"ids": np.int64(ids)})
        assert steps == ["rows", "head"]
        np.testing.assert_array_equal(kept, decompressed_once)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.uint64])
def test_rows_that_are_made_of_several_rows_of_codes(dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decompression, "BLOCK", 10 * COLUMNS)
    net = Net()
    weights = weights_of(net, "i8", shape=(600, 128))
    weights = net.op("Reshape", weights, net.const(np.int64([300, 256])), special_zero="false")
    ids = net.parameter("ids", "?", f"{np.dtype(dtype).kind}{8 * np.dtype(dtype).itemsize}")
    net.result(net.op("Gather", weights, ids, net.const(np.int64(0)), opset=8, name="rows"))
    net.result(net.op("Multiply", weights, net.parameter("x", "1"), name="all"))
    feeds = {"ids": np.array([5, 255, 0, 5], dtype), "x": np.ones(1, np.float32)}
    once, kept = (net.compiled(keep_compressed=keep)(feeds) for keep in (False, True))
    for found, expected in zip(kept.values(), once.values(), strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(kept["rows"], kept["all"][feeds["ids"]])


@pytest.mark.parametrize("element_type", ["i8", "u4", "f16"])
def test_rows_that_the_file_says_are_gathered_once(element_type: str) -> None:
    net = Net()
    weights = weights_of(net, element_type)
    rows = net.op("Gather", weights, net.const(np.int64([3, 1])), net.const(np.int64(0)), opset=8, name="rows")
    net.result(net.op("Add", net.parameter("x", f"2,{COLUMNS}"), rows, name="sum"))
    x = np.ones((2, COLUMNS), np.float32)
    decompressed_once, kept, steps = both_ways(net, {"x": x})
    assert steps == ["sum"]
    np.testing.assert_array_equal(kept, decompressed_once)
    assert net.compiled(keep_compressed=True)([x], taps=["rows"]).taps["rows"][0].shape == (2, COLUMNS)


def test_experts_of_a_grouped_product_are_restored_when_they_have_rows() -> None:
    net = Net()
    weights = weights_of(net, "u4", shape=(4, 512, 64))
    net.result(
        net.op("GroupedMatMul", net.parameter("x", "?,64"), weights, net.parameter("ends", "4", "i32"), opset=17)
    )
    x = np.random.default_rng(2).standard_normal((6, 64)).astype(np.float32)
    decompressed_once, kept, steps = both_ways(net, {"x": x, "ends": np.int32([2, 2, 5, 6])})
    assert len(steps) == 1
    np.testing.assert_allclose(kept, decompressed_once, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("element_type", "kept"), [("i4", True), ("u6", True), ("i8", False), ("bf16", False)])
def test_rows_of_a_constant_are_kept_if_it_is_packed(element_type: str, kept: bool) -> None:
    numbers = np.arange(300 * 256).reshape(300, 256) % 7
    ids = ops.parameter([-1], "i64")
    model = ovir.Model([ops.gather(ops.constant(numbers, element_type), ids, np.int64(0))], [ids])
    compiled = ovir.compile_model(model)
    (step,) = compiled.plan().steps
    assert isinstance(step.operator, compressed_operations.Compressed) == kept
    np.testing.assert_array_equal(compiled([np.int64([299, 3, 3])])[0].astype(int), numbers[[299, 3, 3]])


@pytest.mark.parametrize("turned", [False, True])
def test_other_layers_read_kept_weights_whole(turned: bool) -> None:
    net = Net()
    weights = weights_of(net, "nf4")
    if turned:
        weights = net.op("Transpose", weights, net.const(np.int64([1, 0])), name="turned")
    net.result(net.op("Add", weights, net.parameter("x", "1"), name="sum"))
    decompressed_once, kept, steps = both_ways(net, {"x": np.ones(1, np.float32)})
    assert steps == ["turned" if turned else "weights", "sum"]
    np.testing.assert_array_equal(kept, decompressed_once)


@pytest.mark.parametrize("name", ["codes", "weights", "product"])
def test_layers_before_kept_weights_can_be_tapped(name: str) -> None:
    net = Net()
    net.result(net.op("MatMul", net.parameter("x", "?,256"), weights_of(net, "u4"), transpose_b="true", name="product"))
    feeds = {"x": np.ones((1, COLUMNS), np.float32)}
    expected = net.compiled()(feeds, taps=[name])
    kept = net.compiled(keep_compressed=True)(feeds, taps=[name])
    np.testing.assert_allclose(kept.taps[name][0], expected.taps[name][0], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(kept[0], expected[0], rtol=1e-4, atol=1e-4)


MEASURE = """
import sys
import numpy as np
import ovir
from ovir import opset13 as ops

def peak():  # in MB; of this process alone, where what getrusage returns may be that of the one before it
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1024

model = ovir.read_model(sys.argv[1])
before = peak()
compiled = ovir.compile_model(model, keep_compressed=sys.argv[2] == "keep")
compiled([np.ones((2, 4096), np.float32)])
print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from Linux's /proc")
def test_memory_stays_near_the_size_of_the_file(tmp_path: Path) -> None:
    net = Net()
    h = net.parameter("x", "?,4096")
    for _ in range(3):
        h = net.op("MatMul", h, weights_of(net, "u4", grouped=True, shape=(4096, 4096)), transpose_b="true")
    net.result(h)
    path = net.write(tmp_path)
    size = (tmp_path / "model.bin").stat().st_size / 2**20
    assert 24 < size < 35

    def grown(how: str) -> float:
        code = [sys.executable, "-c", MEASURE, str(path), how]
        return float(subprocess.run(code, check=True, capture_output=True, text=True, timeout=300).stdout)

    assert grown("keep") < size + 40  # a block of 16 MB, and what it is made from
    assert grown("decompress") > 3 * 64  # what the test would miss if it measured nothing


def test_the_command_line_keeps_them_too(tmp_path: Path) -> None:
    net = Net()
    net.result(net.op("MatMul", net.parameter("x", "1,256"), weights_of(net, "u4"), transpose_b="true", name="product"))
    path = net.write(tmp_path)
    arrays = []
    for options in ([], ["--keep-compressed"]):
        out = str(tmp_path / f"{len(options)}.npz")
        assert main(["run", str(path), "--seed", "1", "--output", out, *options]) == 0
        arrays.append(np.load(out)["product"])
    np.testing.assert_allclose(arrays[1], arrays[0], rtol=1e-4, atol=1e-4)
