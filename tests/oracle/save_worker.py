"""Compares saved models with their originals in OpenVINO, apart from the tests: odd input takes the process down.

usage: save_worker.py FOLDER    each subfolder has inputs.npz and some of original.xml, saved.xml and f16.xml with their
.bin. What OpenVINO reads and computes from them is written to report.json. From original.xml OpenVINO itself saves
plain.xml, and openvino.xml with compress_to_fp16; from saved.xml, resaved.xml with compress_to_fp16.
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


def computed(model: ov.Model, inputs: dict[str, Any]) -> list[Any] | str:
    """Return the outputs; the message for a model that the CPU plugin cannot run."""
    try:
        compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        results = compiled(list(inputs.values()))
    except RuntimeError as error:
        return str(error)
    return [[str(array.dtype), array.tolist()] for array in results.values()]


for folder in sorted(path for path in Path(sys.argv[1]).iterdir() if path.is_dir()):
    with np.load(folder / "inputs.npz") as loaded:
        inputs = dict(loaded)
    report = {}
    for name in ("original", "saved", "f16"):
        if (folder / f"{name}.xml").exists():
            model = core.read_model(folder / f"{name}.xml")
            report[name] = {"model": described(model), "results": computed(model, inputs)}
    if (folder / "saved.xml").exists():
        ov.save_model(core.read_model(folder / "saved.xml"), folder / "resaved.xml", compress_to_fp16=True)
    if (folder / "original.xml").exists():
        original = core.read_model(folder / "original.xml")
        ov.save_model(original, folder / "openvino.xml", compress_to_fp16=True)
        ov.save_model(original, folder / "plain.xml", compress_to_fp16=False)
        report["openvino"] = {"model": described(core.read_model(folder / "openvino.xml"))}
    (folder / "report.json").write_text(json.dumps(report))
