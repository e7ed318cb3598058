"""`ovir.diff` of constants: values, element types, compression, tolerances, memory."""

import tracemalloc
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.builder import Net
from support.diff_graphs import Graph, network, statuses, whats

import ovir
from ovir import opset13 as ops
from ovir.analysis.changes import BLOCK, constant_difference
from ovir.analysis.matching import constant_digest
from ovir.analysis.tensor_comparison import EXACT
from ovir.ops.infrastructure import Const


def with_constant(array: Any, element_type: str | None = None) -> Graph:
    graph = Graph()
    graph.result(graph.add("Convert", graph.const(array, "c", element_type), name="r", destination_type="f32"))
    return graph


@pytest.mark.parametrize(
    ("options", "different"),
    [({}, 3), ({"atol": 0.1}, 2), ({"rtol": 0.1}, 2), ({"rtol": 0.15, "atol": 0.1}, 1), ({"atol": 11}, 0)],
)
def test_tolerances(options: dict[str, float], different: int) -> None:
    a, b = np.float32([0.0625, 3, 100, 0]), np.float32([0, 2.5, 110, 0])
    found = ovir.diff(with_constant(a).model(), with_constant(b).model(), **options)
    count = found.changed[0].changes[0].data.different if found else 0  # type: ignore[union-attr]
    assert count == different


@pytest.mark.parametrize(
    ("kind", "a", "b", "expected"),
    [
        ("f32", [np.nan, 0, np.inf, np.nan, np.inf], [-np.nan, -0.0, np.inf, 1, -np.inf], "2 of 5 values differ, 1 Inf in the other model, 1 NaN in the first, 1 Inf in the first"),
        ("i64", [2**62, 5], [2**62 + 1, 5], "1 of 2 values differ, by at most 1"),
        ("u64", [2**62, 5], [2**62 + 1, 5], "1 of 2 values differ, by at most 1"),
        ("i64", [-(2**63)], [2**63 - 1], "1 of 1 values differ, by at most 1.84467e+19"),
        *((kind, [1, 0, 1], [1, 1, 1], "1 of 3 values differ, by at most 1") for kind in ("bf16", "f8e4m3", "boolean", "i8")),
    ],
)  # fmt: skip
def test_values_of_a_type(kind: str, a: list[float], b: list[float], expected: str) -> None:
    """NaN equals NaN, zeros are equal whatever their signs, and large integers are compared exactly."""
    dtype = ovir.ElementType.parse(kind).to_dtype()
    one, other = (with_constant(np.array(values, dtype), kind).model() for values in (a, b))
    found = ovir.diff(one, other, atol=1e30 if kind == "f32" else 0)
    assert whats(found) == [f"constant: {expected}"]


@pytest.mark.parametrize("kind", ["u1", "u2", "u3", "u4", "i4", "u6", "nf4"])
def test_packed_types(kind: str) -> None:
    """One value differs, of which the first byte holds a part."""

    def model(first: int) -> ovir.Model:
        bits = ovir.ElementType.parse(kind).bits
        blob = np.zeros(4 * bits, np.uint8)  # 32 elements
        blob[0] = first
        net = Net(blob=bytearray(blob.tobytes()))
        end = net.op("Const", name="c", element_type=kind, shape="4,8", offset="0", size=str(blob.size))
        net.result(net.op("Convert", end, destination_type="f32"))
        return net.model()

    found = ovir.diff(model(0), model(1))
    assert whats(found)[0].startswith("constant: 1 of 32 values differ, by at most")
    assert not ovir.diff(model(1), model(1))


def test_strings() -> None:
    def model(*texts: str) -> ovir.Model:
        data = [text.encode() for text in texts]
        ends = np.cumsum([0, *map(len, data)])
        raw = np.int32([len(data), *ends]).tobytes() + b"".join(data)
        net = Net(blob=bytearray(raw))
        net.result(
            net.op("Const", name="c", element_type="string", shape=str(len(data)), offset="0", size=str(len(raw)))
        )
        return net.model()

    assert whats(ovir.diff(model("a", "żółw"), model("a", "b"))) == ["constant: 1 of 2 values differ"]
    assert not ovir.diff(model("a", "żółw"), model("a", "żółw"))


def test_shape_and_element_type() -> None:
    found = ovir.diff(with_constant(np.ones((2, 3), np.float32)).model(), with_constant(np.ones(3, np.int32)).model())
    assert whats(found)[:2] == ["shape: [2, 3] -> [3]", "element type: f32 -> i32"]
    assert [item.new for item in found.affected] == ["f32[3]"]
    texts, numbers = (ovir.Model([ops.constant(values, name="c")], []) for values in (["1"], [1]))
    assert whats(ovir.diff(texts, numbers)) == ["element type: string -> i64"]
    wide, narrow = (with_constant(np.arange(40, dtype=kind)).model() for kind in (np.float32, np.float16))
    assert whats(ovir.diff(wide, narrow)) == ["element type: f32 -> f16"]


# --------------------------------------------------------------------------- compression


def decompressed(graph: Graph, name: str, kind: str) -> None:
    """Compress a constant to f16, to i8 with a scale, or to u8 with a scale and a zero point."""
    node = graph.find(name)
    place = graph.nodes.index(node)
    rest = graph.nodes[place + 1 :]
    del graph.nodes[place:]
    if kind == "f16":
        stored = graph.const(node.array.astype(np.float16), f"{name}_compressed")
        end = graph.add("Convert", stored, name=name, destination_type="f32")
        end.rt_info = '<attribute name="decompression" version="0"/>'
    else:
        scale = (node.array.max() - node.array.min()) / 255 if kind == "u8" else np.abs(node.array).max() / 127
        zero = np.round(-node.array.min() / scale) if kind == "u8" else 0
        codes = graph.const(np.round(node.array / scale + zero).astype(np.uint8 if kind == "u8" else np.int8), name)
        real = graph.add("Convert", codes, name=f"{name}/real", destination_type="f32")
        if kind == "u8":
            real = graph.add("Subtract", real, graph.const(np.float32([[zero]]), f"{name}/zero"), name=f"{name}/offset")
        end = graph.add("Multiply", real, graph.const(np.float32([[scale]]), f"{name}/scale"), name=f"{name}/weights")
    graph.nodes += rest
    for reader in graph.readers(node):
        reader.sources = [(end, 0) if source is node else (source, port) for source, port in reader.sources]


@pytest.mark.parametrize("backwards", [False, True])
def test_compression_to_f16(backwards: bool) -> None:
    graph = network()
    after = graph.copy()
    decompressed(after, "block1/weights", "f16")
    models = graph.model(), after.model()
    found = ovir.diff(*(models[::-1] if backwards else models))
    assert statuses(found) == {"changed": ["block1/weights"]}
    (text,) = whats(found)
    assert text.startswith(f"compression: {'f16 -> f32' if backwards else 'f32 -> f16'} (64 of 64 values differ, by at")
    assert whats(ovir.diff(*models, atol=1e-2)) == ["compression: f32 -> f16"]


@pytest.mark.parametrize(("stored", "before"), [("f32", None), ("f16", "f16"), ("i8 with scale", "i8")])
def test_compression_to_u8(stored: str, before: str | None) -> None:
    graph, after = network(), network()
    if before is not None:
        decompressed(graph, "block1/weights", before)
    decompressed(after, "block1/weights", "u8")
    found = ovir.diff(graph.model(), after.model(), atol=0.03, ignore_names=True)
    assert statuses(found) == {"changed": ["block1/weights/weights"]}
    assert whats(found) == [f"compression: {stored} -> u8 with scale and zero point"]


def test_a_changed_scale_is_a_changed_constant() -> None:
    before = network()
    decompressed(before, "block1/weights", "u8")
    after = before.copy()
    scale = after.find("block1/weights/scale")
    scale.array = scale.array + np.float32(0.5)
    found = ovir.diff(before.model(), after.model())
    assert statuses(found) == {"changed": ["block1/weights/scale"]}
    assert whats(found) == ["constant: 1 of 1 values differ, by at most 0.5"]


def test_everything_compressed_and_renamed() -> None:
    graph = network()
    after = graph.copy()
    for node in list(after.nodes):
        if node.kind == "Const":
            decompressed(after, node.name, "f16")
    found = ovir.diff(graph.model(), after.model(rename=lambda n: f"n{id(n)}"), ignore_names=True, atol=1e-2)
    assert statuses(found).keys() == {"changed"}
    assert whats(found) == ["compression: f32 -> f16"] * 8


# --------------------------------------------------------------------------- blocks


def test_differences_in_several_blocks() -> None:
    array = np.zeros(2 * BLOCK + 5, np.float32)
    other = array.copy()
    other[[3, BLOCK, 2 * BLOCK + 4]] = [1, -4, 2]
    found = constant_difference(Const.of(array), Const.of(other), EXACT)
    assert (found.elements, found.different, found.largest) == (array.size, 3, 4.0)
    assert constant_difference(Const.of(array), Const.of(array), EXACT) is None


def test_digests_of_large_constants() -> None:
    array = np.random.default_rng(0).random(1 << 16).astype(np.float32)
    assert constant_digest(Const.of(array)) == constant_digest(Const.of(array.copy()))
    for place in (0, array.size - 1):
        other = array.copy()
        other[place] += 1
        assert constant_digest(Const.of(array)) != constant_digest(Const.of(other))


@pytest.mark.slow
def test_large_constants_are_compared_in_little_memory(tmp_path: Path) -> None:
    paths = []
    array = np.zeros((64, 1 << 18), np.float32)  # 64 MB
    for name in ("a", "b"):
        net = Net()
        net.result(net.op("MatMul", net.parameter("x", "1,64"), net.const(array, name="w")))
        paths.append(net.write(tmp_path, name))
        array[5, 5] = 2
    del net
    tracemalloc.start()
    try:
        found = ovir.diff(*paths)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert whats(found) == ["constant: 1 of 16,777,216 values differ, by at most 2"]
    assert peak < 40e6


def test_bf16_arrays_in_memory() -> None:
    array = np.array([1, 2], ml_dtypes.bfloat16)
    assert constant_difference(Const.of(array), Const.of(array.copy()), EXACT) is None


@pytest.mark.parametrize("is_inside", [False, True])
def test_tensor_names_of_compressed_constants(is_inside: bool) -> None:
    """Nothing can refer to those in bodies."""

    def model(name: str, *, is_compressed: bool) -> ovir.Model:
        x = ops.parameter([2, 2], "f32", name="x")
        numbers = np.float32([[1, 2], [3, 4]])
        weights: Any = ops.constant(numbers, name="w", tensor_names=name)
        if is_compressed:
            weights = ops.convert(ops.constant(numbers, "f16", name="c"), "f32", name="w", tensor_names=name)
        made = ovir.Model([ops.result(ops.matmul(x, weights, False, False, name="product"), name="y")], [x])
        if not is_inside:
            return made
        start, layer = ops.parameter([2, 2], "f32", name="start"), ops.tensor_iterator(name="around")
        layer.set_body(made)
        layer.set_invariant_input(made.inputs[0].layer, start)
        return ovir.Model([ops.result(layer.get_iter_value(made.outputs[0].layer, -1), name="z")], [start])

    found = ovir.diff(model("one", is_compressed=False), model("two", is_compressed=True))
    whats = [change.what for entry in found.layers for change in entry.changes]
    assert ("compression" in whats, "tensor names" in whats) == (True, not is_inside)
