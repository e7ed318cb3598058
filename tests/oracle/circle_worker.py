"""Takes node tests of ONNX through OpenVINO and ovir, apart from the tests: odd input takes the process down.

usage: circle_worker.py STEP FIRST REPORT    Every STEP-th test from number FIRST on: OpenVINO converts it to IR, ovir
exports the IR, onnxruntime (or onnx.reference) runs the export, and OpenVINO reads it back and runs it, too. For each
test a line of JSON is appended to REPORT: its number and name before, and what became of it after.
"""

import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import openvino as ov
from onnx.backend.test.case.node import collect_testcases

import ovir
from ovir.export.model_exporter import export_model
from ovir.export.session import OnnxRuntimeSession, ReferenceSession
from ovir.export.support import default_opset

warnings.simplefilter("ignore")
core = ov.Core()
ROUNDING = 1e-3, 1e-3
"""The differences that results may have: relative, and as a part of the largest number."""


def is_same(found: Any, wanted: Any) -> bool:
    a, b = np.asarray(found), np.asarray(wanted)
    if a.shape != b.shape:
        return False
    if a.dtype.kind in "OUST" or b.dtype.kind in "OUST":
        return [str(x) for x in a.ravel()] == [str(x) for x in b.ravel()]
    a, b = a.astype(np.float64), b.astype(np.float64)
    largest = np.abs(b[np.isfinite(b)]).max(initial=0)
    return np.allclose(a, b, rtol=ROUNDING[0], atol=ROUNDING[1] * max(largest, 1e-2), equal_nan=True)


def outcome(case: Any) -> str:
    inputs, wanted = case.data_sets[0]
    if not all(isinstance(x, np.ndarray) for x in (*inputs, *wanted)):
        return "no tensors"
    with tempfile.TemporaryDirectory() as folder:
        try:
            onnx.save(case.model, f"{folder}/model.onnx")
            ov.save_model(core.read_model(f"{folder}/model.onnx"), f"{folder}/model.xml", compress_to_fp16=False)
        except RuntimeError:
            return "OpenVINO does not convert it"
        return after_conversion(case, Path(folder), inputs, wanted)


def after_conversion(case: Any, folder: Path, inputs: Any, wanted: Any) -> str:
    given = dict(zip((value.name for value in case.model.graph.input), inputs, strict=False))
    try:
        model = ovir.read_model(folder / "model.xml")
        feeds = [
            np.asarray(
                given[next(n for n in (*port.names, port.layer.name) if n in given)], port.element_type.to_dtype()
            )
            for port in model.inputs
        ]
        ours = list(ovir.compile_model(model)(feeds).values())
    except (ovir.OvirError, StopIteration):
        return "ovir does not run it"
    if not all(map(is_same, ours, wanted)):
        return "OpenVINO's IR computes something else"
    try:
        exported = export_model(model, default_opset())
    except ovir.ExportError as error:
        return f"refused: {error.diagnostic.message}"
    kept = {value.name for value in exported.onnx.graph.inputs}
    arrays = {name: array for name, array in zip(exported.inputs, feeds, strict=True) if name in kept}
    try:
        found = OnnxRuntimeSession(exported).run(arrays, exported.outputs)
    except ovir.RunError:
        found = ReferenceSession(exported).run(arrays, exported.outputs)
    if not all(map(is_same, found, wanted)):
        return "wrong"
    return read_back(exported, folder, arrays, wanted)


def read_back(exported: Any, folder: Path, arrays: dict[str, Any], wanted: Any) -> str:
    ir.save(exported.onnx, folder / "exported.onnx")
    try:
        model = core.read_model(folder / "exported.onnx")
        compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        results = compiled([arrays[next(n for n in port.names if n in arrays)] for port in compiled.inputs])
    except (RuntimeError, StopIteration):
        return "OpenVINO does not run the export"
    return "equal" if all(map(is_same, results.values(), wanted)) else "OpenVINO computes something else"


if __name__ == "__main__":
    step, first, report = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    cases = sorted(collect_testcases(None), key=lambda case: case.name)
    with report.open("a") as file:
        for number in range(first, len(cases), step):
            file.write(json.dumps([number, cases[number].name, None]) + "\n")
            file.flush()
            file.write(json.dumps([number, cases[number].name, outcome(cases[number])]) + "\n")
            file.flush()
