"""Run models in OpenVINO 2021.4, as the engine ``python:inference_engine.py:run`` of ``ovir.debugging.engines``.

It runs in the interpreter of that release, from CPython 3.8 on, and imports nothing of ovir. That release has another
interface than later ones, and knows inputs and outputs by the names of layers.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any
from xml.etree import ElementTree

from openvino.inference_engine import IECore


def run(path: str, arrays: Any) -> list[Any]:
    """Return the outputs for inputs by position; the runs of a file share its state."""
    executable, inputs, outputs = _loaded(path, os.stat(path).st_mtime_ns)
    request = executable.requests[0]
    for name, array in zip(inputs, arrays):  # noqa: B905  # strict is of Python 3.10
        if name in request.input_blobs:  # the engine drops inputs that nothing reads
            request.input_blobs[name].buffer[...] = array
    request.infer()
    return [request.output_blobs[name].buffer.copy() for name in outputs]


@lru_cache(1)
def _loaded(path: str, time: int) -> tuple[Any, list[str], list[str]]:
    """Return the model in a file, compiled, and the names of its inputs and outputs."""
    core = IECore()
    weights = os.path.splitext(path)[0] + ".bin"
    network = core.read_network(path, weights if os.path.exists(weights) else "")
    executable = core.load_network(network, "CPU", {"ENFORCE_BF16": "NO", "CPU_THREADS_NUM": "1"})
    net = ElementTree.parse(path).getroot()
    layers = {layer.get("id"): layer for layer in net.iterfind("layers/layer")}
    sources = {
        edge.get("to-layer"): (layers[edge.get("from-layer")], edge.get("from-port"))
        for edge in net.iterfind("edges/edge")
    }
    named = [layer.get("name") or "" for layer in layers.values() if layer.get("type") == "Parameter"]
    results = [sources[key] for key, layer in layers.items() if layer.get("type") == "Result"]
    return executable, named, [_name_of_data(layer, port) for layer, port in results]


def _name_of_data(layer: Any, port: Any) -> str:
    """Return what the engine calls a tensor."""
    ports = [output.get("id") for output in layer.iterfind("output/port")]
    return layer.get("name") if len(ports) == 1 else f"{layer.get('name')}.{ports.index(port)}"
