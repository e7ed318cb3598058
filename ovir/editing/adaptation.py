"""Other sizes of the inputs: constants that hold an old size follow the inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ovir.core.shapes import ShapeLike
from ovir.editing.keys import refuse
from ovir.editing.proof import ProvenEdit
from ovir.graph.layer_graph import LayerGraph


def adapt(
    model: LayerGraph, shapes: Mapping[Any, ShapeLike] | ShapeLike, verify: bool, like: LayerGraph | None
) -> ProvenEdit:
    """Give inputs other shapes, and let constants follow; see ``Model.reshape``."""
    refuse("a model cannot be adapted yet")
