"""Runtime information from XML and back."""

from __future__ import annotations

from functools import partial

from lxml import etree

from ovir.graph.rt_info import DeferredRtInfo, RtElement, RtInfo


def read_rt_info(element: etree._Element) -> RtInfo:
    """Return an ``<rt_info>`` as plain data."""
    found: list[RtElement] = []
    depth = 0
    for event, item in etree.iterwalk(element, events=("start", "end")):
        if event == "end":
            depth -= 1
            continue
        tail = (item.tail or "") if depth else ""
        found.append(RtElement(depth, str(item.tag), tuple(item.attrib.items()), item.text or "", tail))
        depth += 1
    return RtInfo(tuple(found))


def deferred_rt_info(source: etree._Element | str) -> DeferredRtInfo:
    """Return what makes the RtInfo of an ``<rt_info>``, given as an element or as its text, once it is asked for."""
    return partial(_read, source)


def _read(source: etree._Element | str) -> RtInfo:
    if isinstance(source, str):
        source = etree.fromstring(source, etree.XMLParser(huge_tree=True, resolve_entities=False, no_network=True))
    return read_rt_info(source)


def write_rt_info(info: RtInfo) -> etree._Element:
    """Return the element that ``read_rt_info`` would read as ``info``."""
    open_elements: list[etree._Element] = []
    for item in info.elements:
        attributes = dict(item.attributes)
        del open_elements[item.depth :]
        if open_elements:
            element = etree.SubElement(open_elements[-1], item.tag, attributes)
        else:
            element = etree.Element(item.tag, attributes)
        element.text, element.tail = item.text or None, item.tail or None
        open_elements.append(element)
    return open_elements[0]
