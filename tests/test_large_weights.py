"""Commands whose memory does not depend on the size of the weights, on a sparse .bin of 200 MB."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.builder import Net

import ovir

pytestmark = pytest.mark.slow

LAYERS = 48
ROWS, COLUMNS = 2048, 1024
BYTES = LAYERS * ROWS * COLUMNS * 2
"""The size of the weights, in f16; decompressed, they take twice as much."""


def write(folder: Path, name: str, bits: int = 16) -> Path:
    """Write products with weights of f16 or i4, which are all zero but the first ones."""
    net = Net()
    x = net.parameter("x", f"1,{COLUMNS}")
    element_type = "f16" if bits == 16 else "i4"
    size = ROWS * COLUMNS * bits // 8
    with (folder / f"{name}.bin").open("wb") as file:
        for number in range(LAYERS):
            shape = f"{ROWS},{COLUMNS}" if number % 2 == 0 else f"{COLUMNS},{ROWS}"
            offset = number * size
            file.seek(offset)
            file.write(np.float16([1 + number / 64]).tobytes())
            weights = net.op(
                "Const", name=f"w{number}", element_type=element_type, offset=offset, size=size, shape=shape
            )
            wide = net.op("Convert", weights, destination_type="f32")
            x = net.op("MatMul", x, wide, transpose_b="true", name=f"product{number}", names=[f"product{number}"])
        file.truncate(LAYERS * size)
    net.result(x, name="out")
    path = folder / f"{name}.xml"
    path.write_text(net.xml())
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large")
    other = write(folder, "other")
    other.write_text(other.read_text().replace('name="product0"', 'name="first"'))
    return write(folder, "model")


INPUTS = {"x": np.ones((1, COLUMNS), np.float32)}


def other(path: Path) -> Path:
    return path.with_name("other.xml")


def export(path: Path) -> None:
    pytest.importorskip("onnx_ir")
    ovir.export_onnx(path, path.with_name("model.onnx"), external_data=True)
    assert path.with_name("model.onnx.data").stat().st_size >= path.with_suffix(".bin").stat().st_size


def edit(path: Path) -> None:
    model = ovir.read_model(path)
    model.rename_layers({"product1": "second"})
    ovir.save_model(model, path.with_name("edited.xml"))
    assert path.with_name("edited.bin").stat().st_size == BYTES


def extract(path: Path) -> None:
    part = ovir.read_model(path).extract(inputs=["product9"], outputs=["product19"])
    ovir.save_model(part, path.with_name("part.xml"))
    assert path.with_name("part.bin").stat().st_size == BYTES // LAYERS * 10


def compare(path: Path) -> None:
    assert len(ovir.compare(path, other(path), inputs=INPUTS).layers) == 2 * LAYERS


def compare_alone(path: Path) -> None:
    assert len(ovir.compare(path, other(path), inputs=INPUTS, mode="isolated").layers) >= LAYERS


def compare_recorded(path: Path) -> None:
    compared = ovir.compare(path, {"product20": np.zeros((1, ROWS), np.float32)}, inputs=INPUTS)
    assert [layer.name for layer in compared.layers] == ["product20"]


def bisect(path: Path) -> None:
    assert ovir.bisect(path, other(path), inputs=INPUTS).within


def check(path: Path) -> None:
    assert not [found for found in ovir.check(path) if found.severity is ovir.Severity.ERROR]


def diff(path: Path) -> None:
    assert ovir.diff(path, other(path))


ACTIONS: list[Callable[[Path], object]] = [
    *(ovir.read_model, check, diff, edit, extract, export, compare, compare_alone, compare_recorded, bisect),
]


def peak_of(action: Callable[[Path], object], path: Path) -> int:
    """Return the most bytes that an action has allocated at one time; mapped files do not count."""
    tracemalloc.start()
    try:
        action(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.__name__)
def test_memory_does_not_depend_on_the_weights(action: Callable[[Path], object], path: Path) -> None:
    assert peak_of(action, path) < BYTES // 3


def test_weights_that_are_decompressed_are_measured(path: Path) -> None:
    """The other tests would show nothing if this were not so."""
    assert peak_of(lambda path: ovir.read_model(path).decompress(), path) > BYTES


def test_packed_weights_are_decoded_one_by_one(tmp_path: Path) -> None:
    packed = write(tmp_path, "packed", bits=4)
    assert peak_of(export, packed) < BYTES // 3  # decoded, they would take half of BYTES
