"""Whole models: ovir against OpenVINO's CPU plugin (f32, latency), in turns in one process.

    python -m benchmarks.models [FOLDER] [--only REGEX] [--rounds N] [--write]

Prints for each model the medians of ovir with NumPy, of OpenVINO, and of ovir with the engine onnxruntime, the ratios
to OpenVINO, and the largest difference of NumPy's outputs from OpenVINO's, relative to the largest one.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import openvino

import ovir
from benchmarks.common import PRECISE, Rows, Run, folder_of_models, in_turns, largest_difference, report

HEAD = ["model", "ovir, ms", "OpenVINO, ms", "ratio", "with onnxruntime, ms", "ratio with onnxruntime", "error"]


def found_models(folder: Path, only: str) -> Iterator[tuple[str, Path, dict[str, Any]]]:
    """Yield the models of a folder: the name, the path, and the inputs."""
    for path in sorted(folder.glob("*/model.xml")):
        if re.search(only, path.parent.name):
            yield path.parent.name, path, dict(np.load(path.with_name("inputs.npz")))


def calls(path: Path, inputs: Mapping[str, Any], core: openvino.Core) -> dict[str, Run]:
    """Return the infer calls of all sides that run a model."""
    runs = {}
    for engine in ("numpy", "onnxruntime"):
        try:
            runs[engine] = _call(ovir.compile_model(path, engine=engine), inputs)
        except ovir.OvirError as error:
            print(f"{path.parent.name} has no {engine}: {str(error).splitlines()[0]}", file=sys.stderr)
    compiled = core.compile_model(core.read_model(path), "CPU", PRECISE)
    request, fed = compiled.create_infer_request(), {_key(compiled, name): array for name, array in inputs.items()}

    def run() -> Any:
        request.reset_state()
        return request.infer(fed, share_inputs=True, share_outputs=True)

    return runs | {"openvino": run}


def _call(compiled: ovir.CompiledModel, inputs: Mapping[str, Any]) -> Run:
    request = compiled.create_infer_request()

    def run() -> Any:
        request.reset_state()
        return request.infer(inputs, share_outputs=True)

    return run


def _key(compiled: openvino.CompiledModel, name: str) -> int:
    """Return the position of an input by its tensor name or the name of its Parameter."""
    for index, port in enumerate(compiled.inputs):
        if name in port.get_names() or name == port.get_node().get_friendly_name():
            return index
    raise KeyError(name)


def measure(options: argparse.Namespace) -> Rows:
    core = openvino.Core()
    for name, path, inputs in found_models(options.folder, options.only):
        runs = calls(path, inputs, core)
        for _ in range(2):
            runs["numpy"]()  # so that all steps are bound
        pairs = zip(runs["numpy"]().to_dict().values(), runs["openvino"]().values(), strict=True)
        error = max((largest_difference(ours, np.asarray(theirs)) for ours, theirs in pairs), default=0.0)
        times = in_turns(runs, options.rounds)
        ours, theirs, engine = times["numpy"], times["openvino"], times.get("onnxruntime")
        last = [engine * 1e3, engine / theirs] if engine else ["", ""]
        yield [name, ours * 1e3, theirs * 1e3, ours / theirs, *last, f"{error:.0e}"]


if __name__ == "__main__":
    report(__doc__, "models", HEAD, measure, rounds=9, passes=3, means=HEAD[3:6:2], options=folder_of_models)
