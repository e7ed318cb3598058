"""The files of saved models: both are replaced or none, and the .bin holds equal constants once."""

import errno
import json
import os
import runpy
import stat
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net
from support.saved import content, model_of, value_in

import ovir
from ovir import opset13 as ops
from ovir.core.element_types import ELEMENT_TYPES, ElementType
from ovir.ir.weights import WeightsMark
from ovir.ir.writing import blobs
from ovir.ir.writing.blobs import CHUNK, BlobWriter, RawSource
from ovir.ir.writing.net import NetWriter


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
    assert ovir.compile_model(model)([np.zeros(3, np.float32)])[0].tolist() == [1, 2, 3]  # from the old file


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device"), MemoryError()]
)
@pytest.mark.parametrize("part", ["bin", "xml", "npz"])
@pytest.mark.parametrize("is_new", [True, False])
def test_a_failure_while_writing_changes_nothing(
    error: BaseException, part: str, is_new: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, what = (ovir.to_python, "Python file") if part == "npz" else (ovir.save_model, "model")
    target = tmp_path / ("m.py" if part == "npz" else "m.xml")
    if not is_new:
        write(model_of(1, 100), target)
    before = content(tmp_path)

    def fail(self: Any, *arguments: Any) -> Any:
        raise error

    original = NetWriter.write
    if part == "xml":
        monkeypatch.setattr(NetWriter, "write", lambda self, model: (original(self, model), fail(self)))
    else:
        monkeypatch.setattr(
            *((zipfile.ZipFile, "_write_end_record") if part == "npz" else (BlobWriter, "_write")), fail
        )
    with pytest.raises(ovir.WriteError if isinstance(error, OSError) else type(error)) as caught:
        write(model_of(2, 100), target)
    assert content(tmp_path) == before
    if isinstance(caught.value, ovir.WriteError):
        assert str(caught.value) == f"{target}: error[OVIR903] cannot save the {what}: No space left on device"


@pytest.mark.parametrize("failing", [0, 1])
@pytest.mark.parametrize("is_new", [True, False])
def test_a_failure_between_the_two_files_restores_the_first(
    failing: int, is_new: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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

    monkeypatch.setattr(os, "replace", interrupted)
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


def refuse_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: BlobWriter, data: object) -> None:
        raise AssertionError("the weights are written piece by piece")

    monkeypatch.setattr(BlobWriter, "_write", fail)


@pytest.mark.parametrize("by", ["the system", "Python"])
def test_a_bin_that_stays_the_same_is_copied_as_it_is(by: str, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_to_write(monkeypatch)
    if by == "Python":
        monkeypatch.delattr(os, "copy_file_range", raising=False)
    model = ovir.read_model(target)
    model.rename_layers({"y": "z"})
    new = target.with_name("new.xml")
    ovir.save_model(model, new)
    assert new.with_suffix(".bin").read_bytes() == target.with_suffix(".bin").read_bytes()
    assert WeightsMark.find(new.read_bytes()) == WeightsMark.find(target.read_bytes()) is not None


@pytest.mark.parametrize("how", ["written", "moved"])
def test_the_checksum_of_a_bin_that_was_changed_later_is_computed(
    how: str, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = np.float32([7, 8, 9]).tobytes()
    weights = target.with_suffix(".bin")
    time.sleep(0.05)  # longer than a tick of the clock that files get their times from
    if how == "written":
        weights.write_bytes(data)
    else:
        other = target.with_name("other.bin")
        other.write_bytes(data)
        os.utime(other, (1, 1))
        os.replace(other, weights)
    model = ovir.read_model(target)
    refuse_to_write(monkeypatch)
    ovir.save_model(model, target)
    assert weights.read_bytes() == data
    mark = WeightsMark.find(target.read_bytes())
    assert mark is not None
    assert mark.has_checksum(np.frombuffer(data, np.uint8))


def test_a_bin_that_has_been_replaced_is_not_copied(target: Path) -> None:
    model = ovir.read_model(target)
    state = os.stat(target.with_suffix(".bin"))
    ovir.save_model(model_of(2), target)
    os.utime(target.with_suffix(".bin"), ns=(state.st_mtime_ns, state.st_mtime_ns))
    ovir.save_model(model, target.with_name("new.xml"))
    assert value_in(target.with_name("new.xml")) == 1
    assert value_in(target) == 2


@pytest.mark.parametrize("changed", [None, 0, 1, 2])
@pytest.mark.parametrize("is_first_gone", [False, True])
def test_files_are_the_same_wherever_the_weights_come_from(
    changed: int | None, is_first_gone: bool, tmp_path: Path
) -> None:
    """The constants before a changed one lie where they did, those after it may not."""
    net = Net()
    for number, size in enumerate((3, 5000, 7)):
        net.result(net.op("Relu", net.const(np.full(size, number, np.float32), name=f"c{number}")))
    path = net.write(tmp_path, "old")
    for name, weights in (("mapped", None), ("given", path.with_suffix(".bin").read_bytes())):
        model = ovir.read_model(path, weights)
        if changed is not None:
            model.set_constant(f"c{changed}", np.full(2000 + changed, 9, np.float32))
        if is_first_gone:
            model = model.extract(outputs=[port.source for port in model.outputs[1:] if port.source])
        ovir.save_model(model, tmp_path / f"{name}.xml")
    for end in (".xml", ".bin"):
        assert (tmp_path / f"mapped{end}").read_bytes() == (tmp_path / f"given{end}").read_bytes()


WRITERS = ((ovir.save_model, "model", "xml"), (ovir.to_python, "Python file", "py"))
written = pytest.mark.parametrize(("write", "what", "end"), WRITERS, ids=["model", "Python"])


@written
def test_targets_that_cannot_be_written(write: Any, what: str, end: str, tmp_path: Path) -> None:
    (tmp_path / f"folder.{end}").mkdir()
    (tmp_path / "file").touch()
    for name, message in {
        f"nowhere/m.{end}": f"the folder {tmp_path}/nowhere does not exist",
        f"file/m.{end}": f"the folder {tmp_path}/file is not a folder",
        f"folder.{end}": "it is a folder",
    }.items():
        with pytest.raises(ovir.WriteError) as caught:
            write(model_of(1), tmp_path / name)
        assert f"{name}: error[OVIR903] cannot save the {what}: {message}" in str(caught.value)


@written
def test_paths_of_other_files(write: Any, what: str, end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("model", "model.bin", "model.onnx", "model.txt", end, f"model.{end}.gz"):
        with pytest.raises(ovir.InputError, match=rf"the path of a saved {what} must end in \.{end}, got '{name}'"):
            write(model_of(1), name)
    with pytest.raises(ovir.InputError, match=rf"the path of the saved {what} has a null character: 'a\\x00\.{end}'"):
        write(model_of(1), f"a\0.{end}")
    with pytest.raises(ovir.InputError, match="must be a string or a path, got int"):
        write(model_of(1), 3)
    assert content(tmp_path) == {}
    write(model_of(1, 100), f"m.{end}")
    assert sorted(content(tmp_path)) == [f"m.{'bin' if end == 'xml' else 'npz'}", f"m.{end}"]


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


def test_strings_are_written_as_they_were_read(tmp_path: Path) -> None:
    strings = bytes.fromhex("02000000 00000000 02000000 09000000") + "hiżółw".encode()
    assert save(with_constants((strings, "string", "2")), tmp_path) == strings


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


def test_large_arrays_that_are_equal_are_written_once(tmp_path: Path) -> None:
    arrays = [np.arange(5000, dtype=np.float32) + more for more in (0, 0, 1)]
    ovir.save_model(ovir.Model([ops.relu(array) for array in arrays], []), tmp_path / "a.xml")
    assert (tmp_path / "a.bin").read_bytes() == arrays[0].tobytes() + arrays[2].tobytes()


def test_the_memory_of_constants_is_released_after_some_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    released: list[tuple[int, int, int]] = []

    class Watched(RawSource):
        def release(self, start: int, stop: int) -> None:
            released.append((self.size, start, stop))

    monkeypatch.setattr(blobs, "_MOST_HELD", 25)
    with (tmp_path / "a.bin").open("wb") as file:
        writer = BlobWriter(file)
        for size, expected in ((10, 0), (15, 0), (1, 3), (25, 3), (2, 5)):
            writer.add(Watched(np.full(size, size, np.uint8)), ElementType.parse("u8"))
            assert len(released) == expected
    assert released == [(size, 0, size) for size in (10, 15, 1, 25, 2)]


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


# --------------------------------------------------------------------------- Python code


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
