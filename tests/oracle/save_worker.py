"""Compares saved models with their originals in OpenVINO, apart from the tests: odd input takes the process down.

usage: save_worker.py FOLDER    each subfolder has original.xml and saved.xml with their .bin, f16.xml that ovir has
written with compress_to_fp16, and inputs.npz. openvino.xml is written with OpenVINO's own compress_to_fp16, and
report.json beside them: what OpenVINO reads and computes from original and saved.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

core = ov.Core()


def described(model: ov.Model) -> list[Any]:
    """Names, types and shapes of inputs and outputs, and of all layers but those that OpenVINO itself has added."""
    ports = [
        [sorted(port.names), str(port.element_type), str(port.partial_shape), port.node.get_friendly_name()]
        for port in (*model.inputs, *model.outputs)
    ]
    layers = [
        [
            node.get_friendly_name(),
            node.get_type_name(),
            [[str(o.element_type), str(o.partial_shape)] for o in node.outputs()],
        ]
        for node in model.get_ops()
        if not node.get_friendly_name().startswith("Constant_")
    ]
    return [ports, sorted(layers)]


def computed(model: ov.Model, inputs: dict[str, Any]) -> list[Any]:
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return [[str(array.dtype), array.tolist()] for array in compiled(inputs).values()]


for folder in sorted(path for path in Path(sys.argv[1]).iterdir() if path.is_dir()):
    with np.load(folder / "inputs.npz") as loaded:
        inputs = dict(loaded)
    report = {}
    for name in ("original", "saved", "f16"):
        model = core.read_model(folder / f"{name}.xml")
        report[name] = {"model": described(model), "results": computed(model, inputs)}
    original = core.read_model(folder / "original.xml")
    ov.save_model(original, folder / "openvino.xml", compress_to_fp16=True)
    ov.save_model(original, folder / "plain.xml", compress_to_fp16=False)
    report["openvino"] = {"model": described(core.read_model(folder / "openvino.xml"))}
    (folder / "report.json").write_text(json.dumps(report))
