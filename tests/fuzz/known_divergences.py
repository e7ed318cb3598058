"""Reasons for which random graphs differ between ovir and OpenVINO; each is a row of docs/divergences.md."""

from __future__ import annotations

from fuzz.graph_recipes import Graph


def known_reason(graph: Graph, layers: set[int] | None, message: str) -> str | None:
    """Return why a result that depends on these layers may differ, or why OpenVINO refuses the graph."""
    return None
