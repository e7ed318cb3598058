"""The files that ``ovir.to_python`` writes: both or none, and what the code says of version 10."""

import errno
import runpy
import zipfile
from pathlib import Path
from typing import Any

import pytest
from support.builder import Net
from support.saved import content, model_of

import ovir
from ovir import opset13 as ops


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")])
@pytest.mark.parametrize("is_new", [True, False])
def test_a_failure_while_writing_changes_nothing(
    error: BaseException, is_new: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "b.py"
    if not is_new:
        ovir.to_python(model_of(1, 100), target)
    before = content(tmp_path)

    def fail(self: Any, *arguments: Any) -> Any:
        raise error

    monkeypatch.setattr(zipfile.ZipFile, "_write_end_record", fail)
    with pytest.raises(ovir.WriteError if isinstance(error, OSError) else KeyboardInterrupt) as caught:
        ovir.to_python(model_of(2, 100), target)
    assert content(tmp_path) == before
    if isinstance(caught.value, ovir.WriteError):
        assert str(caught.value) == f"{target}: error[OVIR903] cannot save the Python file: No space left on device"


def test_both_files_are_replaced(tmp_path: Path) -> None:
    target = tmp_path / "b.py"
    for value in (1, 2):
        ovir.to_python(model_of(value, 100), target)
        assert sorted(content(tmp_path)) == ["b.npz", "b.py"]
        assert runpy.run_path(str(target))["model"].layer("c").operator.data[0] == value


def test_code_without_large_constants_leaves_the_other_file_alone(tmp_path: Path) -> None:
    (tmp_path / "b.npz").write_bytes(b"mine")
    ovir.to_python(model_of(1, 2), tmp_path / "b.py")
    assert sorted(content(tmp_path)) == ["b.npz", "b.py"]
    assert (tmp_path / "b.npz").read_bytes() == b"mine"


@pytest.mark.parametrize("name", ["file", "allow_pickle"])
def test_constants_with_the_names_of_arguments(name: str, tmp_path: Path) -> None:
    ovir.to_python(model_of(1, 100, name), tmp_path / "b.py")
    assert runpy.run_path(str(tmp_path / "b.py"))["model"].layer(name).operator.data[99] == 100


# --------------------------------------------------------------------------- version 10


def legacy_net() -> Net:
    net = Net(version=10)
    x = net.op("Parameter", name="x", shape="2", element_type="f16", names=[])
    net.result(net.op("Convert", x, name="y", destination_type="i64", names=[]))
    return net


def test_the_code_of_version_10_has_the_inputs_and_outputs_of_a_saved_model(tmp_path: Path) -> None:
    model = legacy_net().model()
    ovir.to_python(model, tmp_path / "b.py")
    built = runpy.run_path(str(tmp_path / "b.py"))["model"]
    ovir.save_model(model, tmp_path / "m.xml")
    saved = ovir.read_model(tmp_path / "m.xml")
    for one in (built, saved):
        assert [(sorted(p.names), str(p.type)) for p in one.inputs] == [(["x"], "f32[2]")]
        assert [(sorted(p.names), str(p.type)) for p in one.outputs] == [(["y"], "i32[2]")]
    assert model.version == 10


def test_code_of_an_edited_model_of_version_10(tmp_path: Path) -> None:
    model = legacy_net().model()
    model.replace("y", ops.floor(model.layer("x"), name="floor"))
    ovir.to_python(model, tmp_path / "b.py")
    built = runpy.run_path(str(tmp_path / "b.py"))["model"]
    assert [str(port.type) for port in built.outputs] == ["f32[2]"]
