"""The sections of docs/diagnostics.md, one for each code.

The page is written once, in ``docs``. A wheel has a copy next to this module (see ``force-include`` in pyproject.toml);
a checkout and an editable install read the page itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

_PACKAGED = Path(__file__).with_name("diagnostics.md")
_WRITTEN = Path(__file__).parents[2] / "docs" / "diagnostics.md"


def section(code: str) -> str:
    """Return the section of a code, such as ``OVIR402``, as Markdown with its heading; raise KeyError for others."""
    return _sections()[code]


@cache
def _sections() -> Mapping[str, str]:
    path = _PACKAGED if _PACKAGED.is_file() else _WRITTEN
    page = path.read_text(encoding="utf-8")
    found = re.finditer(r"^## (OVIR\d+): .*?(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    return MappingProxyType({match[1]: _without_links(match[0].strip()) for match in found})


def _without_links(text: str) -> str:
    """Return the text with the names of linked pages instead of links, which lead nowhere from another place."""
    return re.sub(r"\[([^\]]*)\]\(([^)#\s]+)(?:#[^)]*)?\)", _named, text)


def _named(link: re.Match[str]) -> str:
    words, target = link[1], link[2]
    if ":" in target:
        return link[0]
    return f"docs/{target}" if words in ("how", target) else f"{words} (docs/{target})"
