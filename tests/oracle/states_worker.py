"""Runs models in OpenVINO for some calls in a row, apart from the tests.

usage: states_worker.py FOLDER PAIRS    PAIRS: as JSON, the output for the next value of each input that is a state;
calls.npz has the other inputs as ``0:x``, ``1:x``. outputs.npz gets the first output of stateful.xml, open.xml, whose
states are inputs, back.xml, and open.xml after OpenVINO's own MakeStateful if all sizes are known, as ``stateful:0``.
"""

import json
import sys
from pathlib import Path

import numpy as np
import openvino as ov
from openvino._offline_transformations import apply_make_stateful_transformation

SETTINGS = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}


def main(folder: Path, pairs: dict[str, str]) -> None:
    core = ov.Core()
    calls: dict[int, dict[str, np.ndarray]] = {}
    for key, array in np.load(folder / "calls.npz").items():
        number, name = key.split(":")
        calls.setdefault(int(number), {})[name] = array
    models = {name: core.read_model(folder / f"{name}.xml") for name in ("stateful", "open", "back")}
    if not models["open"].is_dynamic():
        models["made"] = core.read_model(folder / "open.xml")
        apply_make_stateful_transformation(models["made"], pairs)
    found = {}
    for title, model in models.items():
        request = core.compile_model(model, "CPU", SETTINGS).create_infer_request()
        held = {}
        for port in model.inputs if title == "open" else ():
            if port.any_name in pairs:
                sizes = [d.get_length() if d.is_static else int(axis == 0) for axis, d in enumerate(port.partial_shape)]
                held[port.any_name] = np.zeros(sizes, np.float32)
        for number, feeds in sorted(calls.items()):
            results = request.infer({**feeds, **held})
            found[f"{title}:{number}"] = results[0].copy()
            held = {past: results[pairs[past]].copy() for past in held}
    np.savez(folder / "outputs.npz", **found)


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
