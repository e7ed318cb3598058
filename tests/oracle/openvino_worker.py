"""Runs models in OpenVINO, apart from the tests: it can take the whole process down on odd input.

usage: openvino_worker.py FOLDER    each subfolder has model.xml, model.bin and inputs.npz;
expected.npz (out0, out1, ...) and shape.txt (a line an output) are written beside them.
"""

import sys
from pathlib import Path

import numpy as np
import openvino as ov

core = ov.Core()
for folder in sorted(path for path in Path(sys.argv[1]).iterdir() if path.is_dir()):
    model = core.read_model(folder / "model.xml")
    (folder / "shape.txt").write_text("\n".join(str(output.partial_shape) for output in model.outputs))
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    with np.load(folder / "inputs.npz") as inputs:
        results = compiled(dict(inputs))
    np.savez(folder / "expected.npz", **{f"out{i}": value for i, value in enumerate(results.values())})
