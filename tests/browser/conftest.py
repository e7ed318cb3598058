"""A headless browser for the tests of pages."""

import shutil
from collections.abc import Iterator

import pytest
from support.chromium import HEIGHT, WIDTH, Browser


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Start one browser for all tests; skip them where it or selenium is missing."""
    pytest.importorskip("selenium", reason="selenium, of the extra `dev`, is not installed")
    binary = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("chromium or chromedriver is not installed")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in (
        "headless=new",
        "no-sandbox",
        "disable-dev-shm-usage",
        "disable-gpu",
        "hide-scrollbars",
        "enable-unsafe-swiftshader",
    ):
        options.add_argument(f"--{argument}")
    options.add_argument(f"--window-size={WIDTH},{HEIGHT}")
    options.set_capability("goog:loggingPrefs", {"browser": "WARNING", "performance": "ALL"})
    opened = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    opened.set_script_timeout(120)  # a page may draw for long where software does it
    try:
        yield Browser(opened)
    finally:
        opened.quit()


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """Give a test the browser, with an empty page and light colors."""
    chromium.driver.set_window_size(WIDTH, HEIGHT)
    chromium.prefer("light")
    yield chromium
    chromium.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    chromium.driver.get("about:blank")
