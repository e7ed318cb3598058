"""Saves models: the public function and the steps before and after writing."""

from __future__ import annotations

import os

from ovir.core.garbage import without_garbage_collection
from ovir.diagnostics.codes import INFERENCE, USAGE
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.errors import InputError, ModelError
from ovir.graph.model import Model
from ovir.inference.models import infer_model
from ovir.ir.legacy import apply_legacy_io
from ovir.ir.reader import read_model
from ovir.ir.writing.blobs import BlobWriter
from ovir.ir.writing.half import compress_to_f16
from ovir.ir.writing.net import NetWriter
from ovir.ir.writing.pair import target_paths, writing_pair


def save_model(
    model: Model | str | os.PathLike[str], output_model: str | os.PathLike[str], compress_to_fp16: bool = False
) -> list[Diagnostic]:
    """Write a model as IR version 11: an .xml and the .bin next to it; return the warnings.

    ``model`` may also be the path of an .xml. A model of version 10 is upgraded: what OpenVINO does to the inputs and
    outputs of such a file becomes part of the model. A model that was edited is inferred first.

    The files replace older ones only when both are complete; they may be the files of the model itself. Equal models
    give equal files. Raises WriteError if they cannot be written, and ModelError if the model is wrong.
    """
    return write_model(model, output_model, compress_to_fp16)[1]


def write_model(
    model: Model | str | os.PathLike[str], output_model: str | os.PathLike[str], compress_to_fp16: bool
) -> tuple[Model, list[Diagnostic]]:
    """Write a model; return what the file holds, which may have other layers, and the warnings of ``save_model``."""
    target_paths(output_model)
    if isinstance(model, (str, os.PathLike)):
        model = read_model(model)
    if not isinstance(model, Model):
        message = f"expected a Model or the path of an .xml, got {type(model).__name__}"
        raise InputError(diagnose(USAGE, message))
    with without_garbage_collection():
        prepared = _prepared(model)
        warnings: list[Diagnostic] = []
        if compress_to_fp16:
            prepared = prepared if prepared is not model else model.clone()
            warnings = compress_to_f16(prepared)
        with writing_pair(output_model) as (text, data):
            text.write(NetWriter(BlobWriter(data)).write(prepared).encode())
    return prepared, warnings


def _prepared(model: Model) -> Model:
    """Return the model as a file of the present version describes it: inferred, and without implicit conversions."""
    if model.has_gaps:
        message = "the model cannot be saved: parts of it could not be read"
        raise ModelError(diagnose(INFERENCE, message, Place(model.path)))
    _infer_edited(model)
    return upgraded(model)


def _infer_edited(model: Model) -> None:
    if any(part.needs_inference for part in model.graphs()):
        model.infer_shapes()


def upgraded(model: Model) -> Model:
    """Return a model of version 11 that says itself what OpenVINO does to inputs and outputs of version 10."""
    if model.version != 10:
        return model
    _infer_edited(model)
    result = model.clone()
    apply_legacy_io(result)
    infer_model(result)
    return result
