"""Fixes: each code that is declared as fixable changes its file, nothing else in the text, and no result."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir import opset13 as ops
from ovir.checks.rules import CODES
from ovir.ir.xml_text import XmlText

BAD = Path(__file__).parent.parent / "data" / "bad"


def copied(name: str, folder: Path) -> Path:
    for path in BAD.glob(f"{name}.*"):
        shutil.copy(path, folder)
    return folder / f"{name}.xml"


FILES = {
    "OVIR110_layer_without_name": 'name="ReLU_1"',
    "OVIR115_no_precision": 'precision="FP32"',
    "OVIR212_dead_layer": None,
    "OVIR307_ignored_pads": 'pads_begin="0,0"',
    "OVIR308_mode_left_out": 'mode="blocks_first"',
    "OVIR402_stated_shape": "<dim>5</dim>",
    "OVIR402_in_body": "<dim>2</dim>",
    "OVIR403_stated_type": 'precision="BOOL"',
    "OVIR404_own_shape": "<dim>2</dim>",
    "OVIR405_own_type": 'precision="FP32"',
    "OVIR406_input_shape": "<dim>2</dim>",
    "OVIR407_input_type": 'precision="FP32"',
    "OVIR413_written_twice": "<dim>-1</dim>",
    "OVIR504_too_many_bytes": 'size="12"',
}
"""Files with one fault, each with a text that its only new line has; None if lines only disappear."""
BUILT = {"OVIR118", "OVIR507", "OVIR702", "OVIR705", "OVIR706"}


def test_every_fixable_code_has_a_case() -> None:
    assert {code.id for code in CODES.values() if code.fixable} == {name[:7] for name in FILES} | BUILT


@pytest.mark.parametrize("name", FILES)
def test_a_fix_removes_the_diagnostic_and_leaves_the_rest_of_the_text(name: str, tmp_path: Path) -> None:
    path = copied(name, tmp_path)
    (before,) = ovir.check(path)
    assert before.fix is not None
    result = ovir.fix(path)
    assert [found.code for found in result.fixed] == [before.code]
    assert not result.left
    assert path.read_bytes() == result.before
    changed = [line for line in result.diff().splitlines()[2:] if line[0] in "+-"]
    added = [line for line in changed if line[0] == "+"]
    assert all(FILES[name] in line for line in added[:1]) if FILES[name] else not added
    assert len(added) <= 2
    result.save()
    assert path.read_bytes() == result.after
    assert not ovir.check(path)


def test_other_text_stays_as_it_is(tmp_path: Path) -> None:
    """Comments, order and quotes of attributes, CDATA, line ends, and a sign in a value that looks like a tag."""
    path = copied("OVIR402_stated_shape", tmp_path)
    text = path.read_bytes().replace(b'name="product"', b"name='a > b'").replace(b"\n", b"\r\n")
    text = text.replace(b"<layers>", b"<layers><!-- <dim>4</dim> <port id='2'> --><?note <x> ?>")
    path.write_bytes(text)
    result = ovir.fix(path, output=path)
    assert path.read_bytes() == text.replace(b"<dim>4</dim>\r\n        </port>", b"<dim>5</dim>\r\n        </port>")
    assert result.verdict.startswith("proven")


def saved(model: ovir.Model, folder: Path) -> Path:
    ovir.save_model(model, folder / "model.xml")
    return folder / "model.xml"


def changed(model: ovir.Model, folder: Path, edit: Callable[[str], str]) -> Path:
    path = saved(model, folder)
    path.write_text(edit(path.read_text()))
    return path


def test_only_the_first_of_many_that_are_summed_up_gets_its_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed: list[object] = []
    remove = XmlText.removed
    monkeypatch.setattr(XmlText, "removed", lambda self, item: removed.append(item) or remove(self, item))
    x = y = ops.parameter([2, 3], "f32", name="x")
    for _ in range(5):
        y = ops.relu(ops.convert(y, "f32"))
    ovir.save_model(ovir.Model([y], [x]), tmp_path / "model.xml")
    (found,) = ovir.check(tmp_path / "model.xml")
    assert found.fix is not None
    assert "4 more of this kind" in found.message
    assert len(removed) == 2  # one layer, and the edge to it
    assert len(ovir.fix(tmp_path / "model.xml").fixed) == 5


def test_ports_that_follow_are_mended_at_once(tmp_path: Path) -> None:
    x = ops.parameter([2, 3], "f32", name="x")
    tensor: ovir.Layer = x
    for _ in range(20):
        tensor = ops.relu(tensor)
    path = changed(ovir.Model([tensor], [x]), tmp_path, lambda text: text.replace('shape="2,3"', 'shape="2,5"'))
    result = ovir.fix(path, output=path)
    assert [d.fix and d.fix.what for d in result.fixed] == ["port 0 declares f32[2,5], and 41 more"]
    assert not ovir.check(path)
    assert path.read_text().count("<dim>5</dim>") == 42


def test_layers_without_effect_leave_the_names_of_tensors(tmp_path: Path) -> None:
    x = ops.parameter([2, 3], "f32", name="x")
    y = ops.relu(x, name="y")
    for number in range(5):
        y = ops.reshape(y, [2, 3], False, name=f"same{number}")
    back = ops.transpose(ops.transpose(y, [1, 0]), [1, 0], name="back")
    out = ops.convert(ops.exp(back), "f32", name="out")
    out.output().names = {"result"}
    path = saved(ovir.Model([out], [x]), tmp_path)
    before = ovir.read_model(path)
    result = ovir.fix(path, output=path)
    after = ovir.read_model(path)
    assert {found.code for found in result.fixed} == {"OVIR702", "OVIR706"}
    assert [layer.type for layer in after.layers] == ["Parameter", "ReLU", "Exp", "Result"]
    assert [port.any_name for port in after.outputs] == [port.any_name for port in before.outputs]
    assert result.verdict.startswith("proven")
    assert not result.left


DEAD: dict[str, tuple[Callable[[Net, tuple[int, int]], object], int, list[str]]] = {
    "one that reads a living layer": (lambda net, x: (net.result(y := net.op("Exp", x)), net.op("ReLU", y)), 0, ["Parameter", "Abs", "Result", "Exp", "Result"]),
    "two in a row": (lambda net, x: net.op("ReLU", net.op("Exp", x)), 1, ["Parameter", "Abs", "Result"]),
    "two that are joined twice": (lambda net, x: net.op("Add", y := net.op("Exp", x), y), 1, ["Parameter", "Abs", "Result"]),
    "one with a constant": (lambda net, x: net.op("Add", x, net.const(np.float32(1))), 1, ["Parameter", "Abs", "Result"]),
    "three in a row": (lambda net, x: net.op("Sin", net.op("ReLU", net.op("Exp", x))), 2, ["Parameter", "Abs", "Result"]),
    "one that reads a variable": (lambda net, x: net.op("Sin", net.op("ReadValue", x, opset=6, variable_id="v", variable_shape="2,3", variable_type="f32")), 0, ["Parameter", "Abs", "Result"]),
}  # fmt: skip
"""Layers beside the result of a model, how many others only the last one reads, and what is left."""


@pytest.mark.parametrize("name", DEAD)
def test_dead_layers_are_left_out_with_what_only_they_read(name: str, tmp_path: Path) -> None:
    make, others, left = DEAD[name]
    net = Net()
    x = net.parameter("x", "2,3")
    net.result(net.op("Abs", x))
    make(net, x)
    path = net.write(tmp_path)
    (fix,) = [d.fix for d in ovir.check(path) if d.code == "OVIR212"]
    assert fix is not None
    assert fix.what == "leaves out the layer" + (f" and {others} that only it reads" if others else "")
    ovir.fix(path, output=path)
    assert [layer.type for layer in ovir.read_model(path).layers] == left


def test_an_input_that_would_be_an_output_stays(tmp_path: Path) -> None:
    x = ops.parameter([2, 3], "f32", name="x")
    path = saved(ovir.Model([ops.convert(x, "f32")], [x]), tmp_path)
    (found,) = ovir.check(path)
    assert found.code == "OVIR702"
    assert found.fix is None
    assert not ovir.fix(path).fixed


def test_equal_constants_read_the_same_bytes(tmp_path: Path) -> None:
    net = Net()
    tensor = net.parameter("x", "16384")
    for _ in range(2):
        tensor = net.op("Add", tensor, net.const(np.arange(16384, dtype=np.float32)))
    net.result(tensor)
    path = net.write(tmp_path)
    result = ovir.fix(path, output=tmp_path / "out.xml")
    assert [found.code for found in result.fixed] == ["OVIR705"]
    assert (tmp_path / "out.bin").read_bytes() == net.blob
    assert (tmp_path / "out.xml").read_text() == path.read_text().replace('offset="65536"', 'offset="0"')
    assert result.verdict.startswith("proven")


def test_what_may_change_results_is_only_fixed_if_that_is_wanted(tmp_path: Path) -> None:
    path = copied("OVIR507_overlap", tmp_path)
    path.with_suffix(".bin").write_bytes(np.arange(8, dtype=np.float32).tobytes())
    assert not ovir.fix(path).fixed
    result = ovir.fix(path, unsafe=True)
    assert [found.code for found in result.fixed] == ["OVIR507"]
    assert b'offset="16"' in result.after
    assert result.verdict.startswith("not proven")


def test_a_second_attribute_of_rt_info_is_only_left_out_if_it_is_equal(tmp_path: Path) -> None:
    path = copied("OVIR118_rt_info_twice", tmp_path)
    assert not ovir.fix(path).fixed
    path.write_text(path.read_text().replace('value="1,0"', 'value="0,1"'))
    assert [found.code for found in ovir.fix(path).fixed] == ["OVIR118"]


def test_a_fix_that_changes_results_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(ops.negative(np.float32([1])).operator), "why_unchanged", lambda *_: "wrong")
    x = ops.parameter([2, 3], "f32", name="x")
    path = saved(ovir.Model([ops.exp(ops.negative(x))], [x]), tmp_path)
    before = path.read_bytes()
    with pytest.raises(ovir.ModelError, match="OVIR812"):
        ovir.fix(path, output=path)
    assert path.read_bytes() == before


def test_a_file_in_an_encoding_that_hides_the_tags_has_no_fix(tmp_path: Path) -> None:
    path = copied("OVIR402_stated_shape", tmp_path)
    path.write_bytes(path.read_text().replace('"1.0"?', '"1.0" encoding="UTF-16"?').encode("utf-16"))
    (found,) = ovir.check(path)
    assert found.fix is None


def test_a_missing_file_is_an_error_with_a_message(tmp_path: Path) -> None:
    with pytest.raises(ovir.ReadError, match="cannot read the file"):
        ovir.fix(tmp_path / "no.xml")


def test_folder_stands_for_its_xml_and_weights_may_be_bytes(tmp_path: Path) -> None:
    net = Net()
    net.result(net.op("Add", net.parameter("x", "2"), net.op("Identity", net.const(np.float32([1, 2])), opset=16)))
    path = net.write(tmp_path / "one" if (tmp_path / "one").mkdir() is None else tmp_path)
    weights = path.with_suffix(".bin").read_bytes()
    out = tmp_path / "out.xml"
    assert [found.code for found in ovir.fix(path.parent, output=out).fixed] == ["OVIR702"]
    assert out.with_suffix(".bin").read_bytes() == weights
    path.with_suffix(".bin").unlink()
    out.with_suffix(".bin").unlink()
    assert len(ovir.fix(path, weights=weights, output=out).fixed) == 1
    assert out.with_suffix(".bin").read_bytes() == weights


def test_layers_without_names_on_one_line_get_one_each(tmp_path: Path) -> None:
    net = Net()
    end = net.op("ReLU", net.op("Exp", net.parameter("x", "2"), name="first"), name="second")
    net.result(end)
    path = net.write(tmp_path)
    text = path.read_text(encoding="utf-8")
    for name in ("first", "second"):
        text = text.replace(f' name="{name}"', "", 1)
    path.write_text(text.replace("\n", " "), encoding="utf-8")
    assert [found.code for found in ovir.fix(path).fixed].count("OVIR110") == 2


def test_fixes_of_a_file_that_could_not_be_read_are_proven_as_far_as_possible(tmp_path: Path) -> None:
    path = copied("OVIR402_stated_shape", tmp_path)
    path.write_text(re.sub(r'(<layer id="1") name="\w+"', r"\1", path.read_text()))
    result = ovir.fix(path)
    assert {found.code for found in result.fixed} == {"OVIR110", "OVIR402"}
    proven, _, rest = result.verdict.partition("; ")
    assert proven.startswith("proven: the results agree")
    assert rest.startswith("the fixes of OVIR110 are not proven: the model could not be read before: ")
    only = ovir.fix(path, wanted=lambda found: found.code == "OVIR110")
    assert only.verdict.startswith("not proven: the model could not be read before: ")


def test_no_value_is_written_where_an_unknown_attribute_may_be_meant(tmp_path: Path) -> None:
    """The specification first called fill_mode empty_segment_value; OpenVINO ignores that name."""
    net = Net()
    segments = net.const(np.array([0, 2]))
    net.result(net.op("SegmentMax", net.parameter("x", "2"), segments, opset=16, empty_segment_value="LOWEST"))
    found = {diagnostic.code: diagnostic.fix for diagnostic in ovir.check(net.write(tmp_path))}
    assert found == {"OVIR304": None, "OVIR308": None}
