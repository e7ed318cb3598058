"""The fixture itself: what it says about a page is true, so that the other tests can rely on it."""

from pathlib import Path

import pytest
from support.chromium import Browser

pytestmark = pytest.mark.browser

PAGE = """<!DOCTYPE html><title>a page</title><p id="color"></p><script>
document.getElementById("color").textContent = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
</script>"""


def page(folder: Path, text: str) -> Path:
    path = folder / "page.html"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_page_is_opened_in_the_preferred_colors(browser: Browser, tmp_path: Path) -> None:
    path = page(tmp_path, PAGE)
    browser.open(path)
    assert browser.texts("#color") == ["light"]
    browser.prefer("dark")
    browser.open(path)
    assert browser.find("#color").text == "dark"
    assert browser.messages() == []
    assert browser.requests() == [path.as_uri()]


def test_errors_and_requests_are_noticed(browser: Browser, tmp_path: Path) -> None:
    browser.open(page(tmp_path, '<img src="missing.png"><script>setTimeout(() => { done = true; nothing() })</script>'))
    assert browser.wait("window.done")
    assert len(browser.requests()) == 2
    assert "nothing is not defined" in " ".join(browser.messages())
