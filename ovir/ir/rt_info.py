"""Reads and writes runtime information as XML."""

from __future__ import annotations

from functools import partial

from lxml import etree

from ovir.graph.rt_info import DeferredRtInfo, RtElement, RtInfo
from ovir.ir.elements import items_of


def read_rt_info(element: etree._Element) -> RtInfo:
    """Return the data of an ``<rt_info>``."""
    found: list[RtElement] = []
    depth = 0
    for event, item in etree.iterwalk(element, events=("start", "end")):
        if event == "end":
            depth -= 1
            continue
        tail = (item.tail or "") if depth else ""
        found.append(RtElement(depth, str(item.tag), tuple(items_of(item)), item.text or "", tail))
        depth += 1
    return RtInfo(tuple(found))


def deferred_rt_info(source: etree._Element | str) -> DeferredRtInfo:
    """Return a function that reads an ``<rt_info>``, given as an element or its text, when it is called."""
    return partial(_read, source)


def _read(source: etree._Element | str) -> RtInfo:
    if isinstance(source, str):
        source = etree.fromstring(source, etree.XMLParser(huge_tree=True, resolve_entities=False, no_network=True))
    return read_rt_info(source)


def write_rt_info(info: RtInfo) -> etree._Element:
    """Return the element from which ``read_rt_info`` reads ``info``."""
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
    return open_elements[0] if open_elements else etree.Element("rt_info")
