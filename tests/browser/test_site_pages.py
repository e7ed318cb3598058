"""The documentation site in a browser: pages load without errors and from nowhere else, and its search finds things."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from chromium import Browser

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
PAGES = ("index", "getting-started", "own-operations", "operations", "reference/models", "reference/commands")


class Quiet(SimpleHTTPRequestHandler):
    """A handler that logs nothing."""

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Build the site, and serve it; the value is its address."""
    for package in ("material", "mkdocstrings"):
        pytest.importorskip(package, reason="mkdocs-material and mkdocstrings, of the extra `docs`, are not installed")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder)))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("page", PAGES)
def test_a_page_loads_without_errors(browser: Browser, site: str, page: str, theme: str) -> None:
    browser.prefer(theme)  # type: ignore[arg-type]
    browser.open(f"{site}{page}.html")
    browser.wait("document.querySelector('.md-search__input')")
    assert browser.messages() == []
    assert [url for url in browser.requests() if not url.startswith(site)] == []
    scheme = browser.run("return document.body.dataset.mdColorScheme")
    assert scheme == {"light": "default", "dark": "slate"}[theme]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_not_wider_than_a_phone(browser: Browser, site: str, page: str) -> None:
    # Wide tables and blocks of code scroll by themselves.
    metrics = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        browser.open(f"{site}{page}.html")
        assert browser.run("return document.documentElement.scrollWidth") <= 390
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_search_finds_a_method(browser: Browser, site: str) -> None:
    browser.open(f"{site}index.html")
    browser.find(".md-search__input").click()
    browser.find(".md-search__input").send_keys("infer_shapes")
    found = "[...document.querySelectorAll('.md-search-result__link')].map(link => link.href)"
    browser.wait(f"{found}.length")
    assert any("reference/models.html" in address for address in browser.run(f"return {found}"))


def test_a_copied_command_has_neither_prompt_nor_output(browser: Browser, site: str) -> None:
    browser.open(f"{site}getting-started.html")
    browser.driver.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite"]})
    block = browser.find(".language-console.highlight")
    browser.run("arguments[0].scrollIntoView({block: 'center'})", block)
    browser.wait("document.querySelector('.language-console .md-code__button')")
    block.find_element("css selector", ".md-code__button").click()
    browser.wait("document.querySelector('.md-dialog--active')")  # says that it was copied
    copied = browser.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    assert copied.strip() == "ovir show examples/xml/digits.xml"
