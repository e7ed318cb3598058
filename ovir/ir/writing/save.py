"""Save a model, or Python code that builds it."""

from __future__ import annotations

import os
from typing import TypeVar

import numpy as np

from ovir.building.python_code import Program
from ovir.core.shapes import PartialShape
from ovir.diagnostics.codes import INFERENCE
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.errors import Diagnostics, InputError, ModelError
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer
from ovir.graph.names import make_names_unique, repeated_names
from ovir.inference.models import infer_if_edited
from ovir.ir.legacy import check_names, upgraded
from ovir.ir.read_and_infer import read_and_infer
from ovir.ir.writing.blobs import BlobWriter
from ovir.ir.writing.compression import Narrow, compress
from ovir.ir.writing.net import VERSION, NetWriter
from ovir.system.files import CODE, target_paths, writing_pair
from ovir.system.python_runtime import without_garbage_collection

G = TypeVar("G", bound=LayerGraph)


def write_model(
    model: G | str | os.PathLike[str],
    output_model: str | os.PathLike[str],
    compress_to: Narrow | None,
    kind: type[G],
    version: int = VERSION,
    *,
    with_weights: bool = True,
) -> tuple[G, list[Diagnostic]]:
    """Write a model, or one that is read as a graph of class ``kind``; see ``ovir.save_model``.

    Without weights, only the .xml is written, whose constants stay where they are in the .bin of the model.

    Return what the file holds, which may have other layers than the model, and the warnings.
    """
    target_paths(output_model)
    if version not in (10, VERSION):
        raise InputError.usage(f"argument 'version': expected 10 or {VERSION}, got {version!r}")
    if isinstance(model, (str, os.PathLike)):
        model = read_and_infer(model, None, kind)
    if not isinstance(model, LayerGraph):
        message = f"expected a Model or the path of an .xml, got {type(model).__name__}"
        raise InputError.usage(message)
    with without_garbage_collection():
        prepared, warnings = prepare(model, compress_to, version)
        with writing_pair(output_model, has_data=with_weights) as (text, *data):
            text.write(NetWriter(BlobWriter(data[0]) if data else None, version).write(prepared).encode())
    return prepared, warnings


def prepare(model: G, compress_to: Narrow | None, version: int = VERSION) -> tuple[G, list[Diagnostic]]:
    """Return the model that its file would hold, and the warnings; raise ModelError if no file can hold it."""
    if model.has_gaps:
        message = "the model cannot be saved: parts of it could not be read"
        raise ModelError(diagnose(INFERENCE, message, Place(model.path)))
    infer_if_edited(model)
    if version != VERSION:
        _require_version_10(model)
    prepared = upgraded(model) if version == VERSION else model  # without implicit conversions
    if compress_to is None:
        return prepared, []
    prepared = prepared if prepared is not model else model.clone()
    return prepared, compress(prepared, compress_to)


def _require_version_10(model: LayerGraph) -> None:
    """Raise ModelError for contents that files of version 10 cannot hold: sizes without a bound, and ambiguous names.

    The size of a suppression is written as its upper bound, as OpenVINO 2021 does it.
    """
    diagnostics = Diagnostics()
    for port in model.inputs:
        if port.shape.is_dynamic:
            message = f"a file of version 10 holds exact sizes only, and this input has the shape {port.shape}"
            hint = f"give it exact sizes: --shape {port.any_name}=..., or Model.reshape"
            diagnostics.add(diagnose(INFERENCE, message, port.layer.place, hint=hint))
    for layer in model.walk():
        is_filled = any(port.shape.is_dynamic for port in layer.inputs) or (
            layer.operator is not None and layer.operator.is_filled
        )
        unknown = [
            port.shape for port in layer.outputs if not (_is_bounded(port.shape) if is_filled else port.shape.is_static)
        ]
        if unknown and layer.type != "Parameter" and all(_is_bounded(port.shape) for port in layer.inputs):
            message = f"a file of version 10 holds exact sizes only, and this layer gives the shape {unknown[0]}"
            hint = "files of version 11, which OpenVINO reads from release 2022.1, hold sizes that only a run shows"
            diagnostics.add(diagnose(INFERENCE, message, layer.place, hint=hint))
    check_names(model, diagnostics)
    if errors := diagnostics.fatal:
        raise ModelError(*errors)


def _is_bounded(shape: PartialShape) -> bool:
    """Return whether the rank is known, and each size has an upper bound."""
    return shape.rank is not None and all(dim.upper is not None for dim in shape)


def to_python(model: LayerGraph, path: str | os.PathLike[str], weights_file: str | None = None) -> None:
    """Write Python code that builds the model; running it leaves the Model in ``model``.

    Constants of many elements are written to the .npz of the same name. Names of layers and tensors, bodies and
    variables are kept; layers that no result depends on are left out. A model of version 10 is upgraded, as by
    ``save_model``. The files replace older ones only when both are complete. A tensor name that an earlier tensor has
    gets a number. The code reads constants whose data is missing from ``weights_file``, the name of a .bin beside it.

    Raises WriteError if the files cannot be written, and ModelError if the model is wrong.
    """
    target_paths(path, CODE)
    program = program_of(model, weights_file)
    with writing_pair(path, CODE, has_data=bool(program.arrays)) as (text, *data):
        text.write(program.text.encode())
        if data:
            np.savez(data[0], **program.arrays)  # type: ignore[arg-type]  # mypy takes them for allow_pickle


def program_of(model: LayerGraph, weights_file: str | None = None) -> Program:
    """Return the code for a model; one of version 10 is upgraded, as the code has no rules of versions.

    Tensor names that an earlier tensor has get a number, because ``Model`` takes a name for one tensor only.
    """
    model = upgraded(model)
    if any(next(repeated_names(_alive(graph)), None) for graph in model.graphs()):
        model = model.clone()
        for graph in model.graphs():
            make_names_unique(_alive(graph))
    return Program(model, weights_file)


def _alive(graph: LayerGraph) -> list[Layer]:
    return [layer for layer in graph.layers if not layer.is_dead or layer.type == "Parameter"]
