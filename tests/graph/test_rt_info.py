"""Runtime information: read as plain data, looked up by name, written back as it was."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lxml import etree
from support.builder import Net

import ovir
from ovir import opset13 as ops
from ovir.graph.rt_info import NO_RT_INFO, RtElement, RtInfo
from ovir.ir.elements import read_rt_info, write_rt_info

TEXT = """<rt_info>
    <framework value="onnx"/>
    <conversion_parameters> <input_model value="a.onnx"/>
      <layout/></conversion_parameters>
    <notes>some <b>text</b> behind</notes><empty/>
    <attribute name="fused_names" version="0" value="conv,relu"/>
    <attribute name="layout" version="0" layout="[N,C]"/>
    <attribute name="fused_names" version="1" value="other"/>
</rt_info>"""

DATA = Path(__file__).parent.parent / "data"


def info_of(text: str) -> RtInfo:
    return read_rt_info(etree.fromstring(text))


def small() -> ovir.Model:
    x = ops.parameter([1], "f32", name="x")
    return ovir.Model([ops.relu(x)], [x], "m")


def test_entries_are_found_by_name_and_written_as_they_were_read() -> None:
    info = info_of(TEXT)
    assert info["framework"] == "onnx"
    assert info["conversion_parameters", "input_model"] == "a.onnx"
    assert info["fused_names"] == "conv,relu"
    assert info["layout", "layout"] == "[N,C]"
    assert "absent" not in info
    assert info.get("absent") is None
    with pytest.raises(KeyError):
        info["framework", "onnx"]
    assert info.to_dict() == {
        "framework": "onnx",
        "conversion_parameters": {"input_model": "a.onnx", "layout": ""},
        "notes": {"b": "text"},
        "empty": "",
        "fused_names": "conv,relu",
        "layout": {"layout": "[N,C]"},
    }
    written, read = (etree.tostring(root, method="c14n") for root in (write_rt_info(info), etree.fromstring(TEXT)))
    assert written == read
    assert len({info, info_of(TEXT), info_of("<rt_info/>")}) == 2
    assert info.get(("conversion_parameters", "framework"), "unknown") == "unknown"


def test_it_may_be_nested_deeply() -> None:
    deep = "<rt_info>" + "<a>" * 2000 + "</a>" * 2000 + "</rt_info>"
    info = read_rt_info(etree.fromstring(deep, etree.XMLParser(huge_tree=True)))
    assert list(info) == ["a"]
    assert pickle.loads(pickle.dumps(info)) == info
    found = 0
    entries = info.to_dict()
    while isinstance(entries, dict):
        entries = entries["a"]
        found += 1
    assert found == 2000
    assert len(write_rt_info(info)) == 1


def test_round_trip_of_files() -> None:
    count = 0
    for path in sorted(DATA.rglob("*.xml")):
        try:
            root = etree.parse(path, etree.XMLParser(huge_tree=True, remove_comments=True, remove_pis=True)).getroot()
        except (etree.XMLSyntaxError, OSError):  # lxml raises OSError for bytes that are not in the encoding
            continue  # such files are there on purpose
        for element in root.iter("rt_info"):
            element.tail = None
            written = write_rt_info(read_rt_info(element))
            assert etree.tostring(written, method="c14n") == etree.tostring(element, method="c14n"), path
            count += 1
    assert count


def test_what_has_no_rt_info_has_an_empty_one() -> None:
    net = Net()
    net.result(net.parameter("x", "2"))
    model = ovir.read_model(net.xml().replace("<rt_info/>", "").encode(), b"")
    for info in (model.rt_info, model.layer("x").rt_info, model.inputs[0].rt_info):
        assert info.to_dict() == {}
        assert info.get("framework") is None
        assert info.get(("conversion_parameters", "framework")) is None
        assert ("conversion_parameters", "framework") not in info
    assert pickle.loads(pickle.dumps(model)).rt_info == NO_RT_INFO
    assert etree.tostring(write_rt_info(NO_RT_INFO)) == b"<rt_info/>"


@pytest.mark.parametrize(
    ("keys", "value", "expected"),
    [
        ("framework", "tf", {"framework": "tf"}),
        (("framework",), 3, {"framework": "3"}),
        (("model_info", "labels"), ["cat", "dog"], {"model_info": {"labels": "cat dog"}}),
        (("conversion_parameters", "input_model"), "b", {"conversion_parameters": {"input_model": "b", "layout": ""}}),
        (("conversion_parameters", "a b", "c"), 0.5, {"conversion_parameters": {"a b": {"c": "0.5"}}}),
        (("notes",), {"x": {"y": True}, "z": np.float32([1, 2.5])}, {"notes": {"x": {"y": "YES"}, "z": "1 2.5"}}),
        (("empty", "inner"), False, {"empty": {"inner": "NO"}}),
    ],
)
def test_entries_can_be_set(keys: str | tuple[str, ...], value: object, expected: dict[str, object]) -> None:
    """Every other entry remains, and a file holds what was set."""
    model = small()
    model.rt_info = info_of(TEXT)
    before = model.rt_info.to_dict()
    model.rt_info[keys] = value
    found = model.rt_info.to_dict()
    key = next(iter(expected))
    own = found[key] if keys[-1] not in ("c",) else {"a b": found[key]["a b"]}
    assert own == expected[key]
    assert {name: found[name] for name in before if name != key} == {k: v for k, v in before.items() if k != key}
    written = etree.tostring(write_rt_info(model.clone().rt_info))
    assert info_of(written.decode()).to_dict() == found
    del model.rt_info[keys]
    assert not model.has_rt_info(keys)


def test_the_text_around_an_entry_that_is_set_remains() -> None:
    model = small()
    model.rt_info = info_of(TEXT)
    model.rt_info["conversion_parameters", "input_model"] = "b.onnx"
    texts = write_rt_info(model.clone().rt_info), etree.fromstring(TEXT.replace("a.onnx", "b.onnx"))
    written, expected = (etree.tostring(root, method="c14n") for root in texts)
    assert written == expected


def test_wrong_entries_are_refused() -> None:
    model = small()
    assert not model.get_rt_info()
    model.set_rt_info("2", ["a", "d"])
    assert (model.get_rt_info(["a", "d"]), model.get_rt_info("a")) == ("2", model.rt_info["a"])
    for keys, value in (("a", None), ("a", object()), ((), "1"), (("", "a"), "1")):
        with pytest.raises(ovir.InputError, match="OVIR902"):
            model.rt_info[keys] = value  # type: ignore[index]


@pytest.mark.parametrize("seed", range(40))
def test_entries_are_set_and_deleted_as_in_dictionaries(seed: int) -> None:
    """Groups are made where they are missing, and go when they become empty; a file has the same entries."""
    rng = np.random.default_rng(seed)
    model, expected = small(), dict[str, Any]()
    for step in range(30):
        keys = tuple(str(key) for key in rng.choice(["a", "b", "1 c", "info"], rng.integers(1, 4)))
        groups, last = [expected], keys[-1]
        for key in keys[:-1]:
            groups.append(groups[-1].get(key, {}) if isinstance(groups[-1], dict) else {})
        is_below_text = any(isinstance(group, str) for group in groups)
        if rng.random() < 0.5:
            if is_below_text:
                with pytest.raises(ovir.InputError, match="has a text, and no entry"):
                    model.rt_info[keys] = str(step)
                continue
            model.rt_info[keys] = str(step)
            group = expected
            for key in keys[:-1]:
                group = group.setdefault(key, {})
            group[last] = str(step)
        elif is_below_text or last not in groups[-1]:
            with pytest.raises(KeyError):
                del model.rt_info[keys]
        else:
            del model.rt_info[keys]
            del groups[-1][last]
            for key, group in reversed(list(zip(keys[:-1], groups, strict=False))):
                if not group[key]:
                    del group[key]
        found = model.rt_info.to_dict()
        assert found == expected
        assert list(found) == list(expected)
        assert info_of(etree.tostring(write_rt_info(model.rt_info)).decode()).to_dict() == expected
        for key in ("a", "b"):
            assert model.has_rt_info(["a", key]) == (isinstance(expected.get("a"), dict) and key in expected["a"])


def _set_and_fail(model: ovir.Model) -> None:
    model.rt_info["a"] = "1"
    model.rename({"none": "new"})


def test_an_edit_that_fails_restores_it() -> None:
    model = small()
    info = model.rt_info
    with pytest.raises(ovir.InputError), model.editing():
        _set_and_fail(model)
    assert "a" not in info
    assert model.clone().rt_info == info


def test_marks_take_the_place_of_those_of_the_same_key() -> None:
    """Entries of other keys remain, with all that is inside them; marks come before the first greater key."""
    info = info_of('<rt_info><a/><c><b value="inner"/></c><attribute name="b" version="0" value="old"/><d/></rt_info>')
    marks = [RtElement(1, "attribute", (("name", name), ("value", "new"))) for name in ("d", "b", "e")]
    marked = info.with_marks(*marks)
    assert list(marked) == ["a", "b", "c", "d", "e"]
    assert [marked[key] for key in ("b", "d", "e", ("c", "b"))] == ["new", "new", "new", "inner"]
    assert list(NO_RT_INFO.with_marks(marks[0])) == ["d"]
