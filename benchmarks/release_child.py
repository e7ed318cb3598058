"""Run models in an old release of OpenVINO: the program of the process that ``benchmarks.releases`` starts.

It runs in the interpreter of that release, from CPython 3.8 on, and imports nothing of ovir. Messages are pickles on
standard input and output. A request is ``(path of the model, names of its inputs, names of its outputs, steps)``; a
step is a list of tensors by position, and all steps run in one request, which keeps its state. An answer is
``("ok", steps)``, or ``("read", message)``, ``("compile", message)`` or ``("run", message)`` after the stage that
failed. A tensor is ``(element type, shape, bytes)``, with a list of strings for the bytes of a string tensor.
"""

from __future__ import annotations

import os
import pickle
import sys
from typing import Any

import numpy as np


class Stage:
    """What is being done, for the answer if it fails."""

    name = "read"


PRECISE = {
    "INFERENCE_NUM_THREADS": "1",
    "INFERENCE_PRECISION_HINT": "f32",
    "ENFORCE_BF16": "NO",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
    "KV_CACHE_PRECISION": "f32",
}
"""The properties, where a release has them, that make the CPU compute in f32; ENFORCE_BF16 is that of old ones."""


class Runtime:
    """The API of 2022.1 and later releases."""

    def __init__(self) -> None:
        try:
            import openvino as package

            package.Core  # noqa: B018  # before 2023.1, it is in openvino.runtime only
        except AttributeError:
            import openvino.runtime as package
        self.package = package
        self.core = package.Core()
        known = set(self.core.get_property("CPU", "SUPPORTED_PROPERTIES")) | {"ENFORCE_BF16"}
        self.config = {name: value for name, value in PRECISE.items() if name in known}
        if "INFERENCE_PRECISION_HINT" in self.config:
            del self.config["ENFORCE_BF16"]

    def run(self, stage: Stage, path: str, inputs: Any, outputs: Any, steps: Any) -> Any:
        model = self.core.read_model(path)
        stage.name = "compile"
        request = self.core.compile_model(model, "CPU", self.config).create_infer_request()
        stage.name = "run"
        return [self.step(request, step, len(outputs)) for step in steps]

    def step(self, request: Any, step: Any, outputs: int) -> Any:
        for position, tensor in enumerate(step):
            request.set_input_tensor(position, self.tensor(*tensor))
        request.infer()
        return [self.answer(request.get_output_tensor(position)) for position in range(outputs)]

    def tensor(self, kind: str, shape: Any, content: Any) -> Any:
        tensor = self.package.Tensor(getattr(self.package.Type, kind), self.package.Shape(list(shape)))
        if kind == "string":
            tensor.str_data = np.array(content).reshape(shape)
        elif content:
            tensor.data.reshape(-1).view(np.uint8)[:] = np.frombuffer(content, np.uint8)
        return tensor

    def answer(self, tensor: Any) -> Any:
        kind, shape = tensor.element_type.get_type_name(), tuple(tensor.shape)
        if kind == "string":
            return kind, shape, [str(text) for text in tensor.str_data.reshape(-1)]
        return kind, shape, np.ascontiguousarray(tensor.data).tobytes() if 0 not in shape else b""


KINDS = {"FP32": "f32", "FP16": "f16", "FP64": "f64", "BOOL": "boolean", "BF16": "bf16"}
"""The names of element types in the Inference Engine that are not those of IR in capitals."""


class InferenceEngine:
    """The API of 2021.4, which knows inputs and outputs by the names of their layers."""

    def __init__(self) -> None:
        from openvino.inference_engine import IECore

        self.core = IECore()

    def run(self, stage: Stage, path: str, inputs: Any, outputs: Any, steps: Any) -> Any:
        weights = os.path.splitext(path)[0] + ".bin"
        network = self.core.read_network(path, weights if os.path.exists(weights) else "")
        stage.name = "compile"
        executable = self.core.load_network(network, "CPU", {"ENFORCE_BF16": "NO", "CPU_THREADS_NUM": "1"})
        stage.name = "run"
        return [self.step(executable.requests[0], step, inputs, outputs) for step in steps]

    def step(self, request: Any, step: Any, inputs: Any, outputs: Any) -> Any:
        for name, (kind, shape, content) in zip(inputs, step):  # noqa: B905  # strict is of Python 3.10
            if name in request.input_blobs:  # the engine drops inputs that nothing reads
                array = np.frombuffer(content, np.dtype(DTYPES[kind])).reshape(shape)
                request.input_blobs[name].buffer[...] = array
        request.infer()
        return [self.answer(request.output_blobs[name]) for name in outputs]

    def answer(self, blob: Any) -> Any:
        kind = KINDS.get(blob.tensor_desc.precision, blob.tensor_desc.precision.lower())
        array = np.ascontiguousarray(blob.buffer)
        return kind, array.shape, array.tobytes()


DTYPES = {
    "f16": "f2", "f32": "f4", "f64": "f8", "boolean": "?", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8",
    "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8",
}  # fmt: skip


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the runtime prints must not get among the answers
    requests = sys.stdin.buffer
    try:
        runtime: Any = Runtime()
    except ImportError:
        runtime = InferenceEngine()
    while True:
        try:
            request = pickle.load(requests)
        except EOFError:
            return
        stage = Stage()
        try:
            answer = "ok", runtime.run(stage, *request)
        except Exception as error:
            answer = stage.name, f"{type(error).__name__}: {error}"
        pickle.dump(answer, answers, protocol=4)
        answers.flush()


if __name__ == "__main__":
    main()
