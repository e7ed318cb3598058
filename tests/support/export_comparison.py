"""Comparison of an exported model with the model itself."""

from collections.abc import Sequence

import numpy as np

import ovir
from ovir.core.arrays import Array
from ovir.export.exported import Exported
from ovir.export.model_exporter import export_model
from ovir.export.session import OnnxRuntimeSession, ReferenceSession
from ovir.export.support import held_as

RELATIVE = {2: 1e-2, 4: 1e-4, 8: 1e-6}
"""The difference that results of a size in bytes may have, as a part of the largest one."""


def check_exported(model: ovir.Model, feeds: Sequence[Array], opset: int) -> str | None:
    """Export a model to an opset, run both on the same inputs, and return how they differ, None if they are equal.

    Raises ExportError for a model that cannot be exported, and RunError if neither engine runs what was exported.
    """
    try:
        exported = export_model(model, opset)
    except ovir.ExportError as error:
        if "OVIR999" in str(error):  # a fault of ovir, not a limit
            raise AssertionError(str(error)) from error
        raise
    return difference_of(model, exported, feeds, opset)


def difference_of(model: ovir.Model, exported: Exported, feeds: Sequence[Array], opset: int) -> str | None:
    """Run a model and its export on the same inputs, and return how they differ, None if they are equal."""
    wanted = list(ovir.compile_model(model)(list(feeds)).values())
    arrays = {
        name: np.asarray(array, port.element_type.to_dtype())
        for name, port, array in zip(exported.inputs, model.inputs, feeds, strict=True)
    }
    kept = {value.name for value in exported.onnx.graph.inputs}
    arrays = {name: array for name, array in arrays.items() if name in kept}
    try:
        found = OnnxRuntimeSession(exported).run(arrays, exported.outputs)
    except ovir.RunError:
        found = ReferenceSession(exported).run(arrays, exported.outputs)
    for index, (port, ours, theirs) in enumerate(zip(model.outputs, wanted, found, strict=True)):
        held = held_as(port.element_type, opset)
        assert held is not None, f"{port.element_type} is exported to opset {opset}, which has no such type"
        if difference := _difference(ours.astype(held.to_dtype(), copy=False), theirs):
            return f"output {index}: {difference}"
    return None


def _difference(ours: Array, theirs: Array) -> str | None:
    if ours.shape != theirs.shape:
        return f"shape {theirs.shape} instead of {ours.shape}"
    if ours.dtype.kind == "T":
        return None if ours.tolist() == theirs.tolist() else "other texts"
    if ours.dtype != theirs.dtype:
        return f"type {theirs.dtype} instead of {ours.dtype}"
    if ours.dtype.kind in "biu":
        return None if np.array_equal(ours, theirs) else f"{theirs.tolist()} instead of {ours.tolist()}"
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    finite = np.abs(a[np.isfinite(a)])
    close = RELATIVE.get(ours.dtype.itemsize, 1e-1) * max(float(finite.max()) if finite.size else 0.0, 1e-3)
    equal = np.isclose(a, b, rtol=0, atol=close, equal_nan=True)
    return None if equal.all() else f"{b[~equal][:5]} instead of {a[~equal][:5]}"
