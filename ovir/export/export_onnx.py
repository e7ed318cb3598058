"""``ovir.export_onnx``. The packages of ONNX are imported when a model is exported."""

from __future__ import annotations

import os

from ovir.diagnostics.diagnostic import Place
from ovir.diagnostics.errors import InputError, require_counts, require_packages
from ovir.export.exported import ONNX, Exported, write
from ovir.model import Model
from ovir.system.files import target_paths
from ovir.system.progress import stage


def export_onnx(
    model: Model | str | os.PathLike[str],
    path: str | os.PathLike[str],
    opset: int | None = None,
    *,
    target: str | None = None,
    external_data: bool = False,
    contrib: bool = False,
) -> Exported:
    """Write a model to an ONNX file, and return it with the names of its inputs, outputs and variables.

    Variables become pairs of inputs and outputs. The file is checked with
    ``onnx.checker.check_model(full_check=True)``.

    Args:
        model: The model, or the path of an .xml.
        path: The file, which ends in ``.onnx``.
        opset: The version of ONNX's operators, at least 17; by default the newest that releases of onnxruntime of the
            last year and the installed packages run.
        target: A release that has to read the file, such as ``"onnxruntime:1.20"``, in place of an opset.
        external_data: Whether the weights are written to a second file, ``<path>.data``; above 2 GB they always are.
        contrib: Whether operators that onnxruntime contributes read weights of 4 and 8 bits; other runtimes may lack
            them.

    Raises ExportError, with a diagnostic for each layer that ONNX cannot express, before anything is written, and
    WriteError if the file cannot be written. Raises InputError for another ending, for an opset that is not known, and
    if a package is missing.
    """
    require_packages("the export", "onnx", "onnx", "onnx_ir")
    with stage("loading onnx"):
        from ovir.export.model_exporter import export_model
        from ovir.export.support import opset_for

    if not isinstance(model, Model):
        from ovir.model import read_model  # only this convenience needs the reader

        model = read_model(model)
    require_counts(opset=opset)
    if opset is not None and target is not None:
        raise InputError.usage("excludes an opset: the release decides which it is", option="target")
    target_paths(path, ONNX)  # refuses other endings, so that an IR is never overwritten
    try:
        os.path.abspath(os.fsdecode(path)).encode()
    except UnicodeEncodeError:
        place = Place(os.fsdecode(path))
        raise InputError.usage("the package onnx reads no file whose path is not UTF-8", place) from None
    exported = export_model(model, opset_for(target) if opset is None else opset, contrib=contrib)
    write(exported, path, external_data=external_data)
    return exported
