"""The result of an export: the ONNX model with its names, and the file that it is written to."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.reading import open_regular
from ovir.diagnostics.codes import INTERNAL, NOT_EXPORTED
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import OWN_FAULT, ExportError
from ovir.ir.weights import release_pages
from ovir.system.files import Kind, writing_pair
from ovir.system.interrupts import temporary_folder
from ovir.system.progress import Stage, stage

if TYPE_CHECKING:
    import onnx_ir as ir


ONNX = Kind("ONNX model", ".onnx", ".onnx.data", "weights")
LARGEST_FILE = 2**31 - 2**20
"""The size from which weights do not fit into one protobuf message, with room for the nodes."""


@dataclass
class Exported:
    """A model in ONNX, and the names of its inputs, outputs and variables."""

    onnx: ir.Model
    """The model, as an object of the package onnx_ir."""
    inputs: list[str] = field(default_factory=list)
    """The names of the inputs, in the order of the inputs of the model, without the variables."""
    outputs: list[str] = field(default_factory=list)
    """The names of the outputs, in the order of the outputs of the model, without the variables."""
    state_inputs: dict[str, str] = field(default_factory=dict)
    """The input that holds each variable before a call, by its id."""
    state_outputs: dict[str, str] = field(default_factory=dict)
    """The output that holds each variable after a call, by its id."""

    def feeds(self, arrays: Sequence[Array]) -> dict[str, Array]:
        """Return arrays for the inputs and the variables by name, without those that the graph has left out."""
        kept = {value.name for value in self.onnx.graph.inputs}
        names = (*self.inputs, *self.state_inputs.values())
        return {name: array for name, array in zip(names, arrays, strict=True) if name in kept}


def write(exported: Exported, path: str | os.PathLike[str], *, external_data: bool) -> None:
    """Write a model and check it; only then the files replace older ones.

    The data file is named ``<path>.data``.
    """
    import onnx_ir as ir

    weights = (value.const_value for value in exported.onnx.graph.initializers.values())
    separate = external_data or sum(0 if tensor is None else tensor.nbytes for tensor in weights) > LARGEST_FILE
    name = os.path.basename(os.fsdecode(path))
    with writing_pair(path, ONNX, has_data=separate) as (text, *data):
        folder = os.path.dirname(os.path.abspath(os.fsdecode(path)))
        with temporary_folder(f".{name}.", folder) as temporary:
            written = temporary / name
            with stage("writing") as shown:
                data_name = f"{name}.data" if separate else None
                ir.save(exported.onnx, written, external_data=data_name, callback=_Written(shown))
            with stage("checking the file"):
                _check(written, os.fsdecode(path), exported)
            with open_regular(written) as file:
                shutil.copyfileobj(file, text, 1 << 20)
            if data:
                data[0].close()
                os.replace(written.with_name(f"{name}.data"), data[0].name)


class _Written:
    """Counts the tensors that are written, and releases the memory of those that were read from a file."""

    def __init__(self, shown: Stage) -> None:
        self._stage = shown
        self._last: Any = None

    def __call__(self, tensor: Any, info: Any) -> None:
        """Take note of a tensor that is about to be written."""
        self._stage.total, self._stage.done, self._stage.item = info.total, info.index, tensor.name
        if isinstance(self._last, np.ndarray) and self._last.flags.c_contiguous:
            release_pages(self._last)
        self._last = tensor.raw


def _check(written: Path, path: str, exported: Exported) -> None:
    import onnx

    try:
        onnx.checker.check_model(written, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        graph = exported.onnx.graph
        values = (value for values in (graph.inputs, *(node.outputs for node in graph)) for value in values)
        if empty := [value.name for value in values if value.shape is not None and 0 in value.shape]:
            message = f"cannot be exported to ONNX: tensor '{empty[0]}' has no elements, which ONNX does not allow"
            raise ExportError(diagnose(NOT_EXPORTED, message, Place(path))) from None
        message = f"the exported model is not valid ONNX: {error}"
        raise ExportError(diagnose(INTERNAL, message, Place(path), hint=OWN_FAULT)) from None
