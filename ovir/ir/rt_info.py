"""Reads and writes runtime information as XML."""

from __future__ import annotations

from dataclasses import dataclass

from lxml import etree

from ovir.graph.rt_info import NO_RT_INFO, RtElement, RtInfo
from ovir.ir.elements import items_of

OLD_KEYS = {"cli_parameters": "conversion_parameters", "quantization_parameters": "optimization"}
"""Keys in files of version 10, and their names today."""


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


def read_model_info(net: etree._Element) -> RtInfo:
    """Return the runtime information of a model: its ``<rt_info>``, or what was in its place before version 11.

    That is a ``<meta_data>`` and a ``<quantization_parameters>`` next to it, which becomes an entry of the former. A
    text in it becomes a ``value`` without line breaks, as when OpenVINO reads it.
    """
    info, parameters = net.find("rt_info"), net.find("quantization_parameters")
    if info is not None or parameters is None:
        info = net.find("meta_data") if info is None else info
        return NO_RT_INFO if info is None else read_rt_info(info)
    meta = net.find("meta_data")
    head = (RtElement(0, "meta_data"),) if meta is None else read_rt_info(meta).elements
    return RtInfo(
        (*head, *(_with_value(item._replace(depth=item.depth + 1)) for item in read_rt_info(parameters).elements))
    )


def _with_value(item: RtElement) -> RtElement:
    if not item.text.strip() or item.attributes:
        return item
    return item._replace(attributes=(("value", item.text.replace("\n", "")),), text="")


@dataclass(frozen=True, slots=True)
class RtInfoText:
    """The text of an ``<rt_info>`` as lxml writes it, which is parsed when it is called."""

    text: str

    @classmethod
    def of(cls, element: etree._Element) -> RtInfoText:
        return cls(etree.tostring(element, encoding="unicode", with_tail=False))

    def __call__(self) -> RtInfo:
        parser = etree.XMLParser(huge_tree=True, resolve_entities=False, no_network=True)
        return read_rt_info(etree.fromstring(self.text, parser))


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
