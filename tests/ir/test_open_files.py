"""Models and weights that are given as open files."""

from __future__ import annotations

import io
import os
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from builder import Net

import ovir


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
def test_the_weights_beside_an_open_file_are_found(path: Path, mode: str) -> None:
    with open(path, mode) as file:
        model = ovir.read_model(file)
    assert model.path == str(path)
    require_plus_five(model)


def test_given_weights_go_before_those_beside_the_file(path: Path) -> None:
    with path.open("rb") as file:
        model = ovir.read_model(file, np.float32(7).tobytes())
    np.testing.assert_array_equal(ovir.compile_model(model)([[1.0, 2.0]])[0], [8, 9])


def test_weights_may_be_an_open_file(path: Path) -> None:
    with path.open("rb") as xml, path.with_suffix(".bin").open("rb") as weights:
        require_plus_five(ovir.read_model(xml, weights))
    require_plus_five(ovir.read_model(path, io.BytesIO(path.with_suffix(".bin").read_bytes())))


def test_a_file_that_has_been_read_is_at_its_end(path: Path) -> None:
    with path.open("rb") as file:
        ovir.read_model(file)
        with pytest.raises(ovir.ReadError, match="the open file is at its end") as caught:
            ovir.read_model(file)
        assert caught.value.diagnostic.hint == "call file.seek(0) first"
        assert caught.value.diagnostic.file == str(path)
        file.seek(0)
        require_plus_five(ovir.read_model(file))


def test_an_empty_file_is_empty(path: Path) -> None:
    with pytest.raises(ovir.ReadError, match="the file is empty"):
        ovir.read_model(io.BytesIO())


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


def test_a_file_without_a_name_has_no_weights_beside_it(path: Path) -> None:
    with tempfile.TemporaryFile() as file:
        file.write(path.read_bytes())
        file.seek(0)
        with pytest.raises(ovir.OvirError, match="there is no file of weights"):
            ovir.read_model(file)
