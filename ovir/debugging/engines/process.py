"""Engines in a process of their own, so that a crash or a hang of a device does not harm the caller."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Self, cast

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.core.encoding import decode, encode
from ovir.debugging.engines.child import WireTensor
from ovir.diagnostics.codes import ENGINE, NO_ENGINE
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import InputError, RunError
from ovir.ir.executed import ExecutedGraph, read_executed
from ovir.model import Model, save_model
from ovir.system.interrupts import temporary_folder, uninterrupted
from ovir.system.processes import ChildProcess, ending_of, why_not_started

KINDS = ("openvino", "onnxruntime", "python")
"""The engines. The first two need the packages of their names, which extras of ovir of the same names install."""


class EngineError(RunError):
    """Another engine refused a model or failed to run it."""


class UnsupportedError(EngineError):
    """An engine does not run models of this kind, and says so."""


class EngineDiedError(EngineError):
    """The process of an engine crashed, or took longer than allowed and was stopped."""


class EngineHungError(EngineDiedError):
    """The process of an engine took longer than allowed."""


class EngineMissingError(EngineError, InputError):
    """The engine is not installed, or has no such device or property."""


class LoadedModel(AbstractContextManager["LoadedModel"]):
    """A model that an engine has compiled; it is lost with the process of the engine."""

    def __init__(
        self,
        engine: EngineProcess,
        number: int,
        facts: Mapping[str, Any],
        arguments: tuple[str | Path, Sequence[str], Sequence[ElementType] | None],
    ) -> None:
        self.facts = facts
        """The facts that the engine reports. openvino: ``precision``, and the ``devices`` behind AUTO, HETERO and
        MULTI. onnxruntime: ``inputs`` (names, element types), ``outputs``, and ``tensors``, the names of those tensors
        that were asked for and that it computes."""
        self._engine, self._number, self._arguments = engine, number, arguments
        self._start = engine.starts

    @property
    def precision(self) -> str | None:
        """Return the element type in which the device computes, if it says so."""
        found: str | None = self.facts.get("precision")
        return None if found == "dynamic" else found

    @property
    def is_lost(self) -> bool:
        """Return whether the process that has compiled it has ended."""
        return not self._engine.is_open or self._engine.starts != self._start

    def infer(
        self, inputs: Sequence[Array], *, outputs: Sequence[str] | None = None, keeps_state: bool = False
    ) -> list[Array]:
        """Run the model on arrays by position and return its outputs by position.

        State starts anew, unless ``keeps_state`` continues with the state of the last run. onnxruntime computes only
        ``outputs``, if they are given.
        """
        kinds = self._arguments[-1] or [ElementType.from_dtype(array.dtype) for array in inputs]
        tensors = [_to_wire(array, kind) for array, kind in zip(inputs, kinds, strict=True)]
        names = None if outputs is None else list(outputs)
        answers = self._engine.request("infer", self._number, tensors, names, keeps_state)
        return [_from_wire(*answer) for answer in answers]

    def renew(self) -> None:
        """Go on with a new request of the compiled model; onnxruntime and functions have none."""
        self._engine.request("renew", self._number)

    def again(self) -> LoadedModel:
        """Compile the model anew, from the same file."""
        return self._engine.load(*self._arguments)

    def executed(self) -> ExecutedGraph:
        """Return the graph that an OpenVINO device executes in place of the model, with the times of the latest run if
        the device counts them; EngineError or ReadError if it has none."""
        with temporary_folder() as folder:
            path = folder / "executed.xml"
            self._engine.request("executed", self._number, os.fspath(path))
            return read_executed(path)

    def properties(self, names: Sequence[str]) -> dict[str, str]:
        """Return those of the named properties that an OpenVINO device tells for the model."""
        found: dict[str, str] = self._engine.request("properties", self._number, list(names))
        return found

    def unload(self) -> None:
        """Release the model."""
        if not self.is_lost:
            self._engine.request("unload", self._number)

    def __exit__(self, *_: object) -> None:
        self.unload()


@contextmanager
def saved(model: Model) -> Iterator[Path]:
    """Yield the path of a file with a model, which exists during the ``with`` block."""
    with temporary_folder() as folder:
        save_model(model, folder / "model.xml")
        yield folder / "model.xml"


class EngineProcess:
    """Another engine that runs models, such as ``openvino:CPU``, ``openvino:GPU.0``, ``onnxruntime`` or, for a function
    of a Python file, ``python:compiler.py:run``.

    Its process starts with the first use, and again after a crash; loaded models are lost then. Use it in a ``with``
    block. ``config`` holds properties of the device, such as ``{"INFERENCE_PRECISION_HINT": "bf16"}``. ``timeout`` is
    the number of seconds that one request may take; the start of the process may take a minute in any case.
    ``interpreter`` is another Python, from 3.8 on, which has the package of the engine.
    """

    def __init__(
        self,
        name: str,
        config: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
        interpreter: str | None = None,
    ) -> None:
        self.name = name
        self.kind, _, self.device = name.partition(":")
        if self.kind not in KINDS:
            message = f"unknown engine {name!r}: expected openvino:DEVICE, onnxruntime or python:FILE.py:FUNCTION"
            raise InputError.usage(message)
        self.config = dict(config or {})
        self.timeout = timeout
        self.interpreter = interpreter
        self.description = name
        self.starts = 0
        """The number of times that a process was started."""
        self._process: ChildProcess | None = None
        self._messages: Any = None

    def open(self) -> None:
        """Start the process, so that the engine is known to be there; raise EngineMissingError if it is not."""
        if self._process is None:
            self._start()

    @property
    def is_open(self) -> bool:
        """Return whether the process is there."""
        return self._process is not None

    def load(
        self, path: str | Path, outputs: Sequence[str] = (), types: Sequence[ElementType] | None = None
    ) -> LoadedModel:
        """Compile the model in a file; onnxruntime makes the tensors of these names outputs, if the model has them.

        ``types`` are the element types of the inputs, where NumPy's dtypes do not tell them (u1, u3, u6, nf4). Raises
        EngineError if the engine refuses the model, EngineDiedError if the process does not survive it.
        """
        number, facts = self.request("load", os.fspath(path), list(outputs))
        return LoadedModel(self, number, facts, (path, outputs, types))

    @contextmanager
    def compiled(self, model: Model) -> Iterator[LoadedModel]:
        """Compile a model for a ``with`` block; raise the errors of ``load``."""
        types = [port.element_type for port in model.inputs]
        with saved(model) as path, self.load(path, types=types) as loaded:
            yield loaded

    def query(self, path: str | Path, weights: str | None = None) -> list[str]:
        """Return the names of the layers in a file that an OpenVINO device says it supports."""
        names: list[str] = self.request("query", os.fspath(path), weights or "")
        return names

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the process."""
        if self._process is not None:
            self._process.end()
            self._process = None
        if self._messages is not None:
            self._messages.close()
            self._messages = None

    # ----- requests

    def request(self, command: str, *arguments: Any) -> Any:
        """Return the answer to a request; raise EngineError."""
        self.open()
        return self._call(command, *arguments)

    def _start(self) -> None:
        python = [sys.executable, "-P"] if self.interpreter is None else [self.interpreter]
        program = Path(__file__).with_name("child.py")
        with uninterrupted():
            self._messages = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the process
            try:
                pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._messages}
                self._process = ChildProcess([*python, os.fspath(program)], **pipes)
            except OSError as error:
                message = f"{self.name}: cannot start: {why_not_started(python[0], error)}"
                raise EngineMissingError(diagnose(NO_ENGINE, message)) from None
        self.starts += 1
        try:
            self.description = self._call("open", self.kind, self.device, self.config)
        except BaseException:
            self.close()
            raise

    def _call(self, command: str, *arguments: Any) -> Any:
        process = self._process
        assert process is not None
        limit = None if self.timeout is None else max(self.timeout, _START if command == "open" else 0.0)
        try:
            with process.killed_after(limit) as expired:
                requests, answers = cast("Any", process.stdin), cast("Any", process.stdout)
                pickle.dump((command, *arguments), requests, 5)
                requests.flush()
                status, value = _loaded(answers)
        except (EOFError, OSError):
            raise self._died(command, limit if expired.is_set() else None) from None
        except BaseException:  # an interrupt between request and answer: the next answer would be a wrong one
            self.close()
            raise
        if status == "ok":
            return value
        raise self._error(status, command, value)

    def _error(self, status: str, command: str, value: str) -> EngineError:
        if status == "missing":
            hint = f'install it with `pip install "ovir[{self.kind}]"`'
            message = f"{self.name} needs the package {value}, which is missing"
            return EngineMissingError(diagnose(NO_ENGINE, message, hint=hint))
        if status == "unusable":
            return EngineMissingError(diagnose(NO_ENGINE, f"{self.name}: {_one_line(value)}"))
        kind = UnsupportedError if status == "unsupported" else EngineError
        return kind(diagnose(ENGINE, f"{self.description}: {_WHAT[command]}: {_one_line(value)}"))

    def _died(self, command: str, limit: float | None) -> EngineDiedError:
        """Return the error of a process that has ended, or was stopped after ``limit`` seconds."""
        assert self._process is not None
        if limit is not None:
            reason = f"took longer than {limit:g} s and was stopped"
        else:
            reason = f"ended with {ending_of(self._process.wait())}"
        self._messages.seek(0)
        last = self._messages.read()[-_MOST_TEXT:].decode("utf-8", "replace").strip()
        self.close()
        hint = f"its last message: {_one_line(last)}" if last else None
        message = f"{self.description}: {_WHAT[command]}: the process {reason}"
        kind = EngineDiedError if limit is None else EngineHungError
        return kind(diagnose(ENGINE, message, hint=hint))


_WHAT = {
    "open": "cannot start",
    "load": "cannot compile the model",
    "executed": "cannot show its executed graph",
    "properties": "cannot tell its properties",
    "query": "cannot say what it supports",
    "unload": "cannot release a model",
    "renew": "cannot create an infer request",
    "infer": "cannot run the model",
}
_START = 60.0
"""The seconds that a process may take to import an engine, which is slow on a busy machine."""
_MOST_TEXT = 2000  # characters of a message of an engine


def _loaded(stream: Any) -> Any:
    """Return the next answer of an engine; raise EOFError if the stream holds something else."""
    try:
        return pickle.load(stream)
    except (pickle.UnpicklingError, ValueError, ImportError, AttributeError, IndexError, KeyError) as error:
        raise EOFError(f"no answer: {error}") from None


def _to_wire(array: Array, element_type: ElementType) -> WireTensor:
    if element_type.kind == "string":
        return "string", array.shape, [str(text) for text in array.ravel()]
    return str(element_type), array.shape, pickle.PickleBuffer(encode(array, element_type).data)


def _from_wire(name: str, shape: tuple[int, ...], content: Any) -> Array:
    element_type = ElementType.parse(name)
    if element_type.kind == "string":
        return np.array(content, dtype=element_type.to_dtype()).reshape(shape)
    return decode(np.frombuffer(content, np.uint8), element_type, shape)


def _one_line(text: str) -> str:
    """Return a message of an engine in one line, without the places in its source code where it was raised."""
    return " ".join(re.sub(_RAISED, "", text)[-_MOST_TEXT:].split())


_RAISED = re.compile(r"^\s*Exception from \S+:\d+:$", re.MULTILINE)
