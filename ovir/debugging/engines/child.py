"""Run models in another engine: the program of the process that ``ovir.debugging.engines.process`` starts.

A device can crash or hang on an odd model, which must not take its caller down. This file runs as a script and imports
nothing of ovir. Messages are pickles on standard input and output, to and from which pickle copies the bytes of a
``PickleBuffer`` directly. A request is a command with its arguments. An answer is ``("ok", value)``, ``("missing", name
of a package)``, ``("unusable", message)`` for a device or a property that does not exist and for a package that cannot
be imported, ``("unsupported", message)`` for a model that the engine is known not to run, or ``("failed", message of
the engine)``.
"""

from __future__ import annotations

import os
import pickle
import queue
import re
import runpy
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any, BinaryIO, Tuple  # noqa: UP035  # Python 3.8 has no tuple[...]

WireTensor = Tuple[str, Tuple[int, ...], Any]  # noqa: UP006
"""A tensor as it is sent: element type (in OpenVINO's notation), shape, and a buffer or a list of strings."""


class UnusableError(Exception):
    """The engine has no such device, or it refuses a property."""


# --------------------------------------------------------------------------- engines


class OpenVino:
    """A device of the installed OpenVINO, from 2022.1 on."""

    def __init__(self, device: str, config: Mapping[str, str]) -> None:
        import openvino

        if not hasattr(openvino, "Core"):  # before 2023.1, it is in openvino.runtime only
            import openvino.runtime as openvino
        self.package = openvino
        self.device = device or "CPU"
        self.config = dict(config)
        self.core = openvino.Core()
        self.has_tokenizers = False
        self._require_device()
        self._require_config()
        self.description = f"OpenVINO {openvino.get_version().split('-')[0]} on {self.device}"

    def _require_device(self) -> None:
        """Raise UnusableError for a device that is not there; virtual ones name others, as in ``AUTO:CPU``."""
        found = self.core.available_devices
        known = {*_VIRTUAL, *found, *(device.split(".")[0] for device in found)}
        names = re.sub(r"\(.*?\)", "", self.device).replace(":", ",").split(",")
        if any(name.lstrip("-") not in known for name in names):
            hint = f"; did you mean {self.device.upper()}?" if {name.upper() for name in names} <= known else ""
            raise UnusableError(f"no device {self.device}; available: {', '.join(found) or 'none'}{hint}")

    def _require_config(self) -> None:
        """Raise UnusableError for properties with which the device compiles no model, not even an empty one."""
        make = getattr(self.package, "opset13", None)
        if not self.config or make is None:  # as in releases before 2024.0
            return
        x = make.parameter([1])
        model = self.package.Model([make.result(x)], [x])
        try:
            self.core.compile_model(model, self.device, self.config)
        except RuntimeError as error:
            self.core.compile_model(model, self.device, {})  # the properties are at fault only if it compiles without
            listed = ", ".join(f"{key}={value}" for key, value in self.config.items())
            from difflib import get_close_matches  # only needed here

            known = list(self.core.get_property(self.device, "SUPPORTED_PROPERTIES"))
            meant = [name for key in self.config if key not in known for name in get_close_matches(key, known, 1)]
            hint = f"\ndid you mean {meant[0]}?" if meant else ""
            raise UnusableError(f"{self.device} refuses the properties {listed}:\n{error}{hint}") from None

    def load(self, path: str, outputs: Sequence[str]) -> tuple[Any, dict[str, Any]]:
        """Return an infer request of the compiled model, and the device's answer about it."""
        self._add_tokenizers(path)
        compiled = self.core.compile_model(path, self.device, self.config)
        facts = {"precision": self._property(compiled, "INFERENCE_PRECISION_HINT"), "devices": self._behind(compiled)}
        return compiled.create_infer_request(), facts

    def executed(self, request: Any, path: str) -> None:
        """Write the graph that the device executes in place of a model."""
        self.package.serialize(request.get_compiled_model().get_runtime_model(), path)

    def properties(self, request: Any, names: Sequence[str]) -> dict[str, str]:
        """Return those of the named properties that the device tells for a compiled model, as text."""
        values = {name: self._property(request.get_compiled_model(), name) for name in names}
        return {name: text for name, text in values.items() if text is not None}

    def _property(self, compiled: Any, name: str) -> str | None:
        """Return a property of a compiled model as text, or of the first device behind AUTO, HETERO or MULTI, which do
        not tell it themselves; None if the device or the release does not have it."""
        behind = self._behind(compiled)
        for ask in (compiled.get_property, *(partial(self.core.get_property, one) for one in behind)):
            try:
                value = ask(name)
            except _UNKNOWN:
                value = self.config.get(name) if behind else None
            if value is not None:
                break
        else:
            return None
        is_type = hasattr(value, "get_type_name")
        text = value.get_type_name() if is_type else str(value).rpartition(f"{type(value).__name__}.")[2]
        return {"True": "YES", "False": "NO"}.get(text, text)

    def _behind(self, compiled: Any) -> list[str]:
        """Return the devices that run a compiled model in place of AUTO, HETERO or MULTI."""
        if self.device.partition(":")[0] not in _VIRTUAL:
            return []
        try:
            return [str(name).strip("()") for name in compiled.get_property("EXECUTION_DEVICES")]
        except _UNKNOWN:
            return []

    def query(self, path: str, weights: str) -> list[str]:
        """Return the names of the layers that the device says it supports."""
        self._add_tokenizers(path)
        return list(self.core.query_model(self.core.read_model(path, weights), self.device, self.config))

    def _add_tokenizers(self, path: str) -> None:
        """Register the operations of openvino-tokenizers, if it is installed and the model has an extension."""
        if not self.has_tokenizers and find_spec("openvino_tokenizers") is not None:
            with open(path, "rb") as file:
                needs_extension = b'version="extension"' in file.read()
            if needs_extension:
                import openvino_tokenizers

                self.core.add_extension(openvino_tokenizers._ext_path)
                self.has_tokenizers = True

    def infer(
        self, request: Any, tensors: Sequence[WireTensor], outputs: Sequence[str] | None, keeps_state: bool
    ) -> list[WireTensor]:
        """Return the outputs for the inputs, both by position; state starts anew, unless it is kept."""
        # Bytes are read-only in the caller. The request does not hold what its tensors share the memory of.
        held = [bytearray(content) if isinstance(content, bytes) else content for _, _, content in tensors]
        for index, (name, shape, _) in enumerate(tensors):
            request.set_input_tensor(index, self._tensor(name, shape, held[index]))
        if not keeps_state:
            for state in request.query_state():
                state.reset()
        request.infer()
        return [self._sent(request.get_output_tensor(index)) for index in range(len(request.model_outputs))]

    def _tensor(self, name: str, shape: tuple[int, ...], content: Any) -> Any:
        import numpy as np

        element_type, size = getattr(self.package.Type, name), self.package.Shape(list(shape))
        is_first = self.package.get_version().startswith("2022.1")
        if name != "string" and len(content) and not is_first:
            return self.package.Tensor(np.frombuffer(content, np.uint8), size, element_type)  # shares the memory
        tensor = self.package.Tensor(element_type, size)
        if name == "string" and len(content):
            tensor.str_data = np.array(content).reshape(shape)
        elif len(content):
            np.copyto(tensor.data.reshape(-1).view(np.uint8), np.frombuffer(content, np.uint8))
        return tensor

    def _sent(self, tensor: Any) -> WireTensor:
        import numpy as np

        name, shape = tensor.element_type.get_type_name(), tuple(tensor.shape)
        if name == "string":
            return name, shape, tensor.str_data.ravel().tolist()
        return name, shape, pickle.PickleBuffer(np.ascontiguousarray(tensor.data).data if tensor.byte_size else b"")


_VIRTUAL = {"AUTO", "BATCH", "HETERO", "MULTI"}
"""Devices that pass models on to others."""
_UNKNOWN = (RuntimeError, AttributeError, TypeError)
"""The errors of a device or a release that does not have a property."""


class OnnxRuntime:
    """An execution provider of the installed onnxruntime; without one, the CPU."""

    def __init__(self, provider: str, config: Mapping[str, str]) -> None:
        import onnxruntime

        self.package = onnxruntime
        self.provider = f"{provider or 'CPU'}ExecutionProvider"
        self.config = dict(config)
        self.description = f"onnxruntime {onnxruntime.__version__} on {provider or 'CPU'}"
        found = onnxruntime.get_available_providers()
        if self.provider not in found:
            raise UnusableError(f"no execution provider {self.provider}; available: {', '.join(found)}")

    def load(self, path: str, outputs: Sequence[str]) -> tuple[Any, dict[str, Any]]:
        """Return a session, and its inputs and outputs.

        ``outputs`` are the tensors to compute besides the model's own outputs; those that the model does not have are
        left out. Without the package onnx, no such tensor can be computed.
        """
        options = self.package.SessionOptions()
        options.log_severity_level = 3  # warnings concern the graph, not its results
        model, found, added = self._with_outputs(path, outputs)
        session = self.package.InferenceSession(model, options, providers=[(self.provider, self.config)])
        facts = {
            "inputs": [(port.name, _ONNX_TYPES.get(port.type)) for port in session.get_inputs()],
            "outputs": [port.name for port in session.get_outputs() if port.name not in added],
            "tensors": found,
        }
        return session, facts

    def _with_outputs(self, path: str, names: Sequence[str]) -> tuple[Any, list[str] | None, set[str]]:
        """Return the path of the model to load, those of ``names`` that it then computes (None without the package
        onnx), and those of them that are not outputs of the model itself."""
        if not names:
            return path, [], set()
        try:
            import onnx
        except ImportError:
            return path, None, set()
        model = onnx.load(path, load_external_data=False)
        graph = model.graph
        own = {value.name for value in graph.output}
        computed = {name for node in graph.node for name in node.output if name}
        found = [name for name in names if name in computed]
        added = {name for name in found if name not in own}
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in sorted(added))
        if any(tensor.data_location == onnx.TensorProto.EXTERNAL for tensor in graph.initializer):
            onnx.load_external_data_for_model(model, os.path.dirname(os.path.abspath(path)))
        return model.SerializeToString(), found, added

    def infer(
        self, session: Any, tensors: Sequence[WireTensor], outputs: Sequence[str] | None, keeps_state: bool
    ) -> list[WireTensor]:
        """Return the named outputs, by default all of them, for inputs by position; ONNX models have no state."""
        pairs = zip(session.get_inputs(), tensors, strict=True)
        feeds = {port.name: _array(*tensor) for port, tensor in pairs}
        return [_sent_array(array) for array in session.run(outputs, feeds)]


class PythonFunction:
    """A function of a Python file, ``FILE.py:NAME``, that is called with the path of a model and the arrays of its
    inputs, and returns the arrays of its outputs."""

    def __init__(self, name: str, config: Mapping[str, str]) -> None:
        path, _, function = name.rpartition(":")
        if not path:
            raise UnusableError(f"expected python:FILE.py:FUNCTION, got python:{name}")
        if not os.path.isfile(path):
            raise UnusableError(f"there is no Python file {path}")
        try:
            found = runpy.run_path(path)
        except Exception as error:
            raise UnusableError(f"{path} fails as Python code: {type(error).__name__}: {error}") from None
        if not callable(found.get(function)):
            raise UnusableError(f"{path} defines no function {function}")
        self.function = found[function]
        self.description = f"{function} of {path}"

    def load(self, path: str, outputs: Sequence[str]) -> tuple[Any, dict[str, Any]]:
        """Return the path; the function loads the model."""
        return path, {}

    def infer(
        self, path: str, tensors: Sequence[WireTensor], outputs: Sequence[str] | None, keeps_state: bool
    ) -> list[WireTensor]:
        """Return the outputs of the model."""
        return [_sent_array(array) for array in self.function(path, [_array(*tensor) for tensor in tensors])]


_ENGINES: dict[str, Callable[[str, Mapping[str, str]], Any]] = {
    "openvino": OpenVino,
    "onnxruntime": OnnxRuntime,
    "python": PythonFunction,
}

_DTYPES = {"boolean": "bool", **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)}}
_DTYPES.update((f"{kind[0]}{bits}", f"{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64))
_ONNX_TYPES = {f"tensor({name})": key for key, name in _DTYPES.items()}
_ONNX_TYPES.update({"tensor(string)": "string", "tensor(float)": "f32", "tensor(double)": "f64"})


def _dtype(name: str) -> Any:
    """Return the NumPy type; raise RuntimeError for an element type that NumPy does not have."""
    import numpy as np

    if name not in _DTYPES:
        raise NotImplementedError(f"NumPy has no element type {name}")
    return np.dtype(_DTYPES[name])


def _array(name: str, shape: tuple[int, ...], content: Any) -> Any:
    import numpy as np

    array = np.array(content, object) if name == "string" else np.frombuffer(content, _dtype(name))
    return array.reshape(shape)


def _sent_array(array: Any) -> WireTensor:
    import numpy as np

    if array.dtype == object:
        return "string", array.shape, array.ravel().tolist()
    name = next((name for name, dtype in _DTYPES.items() if dtype == array.dtype.name), None)
    if name is None:
        raise NotImplementedError(f"NumPy has no element type {array.dtype.name}")
    return name, array.shape, pickle.PickleBuffer(np.ascontiguousarray(array).ravel().view(np.uint8).data)


# --------------------------------------------------------------------------- requests


class Worker:
    """Answers requests."""

    def __init__(self) -> None:
        self._engine: Any = None
        self._loaded: list[Any] = []

    def answer(self, command: str, *arguments: Any) -> tuple[str, Any]:
        """Return the answer to a request."""
        try:
            return "ok", self._run(command, *arguments)
        except ImportError as error:
            if isinstance(error, ModuleNotFoundError) and error.name in _ENGINES:
                return "missing", error.name
            return "unusable", f"the package cannot be imported: {error}"
        except UnusableError as error:
            return "unusable", str(error)
        except NotImplementedError as error:
            return "unsupported", str(error)
        except Exception as error:  # engines raise exceptions of many kinds; the caller reports all of them
            return "failed", str(error)

    def _run(self, command: str, *arguments: Any) -> Any:
        """Carry out a request; all but the first three commands are about a loaded model, which is given by number."""
        if command == "open":
            name, device, config = arguments
            self._engine = _ENGINES[name](device, config)
            return self._engine.description
        if command == "load":
            loaded, facts = self._engine.load(*arguments)
            self._loaded.append(loaded)
            return len(self._loaded) - 1, facts
        if command == "query":
            return self._engine.query(*arguments)
        number, *others = arguments
        if command == "unload":
            self._loaded[number] = None
            return None
        if command == "renew":
            if isinstance(self._engine, OpenVino):  # the others have no requests
                self._loaded[number] = self._loaded[number].get_compiled_model().create_infer_request()
            return None
        return getattr(self._engine, command)(self._loaded[number], *others)


def _receive_all(stream: BinaryIO, requests: queue.SimpleQueue[Any]) -> None:
    """Read requests until the stream ends; then the caller has ended, and this process ends at once.

    A caller that was killed leaves no device behind that compiles or runs a model on its own.
    """
    try:
        while True:
            requests.put(pickle.load(stream))
    except (EOFError, pickle.UnpicklingError):
        os._exit(0)


def main() -> None:
    """Answer requests until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller, which gets it too, ends this process
    source, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # engines print to standard output, which carries the answers
    requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_receive_all, args=(source, requests), daemon=True).start()
    worker = Worker()
    while True:
        request = requests.get()
        pickle.dump(worker.answer(*request), answers, 5)
        answers.flush()
        del request  # its tensors


if __name__ == "__main__":
    main()
