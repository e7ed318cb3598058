"""Edits that leave an inferred model, or raise and change nothing.

``editing`` is a block of changes. It takes a snapshot of the model before them and infers the model after them; if
either raises, it restores the snapshot. Blocks nest: only the outermost one takes a snapshot and infers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import cast

from ovir.diagnostics.errors import ModelError
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer
from ovir.graph.snapshot import Snapshot
from ovir.inference.differences import DIFFERENCES
from ovir.inference.models import infer_model


class OpenEdits:
    """A block of edits that has not ended."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.failure: BaseException | None = None
        """The exception that an edit has raised halfway. The block must undo everything, even if it has been caught."""


@contextmanager
def editing(model: LayerGraph, new: Iterable[Layer] = ()) -> Iterator[None]:
    """Combine edits of a model, or of the model around a body, to one: see the module.

    If the edits are undone, the layers ``new``, which belong to no model yet, become what they are now.
    """
    root = outermost(model)
    if root.open_edits is not None:
        root.open_edits.snapshot.add(new)
        with _inner(root.open_edits):
            yield
        return
    root.prepare_change()
    snapshot = Snapshot(root)
    snapshot.add(new)
    edits = root.open_edits = OpenEdits(snapshot)
    try:
        yield
        if edits.failure is not None:
            raise edits.failure
        infer_edited(root)
    except BaseException:
        snapshot.restore()
        raise
    finally:
        root.open_edits = None


@contextmanager
def _inner(edits: OpenEdits) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        edits.failure = error
        raise


def infer_edited(root: LayerGraph) -> None:
    """Infer a model after edits. Declared types that differ from those after the edits are not reported.

    Raises ModelError with the first error only, because others usually follow from it.
    """
    earlier = set(root.inference_diagnostics)
    try:
        found = infer_model(root)
    except ModelError as error:
        raise ModelError(error.diagnostic) from None
    root.inference_diagnostics = [d for d in found if d.code not in DIFFERENCES or d in earlier]


def with_types(model: LayerGraph) -> None:
    """Infer a model if edits of an open block have changed it since its last inference."""
    root = outermost(model)
    if root.open_edits is not None and any(graph.needs_inference for graph in root.graphs()):
        infer_edited(root)


def outermost(model: LayerGraph) -> LayerGraph:
    """Return the model itself, or the one around a body and all bodies between."""
    return cast("LayerGraph", list(model.around())[-1])


def owner_of(layer: Layer) -> LayerGraph:
    """Return the model or body that a layer is in."""
    return cast("LayerGraph", layer.owner)
