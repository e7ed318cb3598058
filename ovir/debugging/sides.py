"""Makes the other side of a comparison from what the caller has given for it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Literal, Self

import numpy as np

from ovir.core.arrays import Array
from ovir.debugging.devices import Device, EngineDevice, OvirDevice
from ovir.debugging.input_sets import Inputs, InputSet, input_sets
from ovir.debugging.isolated import Isolated
from ovir.debugging.onnx_model import OnnxModel
from ovir.debugging.others import Answer, OtherBase, OtherModel
from ovir.debugging.partners import Partners
from ovir.debugging.prefixes import Prefixes
from ovir.debugging.recorded import Recorded
from ovir.diagnostics.errors import InputError
from ovir.engines.process import Engine
from ovir.io.tensor_files import NpzReader, open_npz
from ovir.ir.writing.save import upgraded
from ovir.model import Model, read_model
from ovir.runtime.executor import SeenStep

Mode = Literal["isolated", "cumulative"]
Against = Model | str | os.PathLike[str] | Mapping[str, Array]


class DeviceSide(OtherBase):
    """A device that runs the whole model, and layers or prefixes of it once these are asked for."""

    with_constants = False
    outputs_first = True

    def __init__(self, device: Device, partners: Partners) -> None:
        self.device = device
        self.partners: Partners = partners
        self._layers: OtherBase | None = None
        if isinstance(device, EngineDevice):
            self.sides = (f"on {device.engine.device}", "in ovir")

    @property
    def description(self) -> str:  # type: ignore[override]
        path = self.partners.b.path
        return self.device.description if self.partners.a is self.partners.b else f"{path} on {self.device.description}"

    def compare_layers(self, mode: Mode, *, runs_whole: bool) -> None:
        """Decide how layers are compared from now on; the device releases the whole model."""
        self.device.release()
        if mode == "isolated":
            self._layers = Isolated(self.device, self.partners, runs_whole=runs_whole)
        else:
            self._layers = Prefixes(self.device, self.partners)
        self.accumulates = self._layers.accumulates

    def begin(self, inputs: Sequence[Array]) -> None:
        assert self._layers is not None
        self._layers.begin(inputs)

    def see(self, step: SeenStep) -> Iterable[Answer]:
        assert self._layers is not None
        return self._layers.see(step)

    def finish(self) -> Iterable[Answer]:
        assert self._layers is not None
        return self._layers.finish()

    @property
    def precision(self) -> str | None:
        return self.device.precision

    def outputs(self, inputs: Sequence[Array]) -> list[Array | None]:
        results = self.device.run_whole(self.partners.inputs(inputs))
        return [None if index is None else results[index] for index in self.partners.outputs]

    def __enter__(self) -> Self:
        self.device.__enter__()
        self.device.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.device.__exit__(kind, error, trace)


class _OnnxSide(OnnxModel):
    """An ONNX model with an engine of its own, which ends with the comparison."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._engine.close()


class _RecordedFile(Recorded):
    """Recorded tensors in an .npz, which are read one at a time."""

    def __init__(self, model: Model, tensors: NpzReader, path: str) -> None:
        with ExitStack() as stack:
            stack.enter_context(tensors)
            super().__init__(model, tensors, path)
            self._stack = stack.pop_all()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


def as_model(model: Model | str | os.PathLike[str]) -> Model:
    """Return a model as OpenVINO runs it: inferred, and of the present version of the format."""
    if not isinstance(model, Model):
        model = read_model(model)
    if any(graph.needs_inference for graph in model.graphs()):
        model.infer_shapes()
    return upgraded(model)


def open_side(
    model: Model,
    against: Against,
    device: str | None,
    mode: Mode | None,
    config: Mapping[str, str] | None,
    timeout: float | None,
) -> OtherBase:
    """Return the other side of a comparison; see ``ovir.compare`` for the arguments.

    Raises InputError for arguments that do not fit together, ReadError for files that cannot be read.
    """
    kind, rest = _kind(against)
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0):
        raise InputError.usage(f"timeout must be a number of seconds above 0, got {timeout!r}")
    if device is not None and kind != "model":
        raise InputError.usage("device= says where a second model runs, but against= names none")
    if kind == "engine":
        return DeviceSide(_engine_device(rest, config, timeout, model), Partners(model, model))
    if kind == "model":
        assert isinstance(against, (Model, str, os.PathLike))
        other = as_model(against)
        partners = Partners(model, other)
        if device is not None:
            return DeviceSide(_engine_device(device, config, timeout, other), partners)
        _refuse_config(config, timeout)
        if mode == "isolated":
            return DeviceSide(OvirDevice(other), partners)
        return OtherModel(partners, other.path or "the other model")
    if mode == "isolated":
        raise InputError.usage("layers can be isolated on a device or in a second model; this has neither")
    if kind == "onnx":
        engine = Engine("onnxruntime", config, timeout=timeout)
        try:
            return _OnnxSide(engine, rest, model)
        except BaseException:
            engine.close()
            raise
    _refuse_config(config, timeout)
    if isinstance(against, Mapping):
        return Recorded(model, {str(key): np.asarray(value) for key, value in against.items()}, "recorded tensors")
    return _RecordedFile(model, open_npz(rest), rest)


def sets_for(model: Model, side: OtherBase, inputs: Inputs, samples: int | None, seed: int) -> list[InputSet]:
    """Return the sets of inputs with which a model is compared: by default recorded ones, or random ones."""
    if isinstance(side, Recorded):
        if samples is not None:
            raise InputError.usage("samples are random inputs, which a recording was not made with")
        inputs = side.feeds() if inputs is None else inputs
    return input_sets(model, inputs, samples, seed)


def _kind(against: object) -> tuple[str, str]:
    """Return what the other side is, and its name or path."""
    if isinstance(against, Model):
        return "model", ""
    if isinstance(against, Mapping):
        return "recorded", ""
    if isinstance(against, (str, os.PathLike)):
        text = os.fspath(against)
        head, _, tail = text.partition(":")
        if head == "openvino" and tail:
            return "engine", text
        if head == "onnx" and tail:
            return "onnx", tail
        for ending, kind in ((".xml", "model"), (".onnx", "onnx"), (".npz", "recorded")):
            if text.lower().endswith(ending):
                return kind, text
    expected = "expected openvino:DEVICE, onnx:FILE, an .npz, an .xml or a Model"
    raise InputError.usage(f"cannot compare with {against!r}: {expected}")


def _engine_device(name: str, config: Mapping[str, str] | None, timeout: float | None, model: Model) -> EngineDevice:
    if name.partition(":")[0] != "openvino":
        raise InputError.usage(f"models in OpenVINO's format run on openvino:DEVICE, not on {name!r}")
    return EngineDevice(Engine(name, config, timeout=timeout), model)


def _refuse_config(config: Mapping[str, str] | None, timeout: float | None) -> None:
    if config or timeout is not None:
        raise InputError.usage(
            "config and timeout (--config, --timeout) need openvino:DEVICE or onnx:FILE to compare with"
        )
