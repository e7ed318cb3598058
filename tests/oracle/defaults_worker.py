"""Reads models in OpenVINO apart from the tests: odd models take the process down.

usage: defaults_worker.py FOLDER RESULTS.jsonl    for each .xml that has no line yet, a line {"name"}, then a line
{"name", "error"}, or {"name", "attributes"} with those of the layer "it". A process that crashes writes no second line.
"""

import json
import sys
from pathlib import Path
from typing import Any

import openvino as ov

core = ov.Core()


def read(path: Path) -> dict[str, Any]:
    try:
        model = core.read_model(path)
    except RuntimeError as error:
        return {"error": str(error)}
    node = next(node for node in model.get_ops() if node.get_friendly_name() == "it")
    return {"attributes": {name: str(value) for name, value in node.get_attributes().items()}}


folder, results = map(Path, sys.argv[1:])
known = {json.loads(line)["name"] for line in results.read_text(encoding="utf-8").splitlines()}
with results.open("a", encoding="utf-8") as file:
    for path in sorted(folder.glob("*.xml")):
        if path.stem not in known:
            print(json.dumps({"name": path.stem}), file=file, flush=True)
            print(json.dumps({"name": path.stem, **read(path)}), file=file, flush=True)
