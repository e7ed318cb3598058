"""A stand-in for the package openvino, for tests of what happens around it: ovir, with faults that a device may have.

OVIR_TEST_FAULT is ``KIND:TYPE``, or several of these with commas. For models that have a layer of this type: ``die`` ends the process,
``hang`` never answers, ``refuse`` fails to compile, ``wrong`` adds 1 to the outputs of these layers. ``missing:`` acts as if the package did
not exist. ``run``, ``request`` and ``compilation`` add a number to the outputs of these layers that each run, request or compilation of a
process increases. With ``executes:``, a device says that it executes each layer as it is, in as many microseconds as it has made runs. ``rounds:TYPE``
is ``wrong:TYPE`` unless the property DYNAMIC_QUANTIZATION_GROUP_SIZE is 0, ``narrow:TYPE`` and ``slightly:TYPE`` (by 0.01) unless
INFERENCE_PRECISION_HINT is f32. OVIR_TEST_PROPERTIES are the properties that the device has
besides the precision, with their values: ``NAME=VALUE NAME=VALUE``.
"""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

FAULTS = [tuple(fault.split(":")) for fault in os.environ.get("OVIR_TEST_FAULT", "").split(",") if fault]
PROPERTIES = dict(item.split("=") for item in os.environ.get("OVIR_TEST_PROPERTIES", "").split())
HINT = "INFERENCE_PRECISION_HINT", "f32"
EXACT = {"rounds": ("DYNAMIC_QUANTIZATION_GROUP_SIZE", "0"), "narrow": HINT, "slightly": HINT}
if ("missing", "") in FAULTS:
    raise ModuleNotFoundError("No module named 'openvino'", name="openvino")

import ovir  # noqa: E402
from ovir import opset13 as ops  # noqa: E402
from ovir.core.element_types import ELEMENT_TYPES, ElementType  # noqa: E402
from ovir.core.encoding import decode, encode  # noqa: E402

Shape = tuple


def get_version() -> str:
    return "1.2.3-stand-in"


class _Type:
    def __init__(self, element_type: ElementType) -> None:
        self.element_type = element_type

    def get_type_name(self) -> str:
        return str(self.element_type)


class Type:
    """The element types by name."""


for _element_type in ELEMENT_TYPES:
    setattr(Type, str(_element_type), _Type(_element_type))


class Tensor:
    def __init__(self, *arguments: Any) -> None:
        if isinstance(arguments[0], np.ndarray):
            data, shape, kind = arguments
            self.array = decode(data, kind.element_type, shape)
        else:
            kind, shape = arguments
            self.array = np.zeros(shape, kind.element_type.to_dtype())
        self.element_type = kind

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def data(self) -> Any:
        return encode(self.array, self.element_type.element_type)

    @property
    def byte_size(self) -> int:
        return self.array.nbytes

    @property
    def str_data(self) -> Any:
        return self.array.astype(object)

    @str_data.setter
    def str_data(self, value: Any) -> None:
        self.array = value.astype(self.array.dtype)


class opset13:  # noqa: N801  # the name in OpenVINO
    """The operations that the worker makes models of."""

    result = staticmethod(ops.result)

    @staticmethod
    def parameter(shape: Any) -> Any:
        return ops.parameter(shape, "f32")


Model = ovir.Model


def serialize(content: str, path: str) -> None:
    Path(path).write_text(content)


COUNTS = {"run": 0, "request": 0, "compilation": 0}


def varied(model: ovir.Model, kind: str) -> ovir.Model:
    """Return the model with the number of its kind added."""
    types = [type_ for fault, type_ in FAULTS if fault == kind]
    if not types:
        return model
    model = model.clone()
    for layer in model.layers:
        if layer.type in types:
            add_to(model, layer.outputs[0], COUNTS[kind])
    COUNTS[kind] += 1
    return model


def add_to(model: ovir.Model, port: ovir.Port, number: float) -> None:
    model.insert_after(port, ops.add(port, ops.constant(np.array(number, port.element_type.to_dtype()))))


class Request:
    def __init__(self, model: ovir.Model, compiled: Any) -> None:
        self._given, self._model = model, varied(model, "request")
        self._request = ovir.compile_model(self._model).create_infer_request()
        self._layers, self._runs = model.layers, 0
        self._compiled = compiled
        self._tensors: dict[int, Any] = {}
        self.model_outputs = model.outputs
        self._types = [port.element_type for port in model.outputs]

    def set_input_tensor(self, index: int, tensor: Tensor) -> None:
        self._tensors[index] = tensor.array

    def query_state(self) -> Any:
        return self._request.query_state()

    def infer(self) -> None:
        if any(kind == "run" for kind, _ in FAULTS):
            self._request = ovir.compile_model(varied(self._model, "run")).create_infer_request()
        self._outputs = list(self._request.infer(self._tensors).values())
        self._runs += 1

    def get_compiled_model(self) -> Any:
        return self

    def create_infer_request(self) -> "Request":
        return Request(self._given, self._compiled)

    def get_property(self, name: str) -> Any:
        return self._compiled.get_property(name)

    def get_runtime_model(self) -> str:
        if ("executes", "") not in FAULTS:
            raise RuntimeError("not implemented")
        data = f'<data execOrder="%d" originalLayersNames="%s" runtimePrecision="f16" execTimeMcs="{self._runs}"/>'
        layers = (
            f'<layer id="{i}" name="{layer.name}" type="{layer.type}">{data % (i, layer.name)}</layer>'
            for i, layer in enumerate(self._layers)
        )
        return f'<net name="executed" version="11"><layers>{"".join(layers)}</layers><edges/></net>'

    def get_output_tensor(self, index: int) -> Tensor:
        tensor = Tensor(_Type(self._types[index]), ())
        tensor.array = self._outputs[index]
        return tensor


class Compiled:
    def __init__(self, model: ovir.Model, config: Any) -> None:
        self._model = varied(model, "compilation")
        self._precision = os.environ.get("OVIR_TEST_PRECISION") or config.get("INFERENCE_PRECISION_HINT", "f32")

        self._properties = {**PROPERTIES, **config}

    def get_property(self, name: str) -> Any:
        if name == "INFERENCE_PRECISION_HINT":
            return _Type(ElementType.parse(self._precision))
        if name not in PROPERTIES:
            raise RuntimeError(f"Unsupported property {name}")
        return self._properties[name]

    def create_infer_request(self) -> Request:
        return Request(self._model, self)


def _supported() -> tuple[str, ...]:
    return ("INFERENCE_PRECISION_HINT", "PERF_COUNT", *PROPERTIES)


class Core:
    available_devices = ("CPU",)

    def get_property(self, device: str, name: str) -> Any:
        return {"SUPPORTED_PROPERTIES": dict.fromkeys(_supported(), "RW")}[name]

    def compile_model(self, path: Any, device: str, config: Any) -> Compiled:
        for name in config:
            if name not in _supported():
                raise RuntimeError(f"Exception from core.cpp:1:\nUnsupported property {name}")
        model = ovir.read_model(path) if isinstance(path, str) else path
        for kind, type_ in FAULTS:
            name, exact = EXACT.get(kind, ("", None))
            if {**PROPERTIES, **config}.get(name) != exact or not name:
                self._act(model, kind, type_)
        return Compiled(model, config)

    def _act(self, model: ovir.Model, kind: str, type_: str) -> None:
        layers = [layer for layer in model.layers if layer.type == type_]
        if layers and kind == "die":
            print("the device says goodbye", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        if layers and kind == "hang":
            time.sleep(1000)
        if layers and kind == "refuse":
            raise RuntimeError(f"{type_} is\nnot supported")
        for layer in layers:
            if kind in ("wrong", *EXACT):
                add_to(model, layer.outputs[0], 0.01 if kind == "slightly" else 1)
