"""The .bin of saved models: equal constants once, packed types and strings byte for byte, little memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from builder import Net

import ovir
from ovir.core.element_types import ELEMENT_TYPES, ElementType, string
from ovir.ir.weights import decode, encode
from ovir.ir.writing.blobs import CHUNK, BlobWriter, RawSource
from ovir.ops.infrastructure import Const

PLAIN = [t for t in ELEMENT_TYPES if t.bits]


def with_constants(*parts: tuple[bytes, str, str]) -> ovir.Model:
    """A model of constants, each given by its bytes, its element type and its shape."""
    net = Net()
    for number, (raw, kind, shape) in enumerate(parts):
        place = {"offset": len(net.blob), "size": len(raw)}
        net.blob += raw
        net.result(net.op("Const", name=f"c{number}", element_type=kind, shape=shape, **place))
    return net.model()


def places(path: Path) -> list[tuple[int, int]]:
    model = ovir.read_model(path)
    return [(layer.attributes["offset"], layer.attributes["size"]) for layer in model.layers if layer.type == "Const"]


def save(model: ovir.Model, folder: Path) -> bytes:
    ovir.save_model(model, folder / "a.xml")
    return (folder / "a.bin").read_bytes()


@pytest.mark.parametrize("element_type", PLAIN, ids=str)
def test_bytes_are_written_as_they_were_read(element_type: ElementType, tmp_path: Path) -> None:
    count = 19
    size = -(-count * element_type.bits // 8) + 2  # some files have more bytes than needed
    raw = bytes((7 * i + 3) % 256 for i in range(size))
    assert save(with_constants((raw, str(element_type), str(count))), tmp_path) == raw
    assert places(tmp_path / "a.xml") == [(0, size)]


STRINGS = bytes.fromhex("03000000 00000000 02000000 09000000 09000000") + "hiżółw".encode()


def test_strings_are_written_as_they_were_read(tmp_path: Path) -> None:
    assert save(with_constants((STRINGS, "string", "3")), tmp_path) == STRINGS
    assert ovir.read_model(tmp_path / "a.xml").layer("c0").operator.data.tolist() == ["hi", "żółw", ""]  # type: ignore[union-attr]


@pytest.mark.parametrize("element_type", PLAIN, ids=str)
@pytest.mark.parametrize("count", [0, 1, 7, 8, 24])
def test_encoding_is_the_inverse_of_decoding(element_type: ElementType, count: int) -> None:
    size = -(-count * element_type.bits // 8) + 8
    raw = np.arange(11, 11 + size) % (2 if str(element_type) == "boolean" else 256)
    values = decode(raw.astype(np.uint8), element_type, (count,))
    encoded = encode(values, element_type)
    assert decode(encoded, element_type, (count,)).tobytes() == values.tobytes()
    if str(element_type) not in ("u3", "u6") or count % 8 == 0:  # these fill whole blocks
        assert encoded.size == -(-count * element_type.bits // 8)


def test_the_bytes_of_packed_types() -> None:
    def packed(kind: str, *values: float) -> str:
        element_type = ElementType.parse(kind)
        return encode(np.array(values).astype(element_type.to_dtype()), element_type).tobytes().hex()

    assert packed("u1", 1, 0, 1, 1, 0, 0, 0, 1, 1, 0) == "b180"
    assert packed("u2", 0, 1, 2, 3, 1) == "e401"
    assert packed("u4", 1, 2, 3) == "2103"
    assert packed("i4", -1, 2, -8) == "2f08"
    assert packed("f4e2m1", 0.5, 1, 6) == "2107"
    assert packed("u3", *range(8), 1) == "1b1b0f400000"
    assert packed("u6", 1, 2, 33, 63, 5) == "121f0b500000"
    assert encode(np.array(["hi", "żółw", ""], string.to_dtype()), string).tobytes() == STRINGS


def test_a_constant_of_an_array_is_written(tmp_path: Path) -> None:
    model = with_constants((bytes(8), "f32", "2"))
    layer = model.layer("c0")
    layer.operator = Const.of(np.float32([1.5, -2]))
    assert save(model, tmp_path) == np.float32([1.5, -2]).tobytes()


def test_text_in_place_of_weights_becomes_weights(tmp_path: Path) -> None:
    net = Net()
    net.result(net.op("Const", name="c", element_type="u8", shape="3", value="abc"))
    assert save(net.model(), tmp_path) == b"abc"
    assert places(tmp_path / "a.xml") == [(0, 3)]


@pytest.mark.parametrize("size", [4, 5000 * 4])
def test_equal_constants_are_written_once(size: int, tmp_path: Path) -> None:
    one, other = np.arange(size, dtype=np.uint8).tobytes(), np.arange(1, size + 1, dtype=np.uint8).tobytes()
    shape = str(size // 4)
    parts = ((one, "f32", shape), (other, "f32", shape), (one, "i32", shape), (other, "f32", shape))
    assert save(with_constants(*parts), tmp_path) == one + other
    assert places(tmp_path / "a.xml") == [(0, size), (size, size), (0, size), (size, size)]


def test_constants_that_differ_in_one_byte_are_both_written(tmp_path: Path) -> None:
    ones = [bytearray(40_000) for _ in range(3)]
    ones[1][20_001] = 1
    ones[2][39_999] = 1
    assert save(with_constants(*((bytes(raw), "u8", "40000") for raw in ones)), tmp_path) == b"".join(ones)


def test_constants_begin_at_multiples_of_their_element_size(tmp_path: Path) -> None:
    parts = ((b"abc", "u8", "3"), (bytes(range(8)), "f64", "1"), (b"z", "u4", "2"), (b"\1\2", "f16", "1"))
    assert save(with_constants(*parts), tmp_path) == b"abc" + bytes(5) + bytes(range(8)) + b"z\0\1\2"
    assert places(tmp_path / "a.xml") == [(0, 3), (8, 8), (16, 1), (18, 2)]


def test_a_model_without_constants_has_an_empty_bin(tmp_path: Path) -> None:
    net = Net()
    net.result(net.parameter("x", "2"))
    assert save(net.model(), tmp_path) == b""


def test_large_constants_are_written_in_pieces(tmp_path: Path) -> None:
    data = np.arange((2 * CHUNK + 40) // 8, dtype=np.uint64).view(np.uint8)
    with (tmp_path / "a.bin").open("wb") as file:
        writer = BlobWriter(file)
        assert [writer.add(RawSource(data), ElementType.parse("u8")) for _ in range(2)] == [0, 0]
    assert (tmp_path / "a.bin").read_bytes() == data.tobytes()


CODE = """
import json, re, sys, ovir
def peak():
    with open("/proc/self/status") as file:
        return int(re.search(r"VmHWM:\\s*(\\d+)", file.read())[1])
model = ovir.read_model(sys.argv[1])
before = peak()
ovir.save_model(model, sys.argv[2], compress_to_fp16=len(sys.argv) > 3)
print(json.dumps([before, peak()]))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is measured as Linux reports it")
@pytest.mark.parametrize("half", [[], ["half"]])
def test_weights_are_not_held_in_memory(half: list[str], tmp_path: Path) -> None:
    megabytes, count = 256, 4
    net = Net()
    elements = megabytes * (1 << 20) // 4 // count
    with (tmp_path / "m.bin").open("wb") as file:
        for number in range(count):
            file.seek(number * elements * 4)
            file.write(np.float32([number + 1]).tobytes())
            place = {"offset": number * elements * 4, "size": elements * 4}
            net.result(net.op("Const", name=f"c{number}", element_type="f32", shape=str(elements), **place))
        file.truncate(megabytes << 20)
    (tmp_path / "m.xml").write_text(net.xml())
    arguments = [sys.executable, "-c", CODE, str(tmp_path / "m.xml"), str(tmp_path / "out.xml"), *half]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    before, after = json.loads(done.stdout)
    assert (tmp_path / "out.bin").stat().st_size == (megabytes << 20) // (2 if half else 1)
    assert after - before < 100 << 10  # kilobytes


def test_changes_in_a_private_mapping_survive_saving(tmp_path: Path) -> None:
    """A mapping that is copied on write holds data that its file does not have."""
    numbers = np.arange(4096, dtype=np.float32)
    net = Net()
    net.result(net.const(numbers, name="c"))
    (tmp_path / "old.bin").write_bytes(bytes(net.blob))
    weights = np.memmap(tmp_path / "old.bin", np.uint8, mode="c")
    weights.view(np.float32)[:] += 7
    model = ovir.read_model(net.xml().encode(), weights)
    ovir.save_model(model, tmp_path / "new.xml")
    np.testing.assert_array_equal(weights.view(np.float32), numbers + 7)
    np.testing.assert_array_equal(ovir.read_model(tmp_path / "new.xml").layer("c").operator.data, numbers + 7)  # type: ignore[union-attr]
