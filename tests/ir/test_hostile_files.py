"""Broken files, files of other kinds, and models that are given as open files."""

import io
import os
import re
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.builder import Net, add_net

import ovir

XML = add_net().xml()
BLOB = bytes(add_net().blob)
X = np.float32([1, 1, 1])


def with_doctype(declarations: str, name: str) -> str:
    head = f'<?xml version="1.0"?>\n<!DOCTYPE net{declarations}>'
    return re.sub(r'<\?xml version="1.0"\?>', lambda _: head, XML).replace('name="data"', f'name="{name}"')


@pytest.mark.parametrize(
    "declarations",
    [
        ' [<!ENTITY y "&a;&a;"><!ENTITY a "lol">]',
        ' [<!ENTITY y "lol">]',
        ' [<!ENTITY y SYSTEM "file:///etc/passwd">]',
        ' [<!ENTITY % y "lol">]',
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_declared_entities_are_refused(declarations: str, encoding: str) -> None:
    text = with_doctype(declarations, "data").encode(encoding)
    with pytest.raises(ovir.ReadError, match="the DOCTYPE declares the entity 'y'"):
        ovir.read_model(text, BLOB)


@pytest.mark.parametrize("declarations", ["", ' SYSTEM "http://127.0.0.1:9/x.dtd"', " [<!ELEMENT net ANY>]"])
def test_a_bare_doctype_is_read(declarations: str) -> None:
    assert ovir.read_model(with_doctype(declarations, "data"), BLOB).inputs[0].any_name == "data"


@pytest.mark.parametrize("suffix", [".xml", ".bin"])
def test_pipes_and_devices_are_not_read(suffix: str, tmp_path: Path) -> None:
    path = add_net().write(tmp_path)
    path.with_suffix(suffix).unlink()
    os.mkfifo(path.with_suffix(suffix))
    for given in (path, "/dev/zero"):
        with pytest.raises(ovir.ReadError, match="a pipe or device, not a regular file"):
            ovir.read_model(given)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ('shape="0,9223372036854775807,9223372036854775807"', "is larger than any memory"),
        (f'shape="{",".join(["1"] * 65)}"', "a shape has at most 64 dimensions, got 65"),
        (f'shape="{2**63}"', "outside the range of signed 64-bit integers"),
        ('shape="3" element_type="dynamic"', "must have an element type"),
        ('shape="3" offset="99999999999999999999"', "'offset': 99999999999999999999 is outside"),
        ('shape="3" size="1_2"', "'size': '1_2' is not an integer"),
    ],
)
def test_constants(attributes: str, message: str) -> None:
    given = {"element_type": "f32", "offset": "0", "size": "12"} | dict(re.findall(r'(\w+)="([^"]*)"', attributes))
    data = " ".join(f'{key}="{value}"' for key, value in given.items())
    text = re.sub(r"<data [^>]*offset[^>]*>", f"<data {data}/>", XML)
    with pytest.raises(ovir.ModelError, match=message) as caught:
        ovir.read_model(text, BLOB)
    assert caught.value.diagnostic.code in ("OVIR302", "OVIR411", "OVIR502", "OVIR503")


def test_a_file_cut_short_and_one_with_junk_behind_the_model() -> None:
    for share in (0.3, 0.5, 0.9):
        with pytest.raises(ovir.ReadError, match="seems to be truncated"):
            ovir.read_model(XML[: int(len(XML) * share)])
    with pytest.raises(ovir.ReadError, match="nothing may follow the root element") as caught:
        ovir.read_model(XML + "junk")
    assert "truncated" not in str(caught.value)
    with pytest.raises(ovir.ReadError, match="the file is empty"):
        ovir.read_model(io.BytesIO())


class Tensor:
    """Weights as a tensor of OpenVINO holds them: without the buffer protocol."""

    def __init__(self, content: bytes) -> None:
        self.data = np.frombuffer(content, np.uint8)


class Arrayed:
    """Weights that NumPy takes for an array."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.frombuffer(self._content, ml_dtypes.bfloat16)


@pytest.mark.parametrize(
    "model", [XML, "\n " + XML.split("?>")[1], bytearray(XML.encode()), memoryview(XML.encode())], ids=type
)
@pytest.mark.parametrize(
    "weights",
    [BLOB, bytearray(BLOB), memoryview(BLOB), np.frombuffer(BLOB, ">f4"), Tensor(BLOB), Arrayed(BLOB)],
    ids=type,
)
def test_content_in_memory(model: Any, weights: Any) -> None:
    assert ovir.compile_model(ovir.read_model(model, weights))([X])[0].tolist() == [2, 3, 4]


@pytest.mark.parametrize("model", [None, 3, 1.5, ["a.xml"]])
def test_no_model(model: Any) -> None:
    for function in (ovir.read_model, ovir.check, ovir.compile_model):
        with pytest.raises(ovir.InputError, match="a model must be a path"):
            function(model)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (3, "got int"),
        ([1, 2], "got list"),
        (np.zeros(24, np.uint8)[::2], "contiguous in memory.*(?s:.*)ascontiguousarray"),
    ],
)
def test_no_weights(weights: Any, message: str) -> None:
    with pytest.raises(ovir.InputError, match=message):
        ovir.read_model(XML, weights)


def test_paths_as_bytes(tmp_path: Path) -> None:
    path = add_net().write(tmp_path)
    with pytest.raises(ovir.InputError, match="got the path"):
        ovir.read_model(os.fsencode(path))
    with pytest.raises(ovir.InputError, match="got the path"):
        ovir.read_model(path, os.fsencode(path.with_suffix(".bin")))


def test_check_takes_no_model() -> None:
    with pytest.raises(ovir.InputError, match="which was checked when it was read"):
        ovir.check(add_net().model())  # type: ignore[arg-type]


def test_layers_that_are_not_there() -> None:
    model = add_net().model()
    for key in ("sun", 999, None):
        with pytest.raises(KeyError) as caught:
            model.layer(key)  # type: ignore[arg-type]
        assert isinstance(caught.value, ovir.OvirError)
    with pytest.raises(ovir.InputError, match=r"(?s)no layer is named 'sun'.*did you mean 'sum'"):
        model.layer("sun")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """An .xml with its .bin: x + 5."""
    net = Net()
    net.result(net.op("Add", net.parameter("x", "2"), net.const(np.float32(5))))
    (tmp_path / "net.xml").write_text(net.xml(), encoding="utf-8")
    (tmp_path / "net.bin").write_bytes(net.blob)
    return tmp_path / "net.xml"


def require_plus_five(model: ovir.Model) -> None:
    np.testing.assert_array_equal(ovir.compile_model(model)([[1.0, 2.0]])[0], [6, 7])


@pytest.mark.parametrize("mode", ["rb", "r"])
def test_weights_of_an_open_file(path: Path, mode: str) -> None:
    """Given weights, which may be an open file as well, go before those beside the file; one without a name has none."""
    with open(path, mode) as file:
        model = ovir.read_model(file)
    assert model.path == str(path)
    require_plus_five(model)
    with path.open("rb") as file, path.with_suffix(".bin").open("rb") as weights:
        require_plus_five(ovir.read_model(file, weights))
    with path.open("rb") as file:
        model = ovir.read_model(file, io.BytesIO(np.float32(7).tobytes()))
    np.testing.assert_array_equal(ovir.compile_model(model)([[1.0, 2.0]])[0], [8, 9])
    with tempfile.TemporaryFile() as file:
        file.write(path.read_bytes())
        file.seek(0)
        with pytest.raises(ovir.OvirError, match="there is no file of weights"):
            ovir.read_model(file)


def test_a_file_that_has_been_read_is_at_its_end(path: Path) -> None:
    with path.open("rb") as file:
        ovir.read_model(file)
        with pytest.raises(ovir.ReadError, match="the open file is at its end") as caught:
            ovir.read_model(file)
        assert caught.value.diagnostic.hint == "call file.seek(0) first"
        assert caught.value.diagnostic.file == str(path)
        file.seek(0)
        require_plus_five(ovir.read_model(file))


def test_a_member_of_an_archive_does_not_take_the_weights_of_another_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = path.with_suffix(".zip")
    with zipfile.ZipFile(archive, "w") as file:
        file.write(path, str(path).lstrip("/"))
    monkeypatch.chdir("/")
    with zipfile.ZipFile(archive) as file, file.open(str(path).lstrip("/")) as member:
        assert os.path.exists(member.name)
        with pytest.raises(ovir.OvirError, match="there is no file of weights"):
            ovir.read_model(member)


@pytest.mark.parametrize(
    ("xml", "hint"),
    [
        (b"<net name='a' version='11'>" + b"<a>" * 5000 + b"</a>" * 5000 + b"</net>", "no model needs such depth"),
        (b"<net name='a' v\0ersion='11'></net>", "remove the character"),
    ],
)
def test_messages_of_the_parser_are_one_line_for_users(xml: bytes, hint: str) -> None:
    (found,) = ovir.check(xml)
    assert found.code == "OVIR102"
    assert "XML_PARSE_HUGE" not in found.message
    assert "\n" not in found.message
    assert found.hint is not None
    assert hint in found.hint
