"""Reports in a browser: they load without errors and requests, are sorted and searched, and show details."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from html import escape
from pathlib import Path

import pytest
from builder import Net
from chromium import Browser

from ovir.cli.main import main

pytestmark = pytest.mark.browser

pytest.importorskip("jinja2", reason="jinja2, of the extra `html`, is not installed")
pytest.importorskip("plotly", reason="plotly, of the extra `html`, is not installed")

EXAMPLES = Path(__file__).parents[2] / "examples" / "xml"
DIGITS = EXAMPLES / "digits.xml"
BROKEN = EXAMPLES / "broken"
NASTY = "<script>alert(1)</script><img src=x onerror=alert(2)>&lt;b&gt;"
MANY = 12_000
DRAWN = "document.documentElement.dataset.drawn === 'true'"

LAST = "[...document.querySelectorAll('.table')].at(-1)"
"""The last table of a page, which has its layers."""


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a report of each command; some find faults, or differences."""
    folder = tmp_path_factory.mktemp("reports")
    commands = {
        "check": ("check", BROKEN),
        "one": ("check", BROKEN / "wrong_declared_shape.xml"),
        "show": (DIGITS,),
        "run": (DIGITS, "--profile", "--repeat", "5"),
        "compare": (DIGITS, DIGITS),
        "diff": (DIGITS, EXAMPLES / "dynamic_shapes.xml"),
    }
    for name, arguments in commands.items():
        given = arguments if arguments[0] == "check" else (name, *arguments)
        main([*map(str, given), "--html", str(folder / f"{name}.html")])
        assert (folder / f"{name}.html").exists()
    return folder


def open_report(browser: Browser, path: Path) -> None:
    browser.open(path)
    browser.wait(DRAWN, 60)


def assert_clean(browser: Browser, path: Path) -> None:
    """Fail if a page has printed something to the console, or requested something but itself."""
    assert browser.messages() == []
    assert {url.partition("#")[0] for url in browser.requests()} <= {path.as_uri()}


def rows(browser: Browser, table: str, column: int) -> list[str]:
    """Return the cells of a column that a table shows, as it shows them."""
    found = f"[...{table}.querySelectorAll('.row')].map(row => row.children[{column}].textContent)"
    result: list[str] = browser.run(f"return {found}")
    return result


def search(browser: Browser, table: str, text: str) -> str:
    """Search a table, and return how many rows it says it shows."""
    box = browser.run(f"return {table}.querySelector('input')")
    box.clear()
    box.send_keys(text)
    shown: str = browser.run(f"return {table}.querySelector('.shown').textContent")
    return shown


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["check", "one", "show", "run", "compare", "diff"])
def test_a_page_loads_cleanly_in_both_themes(browser: Browser, reports: Path, name: str, theme: str) -> None:
    path = reports / f"{name}.html"
    browser.prefer(theme)  # type: ignore[arg-type]
    open_report(browser, path)
    assert_clean(browser, path)
    assert browser.run("return document.querySelectorAll('.plot.failed, .plot.waiting').length") == 0
    background = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", background))) > 3 * 128) == (theme == "light")
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")


def test_the_button_switches_the_theme_of_the_page_and_of_its_charts(browser: Browser, reports: Path) -> None:
    open_report(browser, reports / "show.html")
    colors = """return [getComputedStyle(document.body).backgroundColor,
        getComputedStyle(document.querySelector('.plot .bars path')).fill]"""
    light = browser.run(colors)
    browser.find("#theme").click()
    assert browser.run("return document.documentElement.dataset.theme") == "dark"
    browser.wait(f"(() => {{ {colors} }})()[1] !== '{light[1]}'")
    dark = browser.run(colors)
    assert dark[0] != light[0]
    browser.driver.refresh()
    browser.wait(DRAWN, 60)
    assert browser.run(colors) == dark  # the browser keeps the choice
    browser.find("#theme").click()
    assert browser.run("return document.documentElement.dataset.theme") == "light"
    browser.run("localStorage.clear()")


def test_a_search_finds_a_layer(browser: Browser, reports: Path) -> None:
    open_report(browser, reports / "show.html")
    everything = browser.run(f"return {LAST}.querySelector('.shown').textContent")
    assert search(browser, LAST, "RELU1 f32") == f"1 of {everything}"
    assert rows(browser, LAST, 1) == ["relu1"]
    assert search(browser, LAST, "no such layer") == f"0 of {everything}"
    assert browser.texts(".nothing") == ["Nothing matches."]
    assert search(browser, LAST, "conv").endswith(everything)
    assert all("conv" in name.lower() for name in rows(browser, LAST, 1))


def test_a_click_on_a_heading_sorts(browser: Browser, reports: Path) -> None:
    open_report(browser, reports / "run.html")
    table = "document.querySelector('#layers .table')"
    heads = browser.run(f"return [...{table}.querySelectorAll('.heads button')]")
    names = [head.text for head in heads]
    column = names.index("ms")
    times = [list(map(float, rows(browser, table, column)))]
    assert times[0] == sorted(times[0], reverse=True)
    for _ in range(2):
        heads[column].click()
        times.append(list(map(float, rows(browser, table, column))))
    assert times[1] == times[0]
    assert times[2] == sorted(times[0])
    heads[names.index("layer")].click()
    layers = rows(browser, table, names.index("layer"))
    assert layers == sorted(layers, key=str.lower)
    assert browser.run(f"return {table}.querySelector('[aria-sort=ascending]').textContent") == "layer"


def test_a_click_on_a_diagnostic_shows_its_source(browser: Browser, reports: Path) -> None:
    path = reports / "one.html"
    open_report(browser, path)
    browser.find("#diagnostics .row").click()
    browser.wait("!document.getElementById('drawer').hidden")
    text = (BROKEN / "wrong_declared_shape.xml").read_text(encoding="utf-8").splitlines()[39]
    assert browser.find(".source .marked").text.strip() == text.strip()
    assert browser.find(".source .marked").get_attribute("value") == "40"
    assert "OpenVINO ignores declared shapes" in browser.find("#drawer .hint").text
    browser.find("#drawer summary").click()
    assert "declared" in browser.find("#drawer details .markdown").text
    assert_clean(browser, path)
    browser.find(".close").click()
    browser.wait("document.getElementById('drawer').hidden")


def test_links_lead_from_layer_to_layer_and_back(browser: Browser, reports: Path) -> None:
    open_report(browser, reports / "one.html")
    browser.find("#diagnostics .row").click()
    browser.wait("document.querySelector('#drawer a[href^=\"#layer\"]')").click()
    browser.wait("document.querySelector('#drawer h2').textContent.trim() === 'gather_elements'")
    neighbors = browser.texts("#drawer .ends a")
    browser.find("#drawer .ends a").click()
    browser.wait(f"document.querySelector('#drawer h2').textContent.trim() === '{neighbors[0]}'")
    assert "gather_elements" in browser.texts("#drawer .ends a")
    browser.driver.back()
    browser.wait("document.querySelector('#drawer h2').textContent.trim() === 'gather_elements'")
    browser.find("body").send_keys("\ue00c")  # Escape
    browser.wait("document.getElementById('drawer').hidden")


def test_choices_above_a_table_filter_it(browser: Browser, reports: Path) -> None:
    open_report(browser, reports / "diff.html")
    table = "document.querySelector('#layers .table')"
    chip = browser.run(
        f"return [...{table}.querySelectorAll('.chip')].find(chip => chip.textContent.startsWith('added'))"
    )
    chip.click()
    assert set(rows(browser, table, 0)) == {"added"}
    assert chip.get_attribute("aria-pressed") == "true"
    chip.click()
    assert {"added", "removed"} <= set(rows(browser, table, 0))


def test_keys_move_through_a_table(browser: Browser, reports: Path) -> None:
    open_report(browser, reports / "check.html")
    browser.run("document.querySelector('#diagnostics .grid').focus()")
    for _ in range(2):
        browser.run(
            "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowDown', bubbles: true}))"
        )
    browser.wait("location.hash === '#row:0:1'")
    assert browser.run("return document.querySelector('.row.chosen').dataset.row") == "1"
    browser.find("body").send_keys("/")
    assert browser.run("return document.activeElement.type") == "search"
    browser.run("location.hash = ''")
    before = browser.run("return document.querySelector('.row.chosen')?.dataset.row ?? '-1'")
    browser.run("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowUp', bubbles: true}))")
    browser.wait("location.hash.startsWith('#row:0:')")  # the box moves through its table, as the table itself does
    assert browser.run("return location.hash") == f"#row:0:{max(int(before) - 1, 0)}"
    assert browser.run("return document.activeElement.type") == "search"


def test_a_click_on_a_bar_opens_the_layer(browser: Browser, reports: Path) -> None:
    path = reports / "run.html"
    open_report(browser, path)
    slowest = browser.run("return document.querySelector('#layers .row .name').textContent")
    browser.run("""const plot = document.querySelectorAll('#time .plot')[1];
        plot.emit('plotly_click', {points: [{customdata: plot.data[0].customdata[0]}]})""")
    assert browser.wait("document.querySelector('#drawer h2')?.textContent.trim()") == slowest
    assert "ms" in browser.texts("#drawer th")
    assert_clean(browser, path)


def nasty_model(folder: Path) -> Path:
    """Write a model whose layer, tensor and file have names that look like markup."""
    name = escape(NASTY)
    net = Net()
    source = net.parameter("data", "2,3")
    for _ in range(3):
        source = net.op("ReLU", source, name=name, names=[name])
    net.result(source, name=name)
    path = net.write(folder, "<b>model")
    broken = path.read_text(encoding="utf-8").replace('type="ReLU"', 'type="ReLU&lt;i&gt;"', 1)
    (folder / "<b>broken.xml").write_text(broken, encoding="utf-8")
    shutil.copy(path.with_suffix(".bin"), folder / "<b>broken.bin")
    return path


@pytest.mark.parametrize("command", ["check", "show", "run", "compare", "diff"])
def test_names_that_look_like_markup_are_just_names(browser: Browser, tmp_path: Path, command: str) -> None:
    path, report = nasty_model(tmp_path), tmp_path / "report.html"
    broken = str(tmp_path / "<b>broken.xml")
    given = {
        "check": (broken,),
        "show": (broken,),
        "run": (str(path), "--profile", "--tap", "alert"),
        "compare": (str(path), str(path)),
        "diff": (str(path), str(DIGITS)),
    }[command]
    main([command, *given, "--html", str(report)])
    open_report(browser, report)
    assert browser.find("h1").text.startswith(str(tmp_path / "<b>"))
    rendered = browser.run(
        "return document.body.innerText + [...document.querySelectorAll('.row')].map(row => row.textContent)"
    )
    assert NASTY in rendered
    assert browser.run("return document.querySelectorAll('main img, main b > i, aside img').length") == 0
    labels = browser.run("return [...document.querySelectorAll('.plot text')].map(text => text.textContent)")
    if command == "run":
        assert NASTY[:12] in " ".join(labels)
    browser.run("location.hash = 'layer:1'")
    browser.wait("!document.getElementById('drawer').hidden")
    assert NASTY in browser.find("#drawer").text
    assert_clean(browser, report)


def test_a_policy_stops_scripts_that_are_not_of_the_page(browser: Browser, reports: Path) -> None:
    open_report(browser, reports / "one.html")
    browser.run("document.body.insertAdjacentHTML('beforeend', '<img src=\"data:,\" onerror=\"window.hacked = 1\">')")
    browser.wait("document.images.length > 0")
    assert browser.run("return window.hacked === undefined")
    assert "Content Security Policy" in " ".join(browser.messages())


def test_thousands_of_rows_stay_usable(browser: Browser, tmp_path: Path) -> None:
    net = Net()
    source = net.parameter("data", "1,2")
    for number in range(MANY):
        source = net.op(
            "ReLU" if number % 3 else "Sigmoid", source, name=f"/model/layers.{number // 100}/act_{number % 100}"
        )
    net.result(source)
    report = tmp_path / "show.html"
    assert main(["show", str(net.write(tmp_path)), "--html", str(report)]) == 0
    assert report.stat().st_size < 6_000_000
    open_report(browser, report)
    assert_clean(browser, report)
    times = browser.run(f"""
        const table = {LAST}, input = table.querySelector('input'), grid = table.querySelector('.grid'), times = {{}};
        times.load = performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd;
        function timed(name, action) {{ const start = performance.now(); action(); grid.offsetHeight; times[name] = performance.now() - start; }}
        timed('search', () => {{ input.value = 'layers.77/ relu'; input.dispatchEvent(new Event('input')); }});
        times.found = table.querySelector('.shown').textContent;
        timed('clear', () => {{ input.value = ''; input.dispatchEvent(new Event('input')); }});
        const repeated = (name, action) => {{ // the least of several times says little about other programs
            const all = [0, 1, 2, 3, 4].map((turn) => {{ timed(name, () => action(turn)); return times[name]; }});
            times[name] = Math.min(...all);
        }};
        repeated('sort', () => table.querySelectorAll('.heads button')[1].click());
        repeated('scroll', (turn) => {{ grid.scrollTop = grid.scrollHeight * turn / 5; grid.dispatchEvent(new Event('scroll')); }});
        times.rows = table.querySelectorAll('.row').length;
        return times""")
    assert times["found"] == "67 of 12,002"
    assert times["rows"] < 60
    assert browser.run("return document.querySelectorAll('*').length") < 3000
    # On an idle machine: load 300 ms, first search 50 ms, sort 40 ms, scroll 15 ms. Tests run on busy ones.
    assert times["load"] < 10_000
    assert max(times[name] for name in ("search", "clear", "sort", "scroll")) < 2000


@pytest.fixture
def narrow(browser: Browser) -> Iterator[Browser]:
    """Give a test the browser with a page as wide as a phone."""
    size = {"width": 390, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    yield browser
    browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_labels_differ_and_leave_room_for_bars_on_a_narrow_page(narrow: Browser, tmp_path: Path) -> None:
    net = Net()
    source = net.parameter("data", "2,3")
    for number in range(8):
        source = net.op("ReLU", source, name=f"/encoder/layers.{number}/attention/self/activation_of_heads/ReLU")
    net.result(source)
    report = tmp_path / "run.html"
    assert main(["run", str(net.write(tmp_path)), "--profile", "--html", str(report)]) == 0
    open_report(narrow, report)
    found = narrow.run("""return [...document.querySelectorAll('#time .plot')].slice(0, 2).map(
        plot => plot._fullLayout.xaxis._length / plot.clientWidth)""")
    assert min(found) > 0.35
    texts = narrow.run("""const plot = document.querySelectorAll('#time .plot')[1];
        return [...plot.querySelectorAll('.ytick text')].map(text => text.textContent)""")
    assert len(set(texts)) == len(texts) >= 8
    assert all(len(text) <= 20 for text in texts)
    assert narrow.run("return document.documentElement.scrollWidth <= innerWidth")


def test_the_title_of_the_drawer_covers_nothing(browser: Browser, reports: Path) -> None:
    open_report(browser, reports / "show.html")
    browser.run("location.hash = document.querySelector('#layers .row') ? '#layer:0' : '#row:0:0'")
    browser.wait("document.querySelector('#drawer h2') !== null")
    gap = browser.run("""const part = document.querySelector('#drawer header').nextElementSibling;
        return part.getBoundingClientRect().top - document.querySelector('#drawer header').getBoundingClientRect().bottom""")
    assert gap >= 0
