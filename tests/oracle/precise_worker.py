"""Runs models on OpenVINO's CPU plugin with bf16 and reports the precision of each layer, apart from the tests.

usage: precise_worker.py FOLDER    the folder has models and inputs.npz; report.json gets, by the name of the model, the
precision in which each layer ran, and the outputs in bf16 and in f32. It stays empty on a CPU without bf16.
"""

import json
import sys
from pathlib import Path

import numpy as np
import openvino as ov

core = ov.Core()
folder = Path(sys.argv[1])
report = {}
if "BF16" in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
    inputs = list(np.load(folder / "inputs.npz").values())
    for path in sorted(folder.glob("*.xml")):
        compiled = core.compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "bf16"})
        exact = core.compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        precisions = {}
        for node in compiled.get_runtime_model().get_ordered_ops():
            info = node.get_rt_info()
            for name in str(info["originalLayersNames"].astype(str)).split(","):
                precisions[name] = str(info["runtimePrecision"].astype(str))
        outputs = [model(inputs)[0].tolist() for model in (compiled, exact)]
        report[path.stem] = {"precisions": precisions, "bf16": outputs[0], "f32": outputs[1]}
(folder / "report.json").write_text(json.dumps(report))
