"""Reads a file and infers the graph, for ``ovir.read_model``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ovir.core.shapes import ShapeLike
from ovir.diagnostics import codes
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.errors import Diagnostics, ModelError, ReadError
from ovir.graph.layer_graph import LayerGraph
from ovir.inference.differences import about_other_shapes
from ovir.inference.models import infer_into, reshaped_parameters, set_parameters
from ovir.ir.reader import load
from ovir.ir.source import Source
from ovir.system.python_runtime import without_garbage_collection

G = TypeVar("G", bound=LayerGraph)


def read_and_infer(
    source: Source,
    weights: Any,
    kind: type[G],
    *,
    shapes: Mapping[Any, ShapeLike] | ShapeLike | Callable[[G], Mapping[Any, ShapeLike]] | None = None,
    legacy_io: bool = False,
) -> G:
    """Read an IR file as a graph of a class, and infer it; see ``ovir.read_model``.

    ``shapes`` may be a function of the graph before it is inferred.
    """
    diagnostics = Diagnostics()
    with without_garbage_collection():
        document = load(source, weights, kind, diagnostics)
        if document is None or any(map(_prevents_inference, diagnostics)):
            diagnostics.raise_errors(ReadError)
        assert document is not None
        graph = document.model
        if shapes is not None:
            diagnostics.raise_errors()
            set_parameters(reshaped_parameters(graph, shapes(graph) if callable(shapes) else shapes))
        not_fatal = infer_into(graph, diagnostics, trust_declared=bool(diagnostics.fatal))
        if graph.version == 10:
            from ovir.ir.legacy import apply_legacy_io, check_names

            check_names(graph, diagnostics)
            if legacy_io and not diagnostics.fatal:
                apply_legacy_io(graph)
                not_fatal = infer_into(graph, diagnostics)
    try:
        diagnostics.raise_errors()
    except ModelError as error:
        if len(error.diagnostics) > 1 and not legacy_io:
            error.add_note("  hint: `ovir check` reports every fault of the file, with what follows from it")
        raise
    graph.inference_diagnostics = not_fatal if shapes is None else about_other_shapes((), not_fatal)
    from_inference = set(not_fatal)
    graph.read_diagnostics = [d for d in diagnostics.non_fatal if d not in from_inference]
    return graph


def _prevents_inference(fault: Diagnostic) -> bool:
    if fault.code in (codes.NO_WEIGHTS.id, codes.FOREIGN_WEIGHTS.id):
        return fault.code == codes.FOREIGN_WEIGHTS.id
    return codes.CODES[fault.code].unusable
