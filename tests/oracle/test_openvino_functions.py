"""Code written for random models of one operation means the same to OpenVINO's functions as to ovir's."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fuzz.cases import VERSIONS, make_case

import ovir
from ovir.building.python_code import Program
from ovir.core.shapes import PartialShape

WORKER = Path(__file__).with_name("functions_worker.py")
ROUNDS = 4  # models of each operation version

# Why OpenVINO's functions cannot build some models that ovir's can.
EXPECTED = {
    "AttributeError: module 'openvino.opset\\d+' has no attribute": "OpenVINO has no function for the operation",
    "unexpected keyword argument": "an attribute or input that OpenVINO's function lacks, and the output_type of Range",
    "dictionary is missing|value must by of type|Unable to cast|fill_mode must be|k_element_type ==": "OpenVINO checks more than it needs",
    "Unidentified data type .*dtype\\('O'\\)": "None for an optional input that OpenVINO's function requires",
    "VariableInfo": "OpenVINO's read_value takes no names of types",
    "Swish inputs must have the same type": "OpenVINO's swish adds a beta of f32, whatever the type of the data is",
    "Accessing out-of-range dimension": "OpenVINO's SparseFillEmptyRows needs the rank of the values",
    "NOTSET.* is not a member": "OpenVINO's functions lack notset, which its files may have",
    "index '2' out of range": "OpenVINO's Broadcast-1 needs axes for the mode pdpd",
}

pytestmark = pytest.mark.oracle


def codes() -> tuple[list[tuple[str, str]], dict[str, ovir.Model]]:
    """Return the code of models without large constants and bodies, and the models, by name."""
    found, models = [], {}
    for seed in range(ROUNDS * len(VERSIONS)):
        case = make_case(seed)
        try:
            model = ovir.read_model(case.text, case.weights)
        except ovir.OvirError:
            continue
        program = Program(model)
        if not program.arrays and not any(layer.bodies for layer in model.layers):
            name = f"{seed}: {case.name}"
            found.append((name, program.text))
            models[name] = model
    return found, models


def answers(wanted: list[tuple[str, str]], folder: Path) -> dict[str, dict[str, Any]]:
    """Return what OpenVINO answers; models that make it crash are left out."""
    source, target, found = folder / "code.json", folder / "results.jsonl", {}
    target.touch()
    while wanted:
        source.write_text(json.dumps(wanted), encoding="utf-8")
        subprocess.run([sys.executable, str(WORKER), str(source), str(target)], capture_output=True, timeout=600)
        lines = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
        found = {line["name"]: line for line in lines}
        assert lines, "the worker does not start"
        wanted = [item for item in wanted if item[0] not in found]
    return {name: line for name, line in found.items() if len(line) > 1}


def problem(model: ovir.Model, answer: dict[str, Any]) -> str:
    """Return how OpenVINO's model differs; empty if it does not, or if there is a known reason."""
    if "error" in answer:
        known = any(re.search(pattern, answer["error"], re.DOTALL) for pattern in EXPECTED)
        return "" if known else str(answer["error"])
    types = [(element_type, PartialShape.parse(shape)) for element_type, shape in answer["types"]]
    expected = [(str(port.element_type), port.shape) for port in model.outputs]
    same = len(types) == len(expected) and all(
        a == c and b.compatible(d) for (a, b), (c, d) in zip(types, expected, strict=True)
    )
    return "" if same else f"OpenVINO gives {answer['types']}, ovir {[str(port.type) for port in model.outputs]}"


def test_openvinos_functions_build_the_same_models(tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    wanted, models = codes()
    found = answers(wanted, tmp_path)
    wrong = {name: text for name, answer in found.items() if (text := problem(models[name], answer))}
    assert wrong == {}
    errors = [answer["error"] for answer in found.values() if "error" in answer]
    unused = [pattern for pattern in EXPECTED if not any(re.search(pattern, text, re.DOTALL) for text in errors)]
    assert unused == []
    built = sum("types" in answer for answer in found.values())
    assert built > 0.6 * len(wanted)
