"""The documentation site in a browser: pages load without errors and from nowhere else, and its search finds things."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from support.chromium import Browser

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
PAGES = (
    *("index", "getting-started", "own-operations", "operations", "operations/TopK", "reference/models"),
    *("reference/commands", "404"),
)


class Quiet(SimpleHTTPRequestHandler):
    """A handler that logs nothing."""

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site; the value is its folder."""
    for package in ("material", "mkdocstrings"):
        pytest.importorskip(package, reason="mkdocs-material and mkdocstrings, of the extra `docs`, are not installed")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder)))
    return folder


@pytest.fixture(scope="module")
def site(folder: Path) -> Iterator[str]:
    """Serve the site; the value is its address."""
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


def found(browser: Browser, query: str) -> list[str]:
    """Return the pages that the search of the open page finds, best first."""
    pages = "[...document.querySelectorAll('.md-search-result__item')].map(item => item.querySelector('a').href)"
    browser.find(".md-search__input").click()
    browser.find(".md-search__input").send_keys(query)
    browser.wait(f"{pages}.length")
    return [address.partition("?")[0] for address in browser.run(f"return {pages}")]


FIRST = {
    "infer_shapes": "reference/models.html",
    "TopK": "operations/TopK.html",
    "gather": "operations/Gather.html",  # not GatherND
    "if": "operations/If.html",  # other searches ignore the word
    "max_pool": "operations/MaxPool.html",
    "OVIR402": "diagnostics.html",
}


@pytest.mark.parametrize("query", FIRST)
def test_search_finds_the_page_first(browser: Browser, site: str, query: str) -> None:
    browser.open(f"{site}index.html")
    assert found(browser, query)[0] == f"{site}{FIRST[query]}"


def test_search_finds_options(browser: Browser, site: str) -> None:
    browser.open(f"{site}index.html")
    assert f"{site}reference/commands.html" in found(browser, "--tap")[:5]


def test_a_site_in_files_is_searched(browser: Browser, folder: Path) -> None:
    browser.open(folder / "operations" / "TopK.html")
    assert found(browser, "softmax")[0] == (folder / "operations" / "SoftMax.html").as_uri()
    assert browser.messages() == []
    assert [url for url in browser.requests() if not url.startswith("file:")] == []


def test_an_address_without_a_page_leads_on(browser: Browser, site: str) -> None:
    browser.open(f"{site}404.html")
    browser.run("[...document.querySelectorAll('article a')].find(link => link.textContent === 'Operations').click()")
    browser.wait("document.querySelector('h1')?.textContent.startsWith('Operations')")


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
