"""Describes saved models as JSON."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ovir.core.files import target_paths
from ovir.graph.layers import Port
from ovir.model import Model


def saved_as_json(model: Model, path: str | None, keys_before: Collection[str]) -> dict[str, Any]:
    """Return what has been written to ``path``, or would have been.

    ``keys_before`` are the keys of the layers from which it was made.
    """
    keys = dict.fromkeys(layer.key for layer in model.walk())
    return {
        "files": [] if path is None else list(target_paths(path)),
        "name": model.name,
        "inputs": [port_as_json(port) for port in model.inputs],
        "outputs": [port_as_json(port) for port in model.outputs],
        "layers": len(model.layers),
        "added": [key for key in keys if key not in keys_before],
        "removed": [key for key in keys_before if key not in keys],
    }


def port_as_json(port: Port) -> dict[str, Any]:
    """Return names and type of an input or output."""
    return {
        "name": port.any_name,
        "names": sorted(port.names),
        "layer": port.layer.name,
        "shape": str(port.shape),
        "type": str(port.element_type),
    }
