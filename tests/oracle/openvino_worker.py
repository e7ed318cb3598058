"""Runs models in OpenVINO, apart from the tests: it can take the whole process down on odd input.

usage: openvino_worker.py FOLDER    each subfolder has model.xml, model.bin and inputs.npz, or inputs0.npz, inputs1.npz, ...
for calls in a row, by name or in order; expected.npz (out0, out1, ...) of each call and shape.txt (a line an output) are
written beside them.
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
    for path in sorted(folder.glob("inputs*.npz")):
        with np.load(path) as inputs:
            results = compiled(list(inputs.values()) if "arr_0" in inputs else dict(inputs))
        expected = path.with_name(path.name.replace("inputs", "expected"))
        np.savez(expected, **{f"out{i}": value for i, value in enumerate(results.values())})
