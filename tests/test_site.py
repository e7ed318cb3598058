"""The documentation site: every page is in its navigation, and nothing comes from other hosts."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ovir.ops.base.opsets import OPERATIONS, TOKENIZERS

pytestmark = pytest.mark.documents

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def config() -> Any:
    yaml = pytest.importorskip("yaml", reason="PyYAML, of the extra `dev`, is not installed")
    return yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))


def pages(entry: Any) -> Iterator[str]:
    """Yield the pages of a part of the navigation."""
    if isinstance(entry, str):
        yield entry
    else:
        for inner in entry.values() if isinstance(entry, dict) else entry:
            yield from pages(inner)


def test_every_page_is_in_the_navigation_once(config: Any) -> None:
    listed = list(pages(config["nav"]))
    written = [path.relative_to(DOCS).as_posix() for path in sorted(DOCS.rglob("*.md"))]
    missing = [name for name in written if name not in listed]
    assert not missing, f"add to `nav` in mkdocs.yml: {', '.join(missing)}"
    assert sorted(listed) == written, "`nav` in mkdocs.yml names pages twice, or pages that do not exist"


def test_pages_have_the_titles_that_the_navigation_shows(config: Any) -> None:
    def labeled(entry: Any) -> Iterator[tuple[str, str]]:
        for inner in entry if isinstance(entry, list) else ():
            for name, value in inner.items() if isinstance(inner, dict) else ():
                if isinstance(value, str):
                    yield name, value
                else:
                    yield from labeled(value)

    labels = list(labeled(config["nav"]))  # the others have the title of the page
    assert labels
    for name, page in labels:
        assert (DOCS / page).read_text(encoding="utf-8").startswith(f"# {name}\n"), page


def test_lists_are_lists_on_the_site() -> None:
    # Code hosts are more tolerant: the site needs a blank line before a list, and 4 spaces before a nested item.
    texts = {path: path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md")}
    items = [
        (path.name, *found)
        for path, text in texts.items()
        for found in re.findall(
            r"^(.*)\n( *)((?:[-*]|\d+\.) .*)$",
            re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL),
            re.MULTILINE,
        )
    ]
    assert items
    for page, before, indent, item in items:
        assert len(indent) % 4 == 0, (page, item)
        assert not before or re.match(r" *([-*]|\d+\.) |  ", before), (page, item)


def test_extras_are_quoted_for_every_shell() -> None:
    files = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md"), *(ROOT / "ovir").rglob("*.py")]
    lines = [line for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    installing = [line for line in lines if re.search(r"pip install\b.*\[\w", line)]
    assert installing
    assert [line for line in installing if not re.search(r'pip install [^`]*"[\w.]+\[[\w,{}.]+\]"', line)] == []


def test_the_site_is_built(config: Any, tmp_path: Path) -> None:
    build = pytest.importorskip("mkdocs.commands.build", reason="mkdocs, of the extra `docs`, is not installed")
    load = pytest.importorskip("mkdocs.config").load_config
    pytest.importorskip("mkdocstrings", reason="mkdocstrings, of the extra `docs`, is not installed")
    pytest.importorskip("material", reason="mkdocs-material, of the extra `docs`, is not installed")
    build.build(load(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path), strict=True))
    assert "There is no such page" in (tmp_path / "404.html").read_text(encoding="utf-8")
    operations = sorted({*OPERATIONS, *TOKENIZERS})
    assert sorted(path.stem for path in (tmp_path / "operations").glob("*.html")) == operations
    listed = (tmp_path / "operations.html").read_text(encoding="utf-8")
    assert all(f'href="operations/{name}.html"' in listed for name in operations)
    for page in pages(config["nav"]):
        text = (tmp_path / page).with_suffix(".html").read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"([^\"]*)\"", text)
        loaded += re.findall(r"<link\b[^>]*\bhref=\"([^\"]*)\"", text)
        assert [address for address in loaded if re.match(r"(\w+:)?//", address)] == [], page
