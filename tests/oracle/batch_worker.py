"""Runs models in OpenVINO, apart from the tests: for each NAME.xml of a folder, the inputs NAME.npz give NAME.out.npz."""

import sys
from pathlib import Path

import numpy as np
import openvino as ov

core = ov.Core()
for path in sorted(Path(sys.argv[1]).glob("*.xml")):
    compiled = core.compile_model(str(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    inputs = np.load(path.with_suffix(".npz"))
    found = compiled([inputs[key] for key in inputs.files])
    np.savez(path.with_suffix(".out.npz"), *[found[port] for port in compiled.outputs])
