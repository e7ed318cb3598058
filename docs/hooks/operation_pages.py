"""Adds a page for each operation to the site."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parents[2]))  # the package beside these documents, not an installed one

from docs.pages.operations import groups, operation_page, operations_page
from ovir.cli.operations import versions_of

LIST = "operations.md"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages below the list of all operations, in its groups."""
    pages = [{title: [f"operations/{name}.md" for name in names]} for title, names in groups().items()]
    config.nav = with_children(config.nav, pages)
    return config


def with_children(entry: Any, pages: list[Any]) -> Any:
    """Return a part of the navigation with ``LIST`` replaced by a section that it is the first page of."""
    if isinstance(entry, dict):
        return {title: with_children(inner, pages) for title, inner in entry.items()}
    if isinstance(entry, list):
        return [with_children(inner, pages) for inner in entry]
    return {"Operations": [LIST, *pages]} if entry == LIST else entry


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    for name in (name for names in groups().values() for name in names):
        files.append(File.generated(config, f"operations/{name}.md", content=operation_page(versions_of(name))))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Link the list of all operations to their pages."""
    return operations_page(linked=True) if page.file.src_uri == LIST else markdown
