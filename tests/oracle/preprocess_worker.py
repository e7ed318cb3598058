"""Adds preprocessing to a model with OpenVINO's PrePostProcessor and runs it, apart from the tests.

usage: preprocess_worker.py MODEL.xml CASES.json INPUTS.npz OUTPUTS.npz
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from openvino.preprocess import ColorFormat, PrePostProcessor, ResizeAlgorithm

RESIZE = {
    "linear": ResizeAlgorithm.RESIZE_LINEAR,
    "nearest": ResizeAlgorithm.RESIZE_NEAREST,
    "cubic": ResizeAlgorithm.RESIZE_CUBIC,
    "bilinear_pillow": ResizeAlgorithm.RESIZE_BILINEAR_PILLOW,
    "bicubic_pillow": ResizeAlgorithm.RESIZE_BICUBIC_PILLOW,
}


def prepared(model: ov.Model, case: dict[str, Any]) -> ov.Model:
    """Return the model with the preprocessing of a case."""
    processor = PrePostProcessor(model)
    info = processor.input()
    info.model().set_layout(ov.Layout("NCHW"))
    info.tensor().set_layout(ov.Layout(case.get("layout", "NCHW")))
    if "element_type" in case:
        info.tensor().set_element_type(getattr(ov.Type, case["element_type"]))
    if "reverse_channels" in case:
        info.tensor().set_color_format(ColorFormat.BGR)
    steps = info.preprocess()
    steps.convert_element_type(ov.Type.f32)
    steps.convert_layout("NCHW")
    if "resize" in case:
        info.tensor().set_spatial_dynamic_shape()
        steps.resize(RESIZE[case["resize"]])
    if "reverse_channels" in case:
        steps.convert_color(ColorFormat.RGB)
    for name in ("mean", "scale"):
        if name in case:
            getattr(steps, name)(case[name])
    return processor.build()


def main(path: str, cases: str, inputs: str, outputs: str) -> None:
    arrays, core, found = np.load(inputs), ov.Core(), {}
    for name, case in json.loads(Path(cases).read_text(encoding="utf-8")).items():
        model = prepared(core.read_model(path), case)
        compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        found[name] = compiled([arrays[name]])[0]
    np.savez(outputs, **found)


main(*sys.argv[1:])
