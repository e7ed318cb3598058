"""A headless browser, for tests of pages; the fixture ``browser`` of tests/browser/conftest.py starts it."""

import json
from pathlib import Path
from typing import Any, Literal

WIDTH, HEIGHT = 1440, 900


class Browser:
    """A headless chromium. ``driver`` is selenium's; the other members say what a page has done."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, page: Path | str) -> None:
        """Open a file, or an address, and forget what earlier pages have done."""
        self.messages(), self.requests()
        self.driver.get(page.resolve().as_uri() if isinstance(page, Path) else page)

    def run(self, script: str, *arguments: Any) -> Any:
        """Run JavaScript in the page; its ``return`` is the result."""
        return self.driver.execute_script(script, *arguments)

    def wait(self, script: str, seconds: float = 10) -> Any:
        """Wait until an expression of JavaScript is true, and return its value."""
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.driver, seconds, 0.05).until(lambda _: self.run(f"return {script}"), script)

    def find(self, selector: str) -> Any:
        """Return the first element that a CSS selector matches."""
        return self.driver.find_element("css selector", selector)

    def texts(self, selector: str) -> list[str]:
        """Return the visible texts of the elements that a CSS selector matches."""
        return [element.text for element in self.driver.find_elements("css selector", selector)]

    def messages(self) -> list[str]:
        """Return the errors and warnings of the console since the last call."""
        return [f"{entry['level']}: {entry['message']}" for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Return the addresses that pages have requested since the last call, except data: and blob: addresses."""
        events = (json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance"))
        sent = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
        return [url for url in sent if not url.startswith(("data:", "blob:"))]

    def prefer(self, theme: Literal["light", "dark"]) -> None:
        """Choose the colors that the system prefers; pages scroll at once, not smoothly."""
        values = {"prefers-color-scheme": theme, "prefers-reduced-motion": "reduce"}
        features = [{"name": name, "value": value} for name, value in values.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
