"""Weights: reading a .bin, and the size and checksum by which a saved .xml names it."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from support.builder import Net
from support.saved import model_of, value_in

import ovir
from ovir.core.element_types import ElementType
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.errors import ReadError
from ovir.ir.weights import FileVersion, WeightBytes, WeightsMark
from ovir.ir.writing.blobs import RawSource, are_equal


def test_aligned_data_is_a_view_and_misaligned_a_copy() -> None:
    weights = WeightBytes.of(bytes(range(64)))
    f32 = ElementType.parse("f32")
    base = weights.data.ctypes.data
    assert weights.constant(f32, (4,), 8 - base % 4, 16).array().flags.owndata is False
    assert np.shares_memory(weights.constant(f32, (4,), 8, 16).array(), weights.data) == ((base + 8) % 4 == 0)
    odd = weights.constant(f32, (4,), 9 if base % 4 == 0 else 8, 16).array()
    assert not np.shares_memory(odd, weights.data)


@pytest.mark.parametrize("kind", ["u1", "u2", "u3", "i4", "u6", "nf4", "u8", "f16", "i64"])
def test_parts_of_a_constant_are_those_of_its_array(kind: str) -> None:
    element_type, shape = ElementType.parse(kind), (5, 2, 8)
    data = np.random.default_rng(0).integers(0, 60, 2 + 10 * element_type.bits, np.uint8).tobytes()
    constant = WeightBytes.of(data).constant(element_type, shape, 2, 10 * element_type.bits)
    whole = constant.array()
    for which in (slice(1, 4), slice(3, 3), np.array([4, 0, 4])):
        np.testing.assert_array_equal(constant.slices(which), whole[which])
    np.testing.assert_array_equal(constant.elements(16, 61), whole.reshape(-1)[16:61])


def test_git_lfs_pointer(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
    with pytest.raises(ReadError, match="git-LFS pointer"):
        WeightBytes.open(path)


def errors_of(path: Path) -> list[Diagnostic]:
    return [found for found in ovir.check(path) if found.severity == "error"]


@pytest.fixture
def target(tmp_path: Path) -> Path:
    ovir.save_model(model_of(1), tmp_path / "m.xml")
    return tmp_path / "m.xml"


def other_weights(target: Path, size: int) -> bytes:
    """Put the .bin of another model beside a .xml; return it."""
    other = target.parent / "other" / "m.xml"
    other.parent.mkdir()
    ovir.save_model(model_of(2, size), other)
    data = other.with_suffix(".bin").read_bytes()
    target.with_suffix(".bin").write_bytes(data)
    return data


@pytest.mark.parametrize("size", [2, 4])
def test_weights_of_another_size_are_refused(target: Path, size: int) -> None:
    data = other_weights(target, size)
    message = f"m.bin has {4 * size} bytes, but the .xml was saved with 12 bytes of weights"
    xml = target.read_bytes()
    for model, weights in (
        *((target, given) for given in (None, data, BytesIO(data), target.with_suffix(".bin"))),
        *((given, data) for given in (xml, xml.decode(), BytesIO(xml))),
    ):
        with pytest.raises(ovir.ReadError, match=message.replace("m.bin", "")) as caught:
            ovir.read_model(model, weights)  # type: ignore[arg-type]
        assert len(caught.value.diagnostics) == 1
    (found,) = ovir.check(target)
    assert (found.code, found.severity, found.line) == ("OVIR517", "error", 2)
    assert found.message.endswith(message)
    assert ovir.check(target, need_weights=False) == []


def test_other_weights_of_the_same_size_and_missing_ones_are_found_by_a_check(target: Path) -> None:
    other_weights(target, 3)
    assert value_in(target) == 2
    (found,) = ovir.check(target)
    assert (found.code, found.severity) == ("OVIR517", "error")
    assert found.message == "m.bin has the size, but not the checksum of the weights that the .xml was saved with"
    assert ovir.check(target, skip=["OVIR517"]) == []
    ovir.save_model(target, target)
    assert ovir.check(target) == []
    target.with_suffix(".bin").unlink()
    assert [found.code for found in errors_of(target)] == ["OVIR501"]


def test_what_follows_from_other_weights_is_left_out(tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("x", "2,3")
    net.result(net.op("Reshape", x, net.const(np.int64([3, 2])), name="y", special_zero=False))
    ovir.save_model(net.model(), tmp_path / "m.xml")
    (tmp_path / "m.bin").write_bytes(np.int64([5, 5]).tobytes())
    (found,) = ovir.check(tmp_path / "m.xml")
    assert found.code == "OVIR517"
    assert "1 diagnostic that may follow from this" in found.message
    (tmp_path / "m.bin").write_bytes(b"")
    assert [found.code for found in ovir.check(tmp_path / "m.xml")] == ["OVIR517"]


# --------------------------------------------------------------------------- the mark is not a part of the model


def test_the_mark_is_not_read_as_runtime_information(tmp_path: Path) -> None:
    for entries in ("", '<framework value="onnx" />', "text<a>b</a>tail", '<a b="c">d<e />f</a>'):
        model = model_of(1)
        ovir.save_model(model, tmp_path / "m.xml")
        text = (tmp_path / "m.xml").read_text()
        before, _, after = text.partition("<rt_info>")
        given = f"{before}<rt_info>{entries}</rt_info>{after.partition('</rt_info>')[2]}"
        read = ovir.read_model(given.encode(), (tmp_path / "m.bin").read_bytes())
        assert WeightsMark.find(given.encode()) is None
        saved = []
        for _ in range(3):
            ovir.save_model(read, tmp_path / "m.xml")
            saved.append((tmp_path / "m.xml").read_bytes())
            again = ovir.read_model(tmp_path / "m.xml")
            assert again.rt_info.to_dict() == read.rt_info.to_dict()
            if any(item.text or item.tail for item in read.rt_info.elements):
                assert again.rt_info == read.rt_info
            assert not ovir.diff(read, again)
            read = again
        assert saved[0] == saved[1] == saved[2]
        assert saved[0].count(b"ovir-weights") == 1


def test_the_mark_follows_the_weights(target: Path) -> None:
    model = ovir.read_model(target)
    model.set_constant("c", np.float32([7, 8, 9]))
    model.strip_rt_info()
    ovir.save_model(model, target)
    assert ovir.check(target) == []
    mark = WeightsMark.find(target.read_bytes())
    assert mark is not None
    assert mark.has_checksum(np.fromfile(target.with_suffix(".bin"), np.uint8))


def test_a_model_without_weights_has_no_mark(tmp_path: Path) -> None:
    net = Net()
    net.result(net.op("Relu", net.parameter("x", "3")))
    ovir.save_model(net.model(), tmp_path / "m.xml")
    assert b"<rt_info />" in (tmp_path / "m.xml").read_bytes()
    (tmp_path / "m.bin").write_bytes(b"what another file needs")
    assert errors_of(tmp_path / "m.xml") == []


# --------------------------------------------------------------------------- a process is killed

_SAVE = """
import os, signal, sys
import numpy as np, ovir
count = 0
def killing(function):
    def call(*arguments):
        global count
        if count == moment:
            os.kill(os.getpid(), signal.SIGKILL)
        count += 1
        return function(*arguments)
    return call
for moment, target in enumerate(sys.argv[1:]):
    if (process := os.fork()) == 0:
        model = ovir.read_model(target)
        model.set_constant("c", np.full(3, 2, np.float32))
        os.replace, os.rename, os.remove = map(killing, (os.replace, os.rename, os.remove))
        ovir.save_model(model, target)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    print(status, flush=True)
    if status == 0:
        break
"""
"""Saves other weights to each file in a fork, which the first is killed before its first step, and so on."""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kills a process")
def test_a_killed_save_leaves_one_of_the_two_models_or_an_error(tmp_path: Path) -> None:
    targets = [tmp_path / str(moment) / "m.xml" for moment in range(20)]
    for target in targets:
        target.parent.mkdir()
        ovir.save_model(model_of(1), target)
    saving = subprocess.run([sys.executable, "-c", _SAVE, *targets], capture_output=True, text=True, check=True)
    outcomes = []
    for target, status in zip(targets, map(int, saving.stdout.split()), strict=False):
        if target.exists():
            outcomes.append(str(value_in(target)))
        else:
            outcomes.append("error")
            with pytest.raises(ovir.ReadError, match="saving the model was interrupted while its files were") as caught:
                ovir.read_model(target)
            hint = caught.value.diagnostic.hint or ""
            assert errors_of(target)[0].hint == hint
            words = hint.partition("or move ")[2].partition(": this")[0].replace(" and ", " to ").split(" to ")
            for old, new in zip(words[::2], words[1::2], strict=True):
                os.rename(old, new)
            assert value_in(target) == 1
            assert ovir.check(target) == []
        assert status in (0, -signal.SIGKILL)
    assert outcomes[0] == "1.0"
    assert outcomes[-1] == "2.0"
    assert set(outcomes) == {"1.0", "error", "2.0"}
    assert outcomes == sorted(outcomes, key=["1.0", "error", "2.0"].index)


def test_parts_of_strings() -> None:
    words = ["a", "bc", "", "def"]
    text = "".join(words).encode()
    ends = np.cumsum([0, *map(len, words)]).astype("<i4")
    data = np.int32([len(words)]).tobytes() + ends.tobytes() + text
    constant = WeightBytes.of(data).constant(ElementType.parse("string"), (2, 2), 0, len(data))
    assert list(constant.elements(1, 3)) == words[1:3]
    assert list(constant.elements(0, 4)) == words


# --------------------------------------------------------------------------- files that change


@pytest.fixture
def opened(tmp_path: Path) -> FileVersion:
    (tmp_path / "a.bin").write_bytes(bytes(range(100)))
    file = WeightBytes.open(tmp_path / "a.bin").file
    assert file is not None
    return file


def later(file: FileVersion) -> None:
    os.utime(file.path, ns=(0, file.modified + 10))


CHANGES: dict[str, tuple[Callable[[FileVersion], object], str | None]] = {
    "nothing": (lambda file: None, None),
    "written again": (later, "its 100 bytes were written again"),
    "shorter": (lambda file: os.truncate(file.path, 40), "it had 100 bytes, and now has 40"),
    "longer, at the same time": (
        lambda file: (os.truncate(file.path, 1234), os.utime(file.path, ns=(0, file.modified))),
        "it had 100 bytes, and now has 1,234",
    ),
    "removed": (lambda file: os.remove(file.path), None),
    "replaced": (
        lambda file: (Path(f"{file.path}.new").write_bytes(b"x" * 100), os.replace(f"{file.path}.new", file.path)),
        None,
    ),
}
"""What happens to an opened file, and how it was overwritten."""


@pytest.mark.parametrize("name", CHANGES)
def test_a_file_that_changes_is_not_copied(name: str, opened: FileVersion, tmp_path: Path) -> None:
    change, message = CHANGES[name]
    change(opened)
    assert opened.overwritten() == message
    with (tmp_path / "copy").open("wb") as target:
        assert opened.copy_to(target) == (name == "nothing")
    assert (tmp_path / "copy").read_bytes() == (bytes(range(100)) if name == "nothing" else b"")


def test_the_same_file_on_another_machine(opened: FileVersion) -> None:
    assert opened.is_same(opened._replace(inode=0, crc32=7))
    for other in (None, *(opened._replace(**{key: "other"}) for key in ("path", "size", "modified"))):
        assert not opened.is_same(other)


def test_large_stretches_of_bytes_are_compared_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CHUNK", "_SMALL"):
        monkeypatch.setattr(f"ovir.ir.writing.blobs.{name}", 8)
    data = np.arange(20, dtype=np.uint8)
    for place in range(20):
        other = data.copy()
        assert are_equal(RawSource(data), RawSource(other))
        other[place] += 1
        assert not are_equal(RawSource(data), RawSource(other))
