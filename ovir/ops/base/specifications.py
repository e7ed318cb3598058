"""The specifications of operations: their names, and their pages in OpenVINO's documentation."""

from __future__ import annotations

import inspect
import os
import re
from functools import cache

from ovir.core.reading import read_text
from ovir.ops.base.operator import Operator

PAGES = "https://docs.openvino.ai/2026/documentation/openvino-ir-format/operation-sets/operation-specs"
SOURCE = re.compile(r"^Source: (\S+)\s*\Z", re.MULTILINE)
"""The line that names the specification where it has another name or version than the operation."""


def specification(cls: type[Operator]) -> str:
    """Return the specification that the operation follows, such as ``Gather-8``; nothing if no opset has it."""
    match = SOURCE.search(inspect.cleandoc(cls.__doc__ or ""))
    return match[1] if match else f"{cls.type}-{cls.opset}" if cls.opset else ""


def specification_page(cls: type[Operator]) -> str:
    """Return the address of the page of the specification; nothing if there is none."""
    page = _pages().get(_key(specification(cls)))
    return f"{PAGES}/{page}.html" if page else ""


@cache
def _pages() -> dict[str, str]:
    """Return the pages of the list by the specifications that they are about.

    Each line of the list has a group of operations with its pages. After some of them stands the name of the
    specification, where it is not that of the page.
    """
    found = {}
    for line in read_text(os.path.join(os.path.dirname(__file__), "specifications.tsv")).splitlines():
        group, _, pages = line.partition("\t")
        for page, _, name in (item.partition("=") for item in pages.split()):
            found[_key(name or page)] = f"{group}/{page}"
    return found


def _key(name: str) -> str:
    return name.replace("-", "").lower()
