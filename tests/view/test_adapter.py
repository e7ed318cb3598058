"""The adapter, as Model Explorer finds and calls it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("model_explorer", reason="Model Explorer, of the extra `view`, is not installed")

EXAMPLES = Path(__file__).parents[2] / "examples" / "xml"

CONVERT = """
import json, sys
from model_explorer.extension_manager import ExtensionManager

manager = ExtensionManager(["ovir.view"])
manager.load_extensions()
found = [item for item in manager.get_extensions_metadata() if "xml" in item["fileExts"]]
command = {"cmdId": "convert", "extensionId": found[0]["id"], "modelPath": sys.argv[1],
           "settings": {"const_element_count_limit": 2}, "deleteAfterConversion": False}
print(json.dumps([found, manager.run_cmd(command)]))
"""


@pytest.mark.slow
def test_model_explorer_loads_and_runs_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CONVERT, EXAMPLES / "digits.xml"], capture_output=True, text=True, check=True
    )
    (metadata,), result = json.loads(done.stdout.splitlines()[-1])
    assert (metadata["id"], metadata["type"], metadata["fileExts"]) == ("ovir", "adapter", ["xml"])
    (graph,) = result["graphs"]
    nodes = {node["id"]: node for node in graph["nodes"]}
    values = next(item["value"] for item in nodes["conv1/weights"]["attrs"] if item["key"] == "values")
    assert values.count(",") == 2
    assert values.endswith("(144 values)")
    assert graph["nodeLabelsToHide"] == []
