"""Time how long ``ovir view`` takes to open large models: ``python -m benchmarks.view [--layers 12000] [--only NAME]``.

The first column is the time until the command prints the address of the page, the second the time until a headless
chromium has drawn the graph.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

from benchmarks.checking import annotated, blocks, chain, convolutions, distinct, numbers

MODELS: list[Callable[[Path, int], None]] = [blocks, convolutions, chain, annotated, numbers, distinct]
DRAWN = "return window.me_test?.renderers[0]?.nodesToRender?.length"
"""The page registers what draws its panes where ``me_test`` exists."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=12_000)
    parser.add_argument("--only", choices=[write.__name__ for write in MODELS])
    arguments = parser.parse_args()
    browser = open_browser()
    try:
        print(f"{'model':16}{'address s':>10}{'drawn s':>10}{'together s':>12}")
        for write in MODELS:
            if arguments.only in (None, write.__name__):
                with tempfile.TemporaryDirectory() as folder:
                    path = Path(folder) / "large.xml"
                    write(path, arguments.layers)
                    address, drawn = measure(browser, path)
                print(f"{write.__name__:16}{address:>10.1f}{drawn:>10.1f}{address + drawn:>12.1f}")
    finally:
        browser.quit()


def open_browser() -> Any:
    """Start a headless chromium."""
    options = webdriver.ChromeOptions()
    for argument in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "enable-unsafe-swiftshader"):
        options.add_argument(f"--{argument}")
    options.binary_location = shutil.which("chromium") or ""
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    browser.set_script_timeout(300)
    script = {"source": "window.me_test = {renderers: {}}"}
    browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", script)
    return browser


def measure(browser: Any, path: Path) -> tuple[float, float]:
    """Return the seconds until there is an address, and from then on until the graph is drawn."""
    start = perf_counter()
    command = [sys.executable, "-m", "ovir", "view", str(path), "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            opened = perf_counter()
            browser.get(url)
            WebDriverWait(browser, 300, 0.05).until(lambda _: browser.execute_script(DRAWN))
            return opened - start, perf_counter() - opened
        finally:
            process.send_signal(signal.SIGINT)


if __name__ == "__main__":
    main()
