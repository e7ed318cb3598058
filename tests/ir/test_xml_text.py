"""Edits of the text of a file: what is read afterwards is what was written, and nothing else has changed."""

from collections.abc import Iterable
from xml.sax.saxutils import escape

import pytest
from lxml import etree

from ovir.diagnostics.diagnostic import TextEdit
from ovir.ir.xml_text import XmlText

BEFORE = b"<net a='/>'><!-- <dim> -->\n  <other><dim>9</dim><dim/></other>\n  "
AFTER = b"<?dim >?>\n  <other><port><dim>8</dim></port></other><![CDATA[<dim>]]>\n</net>"
LAYOUTS = {
    "empty": [b"<port id='0' name=\"a>b\"/>"],
    "closed": [b"<port id='0'></port>"],
    "one line": [b"<port id='0'>", *(b"<dim>%d</dim>" % size for size in range(3)), b"<rest/></port>"],
    "lines": [b"<port id='0'>", *(b"\n    <dim> %d </dim>" % size for size in range(3)), b"\n    <rest/>\n  </port>"],
    "odd": [b"<port id='0'>", *(b"\n<!-- -->\t<dim>%d<!-- > --></dim >" % size for size in range(2)), b"<dim/></port>"],
}


def edited(data: bytes, edits: Iterable[TextEdit]) -> etree._Element:
    for edit in sorted(edits, key=lambda edit: edit.begin, reverse=True):
        data = data[: edit.begin] + edit.text + data[edit.end :]
    return etree.fromstring(data)


@pytest.mark.parametrize("wanted", [[], ["0"], ["-1", "1"], ["0", "1", "2"], ["4", "&", "é", "<", "1"]])
@pytest.mark.parametrize("name", LAYOUTS)
def test_children_become_those_of_the_texts(name: str, wanted: list[str]) -> None:
    data = BEFORE + b"".join(LAYOUTS[name]) + AFTER
    root = etree.fromstring(data)
    (port,) = root.findall("port")
    again = edited(data, XmlText(data, root).children(port, "dim", wanted))
    (found,) = again.findall("port")
    assert [(dim.text or "").strip() for dim in found.findall("dim")] == wanted
    for place in (port, found):
        for dim in place.findall("dim"):
            place.remove(dim)
        place[:], place.text = place.findall("rest"), None
        for rest in place:
            rest.tail = None
    assert etree.tostring(again) == etree.tostring(root)


@pytest.mark.parametrize("name", LAYOUTS)
def test_an_element_is_removed_and_an_attribute_is_set(name: str) -> None:
    data = BEFORE + b"".join(LAYOUTS[name]) + AFTER
    root = etree.fromstring(data)
    (port,) = root.findall("port")
    text = XmlText(data, root)
    for key, value in (("id", "'\"<&é"), ("new", "1")):
        edit = text.attribute(port, key, escape(value, {'"': "&quot;"}))
        (found,) = edited(data, [edit]).findall("port")
        assert dict(found.attrib) == dict(port.attrib) | {key: value}
        assert [etree.tostring(child) for child in found] == [etree.tostring(child) for child in port]
    assert edited(data, [text.removed(port)]).findall("port") == []


def test_further_children_are_laid_out_like_the_last_one() -> None:
    data = b"<net>\n  <port>\n      <dim>1</dim>\n  </port>\n  <port/>\n</net>"
    root = etree.fromstring(data)
    text = XmlText(data, root)
    edits = [edit for port in root for edit in text.children(port, "dim", ["1", "2"])]
    lines = "\n      <dim>1</dim>\n      <dim>2</dim>\n  </port>"
    assert etree.tostring(edited(data, edits)).decode() == f"<net>\n  <port>{lines}\n  <port>{lines}\n</net>"
