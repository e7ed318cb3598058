"""The page of Model Explorer, as files that a server on this machine can offer without the network."""

from __future__ import annotations

import importlib.util
import mimetypes
import re
from pathlib import Path

from ovir.diagnostics.errors import require_packages

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


def read_page_file(folder: Path, path: str) -> tuple[bytes, str] | None:
    """Return the bytes and the media type of a file below ``folder``; None if there is no such file.

    The page itself, ``index.html``, names fonts of another host besides its own; they are left out. Edges show types
    and shapes from the beginning.
    """
    target = (folder / (path or "index.html")).resolve()
    if not target.is_relative_to(folder.resolve()) or not target.is_file():
        return None
    data = target.read_bytes()
    if target.name == "index.html":
        text = _PRECONNECT.sub("", _REMOTE_FONT.sub("", data.decode("utf-8")))
        data = text.replace("</head>", _SETTINGS, 1).encode("utf-8")
    return data, mimetypes.guess_type(target.name)[0] or "application/octet-stream"
