"""``save_model(..., compress_to_fp16=True)``: constants as f16, with a Convert behind each."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir import opset13 as ops
from ovir.core.arrays import Array
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.ir.writing import compression
from ovir.ir.writing.blobs import RawSource
from ovir.ir.writing.compression import F16, NarrowSource
from ovir.model import Model


def added(*constants: Array, **names: str) -> Net:
    """A model that adds constants to its input."""
    net = Net()
    x = net.parameter("x", "...", str(ovir.ElementType.from_dtype(constants[0].dtype)))
    for number, array in enumerate(constants):
        x = net.op("Add", x, net.const(array, name=f"c{number}"))
    net.result(x, name="out")
    return net


def compressed(net: Net, folder: Path) -> tuple[Model, list[Diagnostic]]:
    found = ovir.save_model(net.model(), folder / "a.xml", compress_to_fp16=True)
    first = (folder / "a.xml").read_bytes(), (folder / "a.bin").read_bytes()
    model = ovir.read_model(folder / "a.xml")
    ovir.save_model(model, folder / "b.xml")
    assert ((folder / "b.xml").read_bytes(), (folder / "b.bin").read_bytes()) == first
    return model, found


def stored(model: Model, name: str = "c0") -> str:
    """The element type of a constant in the file."""
    layer = model.layer(name)
    return str(layer.outputs[0].element_type if layer.type == "Const" else layer.inputs[0].element_type)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_constant_becomes_one_of_f16_and_a_convert(dtype: type, tmp_path: Path) -> None:
    values = np.linspace(-3, 3, 50, dtype=dtype)
    net = added(values)
    text = net.xml().replace(
        "<output>", '<rt_info><attribute name="a" version="0"/><attribute name="z" version="0"/></rt_info><output>'
    )
    model = ovir.read_model(text.encode(), bytes(net.blob))
    before = [layer.id for layer in model.layers]
    assert ovir.save_model(model, tmp_path / "a.xml", compress_to_fp16=True) == []
    assert [layer.id for layer in model.layers] == before  # the model itself is as it was
    saved = ovir.read_model(tmp_path / "a.xml")
    const, convert = saved.layer("c0_compressed"), saved.layer("c0")
    assert (const.type, str(const.outputs[0].type)) == ("Const", "f16[50]")
    assert (convert.type, convert.outputs[0].type) == ("Convert", model.layer("c0").outputs[0].type)
    assert convert.id == model.layer("c0").id
    assert convert.inputs[0].source is const.outputs[0]
    assert list(const.rt_info) == ["a", "z"]
    assert list(convert.rt_info) == ["a", "decompression", "z"]
    assert (tmp_path / "a.bin").read_bytes() == values.astype(np.float16).tobytes()
    order = [layer.name for layer in saved.file_order]
    assert order.index("c0_compressed") + 1 == order.index("c0")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([0.1], "f32"),  # a single number may be a scale, and loses too much
        ([0.5], "f16"),
        ([0.1, 0.1], "f16"),
        ([0], "f16"),
        ([], "f32"),
        ([4097.5, 1], "f32"),  # rounding errors above 1
        ([2049, 1], "f16"),
        ([1e-9, 1e-9, 1e-9, 1], "f32"),  # too many numbers below the range
        ([1e-9, 1e-9, 1, 1], "f16"),
        ([np.inf], "f32"),
        ([-np.inf, 1], "f16"),
        ([np.nan, 1], "f16"),
        ([65504, 1], "f16"),
        ([np.inf, -np.inf, np.nan, 1, -0.0], "f16"),
    ],
)
def test_what_becomes_f16(values: list[float], kind: str, tmp_path: Path) -> None:
    model, warnings = compressed(added(np.array(values, np.float32)), tmp_path)
    assert stored(model) == kind
    assert warnings == []
    if kind == "f16":
        halves = np.fromfile(tmp_path / "a.bin", np.uint16)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(halves, np.array(values, np.float16).view(np.uint16))
    ovir.save_model(model, tmp_path / "again.xml", compress_to_fp16=True)
    assert (tmp_path / "again.xml").read_bytes() == (tmp_path / "a.xml").read_bytes()


@pytest.mark.parametrize("values", [[65505, 1, 1, 1], [-1e6, 1, 1, 1], [np.finfo(np.float32).max]])
def test_values_above_the_range_stay_and_are_reported(values: list[float], tmp_path: Path) -> None:
    model, (warning,) = compressed(added(np.array(values, np.float32)), tmp_path)
    assert stored(model) == "f32"
    assert (warning.code, warning.severity, warning.layer) == ("OVIR512", "warning", "layer 1 'c0' (Const, opset1)")
    most = f"{abs(values[0]):g}"
    assert warning.message == f"the constant stays f32: it has numbers of up to {most}, and f16 ends at 65504"


def test_constants_that_sizes_depend_on_stay(tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("x", "4,6")
    half = net.op(
        "Multiply",
        net.op("Convert", net.op("ShapeOf", x), destination_type="f32"),
        net.const(np.float32([0.5, 2]), name="size"),
    )
    shape = net.op("Convert", half, destination_type="i64")
    net.result(
        net.op("Reshape", net.op("Add", x, net.const(np.float32([[2]]), name="weights")), shape, special_zero="false")
    )
    model, _ = compressed(net, tmp_path)
    assert (stored(model, "size"), stored(model, "weights")) == ("f32", "f16")


def test_quantized_models_and_constants_of_other_types_stay(tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("x", "2,3")
    low, high = net.const(np.float32(0)), net.const(np.float32(1))
    x = net.op("FakeQuantize", x, low, high, low, high, levels=256)
    net.result(net.op("Add", x, net.const(np.float32([1, 2, 3]), name="c0")))
    assert stored(compressed(net, tmp_path)[0]) == "f32"
    for kind in ("f16", "bf16", "i32", "u8"):
        net = Net()
        net.result(net.const([1, 2], kind, name="c0"))
        assert stored(compressed(net, tmp_path)[0]) == kind


@pytest.mark.parametrize("zero", ["none", "direct", "converted"])
def test_weights_with_scales_stay(zero: str, tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("x", "2,3")
    weights = net.op("Convert", net.const(np.uint8([[1, 2, 3]])), destination_type="f32")
    if zero != "none":
        point = (
            net.const(np.float32(1))
            if zero == "direct"
            else net.op("Convert", net.const(np.uint8(1)), destination_type="f32")
        )
        weights = net.op("Subtract", weights, point)
    scaled = net.op("Multiply", net.const(np.float32([[0.5]]), name="scale"), weights)
    net.result(net.op("Add", net.op("Add", x, scaled), net.const(np.float32([1, 2, 3]), name="c0")))
    assert stored(compressed(net, tmp_path)[0]) == "f32"


def test_different_constants_that_become_equal_are_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.linspace(1, 2, 5000, dtype=np.float32)
    monkeypatch.setattr("ovir.editing.transaction.infer_edited", lambda model: pytest.fail("inferred for a constant"))
    compressed(added(values, np.nextafter(values, np.float32(3))), tmp_path)
    assert (tmp_path / "a.bin").stat().st_size in (10_000, 20_000)
    ovir.save_model(added(values, values.copy()).model(), tmp_path / "c.xml", compress_to_fp16=True)
    assert (tmp_path / "c.bin").stat().st_size == 10_000


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_large_constant_is_examined_and_converted_in_parts(dtype: type, tmp_path: Path) -> None:
    """Threads share the parts; the last one of this constant is shorter than the others."""
    powers = 2.0 ** (np.arange(700_001) % 30 - 20)
    values = (np.random.default_rng(0).standard_normal(700_001) * powers).astype(dtype)
    model, found = compressed(added(values), tmp_path)
    assert (stored(model), found) == ("f16", [])
    expected = values.astype(np.float16)
    if dtype == np.float64:
        expected[np.abs(values) < 2.0**-24] = 0
    assert (tmp_path / "a.bin").read_bytes() == expected.tobytes()
    values[-1] = 1e6
    model, found = compressed(added(values), tmp_path)
    assert stored(model) == str(ovir.ElementType.from_dtype(dtype))
    assert "it has numbers of up to 1e+06" in found[0].message
    values[-1], values[:600_000] = 1, 1e-9
    model, found = compressed(added(values), tmp_path)
    assert (stored(model), found) == (str(ovir.ElementType.from_dtype(dtype)), [])


# --------------------------------------------------------------------------- bf16


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([0.1, -3.0, 250.3], "bf16"),
        ([1e30, 2.0**100], ""),  # errors of more than 1, as of large numbers in f16
        ([514.0, 1.0], ""),  # a position of an anchor would move
        ([512.0, 1024.0], "bf16"),
        ([0.1], ""),  # one number, which others depend on
        ([0.5], "bf16"),
        ([1e-30, 1e-8], "bf16"),  # f16 would lose them
        ([np.inf, np.nan, 1.0], "bf16"),
    ],
)
def test_what_becomes_bf16(values: list[float], kind: str, dtype: type, tmp_path: Path) -> None:
    array = np.array(values, dtype)
    found = ovir.save_model(added(array).model(), tmp_path / "a.xml", compress_to_bf16=True)
    model = ovir.read_model(tmp_path / "a.xml")
    own = str(ovir.ElementType.from_dtype(array.dtype))
    assert (stored(model), found) == (kind or own, [])
    if kind:
        expected = array.astype(np.float32).astype(ml_dtypes.bfloat16).astype(dtype)
        result = ovir.compile_model(model)([np.zeros(array.shape, dtype)])[0]
        np.testing.assert_array_equal(result, expected)
        assert "decompression" in model.layer("c0").rt_info


def test_one_type_of_16_bits_is_chosen(tmp_path: Path) -> None:
    with pytest.raises(ovir.InputError, match="exclude each other"):
        ovir.save_model(added(np.ones(2)).model(), tmp_path / "a.xml", compress_to_fp16=True, compress_to_bf16=True)
    assert not (tmp_path / "a.xml").exists()
    found = ovir.save_model(added(np.array([1e39, 1.0])).model(), tmp_path / "a.xml", compress_to_bf16=True)
    assert [str(d.message) for d in found] == [
        "the constant stays f64: it has numbers of up to 1e+39, and bf16 ends at 3.38953e+38"
    ]


# --------------------------------------------------------------------------- numbers that decide about others


_READERS = {
    "integer": lambda net, x, c: net.op("Convert", c, destination_type="i32"),
    "boolean": lambda net, x, c: net.op("Convert", c, destination_type="boolean"),
    "equal": lambda net, x, c: net.op("Equal", x, c),
    "less": lambda net, x, c: net.op("Less", c, x),
    "floor": lambda net, x, c: net.op("Floor", c),
    "remainder": lambda net, x, c: net.op("FloorMod", x, c),
    "moved": lambda net, x, c: net.op("Convert", net.op("Reshape", c, net.const(np.int64([3, 1])), special_zero="false"), destination_type="i64"),
    "computed": lambda net, x, c: net.op("Floor", net.op("Multiply", c, net.const(np.float32([0.5])))),
    "gathered": lambda net, x, c: net.op("Equal", x, net.op("Gather", c, net.parameter("i", "3", "i32"), net.const(np.int64(0)), opset=8)),
    "none": lambda net, x, c: net.op("Multiply", x, c),
    "its shape": lambda net, x, c: net.op("ShapeOf", c, opset=3),
    "with data": lambda net, x, c: net.op("Floor", net.op("Multiply", x, c)),
}  # fmt: skip
"""Layers that read a constant; most of them are such that their results jump where it changes a little."""


@pytest.mark.parametrize("to", ["fp16", "bf16"])
@pytest.mark.parametrize("values", [[257.1, 259.1, 300.1], [1, 2, 256]], ids=["inexact", "exact"])
@pytest.mark.parametrize("step", list(_READERS))
def test_numbers_that_decide_about_others_are_not_rounded(
    step: str, values: list[float], to: str, tmp_path: Path
) -> None:
    net = Net()
    x = net.parameter("x", "3")
    net.result(_READERS[step](net, x, net.const(np.float32(values), name="c0")))
    ovir.save_model(net.model(), tmp_path / "a.xml", **{f"compress_to_{to}": True})
    is_kept = values[0] == 257.1 and step not in ("none", "its shape", "with data")
    assert stored(ovir.read_model(tmp_path / "a.xml")) == ("f32" if is_kept else to.replace("fp", "f"))


def test_numbers_decide_through_bodies(tmp_path: Path) -> None:
    flag, x = ops.parameter([], "boolean", name="flag"), ops.parameter([3], "f32", name="x")
    outside, other = (ops.constant(np.float32([257.1, 259.1, 300.1]), name=name) for name in ("outside", "other"))
    c, d = (ops.parameter([3], "f32", name=name) for name in "cd")
    inside = ops.constant(np.float32([258.1, 261.1, 301.1]), name="inside")
    then_body = ovir.Model([ops.convert(c, "i32"), ops.add(d, np.float32(1)), inside], [c, d])
    e, f = (ops.parameter([3], "f32", name=name) for name in "ef")
    else_body = ovir.Model([ops.convert(e, "i32"), f, ops.constant(np.float32([1, 2, 3]))], [e, f])
    branch = ops.if_op(flag)
    branch.set_then_body(then_body)
    branch.set_else_body(else_body)
    branch.set_input(outside, then_body.inputs[0], else_body.inputs[0].layer)
    branch.set_input(other, then_body.inputs[1], else_body.inputs[1].layer)
    results = [
        branch.set_output(*ends)
        for ends in zip(then_body.outputs, (end.layer for end in else_body.outputs), strict=True)
    ]
    model = ovir.Model([results[0], ops.add(results[1], x), ops.floor(results[2])], [flag, x])
    ovir.save_model(model, tmp_path / "a.xml", compress_to_fp16=True)
    saved = ovir.read_model(tmp_path / "a.xml")
    assert (stored(saved, "outside"), stored(saved, "other")) == ("f32", "f16")
    body = next(layer for layer in saved.layers if layer.type == "If").bodies["then"]
    assert stored(body, "inside") == "f32"


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("count", [1, 8 << 17, (8 << 17) + 1, (20 << 17) + 5])
def test_the_memory_of_numbers_is_released_while_they_are_examined(
    kind: Any, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it, once, and in pieces of 2^20 numbers, by each thread."""
    monkeypatch.setattr(compression, "run_blocks", lambda function, count, least: function(0, count))
    released: list[tuple[int, int]] = []

    class Watched(RawSource):
        def release(self, start: int, stop: int) -> None:
            released.append((start, stop))

    size = np.dtype(kind).itemsize
    numbers = np.ones(count, kind)
    loss = NarrowSource(Watched(numbers.view(np.uint8)), numbers.dtype, F16).loss()
    assert (loss.outside, loss.largest, loss.error) == (0, 0, 0)
    released.sort()
    assert released[0][0] == 0
    assert [start for start, _ in released[1:]] == [stop for _, stop in released[:-1]]
    assert released[-1][1] == count * size
    assert max(stop - start for start, stop in released) <= size << 20
    assert len(released) == -(-count // (1 << 20))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("place", [0, (1 << 17) - 1, 1 << 17, (1 << 17) + 6])
def test_whether_16_bits_hold_every_number(kind: Any, place: int) -> None:
    numbers = np.tile(kind([1, -0.0, 65504, 2.0**-24, np.inf, -np.inf, np.nan]), 20_000)[: (1 << 17) + 7]
    source = NarrowSource(RawSource(numbers.view(np.uint8)), numbers.dtype, F16)
    assert source.is_exact
    for value in (1.0001, 65505, 2.0**-25, -2049):
        numbers[place] = value
        assert not source.is_exact
