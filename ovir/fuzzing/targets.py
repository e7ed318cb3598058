"""The other side for random models: an engine in a process of its own, or a function."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from itertools import islice
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.debugging.device_properties import PROPERTIES
from ovir.debugging.engines.process import EngineError, EngineProcess, UnsupportedError, saved
from ovir.debugging.repeats import WAYS, repeated
from ovir.diagnostics.codes import ENGINE
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import InputError
from ovir.lowering.releases import Release, parse_release
from ovir.model import Model

Compiler = Callable[[str, Sequence[Array]], Sequence[Any]]
"""A function that takes the path of an .xml and the arrays of its inputs, and returns those of its outputs. It raises
NotImplementedError for a model that it does not support."""

_PRECISE = ("INFERENCE_PRECISION_HINT", "DYNAMIC_QUANTIZATION_GROUP_SIZE")
"""Properties with which OpenVINO's CPU computes in f32. Without them, some processors compute in bf16."""


def precise(against: str) -> dict[str, str]:
    """Return the properties of a side unless others are given."""
    release = old_release(against)
    if release is None and against not in ("openvino", "openvino:CPU"):
        return {}
    if release is not None and release < (2023, 0):
        return {"ENFORCE_BF16": "NO"}
    rows = (row for row in PROPERTIES if row.name in _PRECISE)
    return {row.name: row.exact for row in rows if release is None or release >= row.since}


def old_release(against: object) -> Release | None:
    """Return the release of ``runtime:RELEASE=PYTHON``; None for other sides."""
    kind, _, rest = str(against).partition(":")
    return parse_release(rest.partition("=")[0]) if kind == "runtime" else None


class Engine:
    """An engine in a process of its own, which may crash or hang."""

    def __init__(self, name: str, config: Mapping[str, str], timeout: float, interpreter: str | None = None) -> None:
        self._process = EngineProcess(name, config, timeout=timeout, interpreter=interpreter)
        self.precision: str | None = None
        """The element type in which it computes real numbers, if it says so."""

    @property
    def description(self) -> str:
        """Return the name of the engine with its version; raise EngineMissingError if it is not there."""
        self._process.open()
        return self._process.description

    def run(self, model: Model, inputs: Sequence[Array], times: int, *, anew: bool = False) -> list[list[Array]]:
        """Return the outputs of a model for several runs, with ``anew`` also of as many in new requests, and after new
        compilations.

        Raises UnsupportedError for a model that the other side is known not to run, otherwise EngineError.
        """
        try:
            with self._process.compiled(model) as loaded:
                self.precision = loaded.precision
                with closing(repeated(times, loaded, inputs)) as runs:  # the device may die at the end
                    return [results for _, results in islice(runs, len(WAYS) * times if anew else times)]
        except EngineError as error:
            is_refused = type(error) is EngineError
            if is_refused and (_SAYS_SO.search(error.diagnostic.message) or not self._claims(model)):
                raise UnsupportedError(error.diagnostic) from None
            raise

    def _claims(self, model: Model) -> bool:
        """Return whether the device says that it supports all layers of a model."""
        if self._process.kind != "openvino":
            return True
        try:
            with saved(model) as path:
                supported = set(self._process.query(path))
        except EngineError:
            return False
        return all(layer.name in supported for layer in model.layers if not layer.is_dead)

    def close(self) -> None:
        self._process.close()


_SAYS_SO = re.compile("(?i)not support|unsupported|not implemented|cannot be created for string")
"""Phrases of messages that declare a model unsupported."""


class Function:
    """A function in this process."""

    precision: str | None = None

    def __init__(self, function: Compiler) -> None:
        self._function = function
        self.description = getattr(function, "__qualname__", type(function).__name__)

    def run(self, model: Model, inputs: Sequence[Array], times: int, *, anew: bool = False) -> list[list[Array]]:
        times *= len(WAYS) if anew else 1
        with saved(model) as path:
            file = os.fspath(path)
            try:
                results = [self._function(file, list(inputs)) for _ in range(times)]
            except NotImplementedError as error:
                raise UnsupportedError(diagnose(ENGINE, str(error))) from None
            except Exception as error:  # a compiler under development raises anything
                raise EngineError(diagnose(ENGINE, f"{type(error).__name__}: {error}")) from None
        for result in results:
            if not isinstance(result, list | tuple):
                message = f"{self.description} must return a list of arrays, got {type(result).__name__}"
                raise InputError.usage(message)
        return [[np.asarray(array) for array in result] for result in results]

    def close(self) -> None:
        """Do nothing."""


Target = Engine | Function
"""The other side."""


def open_target(against: str | Compiler, config: Mapping[str, str] | None, timeout: float) -> Target:
    """Return the other side for models; raise InputError if it does not exist."""
    kind, _, device = str(against).partition(":")
    if config and (callable(against) or kind == "python"):
        raise InputError.usage("holds properties of a device, but the other side is a function", option="config")
    if callable(against):
        return Function(against)
    used = precise(against) if config is None else config
    if kind == "runtime":
        if not (interpreter := device.partition("=")[2]):
            raise InputError.usage(f"{against!r} names no Python: expected runtime:2023.3=PYTHON")
        return Engine("openvino:CPU", used, timeout, interpreter)
    if kind not in ("openvino", "python"):
        raise InputError.usage(
            f"cannot fuzz {against!r}: expected openvino:DEVICE, runtime:RELEASE=PYTHON, python:FILE.py:FUNCTION or a "
            "function"
        )
    return Engine(against, used, timeout)
