"""Write an exported model, and check what was written."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path

import onnx
import onnx_ir as ir

from ovir.diagnostics.codes import INTERNAL, UNWRITABLE
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import OWN_FAULT, ExportError, WriteError
from ovir.export.exported import Exported

LARGEST_FILE = 2**31 - 2**20
"""The size from which weights do not fit into one protobuf message, with room for the nodes."""
_NEWEST_KNOWN = 26
"""The newest opset that is released and that onnxruntime runs, for machines without onnxruntime."""


def write(exported: Exported, path: Path, *, external_data: bool) -> None:
    """Write a model next to its place, check it, and move it there."""
    separate = external_data or size_of_weights(exported) > LARGEST_FILE
    data_name = f"{path.name}.data"
    try:
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
            written = Path(folder) / path.name
            ir.save(exported.onnx, written, external_data=data_name if separate else None)
            _check(written, str(path))
            if separate:
                os.replace(written.with_name(data_name), path.with_name(data_name))
            os.replace(written, path)
    except OSError as error:
        raise WriteError(diagnose(UNWRITABLE, f"cannot write: {error.strerror or error}", Place(str(path)))) from None


def size_of_weights(exported: Exported) -> int:
    """Return the size of all initializers in bytes."""
    values = exported.onnx.graph.initializers.values()
    return sum(value.const_value.nbytes for value in values if value.const_value is not None)


def _check(written: Path, path: str) -> None:
    try:
        onnx.checker.check_model(written, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        message = f"the exported model is not valid ONNX: {error}"
        raise ExportError(diagnose(INTERNAL, message, Place(path), hint=OWN_FAULT)) from None


@cache
def default_opset() -> int:
    """Return the newest opset of ONNX that the installed onnxruntime runs."""
    try:
        import onnxruntime
    except ImportError:
        return _NEWEST_KNOWN
    newest = onnx.defs.onnx_opset_version()
    for opset in range(newest, _NEWEST_KNOWN - 10, -1):
        info = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
        result = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])
        graph = onnx.helper.make_graph([onnx.helper.make_node("Identity", ["x"], ["y"])], "probe", [info], [result])
        imports = [onnx.helper.make_opsetid("", opset)]
        probe = onnx.helper.make_model_gen_version(graph, opset_imports=imports)
        try:
            onnxruntime.InferenceSession(probe.SerializeToString(), providers=["CPUExecutionProvider"])
        except Exception:  # onnxruntime raises classes of its own, which share no public base
            continue
        return opset
    return _NEWEST_KNOWN
