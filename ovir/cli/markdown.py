"""Show a section of a page, which is Markdown, on a terminal."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

_BOLD, _CYAN, _RESET = "\033[1m", "\033[36m", "\033[0m"


def lines_for_terminal(text: str, columns: int, *, colors: bool) -> Iterator[str]:
    """Yield the lines of a text of headings, paragraphs, lists and blocks of code.

    Paragraphs are filled to ``columns``, and at most 100. Code is indented in place of its fences, and keeps its lines.
    """
    width = min(columns, 100)
    bold, cyan, reset = (_BOLD, _CYAN, _RESET) if colors else ("", "", "")
    for number, part in enumerate(re.split(r"^```\w*\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)):
        if number % 2:
            yield from ("", *(f"    {cyan}{line}{reset}".rstrip() for line in part.splitlines()), "")
            continue
        for index, paragraph in enumerate(re.split(r"\n{2,}", part.strip("\n"))):
            if index:
                yield ""
            for item in re.split(r"\n(?=- )", paragraph):
                if item.startswith("#"):
                    yield f"{bold}{item.lstrip('# ').replace('`', '')}{reset}"
                else:
                    indent = "  " if item.startswith("- ") else ""
                    yield from textwrap.wrap(item, width, subsequent_indent=indent, break_on_hyphens=False)
