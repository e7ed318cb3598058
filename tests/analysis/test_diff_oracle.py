"""A file and its copy saved by OpenVINO are equal for `ovir.diff`."""

from pathlib import Path

import pytest
from support.diff_graphs import network, statuses, whats

import ovir

openvino = pytest.importorskip("openvino")
pytestmark = pytest.mark.oracle

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "xml").glob("*.xml"))


def saved(path: Path, folder: Path, *, compress: bool) -> Path:
    copy = folder / "copy.xml"
    openvino.save_model(openvino.Core().read_model(path), copy, compress_to_fp16=compress)
    return copy


def readable_by_openvino(path: Path) -> bool:
    try:
        openvino.Core().read_model(path)
        ovir.read_model(path)
    except (RuntimeError, ovir.OvirError):
        return False
    return True


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_copies_of_the_examples(path: Path, tmp_path: Path) -> None:
    if not readable_by_openvino(path):
        pytest.skip("the example is faulty, or has an operation of its own")
    found = ovir.diff(path, saved(path, tmp_path, compress=False))
    assert not found, found.to_dict()
    compressed = ovir.diff(path, saved(path, tmp_path, compress=True))
    assert not compressed.model
    assert not compressed.affected
    assert {change.what for entry in compressed.layers for change in entry.changes} <= {"compression"}
    assert statuses(compressed).keys() <= {"changed"}


def write(graph_model: tuple[bytes, bytes], folder: Path) -> Path:
    path = folder / "model.xml"
    path.write_bytes(graph_model[0])
    path.with_suffix(".bin").write_bytes(graph_model[1])
    return path


def test_one_operation_that_openvino_inserts(tmp_path: Path) -> None:
    path = write(network().written(), tmp_path)
    model = openvino.Core().read_model(path)
    layer = next(op for op in model.get_ops() if op.get_friendly_name() == "block2/add")
    readers = list(layer.output(0).get_target_inputs())
    floor = openvino.opset13.floor(layer.output(0), name="new")
    for reader in readers:
        reader.replace_source_output(floor.output(0))
    model.reshape([5, 8])
    openvino.save_model(model, tmp_path / "edited.xml", compress_to_fp16=False)
    found = ovir.diff(path, tmp_path / "edited.xml")
    assert statuses(found).get("added") == ["new"]
    assert "attribute shape: [2,8] -> [5,8]" in whats(found)
