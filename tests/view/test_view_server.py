"""The server of ``ovir view``: what it answers, and to whom."""

import http.client
import json
import re
import socket
from collections.abc import Iterator
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

pytest.importorskip("model_explorer", reason="Model Explorer, of the extra `view`, is not installed")

from ovir.view.server import HOST, Pane, Shown, ViewServer, open_browser, open_server
from ovir.view.view import distinct_names

SHOWN = Shown(
    {"folder/a.xml": {"graphs": []}},
    [("time (ms)", "folder/a.xml", {"model": {"results": {}}})],
    [Pane("folder/a.xml", "model", "conv", "block 1")],
)


@pytest.fixture(scope="module")
def server() -> Iterator[ViewServer]:
    with open_server(0) as opened:
        opened.show(SHOWN)
        thread = Thread(target=opened.serve_forever)
        thread.start()
        yield opened
        opened.shutdown()
        thread.join()


def answer(server: ViewServer, path: str, **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:
    connection = http.client.HTTPConnection(HOST, server.server_port, timeout=10)
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, response.headers, body


def test_it_listens_on_this_machine_only(server: ViewServer) -> None:
    assert server.socket.getsockname()[0] == "127.0.0.1"
    assert server.url == f"http://127.0.0.1:{server.server_port}/"


def test_the_address_leads_to_what_is_shown(server: ViewServer) -> None:
    status, headers, _ = answer(server, "/")
    assert status == 302
    data = json.loads(parse_qs(urlsplit(headers["Location"]).query)["data"][0])
    assert data["models"] == [{"url": "graphs://folder/a.xml/0"}]
    assert data["nodeData"] == ["node_data://time (ms)/0"]
    assert data["nodeDataTargets"] == ["folder/a.xml"]
    (pane,) = data["uiState"]["paneStates"]
    assert pane["deepestExpandedGroupNodeIds"] == ["block 1___group___"]


def test_models_and_overlays(server: ViewServer) -> None:
    status, headers, body = answer(server, "/api/v1/load_graphs_json?graph_index=0")
    assert (status, json.loads(body), headers["Content-Type"]) == (200, {"graphs": []}, "application/json")
    _, _, body = answer(server, "/api/v1/load_node_data?node_data_index=0")
    assert json.loads(json.loads(body)["content"]) == {"model": {"results": {}}}


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/load_graphs_json?graph_index=1",
        "/api/v1/load_graphs_json?graph_index=-1",
        "/api/v1/load_graphs_json",
        "/api/v1/read_text_file?path=/etc/passwd",
        "/../server.py",
        "/%2e%2e/server.py",
        "//etc/passwd",
        "/static_files",
        "/nothing",
    ],
)
def test_nothing_else_is_served(server: ViewServer, path: str) -> None:
    assert answer(server, path)[0] == 404


def test_the_page_loads_nothing_from_other_hosts(server: ViewServer) -> None:
    status, headers, body = answer(server, "/?data=x")
    assert status == 200
    assert "default-src 'self'" in headers["Content-Security-Policy"]
    text = body.decode()
    assert "app-root" in text
    assert not re.findall(r"(?:url\(|src=.|href=.)https?://[^)\"' ]+", text)
    scripts = re.findall(r'<script src="([^"]+)"', text)
    assert scripts
    for script in scripts:
        status, headers, _ = answer(server, f"/{script}")
        assert (status, headers["Content-Type"]) == (200, "text/javascript")


def test_a_name_of_another_site_is_refused(server: ViewServer) -> None:
    assert answer(server, "/", Host="evil.example")[0] == 403
    assert answer(server, "/", Host=f"localhost:{server.server_port}")[0] == 302


def test_new_versions_are_not_looked_for(server: ViewServer) -> None:
    assert json.loads(answer(server, "/api/v1/check_new_version")[2])["version"] == ""
    assert answer(server, "/apistream/server_director")[0] == 204


def test_a_busy_default_port_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server((HOST, 0)) as busy:
        number = busy.getsockname()[1]
        monkeypatch.setattr("ovir.view.server.PORT", number)
        with open_server() as opened:
            assert opened.server_port != number


def test_without_a_display_no_browser_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "WSL_DISTRO_NAME"):
        monkeypatch.delenv(name, raising=False)
    assert not open_browser("http://127.0.0.1:1/")


@pytest.mark.parametrize("opens", [True, False])
def test_the_browser_of_the_user_is_opened(monkeypatch: pytest.MonkeyPatch, opens: bool) -> None:
    opened: list[Any] = []
    monkeypatch.setenv("BROWSER", "mine")
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or opens)
    assert open_browser("http://127.0.0.1:1/") is opens
    assert opened == ["http://127.0.0.1:1/"]


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["/x/a.xml"], ["x/a.xml"]),
        (["/x/a.xml", "/x/b.xml"], ["x/a.xml", "x/b.xml"]),
        (["/x/before/a.xml", "/x/after/a.xml"], ["before/a.xml", "after/a.xml"]),
        (["/x/before/int8/a.xml", "/x/after/int8/a.xml"], ["before/int8/a.xml", "after/int8/a.xml"]),
        (["/x/a.xml", "/x/a.xml"], ["/x/a.xml (1)", "/x/a.xml (2)"]),
    ],
)
def test_models_have_distinct_names(paths: list[str], expected: list[str]) -> None:
    assert distinct_names(paths) == expected
