"""What is given in place of an .xml is named, with what to do; folders and buffers are read."""

import io
import zipfile
from pathlib import Path

import pytest
from support.builder import gather_net

import ovir
from ovir.io.tensor_files import load_npz


def _archive() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        file.writestr("archive/data.pkl", b"\x80\x02}")
    return content.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "kind", "hint"),
    [
        ("a.onnx", b"\x08\x08\x12\x07pytorch", "ONNX", "`ovc {}`"),
        ("a", b"\x08\x03\x12\x07pytorch", "ONNX", "`ovc {}`"),
        ("a.onnx", b"junk", "ONNX", "`ovc {}`"),
        ("saved_model.PB", b"\x08\x01\x12\x05", "TensorFlow", "`ovc {}`"),
        ("a.tflite", b"\x1c\0\0\0TFL3", "TensorFlow Lite", "`ovc {}`"),
        ("a.xml", b"\x1c\0\n\0TFL3", "TensorFlow Lite", "`ovc {}`"),
        ("a.pdmodel", b"\n\x05", "PaddlePaddle", "`ovc {}`"),
        ("a.pt", b"\x80\x02", "PyTorch", "openvino.convert_model"),
        ("a.bin", _archive(), "PyTorch", "openvino.convert_model"),
        ("a.h5", b"\x89HDF\r\n\x1a\n", "Keras", "openvino.convert_model"),
        ("a.safetensors", b"\x02\0\0\0\0\0\0\0{}", "safetensors", "optimum-cli"),
        ("a.dat", b'\x60\n\0\0\0\0\0\0{"x":', "safetensors", "optimum-cli"),
        ("a.gguf", b"GGUF\x03", "GGUF", "LLMPipeline"),
        ("a.xml", b"GGUF\x03", "GGUF", "LLMPipeline"),
    ],
)
def test_models_of_other_formats_are_named(name: str, content: bytes, kind: str, hint: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ovir.ReadError) as caught:
        ovir.read_model(path)
    assert caught.value.diagnostic.code == "OVIR102"
    assert caught.value.diagnostic.message == f"this is a model of the format {kind}, not the .xml of an IR"
    assert hint.format(path) in str(caught.value.diagnostic.hint)


@pytest.mark.parametrize("content", [b"\x08\x01\x12\x05", b"PK\x03\x04" + bytes(40), b"xGGUF", b"TFL3", b""])
def test_other_bytes_are_not_called_a_format(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_bytes(b"other" + content)
    with pytest.raises(ovir.ReadError, match="this is not XML"):
        ovir.read_model(path)


def test_xml_and_bin_that_are_exchanged_or_mistaken_are_told_apart(tmp_path: Path) -> None:
    path = gather_net().write(tmp_path)
    weights = path.with_suffix(".bin")
    with pytest.raises(ovir.ReadError, match=r"this is the \.bin of a model") as caught:
        ovir.read_model(weights)
    assert str(path) in str(caught.value.diagnostic.hint)
    path.rename(tmp_path / "x")
    with pytest.raises(ovir.ReadError, match="this is not XML"):  # there is no .xml beside it
        ovir.read_model(weights)
    weights.rename(path)
    (tmp_path / "x").rename(weights)
    with pytest.raises(ovir.ReadError, match=r"are exchanged: the topology is in .*\.bin"):
        ovir.read_model(path)


def test_folder_stands_for_its_only_xml(tmp_path: Path) -> None:
    with pytest.raises(ovir.ReadError, match=r"the folder holds no \.xml file"):
        ovir.read_model(tmp_path)
    path = gather_net().write(tmp_path)
    assert ovir.read_model(tmp_path).path == str(path)
    for name in ("a.xml", "openvino_model.XML", "openvino_model.xml"):
        (tmp_path / name).write_bytes(path.read_bytes())
    expected = rf"4 models: openvino_model\.xml, a\.xml, {path.name}, openvino_model\.XML"
    with pytest.raises(ovir.ReadError, match=expected) as caught:
        ovir.read_model(tmp_path)
    assert caught.value.diagnostic.hint == "give one of them"


def test_missing_file_is_compared_with_those_beside_it(tmp_path: Path) -> None:
    path = gather_net().write(tmp_path)
    (tmp_path / "data.npz").write_bytes(b"")
    for name, meant in (("modle.xml", path), (f"{path.stem}.xlm", path), ("other", None)):
        with pytest.raises(ovir.ReadError) as caught:
            ovir.read_model(tmp_path / name)
        assert caught.value.diagnostic.hint == (meant and f"did you mean {meant}?")
    with pytest.raises(ovir.ReadError, match="cannot read the weights") as caught:
        ovir.read_model(path, tmp_path / f"{path.stem}.bim")
    assert caught.value.diagnostic.hint == f"did you mean {path.with_suffix('.bin')}?"
    with pytest.raises(ovir.ReadError) as caught:
        load_npz(tmp_path / "dat.npz")
    assert caught.value.diagnostic.hint == f"did you mean {tmp_path / 'data.npz'}?"
    with pytest.raises(ovir.ReadError) as caught:  # the folder is missing as well
        ovir.read_model(tmp_path / "nowhere" / path.name)
    assert caught.value.diagnostic.hint is None
