"""Runs code that ``ovir.to_python`` has written with OpenVINO's functions instead, apart from the tests.

usage: functions_worker.py CODE.json RESULTS.jsonl    [[name, code], ...] -> a line {"name", "types" or "error"} for each
"""

import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov


class Functions:
    """The functions of an opset; what only ovir's functions take is left out, and types are OpenVINO's."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def __getattr__(self, name: str) -> Any:
        own = BY_HAND.get(name) or getattr(self.module, name)

        def call(*arguments: Any, tensor_names: Any = None, rt_info: Any = None, **keywords: Any) -> Any:
            return Node(own(*map(plain, arguments), **{key: plain(value) for key, value in keywords.items()}))

        return call


def parameter(shape: Any, dtype: str = "f32", name: str = "", layout: Any = None) -> Any:
    """Return a Parameter; OpenVINO's function takes no names of types and no texts as dimensions."""
    if isinstance(shape, list):
        shape = [ov.Dimension(dim) if isinstance(dim, str) else dim for dim in shape]
    return ov.op.Parameter(getattr(ov.Type, dtype), ov.PartialShape(shape))


def constant(value: Any, dtype: str = "", name: str = "") -> Any:
    """Return a constant; OpenVINO makes f64 of fractions, and takes no names of types."""
    array = np.asarray(value)
    if array.dtype.kind in "US":
        return ov.op.Constant(array)
    own = dtype or {"i": "i64", "b": "boolean"}.get(array.dtype.kind, "f32")
    return ov.op.Constant(getattr(ov.Type, own), ov.Shape(array.shape), array.flatten().tolist())


BY_HAND = {"constant": constant, "parameter": parameter}


class Node:
    """A node whose outputs are indexed as those of ovir's layers."""

    def __init__(self, node: Any) -> None:
        self.node = node

    def __getitem__(self, index: int) -> "Node":
        return Node(self.node.output(index))


def plain(value: Any) -> Any:
    """Return what OpenVINO's functions take; the first output of a node with several."""
    if isinstance(value, Node):
        node = value.node
        return node.output(0) if isinstance(node, ov.Node) and node.get_output_size() > 1 else node
    return list(map(plain, value)) if isinstance(value, list) else value


def model(results: Any, *others: Any) -> Any:
    """Return a model of OpenVINO."""
    return ov.Model(plain(results), *map(plain, others))


def run(code: str) -> dict[str, Any]:
    """Return the types of the outputs of the model that the code builds, or why it cannot be built."""
    try:
        names: dict[str, Any] = {}
        exec(code, names)
        return {"types": [[p.element_type.get_type_name(), str(p.partial_shape)] for p in names["model"].outputs]}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def main(source: Path, target: Path) -> None:
    stand_in = types.ModuleType("ovir")
    stand_in.Model = model  # type: ignore[attr-defined]
    for number in range(1, 18):
        setattr(stand_in, f"opset{number}", Functions(__import__(f"openvino.opset{number}", fromlist=["*"])))
    sys.modules["ovir"] = stand_in
    with target.open("a", encoding="utf-8") as file:
        for name, code in json.loads(source.read_text(encoding="utf-8")):
            file.write(json.dumps({"name": name}) + "\n")
            file.flush()  # so that a crash of OpenVINO names the model
            file.write(json.dumps({"name": name, **run(code)}) + "\n")
            file.flush()


main(Path(sys.argv[1]), Path(sys.argv[2]))
