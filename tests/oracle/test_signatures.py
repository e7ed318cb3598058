"""The functions of every opset take the arguments of OpenVINO's, in its order and with its defaults."""

import importlib
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

WORKER = Path(__file__).with_name("signatures_worker.py")
OPSETS = range(1, 18)

# OpenVINO creates another operation than the opset has: Range-1 and Interpolate-1.
OLDER = {("range", n) for n in range(4, 12)} | {("interpolate", n) for n in range(4, 10)}
# Functions of which OpenVINO shows no arguments, or several sets of them; tests/building calls these as OpenVINO does.
UNKNOWN = {"assign", "constant", "if_op", "loop", "read_value", "tensor_iterator"}

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, list[list[Any]] | None]]:
    pytest.importorskip("openvino")
    path = tmp_path_factory.mktemp("signatures") / "signatures.json"
    subprocess.run([sys.executable, str(WORKER), str(path)], check=True, capture_output=True, timeout=300)
    found: dict[str, dict[str, list[list[Any]] | None]] = json.loads(path.read_text(encoding="utf-8"))
    return found


def normalized(default: Any) -> Any:
    """Return a default for comparison: case does not matter, and float32 is f32."""
    if isinstance(default, str):
        return {"float32": "f32"}.get(default.lower(), default.lower())
    return list(default) if isinstance(default, tuple) else default


def differences(ours: Any, theirs: list[list[Any]]) -> list[str]:
    """Return what differs between two functions; keywords that only ovir has are allowed."""
    parameters = inspect.signature(ours).parameters
    positional = [p for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    expected = [item for item in theirs if item[1] == "POSITIONAL_OR_KEYWORD"]
    if [p.name for p in positional] != [item[0] for item in expected]:
        return [f"arguments {[p.name for p in positional]}, expected {[item[0] for item in expected]}"]
    found = [f"keyword {item[0]} is missing" for item in theirs if item[0] not in parameters]
    for parameter, (name, _, default, has_default) in zip(positional, expected, strict=True):
        if has_default is (parameter.default is parameter.empty):
            found.append(f"{name} is {'required' if has_default else 'optional'}")
        elif default is not None and normalized(parameter.default) != normalized(default):
            found.append(f"{name} is {parameter.default!r}, expected {default!r}")
    return found


@pytest.mark.parametrize("opset", OPSETS)
def test_functions_have_the_arguments_of_openvino(opset: int, theirs: dict[str, Any]) -> None:
    module = importlib.import_module(f"ovir.opset{opset}")
    known = theirs[str(opset)]
    assert known.keys() - set(dir(module)) == set()
    wrong = {
        name: found
        for name, parameters in known.items()
        if parameters is not None and name not in UNKNOWN and (name, opset) not in OLDER
        if (found := differences(getattr(module, name), parameters))
    }
    assert wrong == {}


def test_the_exceptions_are_needed(theirs: dict[str, Any]) -> None:
    for name, opset in OLDER:
        assert differences(getattr(importlib.import_module(f"ovir.opset{opset}"), name), theirs[str(opset)][name])
