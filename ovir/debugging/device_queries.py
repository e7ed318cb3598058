"""Questions to an OpenVINO device: which layers of a model it supports, and which graph it executes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from ovir.debugging.comparison_setup import GivenInputs, input_sets
from ovir.debugging.engines.process import EngineError, EngineMissingError, EngineProcess
from ovir.diagnostics.codes import DEVICE_ANSWER
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.wording import and_others
from ovir.ir.executed import ExecutedGraph
from ovir.model import Model


def execute(
    model: Model,
    engine: str,
    inputs: GivenInputs = None,
    *,
    config: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> ExecutedGraph:
    """Run a model on a device such as ``openvino:CPU``, and return its executed graph, with the time of each layer.

    Without ``inputs`` they are random. The first run warms up; the times are those of the second. Raises EngineError if
    the device fails or shows no graph.
    """
    arrays = input_sets(model, inputs, None, 0)[0]()
    with (
        EngineProcess(engine, {**(config or {}), "PERF_COUNT": "YES"}, timeout=timeout) as process,
        process.compiled(model) as loaded,
    ):
        for _ in range(2):
            loaded.infer(arrays)
        return loaded.executed()


def ask_device(
    model: Model, path: str | Path, device: str, *, weights: str | None = None, timeout: float | None = 300.0
) -> list[Diagnostic]:
    """Return the objections of a device to a model: layers that it does not support, or why it cannot answer.

    OpenVINO runs in a process of its own, which a device may crash. Raises EngineMissingError without openvino or
    without the device.
    """
    with EngineProcess(f"openvino:{device}", timeout=timeout) as engine:
        engine.open()
        try:
            supported = set(engine.query(path, weights))
        except EngineMissingError:
            raise
        except EngineError as error:
            found = error.diagnostic
            return [diagnose(DEVICE_ANSWER, f"asked: {found.message}", Place(str(path)), hint=found.hint)]
        return list(_refused(model, supported, engine.description))


def _refused(model: Model, supported: set[str], description: str) -> Iterator[Diagnostic]:
    """Yield the layers that the device did not name, each type once; dead layers are never named."""
    by_type: dict[str, list[Place]] = {}
    for layer in model.layers:
        if layer.name not in supported and not layer.is_dead:
            by_type.setdefault(layer.type, []).append(layer.place)
    for kind, places in by_type.items():
        more = and_others(len(places) - 1, "more layer")
        yield diagnose(DEVICE_ANSWER, f"asked: {description} does not support this {kind}{more}", places[0])
