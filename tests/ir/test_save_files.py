"""The two files of a saved model replace older ones together or not at all."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builder import Net

import ovir
from ovir.ir.writing.blobs import BlobWriter
from ovir.ir.writing.net import NetWriter


def model_of(value: float, size: int = 3) -> ovir.Model:
    net = Net()
    x = net.parameter("x", str(size))
    net.result(net.op("Add", x, net.const(np.full(size, value, np.float32), name="c"), name="y"))
    return net.model()


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def value_in(path: Path) -> float:
    return float(ovir.read_model(path).layer("c").operator.data[0])  # type: ignore[union-attr]


@pytest.fixture
def target(tmp_path: Path) -> Path:
    ovir.save_model(model_of(1), tmp_path / "m.xml")
    return tmp_path / "m.xml"


def test_a_model_can_be_saved_over_its_own_files(target: Path) -> None:
    model = ovir.read_model(target)
    before = content(target.parent)
    ovir.save_model(model, target)
    assert content(target.parent) == before
    model.rename_layers({"y": "z"})
    ovir.save_model(model, target)
    assert ovir.read_model(target).layer("z").type == "Add"
    assert value_in(target) == 1
    assert sorted(content(target.parent)) == ["m.bin", "m.xml"]
    assert ovir.compile_model(model)([np.zeros(3, np.float32)])[0].tolist() == [1, 1, 1]  # from the old file


def test_saving_over_own_files_in_parts_keeps_large_constants(tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    net = Net()
    x = net.parameter("x", "?,100000")
    for number in range(3):
        x = net.op("Add", x, net.const(np.arange(100000, dtype=np.float32)[np.newaxis] * number))
    net.result(x)
    ovir.save_model(net.write(tmp_path, "m"), path)
    data = (tmp_path / "m.bin").read_bytes()
    model = ovir.read_model(path)
    for _ in range(2):
        ovir.save_model(model, path)
        assert (tmp_path / "m.bin").read_bytes() == data


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device"), MemoryError()]
)
@pytest.mark.parametrize("part", ["bin", "xml"])
def test_a_failure_while_writing_changes_nothing(
    error: BaseException, part: str, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content(target.parent)

    def fail(self: Any, *arguments: Any) -> Any:
        raise error

    original = NetWriter.write
    if part == "bin":
        monkeypatch.setattr(BlobWriter, "_write", fail)
    else:
        monkeypatch.setattr(NetWriter, "write", lambda self, model: (original(self, model), fail(self)))
    expected = ovir.WriteError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected) as caught:
        ovir.save_model(model_of(2), target)
    assert content(target.parent) == before
    if isinstance(caught.value, ovir.WriteError):
        assert str(caught.value) == f"{target}: error[OVIR903] cannot save the model: No space left on device"


@pytest.mark.parametrize("has_links", [True, False])
@pytest.mark.parametrize("failing", [0, 1])
@pytest.mark.parametrize("is_new", [True, False])
def test_a_failure_between_the_two_files_restores_the_first(
    failing: int, has_links: bool, is_new: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "m.xml"
    if not is_new:
        ovir.save_model(model_of(1), target)
    before = content(tmp_path)
    count = 0
    replace = os.replace

    def interrupted(old: str, new: str) -> None:
        nonlocal count
        count += 1
        if count == failing + 1:
            raise KeyboardInterrupt
        replace(old, new)

    def refused(*arguments: Any, **options: Any) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "replace", interrupted)
    if not has_links:
        monkeypatch.setattr(os, "link", refused)
    with pytest.raises(KeyboardInterrupt):
        ovir.save_model(model_of(2), target)
    assert content(tmp_path) == before


def test_ctrl_c_after_the_last_step_leaves_the_new_pair(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace = os.replace

    def interrupted(old: str, new: str) -> None:
        replace(old, new)
        if new.endswith(".xml"):
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ovir.save_model(model_of(2), target)
    assert value_in(target) == 2
    assert sorted(content(target.parent)) == ["m.bin", "m.xml"]


# --------------------------------------------------------------------------- targets


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(ovir.WriteError, match=r"nowhere/m.xml: .*the folder .*nowhere does not exist"):
        ovir.save_model(model_of(1), tmp_path / "nowhere" / "m.xml")
    (tmp_path / "file").touch()
    with pytest.raises(ovir.WriteError, match=r"the folder .*file is not a folder"):
        ovir.save_model(model_of(1), tmp_path / "file" / "m.xml")


@pytest.mark.parametrize("end", ["xml", "bin"])
def test_a_read_only_file_is_not_replaced(end: str, target: Path) -> None:
    before = content(target.parent)
    target.with_suffix(f".{end}").chmod(0o444)
    with pytest.raises(ovir.WriteError, match=rf"m.{end}: .*it is read-only"):
        ovir.save_model(model_of(2), target)
    assert content(target.parent) == before


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(ovir.WriteError, match="Permission denied"):
            ovir.save_model(model_of(2), tmp_path / "m.xml")
    finally:
        tmp_path.chmod(0o755)


def test_a_target_that_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "m.xml").mkdir()
    with pytest.raises(ovir.WriteError, match="it is a folder"):
        ovir.save_model(model_of(1), tmp_path / "m.xml")


@pytest.mark.parametrize("name", ["model", "model.bin", "model.onnx", "xml", "model.xml.gz"])
def test_a_target_that_does_not_end_in_xml(name: str, tmp_path: Path) -> None:
    with pytest.raises(ovir.InputError, match=r"the path of a saved model must end in \.xml"):
        ovir.save_model(model_of(1), tmp_path / name)
    assert content(tmp_path) == {}


def test_a_target_that_is_no_path() -> None:
    with pytest.raises(ovir.InputError, match="must be a string or a path, got int"):
        ovir.save_model(model_of(1), 3)  # type: ignore[arg-type]


def test_a_target_in_the_present_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ovir.save_model(model_of(1), "m.xml")
    assert sorted(content(tmp_path)) == ["m.bin", "m.xml"]


def test_permissions_of_replaced_files_are_kept(target: Path) -> None:
    target.chmod(0o640)
    ovir.save_model(model_of(2), target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_weights_that_have_shrunk_are_not_read(target: Path, tmp_path: Path) -> None:
    ovir.save_model(model_of(1, 100_000), target)
    model = ovir.read_model(target)
    os.truncate(target.with_suffix(".bin"), 4)
    with pytest.raises(ovir.ReadError, match="has shrunk from 400000 to 4 bytes"):
        ovir.save_model(model, tmp_path / "new.xml")
    assert not (tmp_path / "new.xml").exists()
