"""Weights of 4 and 8 bits: products and gathers that read them compressed, with operators that onnxruntime has."""

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

import ovir
from ovir import opset13 as ops
from ovir.core.arrays import Array

for package in ("onnx", "onnx_ir", "onnxruntime"):
    pytest.importorskip(package, reason=f"compressed weights need {package}")

from ovir.export.export_onnx import export_onnx  # noqa: E402  (it imports these packages)
from ovir.export.exported import Exported  # noqa: E402
from ovir.export.model_exporter import export_model, export_part  # noqa: E402
from ovir.export.onnx_graph import Graph  # noqa: E402
from ovir.export.session import OnnxRuntimeSession  # noqa: E402

RANGES = {"i4": (-8, 8), "u4": (0, 16), "i8": (-128, 128), "u8": (0, 256)}
CONTRIB = "com.microsoft"


def weights(kind: str, rows: int, groups: int, size: int, *, has_points: bool) -> Any:
    """Return a matrix as compressors write it: (codes - zero point) * scale, by group or, with one group, by row."""
    random = np.random.default_rng(rows + size)
    low, high = RANGES[kind]
    by_row = () if groups == 1 else (groups,)
    codes = random.integers(low, high, (rows, *by_row, size))
    x = ops.convert(ops.constant(codes.astype(np.int8 if low else np.uint8), kind), "f16")
    if has_points:
        points = random.integers(low, high, (rows, *by_row, 1)).astype(np.int8 if low else np.uint8)
        x = ops.subtract(x, ops.convert(ops.constant(points, kind), "f16"))
    x = ops.multiply(x, ops.constant((random.random((rows, *by_row, 1)) + 0.5).astype(np.float16)))
    return ops.convert(ops.reshape(x, [rows, groups * size], False) if by_row else x, "f32")


def stored(results: list[Any], x: Any) -> ovir.Model:
    """Return a model as it is read from a file, which holds two codes of 4 bits in a byte."""
    with TemporaryDirectory() as folder:
        ovir.save_model(ovir.Model(results, [x]), Path(folder) / "model.xml")
        return ovir.read_model(Path(folder) / "model.xml")


def product(kind: str, groups: int, size: int, *, has_points: bool = True, rows: int = 6) -> ovir.Model:
    x = ops.parameter([-1, groups * size], "f32", name="x")
    return stored([ops.matmul(x, weights(kind, rows, groups, size, has_points=has_points), False, True)], x)


def gather(kind: str, groups: int, size: int) -> ovir.Model:
    x = ops.parameter([-1], "i64", name="x")
    return stored([ops.gather(weights(kind, 9, groups, size, has_points=True), x, np.array(0))], x)


def operators(exported: Exported) -> list[str]:
    return [node.op_type for node in exported.onnx.graph if node.domain == CONTRIB]


def check(model: ovir.Model, inputs: Iterable[Array], expected: list[str]) -> None:
    """Assert that an export has these operators of onnxruntime, and gives the results of NumPy."""
    exported = export_model(model, 21, contrib=True)
    assert operators(exported) == expected
    session = OnnxRuntimeSession(exported)
    for array in inputs:
        (ours,) = ovir.compile_model(model)([array]).values()
        (theirs,) = session.run({"x": array}, exported.outputs)
        np.testing.assert_allclose(theirs, ours, rtol=1e-5, atol=1e-5 * np.abs(ours).max())


def numbers(columns: int) -> list[Array]:
    """Return inputs of one row and of several, which onnxruntime multiplies in different ways."""
    random = np.random.default_rng(columns)
    return [random.standard_normal((rows, columns), np.float32) for rows in (1, 5)]


@pytest.mark.slow
@pytest.mark.parametrize("has_points", [False, True])
@pytest.mark.parametrize(("groups", "size"), [(4, 32), (3, 64), (2, 128), (2, 48), (1, 128), (1, 96), (1, 50)])
@pytest.mark.parametrize("kind", RANGES)
def test_product(kind: str, groups: int, size: int, has_points: bool) -> None:
    model = product(kind, groups, size, has_points=has_points)
    check(model, numbers(groups * size), ["MatMulNBits"] * (1 if kind.endswith("4") else 2))


def test_one_row_and_odd_numbers_of_blocks() -> None:
    check(product("u4", 3, 32, rows=1), numbers(96), ["MatMulNBits"])
    check(product("u8", 1, 33, rows=7), numbers(33), ["MatMulNBits"] * 2)


@pytest.mark.parametrize(("kind", "has_points", "count"), [("i4", False, 3), ("u4", False, 4), ("i4", True, 4)])
def test_the_usual_zero_point_is_left_out(kind: str, has_points: bool, count: int) -> None:
    exported = export_model(product(kind, 2, 32, has_points=has_points), 21, contrib=True)
    assert [len(node.inputs) for node in exported.onnx.graph if node.domain == CONTRIB] == [count]


@pytest.mark.parametrize(("groups", "size"), [(3, 24), (2, 8)])
def test_groups_that_are_no_blocks(groups: int, size: int) -> None:
    check(product("u4", groups, size), numbers(groups * size), [])


@pytest.mark.parametrize(("groups", "size"), [(4, 32), (3, 64), (1, 128), (1, 50)])
@pytest.mark.parametrize("kind", RANGES)
def test_gather(kind: str, groups: int, size: int) -> None:
    model = gather(kind, groups, size)
    check(model, [np.array([0, 8, 3, 3]), np.array([-1, -9])], ["GatherBlockQuantized"])


@pytest.mark.parametrize(
    ("axis", "batch_dims", "indices", "expected"),
    [
        *((axis, 0, None, ["GatherBlockQuantized"] if axis in (0, -2) else []) for axis in (-2, -1, 0, 1)),
        (1, 1, None, []),
        (0, 0, [0, 5, 8], []),
    ],
)
def test_rows_only_are_gathered_from_codes(
    axis: int, batch_dims: int, indices: list[int] | None, expected: list[str]
) -> None:
    shape = [9, 2] if batch_dims else [-1]
    x = ops.parameter(shape, "i64", name="x")
    places = ops.constant(np.array(indices)) if indices else x
    found = ops.gather(weights("u4", 9, 2, 32, has_points=True), places, np.array(axis), batch_dims)
    if indices:
        found = ops.add(found, ops.convert(ops.reduce_sum(x, [0], False), "f32"))
    check(stored([found], x), [np.arange(18).reshape(9, 2) % 8 if batch_dims else np.array([0, 8])], expected)


@pytest.mark.parametrize(
    ("shape", "transposes", "expected"),
    [((3, 64), (False, True), 1), ((64, 3), (True, True), 1), ((2, 3, 64), (False, True), 1), ((2, 64, 3), (True, True), 1),
     ((64,), (False, True), 1), ((64,), (True, True), 1), ((3, 6), (False, False), 0), ((6, 3), (True, False), 0)],
)  # fmt: skip
def test_rows_only_are_multiplied_with_codes(
    shape: tuple[int, ...], transposes: tuple[bool, bool], expected: int
) -> None:
    x = ops.parameter(shape, "f32", name="x")
    model = stored([ops.matmul(x, weights("u4", 6, 2, 32, has_points=True), *transposes)], x)
    check(model, [np.random.default_rng(0).standard_normal(shape, np.float32)], ["MatMulNBits"] * expected)


@pytest.mark.parametrize(
    ("shape", "expected"), [((256, 16), 1), ((256, 17), 0), ((4, 256, 4), 1), ((5, 256, 4), 0), ((256,), 1)]
)
@pytest.mark.parametrize("rounds_products", [False, True])
def test_engine_counts_the_rows_of_transposed_inputs(
    shape: tuple[int, ...], expected: int, rounds_products: bool
) -> None:
    x = ops.parameter(shape, "f32", name="x")
    model = stored([ops.matmul(x, weights("u8", 512, 2, 128, has_points=True), True, True)], x)
    layers = [layer for layer in model.layers if layer.type not in ("Parameter", "Result")]
    graph = Graph(21, needs_kernels=True, contrib=True, rounds_products=rounds_products)
    exported = export_part(model, layers, model.inputs, layers[-1].outputs, graph)
    assert len(operators(exported)) == (1 if rounds_products else 2 * expected)


@pytest.mark.parametrize(("rows", "columns", "expected"), [(-1, 256, 1), (16, 256, 1), (17, 256, 0), (-1, 128, 0)])
def test_engine_decompresses_small_matrices_and_those_of_many_rows(rows: int, columns: int, expected: int) -> None:
    model = product("u4", columns // 128, 128, rows=512)
    model.reshape({"x": [rows, columns]})
    (layer,) = (layer for layer in model.layers if layer.type == "MatMul")
    layers = [layer for layer in model.layers if layer.type not in ("Parameter", "Result")]
    exported = export_part(model, layers, model.inputs, layer.outputs, Graph(21, needs_kernels=True, contrib=True))
    assert len(operators(exported)) == expected


def test_plain_export_has_operators_of_onnx_only(tmp_path: Path) -> None:
    for model in (product("u4", 2, 32), product("i8", 1, 64), gather("u8", 1, 64)):
        assert operators(export_onnx(model, tmp_path / "plain.onnx", 21)) == []
        exported = export_onnx(model, tmp_path / "contrib.onnx", 21, contrib=True)
        assert operators(exported)
        assert len(exported.onnx.graph) < 5


def test_engine() -> None:
    model = product("i4", 32, 128, rows=512)
    compiled = ovir.compile_model(model, engine="onnxruntime")
    array = numbers(4096)[1]
    ours = ovir.compile_model(model)([array])[0]
    np.testing.assert_allclose(compiled([array])[0], ours, rtol=1e-4, atol=1e-5 * np.abs(ours).max())
