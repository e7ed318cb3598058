"""Runs a model on an OpenVINO device for the graph that it executes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ovir.debugging.comparison_setup import GivenInputs, input_sets
from ovir.debugging.engines.process import EngineProcess
from ovir.ir.executed import ExecutedGraph, read_executed
from ovir.model import Model, save_model
from ovir.system.interrupts import temporary_folder


def execute(
    model: Model,
    engine: str,
    inputs: GivenInputs = None,
    *,
    config: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> ExecutedGraph:
    """Run a model on a device such as ``openvino:CPU``, and return what it executed, with the time of each layer.

    Without ``inputs`` they are random. The first run warms up; the times are those of the second. Raises EngineError if
    the device fails or shows no graph.
    """
    arrays = input_sets(model, inputs, None, 0)[0]()
    types = [port.element_type for port in model.inputs]
    with (
        temporary_folder() as folder,
        EngineProcess(engine, {**(config or {}), "PERF_COUNT": "YES"}, timeout=timeout) as ran,
    ):
        path = Path(folder) / "model.xml"
        save_model(model, path)
        loaded = ran.load(path)
        for _ in range(2):
            ran.infer(loaded, arrays, types)
        ran.write_executed(loaded, path.with_name("executed.xml"))
        return read_executed(path.with_name("executed.xml"))
