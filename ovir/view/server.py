"""The server of `ovir view`, which offers the page of Model Explorer and the graphs on this machine only."""

from __future__ import annotations

import importlib.util
import json
import mimetypes
import os
import re
import socketserver
import sys
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, quote, unquote, urlsplit

from ovir.core.reading import read_bytes
from ovir.diagnostics.errors import InputError, require_packages
from ovir.diagnostics.wording import reason_of

SECURITY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; worker-src 'self' blob:; object-src 'none'; frame-ancestors 'none'; base-uri 'self'"
)
"""The content security policy: the page loads nothing from other hosts."""

_SETTINGS = """<script>
if (localStorage.getItem("model_explorer_show_on_edge_item_v3") === null)
  localStorage.setItem("model_explorer_show_on_edge_item_v3", '{"type":"Tensor shape"}')
</script></head>"""
"""Makes edges show types and shapes, until the user decides otherwise in the page."""
_REMOTE_FONT = re.compile(r"@font-face\s*{[^}]*https?://[^}]*}")
_TITLE = re.compile(r"<title>[^<]*</title>")
_PRECONNECT = re.compile(r"<link\s[^>]*https?://[^>]*>")


def page_folder() -> Path:
    """Return the folder with the page of Model Explorer, without importing its server.

    Raise InputError if Model Explorer is not installed.
    """
    require_packages("`ovir view`", "view", "model_explorer")
    spec = importlib.util.find_spec("model_explorer")
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]) / "web_app"


def read_page_file(folder: Path, path: str, title: str) -> tuple[bytes, str] | None:
    """Return the bytes and the media type of a file below ``folder``; None if there is no such file.

    The page itself, ``index.html``, names fonts of another host besides its own; they are left out. Edges show types
    and shapes from the beginning, and ``title`` is the title of the page.
    """
    target = (folder / (path or "index.html")).resolve()
    if not target.is_relative_to(folder.resolve()) or not target.is_file():
        return None
    data = read_bytes(target)
    if target.name == "index.html":
        text = _PRECONNECT.sub("", _REMOTE_FONT.sub("", data.decode("utf-8")))
        text = _TITLE.sub(lambda _: f"<title>{escape(title)}</title>", text, count=1)
        data = text.replace("</head>", _SETTINGS, 1).encode("utf-8")
    return data, mimetypes.guess_type(target.name)[0] or "application/octet-stream"


HOST = "127.0.0.1"
PORT = 8080
"""The port that is tried first, which is Model Explorer's own: a page that was loaded again keeps its settings."""

_JSON = "application/json"


@dataclass(frozen=True)
class Pane:
    """A part of the page, which shows one graph."""

    model: str
    """The name of the model."""
    graph: str
    node: str = ""
    """The id of the node that is selected; empty for none."""
    group: str = ""
    """The path of the group around it."""

    def to_dict(self, width: float) -> dict[str, Any]:
        """Return the state of the pane as the page keeps it in its address."""
        return {
            "selectedCollectionLabel": self.model,
            "selectedGraphId": self.graph,
            "selectedNodeId": self.node,
            "deepestExpandedGroupNodeIds": [f"{self.group}___group___"] if self.group else [],
            "widthFraction": width,
        }


@dataclass
class Shown:
    """The content of the page: models, and overlays for them."""

    models: dict[str, Any] = field(default_factory=dict)
    """By name, as JSON."""
    overlays: list[tuple[str, str, Any]] = field(default_factory=list)
    """The name of the overlay, the name of its model, and the data as JSON."""
    panes: list[Pane] = field(default_factory=list)
    """The graphs that are shown at first; two are shown side by side."""

    def query(self) -> str:
        """Return the part of the address that names the data for the page."""
        data = {
            "uiState": {"paneStates": [pane.to_dict(1 / len(self.panes)) for pane in self.panes]},
            "models": [{"url": f"graphs://{name}/{number}"} for number, name in enumerate(self.models)],
            "nodeData": [f"node_data://{name}/{number}" for number, (name, *_) in enumerate(self.overlays)],
            "nodeDataTargets": [model for _, model, _ in self.overlays],
        }
        return f"data={quote(json.dumps(data))}"


class ViewServer(ThreadingHTTPServer):
    """A server on a port of this machine, which listens from the beginning; ``serve_forever`` answers until it is
    interrupted. Use it in a ``with`` block."""

    daemon_threads = True
    request_queue_size = 32

    def __init__(self, port: int) -> None:
        self.folder = page_folder()
        self.url_query = ""
        self.title = ""
        self.graphs: list[bytes] = []
        self.node_data: list[bytes] = []
        super().__init__((HOST, port), _Handler)

    def show(self, shown: Shown) -> None:
        """Make the page show models and overlays."""
        self.url_query = shown.query()
        self.title = f"{' and '.join(shown.models)} - ovir view"
        self.graphs = [_encoded(graphs) for graphs in shown.models.values()]
        self.node_data = [_encoded({"content": json.dumps(data)}) for *_, data in shown.overlays]

    @property
    def url(self) -> str:
        """Return the address of the page."""
        return f"http://{HOST}:{self.server_port}/"

    def server_bind(self) -> None:
        """Bind the socket without asking the network for the name of this machine, as the base class does."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.socket.getsockname()[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report an error in a request, unless the browser has closed the connection."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def open_server(port: int | None = None) -> ViewServer:
    """Return a server that listens on ``port``; without one, on ``PORT`` or, where that is busy, on any free one.

    Raise InputError if the port cannot be used, or if Model Explorer is not installed.
    """
    try:
        return ViewServer(PORT if port is None else port)
    except OSError as error:
        if port is None:
            return ViewServer(0)
        message = f"cannot listen on port {port} of {HOST}: {reason_of(error)}"
        raise InputError.usage(message, hint="--port 0 uses any free port") from None


def open_browser(url: str) -> bool:
    """Open a page in the browser of the user; return whether there is one with windows of its own.

    A browser that runs in the terminal would take it from the command, so it does not count.
    """
    if sys.platform.startswith("linux") and not any(os.environ.get(name) for name in _DISPLAYS):
        return False
    try:
        return webbrowser.open(url)
    except webbrowser.Error:
        return False


_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "WSL_DISTRO_NAME")
"""Variables of the environment without which Linux has no windows to open."""


class _Handler(BaseHTTPRequestHandler):
    """Answers the requests of the page."""

    server: ViewServer
    protocol_version = "HTTP/1.1"
    timeout = 60  # seconds after which an idle connection is closed

    _ANSWERS: ClassVar[dict[str, Any]] = {
        "/api/v1/get_extensions": [
            {
                "id": "builtin_json",
                "type": "adapter",
                "name": "JSON",
                "description": "Graphs as JSON",
                "fileExts": ["json"],
            }
        ],
        "/api/v1/check_new_version": {"version": "", "runningVersion": "", "releaseUrl": "", "desktopAppUrl": ""},
    }
    """The constant answers to the page: it reads only graphs in its own format, and there is no new version."""

    def do_GET(self) -> None:
        """Answer a request."""
        address = urlsplit(self.path)
        path, query = unquote(address.path), parse_qs(address.query)
        # A page of another site can make its own name resolve to this machine, but the browser still sends that name.
        own_names = {f"{name}:{self.server.server_port}" for name in (HOST, "localhost")}
        if self.headers.get("Host") not in own_names:
            self._send(HTTPStatus.FORBIDDEN, b"this server answers requests to its own address only\n", "text/plain")
        elif path == "/" and not address.query:
            self._send(HTTPStatus.FOUND, b"", "text/plain", Location=f"/?{self.server.url_query}")
        elif path == "/apistream/server_director":
            self._send(HTTPStatus.NO_CONTENT, b"", "")  # makes the page stop asking for events
        elif path in self._ANSWERS:
            self._send(HTTPStatus.OK, _encoded(self._ANSWERS[path]), _JSON)
        elif path == "/api/v1/load_graphs_json":
            self._send_item(self.server.graphs, query.get("graph_index"))
        elif path == "/api/v1/load_node_data":
            self._send_item(self.server.node_data, query.get("node_data_index"))
        elif (found := read_page_file(self.server.folder, path.lstrip("/"), self.server.title)) is not None:
            self._send(HTTPStatus.OK, *found)
        else:
            self._send_missing()

    def _send_item(self, items: Sequence[bytes], numbers: Sequence[str] | None) -> None:
        number = numbers[0] if numbers else ""
        if number.isdecimal() and int(number) < len(items):
            self._send(HTTPStatus.OK, items[int(number)], _JSON)
        else:
            self._send_missing()

    def _send_missing(self) -> None:
        self._send(HTTPStatus.NOT_FOUND, b"not found\n", "text/plain")

    def _send(self, status: HTTPStatus, body: bytes, media_type: str, **headers: str) -> None:
        self.send_response(status)
        if status is not HTTPStatus.NO_CONTENT:
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", SECURITY)
        self.send_header("X-Content-Type-Options", "nosniff")
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Print nothing: the terminal belongs to the command."""


def _encoded(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")
