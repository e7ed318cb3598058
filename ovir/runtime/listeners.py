"""Observation of a run: the protocol of listeners, the tap that copies outputs, the collector of kernel reports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from ovir.core.arrays import Array
from ovir.diagnostics.codes import USAGE, Code, Severity
from ovir.diagnostics.diagnostic import Diagnostic, diagnose
from ovir.diagnostics.errors import InputError, OperatorError
from ovir.graph.layers import Layer
from ovir.graph.model import Model

MAX_REPORTS = 1000
"""The most reports of one run; a loop can meet more excluded values than anybody reads."""


class Listener(Protocol):
    """An object that is called at each step of a run. Arrays are valid only during the call: copy what you keep.

    An exception of a listener ends the run and reaches its caller unchanged.
    """

    def will_run(self, layer: Layer, inputs: Sequence[Array]) -> None: ...

    def did_run(self, layer: Layer, inputs: Sequence[Array], outputs: Sequence[Array]) -> None: ...


class ListenerFailed(BaseException):
    """Carries an exception of a listener past the kernels of the enclosing layers."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


class Tap:
    """A listener that keeps copies of the outputs of layers, given by name; in bodies as ``outer/body/name``.

    Of a layer that runs several times, for example in a Loop, the last outputs are kept.
    """

    def __init__(self, names: Sequence[str], model: Model) -> None:
        known = {full_name(layer) for layer in all_layers(model)}
        if unknown := [name for name in names if name not in known]:
            raise InputError(diagnose(USAGE, f"no layer is named {unknown[0]!r}, which was to be tapped"))
        self.names = frozenset(names)
        self.arrays: dict[str, list[Array]] = {}

    def see_inputs(self, model: Model, arrays: Sequence[Array]) -> None:
        """Copy parameters, which are not steps: their values are known before the run."""
        for port, array in zip(model.inputs, arrays, strict=True):
            self.did_run(port.layer, (), (array,))

    def will_run(self, layer: Layer, inputs: Sequence[Array]) -> None:
        """Do nothing before a layer."""

    def did_run(self, layer: Layer, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        name = full_name(layer)
        if name in self.names:
            self.arrays[name] = [np.array(array) for array in outputs]


class Reports:
    """Collects the reports of kernels, each once, with the layer."""

    def __init__(self, strict: bool) -> None:
        self.strict = strict
        self._found: dict[Diagnostic, None] = {}

    def add(self, code: Code, message: str, layer: Layer | None) -> None:
        if self.strict:
            raise OperatorError(message, code)
        if len(self._found) < MAX_REPORTS:
            place = layer.place if layer else None
            self._found.setdefault(diagnose(code, message, place, severity=Severity.WARNING))

    @property
    def found(self) -> list[Diagnostic]:
        return list(self._found)


def full_name(layer: Layer) -> str:
    """Return the name of a layer, in a body preceded by the names of the enclosing layers."""
    return layer.scope + layer.name


def all_layers(model: Model) -> Iterator[Layer]:
    """Yield the layers of a model and of all its bodies."""
    for layer in model.layers:
        yield layer
        for body in layer.bodies.values():
            yield from all_layers(body)


def matching_layers(model: Model, pattern: str) -> list[str]:
    """Return the full names of the layers that a regular expression matches."""
    names = (full_name(layer) for layer in all_layers(model) if layer.type not in ("Parameter", "Result"))
    return [name for name in names if re.search(pattern, name)]
