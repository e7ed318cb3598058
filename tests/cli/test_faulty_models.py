"""`ovir infer` and `ovir show` of models that are at fault, or that have no weights."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net

import ovir

BAD = Path(__file__).parent.parent / "data" / "bad"


def reshaping_net() -> Net:
    """Reshape by a constant pattern, then MatMul with weights: without data the pattern is not known."""
    net = Net()
    x = net.parameter("x", "2,6")
    split = net.op("Reshape", x, net.const([4, 3], "i64"), name="split", special_zero="false")
    net.result(net.op("MatMul", split, net.const(np.eye(3, 5, dtype=np.float32)), name="product"))
    return net


def write_declared(net: Net, folder: Path, *, weights: bool = True) -> Path:
    """Write a model whose ports declare their types and shapes, with or without its weights."""
    path = folder / "model.xml"
    path.write_text(net.declared_xml())
    if weights:
        (folder / "model.bin").write_bytes(net.blob)
    return path


def rows(out: str) -> dict[str, str]:
    """Return the lines of a table by the name of the layer."""
    return {parts[1]: line for line in out.splitlines()[1:] if len(parts := line.split()) > 2}


@pytest.mark.parametrize("command", ["infer", "show"])
def test_no_weights_are_needed(cli: Any, tmp_path: Path, command: str) -> None:
    path = write_declared(reshaping_net(), tmp_path, weights=False)
    asked = cli(command, path, "--no-weights")
    assert (asked.status, asked.err) == (0, "")
    missing = cli(command, path)
    assert (missing.status, missing.out) == (0, asked.out)
    assert "info[OVIR501]" in missing.err
    assert "types that depend on their values are those that the file declares" in missing.err


def test_what_depends_on_missing_weights_is_marked_as_declared(cli: Any, tmp_path: Path) -> None:
    path = write_declared(reshaping_net(), tmp_path, weights=False)
    table = rows(cli("infer", path, "--no-weights").out)
    assert "f32[4,3] (only declared)" in table["split"]
    assert "f32[4,5]" in table["product"]
    assert "(only declared)" not in table["product"]  # it follows from the shapes of its inputs
    layers = {layer["name"]: layer for layer in json.loads(cli("infer", path, "--no-weights", "--json").out)["layers"]}
    assert (layers["split"]["inferred"], layers["product"]["inferred"]) == (False, True)


def faulty(folder: Path) -> Path:
    """A MatMul whose inputs do not fit each other, between layers that are sound."""
    net = reshaping_net()
    text = net.declared_xml().replace('shape="3,5"', 'shape="5,3"')
    path = folder / "model.xml"
    path.write_text(text)
    (folder / "model.bin").write_bytes(net.blob)
    return path


def test_infer_shows_the_layers_up_to_a_fault_and_behind_it(cli: Any, tmp_path: Path) -> None:
    result = cli("infer", faulty(tmp_path))
    assert result.status == 1
    assert "error[OVIR" in result.err
    table = rows(result.out)
    assert set(table) >= {"x", "split", "product", "result5"}
    assert table["split"].rstrip().endswith("f32[4,3]")
    assert "f32[4,5]" in table["product"]


def test_a_failing_layer_has_its_declared_type(cli: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    net = Net()
    x = net.parameter("x", "2,3,4")
    moved = net.op("Transpose", x, net.const([0, 2, 1], "i64"), name="moved")
    net.result(net.op("ReLU", moved, name="after"))
    path.write_text(net.declared_xml())
    (tmp_path / "model.bin").write_bytes(np.array([0, 2, 7], np.int64).tobytes())
    result = cli("infer", path)
    assert result.status == 1
    assert "error[OVIR" in result.err
    assert "'moved'" in result.err
    table = rows(result.out)
    assert "f32[2,4,3] (only declared)" in table["moved"]
    assert table["after"].rstrip().endswith("f32[2,4,3]")
    document = json.loads(cli("infer", path, "--json").out)
    assert [d["severity"] for d in document["diagnostics"]] == ["error"]
    shown = cli("show", path)
    assert shown.status == 1
    assert "ReLU" in shown.out


def test_a_shape_that_does_not_fit_shows_where(cli: Any, tmp_path: Path) -> None:
    result = cli("infer", write_declared(reshaping_net(), tmp_path), "--shape", "2,7")
    assert result.status == 1
    assert "'split'" in result.err
    assert "f32[2,7]" in rows(result.out)["x"]
    assert cli("infer", tmp_path / "model.xml", "--shape", "y=2,7").status == 2


def test_other_shapes_for_a_model_without_weights(cli: Any, tmp_path: Path) -> None:
    path = write_declared(reshaping_net(), tmp_path, weights=False)
    result = cli("infer", path, "--no-weights", "--shape", "4,6")
    assert result.status == 0
    assert "f32[?,?]" in rows(result.out)["split"]  # not [4,3], which the file declares for another input


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(BAD.glob("*.xml")), ids=lambda path: path.stem)
def test_each_bad_file_is_shown_or_refused(cli: Any, path: Path) -> None:
    try:
        ovir.read_model(path)
    except ovir.ReadError:
        wanted = 2
    except ovir.OvirError as error:
        wanted = 1 if any(d.code != "OVIR501" for d in error.diagnostics) else 0
    else:
        wanted = 0
    for command in ("infer", "show"):
        result = cli(command, path)
        assert result.status == wanted
        assert bool(result.out) == (wanted != 2)
        assert "OVIR999" not in result.err
