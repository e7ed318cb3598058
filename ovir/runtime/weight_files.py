"""The files that hold the weights of a model: they are mapped, so a program that writes into one changes runs."""

from __future__ import annotations

from collections.abc import Collection

from ovir.diagnostics.errors import ReadError
from ovir.graph.layer_graph import LayerGraph
from ovir.ir.weights import Constant, FileVersion
from ovir.ops.infrastructure import Const


def weight_files(model: LayerGraph) -> frozenset[FileVersion]:
    """Return the files of the constants of a model and its bodies, as they were when they were mapped."""
    data = (layer.operator.constant_data for layer in model.walk() if isinstance(layer.operator, Const))
    return frozenset(blob.file for blob in data if isinstance(blob, Constant) and blob.file is not None)


def require_unchanged(files: Collection[FileVersion], doubtful: str) -> None:
    """Raise ReadError if a file was written into since it was mapped; ``doubtful`` says what may be wrong then.

    A file that has taken the place of another one, as one that ovir saves, changes nothing.
    """
    for file in files:
        if (change := file.overwritten()) is not None:
            message = f"the weights were overwritten since the model was read: {change}; {doubtful}"
            hint = "run again; a program that changes weights should write a new file and rename it"
            raise ReadError.of_file(file.path, message, hint=hint)
