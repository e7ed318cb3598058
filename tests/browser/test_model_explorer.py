"""``ovir view`` in a browser: Model Explorer draws the graph with its overlay, and finds layers."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.bodies import conditional
from support.chromium import Browser
from support.small_transformers import encoder
from support.viewing import viewing

import ovir

pytestmark = pytest.mark.browser

pytest.importorskip("model_explorer", reason="Model Explorer, of the extra `view`, is not installed")

BROKEN = Path(__file__).parents[2] / "examples" / "xml" / "broken"
PATIENCE = 120  # seconds; software draws the graph
RED = (217, 48, 37)

PANE = "window.me_test.renderers[{}]"
"""What draws a pane: the page keeps it where ``me_test`` exists."""


@pytest.fixture
def page(browser: Browser) -> Iterator[Browser]:
    """Give a test the browser, whose pages register what draws their panes."""
    driver = browser.driver
    script = {"source": "window.me_test = {renderers: {}}"}
    added = driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", script)
    yield browser
    driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


def open_graph(page: Browser, url: str, panes: int = 1) -> None:
    """Open a page, and wait until its graphs are drawn."""
    page.open(url)
    for number in range(panes):
        page.wait(f"{PANE.format(number)}?.nodesToRender?.length", PATIENCE)


def drawn(page: Browser, pane: int = 0) -> set[str]:
    """Return the labels of the nodes and groups that a pane shows."""
    return set(page.run(f"return {PANE.format(pane)}.nodesToRender.map(item => item.node.label)"))


def pixels_of(page: Browser, color: tuple[int, int, int]) -> int:
    """Return how many pixels of the page have a color."""
    images = pytest.importorskip("PIL.Image", reason="Pillow, of the extra `image`, is not installed")
    picture = np.asarray(images.open(io.BytesIO(page.driver.get_screenshot_as_png())).convert("RGB"))
    return int((picture == color).all(axis=2).sum())


def assert_clean(page: Browser) -> None:
    """Require that the page has no errors and has asked nobody else for anything."""
    reports = [text for text in page.messages() if "GL Driver Message" not in text and "software WebGL" not in text]
    assert reports == []
    assert {url.split("/")[2].split(":")[0] for url in page.requests()} == {"127.0.0.1"}


@pytest.fixture(scope="module")
def encoder_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("view") / "encoder.xml"
    ovir.save_model(encoder(), path)
    return path


def test_the_graph_is_drawn_in_groups(page: Browser, encoder_path: Path) -> None:
    with viewing(encoder_path, "--no-browser") as view:
        open_graph(page, view.url)
        assert drawn(page) >= {"Parameter x", "layer0", "layer1", "layer2"}
        counted = page.run(f"return {PANE.format(0)}.curModelGraph.nodes.filter(node => node.nodeType === 0).length")
        assert counted == len(ovir.read_model(encoder_path).layers)
        assert_clean(page)


def test_edges_show_types_and_shapes(page: Browser, encoder_path: Path) -> None:
    with viewing(encoder_path, "--no-browser") as view:
        open_graph(page, view.url)
        assert page.run(f"return {PANE.format(0)}.curShowOnEdgeItem.type") == "Tensor shape"
        node = page.run(f"return {PANE.format(0)}.curModelGraph.nodesById['x'].outputsMetadata")
        assert node["0"]["shape"] == "f32[1,8,32]"


def test_the_first_fault_is_selected_and_red(page: Browser) -> None:
    with viewing(BROKEN / "axis_out_of_range.xml", "--no-browser") as view:
        open_graph(page, view.url)
        page.wait(f"{PANE.format(0)}.selectedNodeId === 'gather'", PATIENCE)
        page.wait("document.body.innerText.includes('axis 5 is outside')", PATIENCE)
        assert pixels_of(page, RED) > 1000
        assert_clean(page)


def test_the_overlay_colors_groups_and_tables_have_its_numbers(page: Browser, encoder_path: Path) -> None:
    with viewing(encoder_path, "--no-browser", "--check", "--profile") as view:  # the check finds nothing
        open_graph(page, view.url)
        page.wait("document.body.innerText.includes('time (ms)')", PATIENCE)
        results = f"{PANE.format(0)}.webglRendererNdpService.curNodeDataProviderResults()"
        assert page.wait(f"Object.keys({results} || {{}}).length", PATIENCE) > 50
        colored = page.run(f"return Object.values({results}).filter(result => result.bgColor).length")
        assert colored > 50
        assert_clean(page)


def test_search_finds_a_layer(page: Browser, encoder_path: Path) -> None:
    with viewing(encoder_path, "--no-browser") as view:
        open_graph(page, view.url)
        page.find("search-bar input, input[placeholder^='Search']").send_keys("layer1/scores")
        page.wait("document.body.innerText.includes('1 result')", PATIENCE)
        assert page.texts("mat-tree-node.leaf .node-label") == ["MatMul scores"]
        page.find("mat-tree-node.leaf .node-label").click()
        # The group around the layer opens.
        page.wait(f"{PANE.format(0)}.nodesToRender.some(item => item.node.id === 'layer1/scores')", PATIENCE)
        assert_clean(page)


def test_two_models_are_side_by_side(page: Browser, tmp_path: Path, encoder_path: Path) -> None:
    ovir.save_model(encoder(2), tmp_path / "short.xml")
    with viewing(encoder_path, "--no-browser", "--diff", tmp_path / "short.xml") as view:
        open_graph(page, view.url, panes=2)
        assert "layer2" in drawn(page, 0)
        assert "layer2" not in drawn(page, 1)
        assert_clean(page)


def test_bodies_can_be_opened(page: Browser, tmp_path: Path) -> None:
    ovir.save_model(conditional(), tmp_path / "if.xml")
    with viewing(tmp_path / "if.xml", "--no-browser") as view:
        open_graph(page, view.url)
        node = page.run(f"return {PANE.format(0)}.curModelGraph.nodesById['if']")
        assert node["subgraphIds"] == ["if/then", "if/else"]
        assert drawn(page) >= {"If if", "Parameter x"}


def test_a_name_with_markup_is_just_a_name(page: Browser, tmp_path: Path) -> None:
    from ovir import opset13 as ops

    name = "<img src=x onerror=alert(1)>"
    x = ops.parameter([2], "f32", name=name)
    ovir.save_model(ovir.Model([ops.relu(x, name=f"{name}2")], [x]), tmp_path / "m.xml")
    with viewing(tmp_path / "m.xml", "--no-browser", "--check") as view:
        open_graph(page, view.url)
        assert f"Parameter {name}" in drawn(page)
        assert page.run("return document.querySelectorAll('img[src=x]').length") == 0
        assert_clean(page)


def test_large_models_are_drawn(page: Browser, tmp_path: Path) -> None:
    """A chain without groups, which Model Explorer itself would arrange for minutes."""
    from ovir import opset13 as ops

    x = ops.parameter([2], "f32", name="x")
    last: Any = x
    for number in range(6000):
        last = ops.relu(ops.abs(last, name=f"abs_{number}"), name=f"relu_{number}")
    ovir.save_model(ovir.Model([last], [x]), tmp_path / "chain.xml")
    with viewing(tmp_path / "chain.xml", "--no-browser") as view:
        open_graph(page, view.url)
        assert {"part 1 of 49", "part 49 of 49"} <= drawn(page)
        assert_clean(page)
