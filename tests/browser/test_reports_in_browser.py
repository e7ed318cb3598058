"""Reports in a browser: they load without errors and requests, are sorted and searched, and show details."""

import re
import shutil
import time
from html import escape
from pathlib import Path

import numpy as np
import pytest
from support.builder import Net
from support.chromium import HEIGHT, Browser

import ovir
from ovir import opset13 as ops
from ovir.cli.main import main

pytestmark = pytest.mark.browser

pytest.importorskip("jinja2", reason="jinja2, of the extra `html`, is not installed")
pytest.importorskip("plotly", reason="plotly, of the extra `html`, is not installed")
pytest.importorskip("itables", reason="itables, of the extra `html`, is not installed")

EXAMPLES = Path(__file__).parents[2] / "examples" / "xml"
DIGITS = EXAMPLES / "digits.xml"
BROKEN = EXAMPLES / "broken"
NASTY = "<script>alert(1)</script><img src=x onerror=alert(2)>&lt;b&gt;"
MANY = 12_000
DRAWN = "document.documentElement.dataset.drawn === 'true'"

LAST = "[...document.querySelectorAll('.table')].at(-1)"
"""The last table of a page, which has its layers."""


def detector(folder: Path, name: str, factor: float) -> Path:
    """Write a model with long names and many outputs, and inputs for it: boxes with padding, and a far value."""
    boxes = np.zeros((200, 7), np.float32)
    boxes[:12], boxes[12:, 0] = np.random.default_rng(0).random((12, 7)), -1
    np.savez(folder / "inputs.npz", boxes=boxes)
    x = ops.parameter([-1, 7], "f32", name="boxes")
    layers = [
        ops.multiply(x, 1 + factor / 2**n, name=f"/head/detector.{n}/postprocessing/Mul") for n in range(0, 40, 4)
    ]
    ovir.save_model(ovir.Model(layers, [x], name), folder / f"{name}.xml")
    return folder / f"{name}.xml"


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
        "detector": ("run", detector(folder, "one", 1.0), "--input", folder / "inputs.npz"),
        "beyond": ("compare", folder / "one.xml", detector(folder, "other", np.nan), "--input", folder / "inputs.npz"),
    }
    for name, arguments in commands.items():
        given = arguments if isinstance(arguments[0], str) else (name, *arguments)
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
    shown: str = browser.run(f"return {table}.querySelector('.dt-info').textContent")
    return shown


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["check", "one", "show", "run", "compare", "diff", "detector", "beyond"])
def test_a_page_loads_cleanly_in_both_themes(browser: Browser, reports: Path, name: str, theme: str) -> None:
    path = reports / f"{name}.html"
    browser.prefer(theme)  # type: ignore[arg-type]
    open_report(browser, path)
    assert_clean(browser, path)
    assert browser.run("return document.querySelectorAll('.plot.failed, .plot.waiting').length") == 0
    background = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", background))) > 3 * 128) == (theme == "light")
    for width in (1280, 390):
        resize(browser, width)
        assert browser.run(CUT_PARTS) == [], width
        assert browser.run(OVERLAPS) == [], width


def resize(browser: Browser, width: int) -> None:
    """Give the page another width, and wait until its charts have it."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.wait(f"innerWidth === {width}")
    browser.wait("[...document.querySelectorAll('.plot')].every(plot => plot._fullLayout.width === plot.clientWidth)")


CUT_PARTS = """return ['html', '.bar', '.bar nav', 'main', '.figures', '.figure dd', '.grid', '.plot'].flatMap(selector =>
    [...document.querySelectorAll(selector)].filter(part => part.scrollWidth > part.clientWidth + 1).map(part =>
        [selector, part.textContent.slice(0, 60), part.scrollWidth, part.clientWidth]))"""
"""The parts of a page that are wider than their place, so that one has to scroll to see all of them."""

OVERLAPS = """const found = [];
    for (const whole of document.querySelectorAll('.plot svg.main-svg, .row, .figure, .bar')) {
        const texts = [...whole.querySelectorAll('text, td, dt, dd, nav a, button')].filter(text => text.textContent.trim());
        const boxes = texts.map(text => [text.textContent, text.getBoundingClientRect()]).filter(([_, box]) => box.width > 0);
        for (const [index, [one, a]] of boxes.entries()) for (const [other, b] of boxes.slice(index + 1)) {
            const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
            const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
            if (across > 1 && down > 1) found.push([one, other]);
        }
        const place = (whole.closest('.plot') ?? document.documentElement).getBoundingClientRect();
        for (const [text, box] of boxes) if (box.left < place.left - 1 || box.right > place.right + 1) found.push([text, 'edge']);
    }
    return found"""
"""The pairs of texts of a chart, a row, a fact or the bar whose boxes overlap, and those beyond the edge."""


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
    everything = browser.run(f"return {LAST}.querySelector('.dt-info').textContent")
    assert search(browser, LAST, "RELU1 f32") == f"1 of {everything}"
    assert rows(browser, LAST, 1) == ["relu1"]
    assert search(browser, LAST, "no such layer") == f"0 of {everything}"
    assert browser.texts(".dt-empty") == ["Nothing matches."]
    assert search(browser, LAST, "conv").endswith(everything)
    assert all("conv" in name.lower() for name in rows(browser, LAST, 1))


def test_a_click_on_a_heading_sorts(browser: Browser, reports: Path) -> None:
    open_report(browser, reports / "run.html")
    table = "document.querySelector('#layers .table')"
    names = browser.run(f"return [...{table}.querySelectorAll('thead th')].map(head => head.textContent)")
    column = names.index("ms")

    def sort_by(name: str, order: str) -> None:
        head = f"{table}.querySelectorAll('thead th')[{names.index(name)}]"
        browser.run(f"{head}.click()")
        browser.wait(f"{head}.ariaSort === '{order}'")

    times = [list(map(float, rows(browser, table, column)))]
    assert times[0] == sorted(times[0], reverse=True)
    for order in ("descending", "ascending"):
        sort_by("ms", order)
        times.append(list(map(float, rows(browser, table, column))))
    assert times[1] == times[0]
    assert times[2] == sorted(times[0])
    sort_by("layer", "ascending")
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
    browser.run("""for (let number = 0; number < 2; ++number) document.activeElement.dispatchEvent(
        new KeyboardEvent('keydown', {key: 'ArrowDown', bubbles: true}))""")  # as fast as a key that repeats
    assert browser.run("return location.hash") == "#row:0:1"
    assert browser.run("return document.querySelector('.row.chosen').sectionRowIndex") == 1
    browser.find("body").send_keys("/")
    assert browser.run("return document.activeElement.type") == "search"
    browser.run("location.hash = ''")
    browser.run("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowUp', bubbles: true}))")
    # The box moves through its table, as the table itself does.
    assert browser.run("return location.hash") == "#row:0:0"
    assert browser.run("return document.activeElement.type") == "search"


def test_keys_move_over_the_pages_of_a_table(browser: Browser, tmp_path: Path) -> None:
    net = Net()
    source = net.parameter("data", "1,2")
    for number in range(150):
        source = net.op("ReLU", source, name=f"act_{number}")
    net.result(source)
    report = tmp_path / "show.html"
    assert main(["show", str(net.write(tmp_path)), "--html", str(report)]) == 0
    open_report(browser, report)
    names = rows(browser, LAST, 1)
    assert len(names) == 100
    browser.run(f"{LAST}.querySelector('[aria-label=Next]').click()")
    rest = rows(browser, LAST, 1)
    assert sorted([*names, *rest]) == sorted(browser.run("return data.layers.records.map(record => record[1])"))
    browser.run("location.hash = '#layer:99'")
    browser.wait("document.querySelector('#drawer h2')?.textContent.trim() === 'act_98'")
    browser.find("#layers [type=search]").send_keys("\ue015")  # arrow down, to the second page and back
    assert browser.run("return location.hash") == "#layer:100"
    assert rows(browser, LAST, 1) == rest
    assert browser.texts(".row.chosen .name") == [rest[0]]
    browser.find("#layers [type=search]").send_keys("\ue013")
    assert browser.run("return location.hash") == "#layer:99"
    assert rows(browser, LAST, 1) == names


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
    for table in browser.run("return [...document.querySelectorAll('.table:has([type=search])')]"):
        table.find_element("css selector", "[type=search]").send_keys("alert(2)>&lt;b&gt;")
        rows_found = (
            "return [...arguments[0].querySelectorAll('.row')].map(row => [...row.cells].map(cell => cell.title))"
        )
        assert all(NASTY in " ".join(cells) for cells in browser.run(rows_found, table))
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
    start = time.monotonic()
    browser.open(report)
    browser.wait(f"{LAST}.querySelector('.row') !== null", 60)
    seconds = time.monotonic() - start
    browser.wait(DRAWN, 60)
    assert_clean(browser, report)
    times = browser.run(f"""
        const table = {LAST}, input = table.querySelector('input'), grid = table.querySelector('.grid'), times = {{}};
        function timed(name, action) {{ const start = performance.now(); action(); grid.offsetHeight; times[name] = performance.now() - start; }}
        timed('search', () => {{ input.value = 'layers.77/ relu'; input.dispatchEvent(new Event('input')); }});
        times.found = table.querySelector('.dt-info').textContent;
        timed('clear', () => {{ input.value = ''; input.dispatchEvent(new Event('input')); }});
        const repeated = (name, action) => {{ // the least of several times says little about other programs
            const all = [0, 1, 2, 3, 4].map((turn) => {{ timed(name, () => action(turn)); return times[name]; }});
            times[name] = Math.min(...all);
        }};
        repeated('sort', (turn) => tables.at(-1).table.order([[1, turn % 2 === 0 ? 'asc' : 'desc']]).draw());
        repeated('scroll', (turn) => {{ grid.scrollTop = grid.scrollHeight * turn / 5; grid.dispatchEvent(new Event('scroll')); }});
        times.rows = table.querySelectorAll('.row').length;
        return times""")
    assert times["found"] == "67 of 12,002"
    assert times["rows"] == 100
    assert browser.run("return document.querySelectorAll('*').length") < 3000
    # On an idle machine: a second until rows are there, 50 ms for a search or for sorting. Tests run on busy ones.
    assert seconds < 10
    assert max(times[name] for name in ("search", "clear", "sort", "scroll")) < 2000


@pytest.fixture
def narrow(browser: Browser) -> Browser:
    """Give a test the browser with a page as wide as a phone."""
    size = {"width": 390, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    return browser


@pytest.fixture
def encoder_report(tmp_path: Path) -> Path:
    """Write a report about layers with long names that differ in their middle."""
    net = Net()
    source = net.parameter("data", "2,3")
    for number in range(8):
        source = net.op("ReLU", source, name=f"/encoder/layers.{number}/attention/self/activation_of_heads/ReLU")
    net.result(source)
    report = tmp_path / "run.html"
    assert main(["run", str(net.write(tmp_path)), "--profile", "--html", str(report)]) == 0
    return report


def test_labels_differ_and_leave_room_for_bars_on_a_narrow_page(narrow: Browser, encoder_report: Path) -> None:
    open_report(narrow, encoder_report)
    found = narrow.run("""return [...document.querySelectorAll('#time .plot')].slice(0, 2).map(
        plot => plot._fullLayout.xaxis._length / plot.clientWidth)""")
    assert min(found) > 0.35
    texts = narrow.run("""const plot = document.querySelectorAll('#time .plot')[1];
        return [...plot.querySelectorAll('.ytick text')].map(text => text.textContent)""")
    assert len(set(texts)) == len(texts) >= 8
    assert all(len(text) <= 20 for text in texts)
    assert narrow.run("return document.documentElement.scrollWidth <= innerWidth")


CUT = "return [...document.querySelectorAll('#layers td .name')].filter(name => name.scrollWidth > name.clientWidth).length"
NAMES = "return [...document.querySelectorAll('#layers td .name')].map(name => [name.textContent, name.title])"


def test_names_in_a_narrow_table_differ(narrow: Browser, encoder_report: Path) -> None:
    open_report(narrow, encoder_report)
    names = narrow.run(NAMES)
    assert len({shown for shown, _ in names}) == len(names) == 8
    assert all(shown == title for shown, title in names)  # in several lines
    assert narrow.run(CUT) == 0


def test_a_table_takes_the_width_of_the_page(browser: Browser, encoder_report: Path) -> None:
    open_report(browser, encoder_report)
    browser.driver.set_window_size(1900, HEIGHT)
    browser.wait("!document.querySelector('#layers td .name').textContent.includes('…')")
    assert all(shown == title for shown, title in browser.run(NAMES))
    assert browser.run(CUT) == 0
    widths = browser.run("""const grid = document.querySelector('#layers .grid');
        return [grid.querySelector('table').offsetWidth, grid.clientWidth, document.querySelector('main').clientWidth]""")
    assert widths[0] == widths[1] >= widths[2] - 50


def test_the_title_of_the_drawer_covers_nothing(narrow: Browser, tmp_path: Path) -> None:
    net = Net()
    first = net.parameter("data", "2,3")
    last = net.op("ReLU", first, name="/encoder/layers.0/attention/self/activation/" * 8)
    for number in range(40):
        net.op("Sigmoid", last, name=f"reader_{number}")
    net.result(last)
    report = tmp_path / "show.html"
    assert main(["show", str(net.write(tmp_path)), "--html", str(report)]) == 0
    open_report(narrow, report)
    narrow.run("location.hash = '#layer:1'")
    narrow.wait("document.querySelector('#drawer h2') !== null")
    places = narrow.run("""const drawer = document.querySelector('#drawer'), header = drawer.querySelector('header');
        const places = [[header.nextElementSibling.getBoundingClientRect().top, header.getBoundingClientRect().bottom]];
        for (const link of [...drawer.querySelectorAll('a')].reverse()) {
            link.focus();
            places.push([link.getBoundingClientRect().top, header.getBoundingClientRect().bottom]);
        }
        return places""")
    assert len(places) > 40
    assert places[0][1] > 100  # a long title
    assert all(top >= bottom for top, bottom in places)
